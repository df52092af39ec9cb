//! `pt2onnx inspect`: what an archive holds, and whether it can be converted, as text or JSON.

use crate::{
    error::CommandError,
    output::{print, print_json},
    verdict::Verdict,
};
use pt2onnx::{
    End, Error, Exporter, ProgramSummary,
    fx::{Constant, ExportedProgram, archive},
    printable::message,
    tensor::Tensor,
};
use serde_json::{Map, Value, json};
use std::{
    collections::HashSet,
    fmt::{self, Write},
    path::Path,
};

/// Prints what an archive holds.
pub fn inspect(path: &Path, json: bool) -> Result<(), CommandError> {
    let program = archive::read(path).map_err(Error::Archive)?;
    let weights = Weights::of(&program);
    let verdict = Verdict::of(path, || Exporter::new().attempt_program(program));
    if json {
        return print_json(&as_json(&verdict, &weights), true);
    }
    let mut out = String::new();
    // A String takes whatever is written to it.
    let _ = describe(&mut out, &verdict, &weights);
    print(&out)
}

/// The JSON of `check`, and the program, its weights and its ops.
fn as_json(verdict: &Verdict, weights: &Weights) -> Value {
    let report = verdict.report.as_ref();
    let own = json!({
        "program": report.map(|r| &r.program),
        "weights": {
            "tensors": weights.tensors,
            "bytes": weights.bytes,
            "shared": weights.shared,
            "absent": weights.absent,
            "absent_bytes": weights.absent_bytes,
        },
        "ops": report.map(|r| &r.ops),
    });
    let parts = [verdict.json(), own];
    let entries = parts.into_iter().filter_map(|part| match part {
        Value::Object(entries) => Some(entries),
        _ => None,
    });
    Value::Object(entries.flatten().collect::<Map<_, _>>())
}

fn describe(out: &mut String, verdict: &Verdict, weights: &Weights) -> fmt::Result {
    let report = verdict.report.as_ref();
    if let Some(program) = report.and_then(|r| r.program.as_ref()) {
        describe_program(out, program)?;
    }
    weights.describe(out)?;
    if let Some(ops) = report.map(|r| &r.ops) {
        let width = ops.iter().map(|op| message(&op.op).len()).max().unwrap_or_default();
        let nodes: usize = ops.iter().map(|op| op.count).sum();
        writeln!(out, "\nops: {} in {nodes} nodes", ops.len())?;
        for op in ops {
            let verdict = match (op.supported, op.failed) {
                (false, _) => "  NOT SUPPORTED".to_owned(),
                (true, 0) => String::new(),
                (true, n) => format!("  {n} NOT CONVERTIBLE"),
            };
            writeln!(out, "  {:width$} {:>6}{verdict}", message(&op.op), op.count)?;
        }
    }
    match &verdict.error {
        Some(error) => {
            write!(out, "\ncannot be converted: {}\n{}", error.what(), error.details())
        }
        None => writeln!(out, "\ncan be converted"),
    }
}

fn describe_program(out: &mut String, program: &ProgramSummary) -> fmt::Result {
    let ProgramSummary { torch, schema, .. } = program;
    writeln!(out, "program: torch {}, export schema {schema}", message(torch))?;
    let end = |out: &mut String, end: &End| match &end.name {
        Some(name) => writeln!(out, "  {}: {}", message(name), message(&end.r#type)),
        None => writeln!(out, "  {}", message(&end.r#type)),
    };
    writeln!(out, "\ninputs:")?;
    program.inputs.iter().try_for_each(|e| end(out, e))?;
    writeln!(out, "\noutputs:")?;
    program.outputs.iter().try_for_each(|e| end(out, e))?;
    if !program.mutations.is_empty() {
        writeln!(out, "\nwrites into:")?;
    }
    for written in &program.mutations {
        writeln!(out, "  {}", message(written))?;
    }
    if !program.dimensions.is_empty() {
        writeln!(out, "\ndynamic dimensions:")?;
    }
    for dim in &program.dimensions {
        let bounds = match (dim.min, dim.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("{min} and more"),
            (None, Some(max)) => format!("up to {max}"),
            (None, None) => "any".to_owned(),
        };
        writeln!(out, "  {}: {bounds}", message(&dim.symbol))?;
    }
    Ok(())
}

/// The weights and constants of a program.
#[derive(Default)]
struct Weights {
    tensors: usize,
    /// Of each storage once.
    bytes: usize,
    /// Tensors that share the storage of an earlier one.
    shared: usize,
    /// Tensors without values.
    absent: usize,
    absent_bytes: usize,
}

impl Weights {
    fn of(program: &ExportedProgram) -> Self {
        let constants = program.constants.values().filter_map(|c| match c {
            Constant::Tensor(t) => Some(t),
            Constant::Opaque { .. } => None,
        });
        let all: Vec<&Tensor> = program.state.values().chain(constants).collect();
        let mut weights = Self { tensors: all.len(), ..Self::default() };
        let mut storages = HashSet::new();
        for storage in all.iter().filter_map(|t| t.storage()) {
            let data = storage.bytes();
            match data.is_empty() || storages.insert((data.as_ptr(), data.len())) {
                true => weights.bytes += data.len(),
                false => weights.shared += 1,
            }
        }
        for absent in all.iter().filter(|t| !t.has_data()) {
            weights.absent += 1;
            weights.absent_bytes += absent.nbytes();
        }
        weights
    }

    fn describe(&self, out: &mut String) -> fmt::Result {
        write!(out, "\nweights: {} tensors, {} bytes", self.tensors, self.bytes)?;
        if self.shared > 0 {
            write!(out, ", {} sharing the storage of others", self.shared)?;
        }
        if self.absent > 0 {
            let (n, bytes) = (self.absent, self.absent_bytes);
            write!(out, ", {n} without values (fake), {bytes} bytes")?;
        }
        writeln!(out)
    }
}
