//! Converts every case under `testdata/` in process, runs it in ONNX Runtime, and compares the
//! results with PyTorch's.
//!
//! Each case is a test: `cargo test --test conformance -- albert` runs those with this name. A case
//! listed in `testdata/known-failures.txt` must fail: one that passes has to leave the list. A case
//! with `refused` must be an error with this text.

#![expect(clippy::expect_used, clippy::panic, reason = "a test: cases that cannot be read stop it")]

#[path = "../bundles/mod.rs"]
mod bundles;
mod case;
mod functional;
mod opsets;
mod state;

use case::Case;
use libtest_mimic::{Arguments, Failed, Trial};
use pt2onnx::{
    DEFAULT_OPSET, Error, Exporter, Misfit, OPSETS, OnnxProgram, OutputCheck, Provenance,
    SessionOptions, Target, Tolerance, Verdict, Weights, apply_weights, opt::Level, read_weights,
    tensor::Tensor,
};
use std::{collections::BTreeMap, path::Path, sync::Arc};

fn main() {
    let arguments = Arguments::from_args();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let known = known_failures(&testdata.join("known-failures.txt"));
    let mut trials = Vec::new();
    let cases: Vec<Arc<Case>> = case::read_all(&testdata).into_iter().map(Arc::new).collect();
    for (i, case) in cases.iter().cloned().enumerate() {
        let reason = known.get(&case.name).cloned();
        // A part of them without weights, which are applied later, and at the lower levels.
        if i % 16 == 4 && !case.is_torchscript() {
            let (case, reason) = (case.clone(), reason.clone());
            trials.push(Trial::test(format!("{}, weights apart", case.name), move || {
                verdict(apart(&case), reason)
            }));
        }
        for (what, options) in variants(i, &case.name) {
            let (name, case) = (case.name.clone() + &what, case.clone());
            let reason = reason.clone();
            trials.push(Trial::test(name, move || verdict(check(&case, options), reason)));
        }
    }
    trials.extend(opsets::trials(&cases, &known));
    trials.push(Trial::test("functional programs stay as they are", move || {
        Ok(functional::check(&cases)?)
    }));
    trials.extend(state::trials(&testdata));
    assert!(!trials.is_empty(), "no cases in {}", testdata.display());
    libtest_mimic::run(&arguments, trials).exit();
}

/// How a case is exported, to be run by ONNX Runtime.
#[derive(Clone, Copy)]
struct Options {
    level: Level,
    opset: u32,
    target: Target,
}

const USUAL: Options = Options { level: Level::Fuse, opset: DEFAULT_OPSET, target: Target::OrtCpu };

/// The ways to export a case: the word in the trial's name, and the exporter.
fn variants(index: usize, case: &str) -> Vec<(String, Options)> {
    let mut all = vec![(String::new(), USUAL)];
    let first = case.starts_with("first/");
    for level in [Level::Off, Level::Simplify] {
        if first || index % 16 == 8 * level as usize {
            let options = Options { level, ..USUAL };
            all.push((format!(", optimize {}", level as u8), options));
        }
    }
    // The newest operators are what most fusions make.
    if first {
        let opset = *OPSETS.end();
        let options = Options { opset, ..USUAL };
        all.push((", newest opset".to_owned(), options));
    }
    // ONNX Runtime's own operators, where they can come up.
    let models = ["attention", "transformer", "vit", "encoder", "/models/"];
    if models.iter().any(|m| case.contains(m)) {
        let target = Target::Ort;
        let options = Options { target, ..USUAL };
        all.push((", target ort".to_owned(), options));
    }
    all
}

fn verdict(result: Result<(), String>, known: Option<String>) -> Result<(), Failed> {
    match (result, known) {
        (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        (Err(what), None) => Err(what.into()),
        (Ok(()), Some(reason)) => {
            Err(format!("passes, but known-failures.txt says: {reason}").into())
        }
    }
}

/// Lines `case: reason`; `#` starts a comment.
fn known_failures(path: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path).expect("testdata/known-failures.txt");
    let lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    let pair =
        |l: &str| l.split_once(": ").map(|(case, reason)| (case.to_owned(), reason.to_owned()));
    lines
        .map(|l| pair(l).unwrap_or_else(|| panic!("known-failures.txt: no reason in `{l}`")))
        .collect()
}

