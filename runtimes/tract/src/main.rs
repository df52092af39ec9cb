//! Every case under `testdata/` converted for tract, run by tract and held against PyTorch's numbers.

#[path = "../../../crates/pt2onnx/tests/bundles/mod.rs"]
mod bundles;
#[path = "../../../crates/pt2onnx/tests/conformance/case.rs"]
mod case;

use anyhow::{Context, Result, bail};
use case::Case;
use libtest_mimic::{Arguments, Trial};
use pt2onnx::{Error, Exporter, OutputCheck, Target, Tolerance, Verdict, tensor};
use std::{path::Path, sync::Arc};
use tract_onnx::prelude::*;

fn main() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let cases = case::read_all(&testdata).into_iter().map(Arc::new);
    let trials = cases.map(|case| {
        Trial::test(case.name.clone(), move || {
            let r = check(&case).map_err(|e| format!("{e:#}").replace(char::is_control, " ")); if let Err(e) = &r { let e: String = e.chars().take(300).collect(); println!("@@ {} @@ {e}", case.name); } Ok(r?)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn check(case: &Case) -> Result<()> {
    let functions = case.functions.as_deref().unwrap_or_default();
    let exporter = Exporter::new().target(Target::Standard).functions(functions)?;
    let program = match exporter.export(case.archive.path()) {
        Err(Error::Legalise(e)) => bail!("REFUSED {e}"),
        result => result?,
    };
    let bytes = program.to_bytes()?;
    for sample in &case.samples {
        // Sizes are told, as tract's users do.
        let reader = tract_onnx::onnx().with_ignore_value_info(true).with_ignore_output_shapes(true);
        let mut model = reader.model_for_read(&mut &*bytes).context("LOAD")?;
        for (i, input) in sample.inputs.iter().enumerate() {
            let fact = InferenceFact::dt_shape(datum(input.dtype())?, input.shape());
            model.set_input_fact(i, fact).context("LOAD")?;
        }
        let model = model.into_optimized().context("OPTIMIZE")?.into_runnable().context("OPTIMIZE")?;
        let inputs = sample.inputs.iter().map(to_tract).collect::<Result<TVec<_>>>()?;
        let outputs = model.run(inputs).context("RUN")?;
        for (i, (got, wanted)) in outputs.iter().zip(&sample.outputs).enumerate() {
            let got = from_tract(got)?;
            let tolerance = Tolerance::of(wanted.dtype()).map(|own| Tolerance {
                rtol: own.rtol.max(case.tolerance.rtol),
                atol: own.atol.max(case.tolerance.atol),
            });
            let check = OutputCheck::new(&format!("output {i}"), &got, wanted, tolerance);
            match check.verdict {
                Verdict::Close | Verdict::OnlyNan => {}
                Verdict::Differs { .. } if !case.values => {}
                _ => bail!("WRONG {check}"),
            }
        }
    }
    Ok(())
}

fn datum(dtype: tensor::DType) -> Result<DatumType> {
    use tensor::DType::*;
    Ok(match dtype {
        F64 => DatumType::F64,
        F32 => DatumType::F32,
        F16 => DatumType::F16,
        I64 => DatumType::I64,
        I32 => DatumType::I32,
        I16 => DatumType::I16,
        I8 => DatumType::I8,
        U64 => DatumType::U64,
        U32 => DatumType::U32,
        U16 => DatumType::U16,
        U8 => DatumType::U8,
        Bool => DatumType::Bool,
        other => bail!("NOTYPE {other}"),
    })
}

fn to_tract(t: &tensor::Tensor) -> Result<TValue> {
    let t = unsafe { Tensor::from_raw_dt(datum(t.dtype())?, t.shape(), &t.to_bytes()) };
    Ok(t?.into())
}

fn from_tract(t: &Tensor) -> Result<tensor::Tensor> {
    use tensor::DType::*;
    let dtypes = [F64, F32, F16, I64, I32, I16, I8, U64, U32, U16, U8, Bool];
    let Some(dtype) = dtypes.into_iter().find(|d| datum(*d).is_ok_and(|d| d == t.datum_type())) else {
        bail!("NOTYPE {:?}", t.datum_type())
    };
    Ok(tensor::Tensor::new(dtype, t.shape().to_vec(), t.as_bytes().to_vec())?)
}
