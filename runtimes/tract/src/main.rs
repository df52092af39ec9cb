//! Cases of `testdata/` converted for tract, run by tract and held against PyTorch's numbers.
//!
//! A case that pt2onnx refuses for tract counts as passed: an error is what the target promises.
//! Those in `known-failures.txt` must fail.

#[path = "../../../crates/pt2onnx/tests/bundles/mod.rs"]
mod bundles;
#[expect(dead_code, reason = "not all of it is used here")]
#[path = "../../../crates/pt2onnx/tests/conformance/case.rs"]
mod case;

use anyhow::{Context, Result, bail};
use case::Case;
use libtest_mimic::{Arguments, Failed, Trial};
use pt2onnx::{Error, Exporter, OutputCheck, Target, Tolerance, Verdict, tensor};
use std::{borrow::Cow, path::Path};
use tract_onnx::prelude::*;

/// Whole models and what models are made of; the bundles of single ops would take an hour.
const BUNDLES: &[&str] = &["first/", "models/", "control/", "exportdb/", "neural/"];

fn main() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let known: Vec<&str> = include_str!("../known-failures.txt")
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect();
    let cases = case::read_all(&testdata).into_iter();
    let cases = cases.filter(|c| BUNDLES.iter().any(|bundle| c.name.starts_with(bundle)));
    let trials = cases.map(|case| {
        let known = known.contains(&case.name.as_str());
        Trial::test(case.name.clone(), move || verdict(check(&case), known))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn verdict(result: Result<()>, known: bool) -> Result<(), Failed> {
    match (result, known) {
        (Ok(()), false) | (Err(_), true) => Ok(()),
        (Ok(()), true) => Err("passes, but known-failures.txt lists it".into()),
        (Err(e), false) => Err(format!("{e:#}").into()),
    }
}

fn check(case: &Case) -> Result<()> {
    let exporter = Exporter::new().target(Target::Tract);
    let program = match exporter.export(case.archive.path()) {
        Err(Error::Legalise(_) | Error::Target(_)) => return Ok(()),
        result => result?,
    };
    let bytes = program.to_bytes()?;
    for sample in &case.samples {
        // Sizes are told, as tract's users do.
        let reader = tract_onnx::onnx()
            .with_ignore_value_info(true)
            .with_ignore_output_shapes(true);
        let mut model = reader.model_for_read(&mut &*bytes)?;
        for (i, input) in sample.inputs.iter().enumerate() {
            let fact = InferenceFact::dt_shape(datum(input.dtype())?, input.shape());
            model.set_input_fact(i, fact)?;
        }
        let model = model
            .into_optimized()
            .context("optimize")?
            .into_runnable()?;
        let inputs = sample
            .inputs
            .iter()
            .map(to_tract)
            .collect::<Result<TVec<_>>>()?;
        let outputs = model.run(inputs).context("run")?;
        for (i, (got, wanted)) in outputs.iter().zip(&sample.outputs).enumerate() {
            let tolerance = Tolerance::of(wanted.dtype()).map(|own| Tolerance {
                rtol: own.rtol.max(case.tolerance.rtol),
                atol: own.atol.max(case.tolerance.atol),
            });
            let check =
                OutputCheck::new(&format!("output {i}"), &from_tract(got)?, wanted, tolerance);
            match check.verdict {
                Verdict::Close | Verdict::OnlyNan => {}
                Verdict::Differs { .. } if !case.values => {}
                _ => bail!("{check}"),
            }
        }
    }
    Ok(())
}

const TYPES: &[(tensor::DType, DatumType)] = &[
    (tensor::DType::F64, DatumType::F64),
    (tensor::DType::F32, DatumType::F32),
    (tensor::DType::F16, DatumType::F16),
    (tensor::DType::I64, DatumType::I64),
    (tensor::DType::I32, DatumType::I32),
    (tensor::DType::I16, DatumType::I16),
    (tensor::DType::I8, DatumType::I8),
    (tensor::DType::U64, DatumType::U64),
    (tensor::DType::U32, DatumType::U32),
    (tensor::DType::U16, DatumType::U16),
    (tensor::DType::U8, DatumType::U8),
    (tensor::DType::Bool, DatumType::Bool),
];

fn datum(dtype: tensor::DType) -> Result<DatumType> {
    let row = TYPES.iter().find(|(own, _)| *own == dtype);
    Ok(row.with_context(|| format!("tract has no {dtype}"))?.1)
}

fn to_tract(t: &tensor::Tensor) -> Result<TValue> {
    // Sound: bytes of that many elements of that type.
    let t = unsafe { Tensor::from_raw_dt(datum(t.dtype())?, t.shape(), &t.to_bytes()) };
    Ok(t?.into())
}

fn from_tract(t: &Tensor) -> Result<tensor::Tensor> {
    // Sizes have a type of their own.
    let t = if t.datum_type() == TDim::datum_type() { t.cast_to::<i64>()? } else { Cow::Borrowed(t) };
    let row = TYPES.iter().find(|(_, theirs)| *theirs == t.datum_type());
    let (dtype, _) = row.with_context(|| format!("{:?}", t.datum_type()))?;
    Ok(tensor::Tensor::new(
        *dtype,
        t.shape().to_vec(),
        t.as_bytes().to_vec(),
    )?)
}