/// Converts at the opset or, where that cannot express the program, at the newest.
fn export(
    case: &Case,
    opset: u32,
    with: impl Fn(Exporter) -> Exporter,
) -> Result<OnnxProgram, String> {
    let at = |opset| with(case.exporter(opset)).export(case.archive.path());
    let program = match at(opset) {
        Err(Error::Legalise(_)) => at(*OPSETS.end()),
        result => result,
    };
    program.map_err(|e| format!("convert: {e}"))
}

/// Writes the model without weights, reads it back and gives it the archive's.
fn apart(case: &Case) -> Result<(), String> {
    let without = |e: Exporter| e.target(Target::OrtCpu).weights(Weights::None);
    let mut program = export(case, DEFAULT_OPSET, without)?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("m.onnx");
    program.save(&file).map_err(|e| format!("write: {e}"))?;
    let mut read = pt2onnx::writer::read(&file).map_err(|e| format!("read: {e}"))?;
    let weights = read_weights(case.archive.path()).map_err(|e| format!("weights: {e}"))?;
    let error = |e: Vec<Misfit>| Error::Weights(e).to_string();
    apply_weights(&mut read, &weights).map_err(error)?;
    *program.model_mut() = read;
    run(case, program)
}

/// Whether a program is an error with this text.
fn refused(case: &Case, text: &str) -> Result<(), String> {
    match export(case, DEFAULT_OPSET, |e| e) {
        Ok(_) => Err(format!("converts, but is to be refused: {text}")),
        Err(error) if error.contains(text) => Ok(()),
        Err(error) => Err(format!("{error}\nis to be refused: {text}")),
    }
}

fn check(case: &Case, options: Options) -> Result<(), String> {
    if let Some(text) = &case.refused {
        return refused(case, text);
    }
    let Options { level, opset, target } = options;
    // The standard needs another form where ONNX Runtime is bridged to.
    export(case, opset, |e| e.optimize(level).provenance(Provenance::None))?;
    let program = export(case, opset, |e| e.optimize(level).target(target))?;
    let model = program.to_bytes().map_err(|e| format!("write: {e}"))?;
    let read = pt2onnx::writer::from_bytes(model.clone()).map_err(|e| format!("read: {e}"))?;
    let again = pt2onnx::writer::to_bytes(&read).map_err(|e| format!("write again: {e}"))?;
    if again != model {
        return Err("what is read and written again is another model".to_owned());
    }
    run(case, program)
}

fn run(case: &Case, mut program: OnnxProgram) -> Result<(), String> {
    let options = SessionOptions::new().threads(1);
    program.session(&options, &[]).map_err(|e| format!("load: {e}"))?;
    for sample in &case.samples {
        let outputs =
            program.run(&sample.inputs).map_err(|e| format!("{}run: {e}", sample.label))?;
        close(&outputs, &sample.outputs, Some(case)).map_err(|e| format!("{}{e}", sample.label))?;
    }
    Ok(())
}

/// All outputs of one run against PyTorch's: number, types, shapes, values as far as the case wants
/// it.
fn close(got: &[Tensor], wanted: &[Tensor], case: Option<&Case>) -> Result<(), String> {
    if got.len() != wanted.len() {
        let (got, wanted) = (got.len(), wanted.len());
        return Err(format!("{got} outputs, the program has {wanted}"));
    }
    for (i, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        let wider = case.map(|c| c.tolerance);
        let tolerance = Tolerance::of(wanted.dtype()).map(|own| Tolerance {
            rtol: wider.map_or(own.rtol, |w| own.rtol.max(w.rtol)),
            atol: wider.map_or(own.atol, |w| own.atol.max(w.atol)),
        });
        let check = OutputCheck::new(&format!("output {i}"), got, wanted, tolerance);
        match check.verdict {
            // Some ops are tested with what gives NaN only.
            Verdict::Close | Verdict::OnlyNan => {}
            Verdict::Differs { .. } if case.is_some_and(|c| !c.values) => {}
            _ => return Err(check.to_string()),
        }
    }
    Ok(())
}
