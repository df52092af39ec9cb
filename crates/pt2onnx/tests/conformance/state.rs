//! Runs three steps of stateful programs with `Mutations::Pairs`, each given the state that the one
//! before gave.
//!
//! Outputs and state equal those of three steps in PyTorch.

use crate::{bundles, close};
use libtest_mimic::Trial;
use pt2onnx::{Exporter, Mutations, SessionOptions, Target};
use pt2onnx_tensor::Tensor;
use safetensors::SafeTensors;
use std::path::Path;

/// One test for each program of `testdata/state/stateful.tar.zst`.
pub fn trials(testdata: &Path) -> Vec<Trial> {
    let programs = bundles::unpack(&testdata.join("state/stateful.tar.zst")).into_iter();
    programs
        .map(|(name, files)| Trial::test(format!("state/{name}"), move || Ok(check(&files)?)))
        .collect()
}

fn check(files: &bundles::Files) -> Result<(), String> {
    let archive = bundles::temporary(&files["model.pt2"]);
    let exporter = Exporter::new().target(Target::OrtCpu).mutations(Mutations::Pairs);
    let mut program = exporter.export(archive.path()).map_err(|e| format!("convert: {e}"))?;
    let session = program
        .session(&SessionOptions::new().threads(1), &[])
        .map_err(|e| format!("load: {e}"))?;

    let io = SafeTensors::deserialize(&files["io.safetensors"]).map_err(|e| e.to_string())?;
    let stored = |name: String| {
        io.tensor(&name).map(|view| bundles::tensor(&view)).map_err(|e| format!("{name}: {e}"))
    };
    let own_inputs = bundles::numbered(&io, "step.0.input.").len();
    let names: Vec<String> = session.input_names().skip(own_inputs).map(str::to_owned).collect();
    assert!(!names.is_empty(), "no state comes in");
    let mut state =
        names.iter().map(|n| stored(format!("initial.{n}"))).collect::<Result<Vec<Tensor>, _>>()?;
    for step in 0..3 {
        let inputs = bundles::numbered(&io, &format!("step.{step}.input."));
        let mut outputs = session.run(&[inputs, state].concat()).map_err(|e| e.to_string())?;
        state = outputs.split_off(outputs.len() - names.len());
        let label = |e| format!("step {step}: {e}");
        let wanted = bundles::numbered(&io, &format!("step.{step}.output."));
        close(&outputs, &wanted, None).map_err(label)?;
        let wanted = names
            .iter()
            .map(|n| stored(format!("step.{step}.state.{n}")))
            .collect::<Result<Vec<_>, _>>()?;
        close(&state, &wanted, None).map_err(label)?;
    }
    Ok(())
}
