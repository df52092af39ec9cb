//! `pt2onnx inspect`: what an archive holds, and whether it can be converted, as text or JSON.

use crate::{
    args::{Inspect, defaults},
    error::CommandError,
    output::{print, print_json},
    verdict::Verdict,
};
use pt2onnx::{
    End, Exporter, ProgramSummary, Report, StoredTensors, TorchScriptSummary, WarningKind,
    printable::message,
};
use serde_json::{Map, Value, json};
use std::fmt::{self, Write};

/// Prints what an archive holds.
pub fn inspect(args: Inspect) -> Result<(), CommandError> {
    let mut options = defaults();
    args.script.put(&mut options);
    let exporter = Exporter::with_options(options)?;
    let mut verdict = Verdict::of(&args.model, || exporter.attempt(&args.model));
    let Some(report) = verdict.report.take().filter(|r| holds_something(r)) else {
        return verdict.error.map_or(Ok(()), Err);
    };
    if args.json {
        verdict.report = Some(report);
        return print_json(&as_json(&verdict), true);
    }
    let mut out = String::new();
    // A String takes whatever is written to it.
    let _ = describe(&mut out, &report, verdict.error.as_ref());
    print(&out)
}

/// Whether an archive could be read. A TorchScript archive may leave the types of its inputs open.
fn holds_something(report: &Report) -> bool {
    report.program.is_some() || report.torchscript.is_some()
}

/// The JSON of `check`, and the program, its weights and its ops.
fn as_json(verdict: &Verdict) -> Value {
    let report = verdict.report.as_ref();
    let weights = report.and_then(|r| r.stored.as_ref()).map(|weights| {
        json!({
            "tensors": weights.tensors,
            "bytes": weights.bytes,
            "shared": weights.shared,
            "absent": weights.absent,
            "absent_bytes": weights.absent_bytes,
        })
    });
    let own = json!({
        "torchscript": report.map(|r| &r.torchscript),
        "program": report.map(|r| &r.program),
        "weights": weights,
        "ops": report.map(|r| &r.ops),
    });
    let parts = [verdict.json(), own];
    let entries = parts.into_iter().filter_map(|part| match part {
        Value::Object(entries) => Some(entries),
        _ => None,
    });
    Value::Object(entries.flatten().collect::<Map<_, _>>())
}

fn describe(out: &mut String, report: &Report, error: Option<&CommandError>) -> fmt::Result {
    if let Some(archive) = &report.torchscript {
        describe_torchscript(out, archive)?;
    }
    if let Some(program) = &report.program {
        if report.torchscript.is_none() {
            let (torch, schema) = (message(&program.torch), &program.schema);
            writeln!(out, "program: torch {torch}, export schema {schema}")?;
        }
        describe_program(out, program)?;
    }
    if let Some(weights) = &report.stored {
        describe_weights(out, weights)?;
    }
    let ops = &report.ops;
    if !ops.is_empty() || report.program.is_some() {
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
    let sizes = report.warnings.iter().filter(|w| w.kind == WarningKind::Specialised);
    for (i, warning) in sizes.enumerate() {
        let space = if i == 0 { "\n" } else { "" };
        writeln!(out, "{space}warning: {}", message(&warning.message))?;
    }
    match error {
        Some(error) => {
            write!(out, "\ncannot be converted: {}\n{}", error.what(), error.details())
        }
        None => writeln!(out, "\ncan be converted"),
    }
}

fn describe_torchscript(out: &mut String, archive: &TorchScriptSummary) -> fmt::Result {
    let TorchScriptSummary { version, class, methods, .. } = archive;
    writeln!(out, "archive: TorchScript, format version {version}, class {}", message(class))?;
    writeln!(out, "\nmethods:")?;
    methods.iter().try_for_each(|method| writeln!(out, "  {}", message(method)))
}

fn describe_program(out: &mut String, program: &ProgramSummary) -> fmt::Result {
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
        writeln!(out, "  {}: {}", message(&dim.symbol), dim.range())?;
    }
    if !program.checks.is_empty() {
        writeln!(out, "\nchecks that the model does not make:")?;
    }
    program.checks.iter().try_for_each(|check| writeln!(out, "  {}", message(check)))
}

fn describe_weights(out: &mut String, weights: &StoredTensors) -> fmt::Result {
    write!(out, "\nweights: {} tensors, {} bytes", weights.tensors, weights.bytes)?;
    if weights.shared > 0 {
        write!(out, ", {} sharing the storage of others", weights.shared)?;
    }
    if weights.absent > 0 {
        let (n, bytes) = (weights.absent, weights.absent_bytes);
        write!(out, ", {n} without values (fake), {bytes} bytes")?;
    }
    writeln!(out)
}
