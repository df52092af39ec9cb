//! Writes a report as Markdown.

use super::{End, Report, ReportedFailure, Reports, Tensors};
use crate::{
    group::group,
    printable::{lines, message},
    warning::grouped,
};
use std::fmt::{self, Display, Write};

pub(super) fn write(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = sections(&mut out, report).and_then(|()| texts(&mut out, report));
    out
}

/// Several reports: a table of all, the ops that prevent conversion, and each report without its
/// texts, one level deeper.
pub(super) fn write_all(reports: &Reports<'_>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = overview(&mut out, reports);
    for report in reports.all().iter().filter_map(|named| named.report) {
        let mut one = String::new();
        let _ = sections(&mut one, report);
        for line in one.lines() {
            // Only headings begin so: texts of programs are escaped.
            let deeper = if line.starts_with('#') { "#" } else { "" };
            let _ = writeln!(out, "{deeper}{line}");
        }
        out.push('\n');
    }
    out
}

fn overview(out: &mut String, reports: &Reports<'_>) -> fmt::Result {
    let all = reports.all();
    writeln!(
        out,
        "# Exports to ONNX\n\n**{} of {} converted.**\n",
        reports.converted(),
        all.len()
    )?;
    table(out, ["archive", "result", "opset", "nodes", "bytes of weights", "warnings"])?;
    for named in all {
        let name = code(&named.name);
        match named.report {
            Some(Report { success: true, model: Some(model), warnings, .. }) => {
                let (opset, nodes, bytes) = (model.opset, model.nodes, model.weights.bytes);
                let warnings = warnings.len();
                writeln!(out, "| {name} | done | {opset} | {nodes} | {bytes} | {warnings} |")?;
            }
            _ => {
                // Also within code, as the table would end there.
                let why = text(&named.why()).replace("\\|", "|").replace('|', "\\|");
                writeln!(out, "| {name} | **failed**: {why} | | | | |")?;
            }
        }
    }
    let blockers = reports.blockers();
    if !blockers.is_empty() {
        writeln!(out, "\n## Ops that prevent conversion\n")?;
        table(out, ["op", "nodes", "archives"])?;
    }
    for blocker in blockers {
        writeln!(out, "| {} | {} | {} |", code(&blocker.op), blocker.nodes, blocker.archives)?;
    }
    writeln!(out)
}

fn sections(out: &mut String, report: &Report) -> fmt::Result {
    let of = report.archive.as_ref();
    let of = of.map(|a| format!(" of {}", code(a.path.display())));
    writeln!(out, "# Export{} to ONNX\n", of.unwrap_or_default())?;
    match (&report.error, report.success) {
        (_, true) => writeln!(out, "**Done.**")?,
        (Some(error), false) => {
            let first = error.message.lines().next().unwrap_or_default();
            writeln!(out, "**Failed:** {}", text(first))?;
        }
        (None, false) => writeln!(out, "**Failed.**")?,
    }
    failures(out, &report.failures)?;
    if !report.warnings.is_empty() {
        writeln!(out, "\n## Warnings\n")?;
        for group in grouped(report.warnings.iter().map(|warning| (&(), warning))) {
            writeln!(out, "- {}", text(&group.to_string()))?;
        }
    }
    program(out, report)?;
    ops(out, report)?;
    model(out, report)?;
    compressed(out, report)?;
    environment(out, report)
}

/// The program and the model.
fn texts(out: &mut String, report: &Report) -> fmt::Result {
    block(out, "Text of the program", report.program_text.as_deref())?;
    block(out, "Text of the model", report.model_text.as_deref())
}

/// A text as an indented block: nothing in it can end that.
fn block(out: &mut String, head: &str, shown: Option<&str>) -> fmt::Result {
    if let Some(shown) = shown {
        writeln!(out, "\n## {head}\n")?;
        let shown = lines(shown);
        shown.lines().try_for_each(|line| {
            if line.is_empty() { writeln!(out) } else { writeln!(out, "    {line}") }
        })?;
    }
    Ok(())
}

fn failures(out: &mut String, failures: &[ReportedFailure]) -> fmt::Result {
    if failures.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## What prevents conversion: {}\n", failures.len())?;
    // Failures without an op are not grouped.
    let groups = group(failures.iter().enumerate(), 1, |(i, failure)| {
        (failure.op.as_ref().ok_or(*i), &failure.reason, &failure.suggestion)
    });
    for (i, group) in groups.into_iter().enumerate() {
        let (Some((_, failure)), others) = (group.first(), group.len() - 1) else {
            continue;
        };
        write!(out, "{}. ", i + 1)?;
        if let Some(op) = &failure.op {
            write!(out, "{}", code(op))?;
        }
        if let Some(node) = &failure.node {
            write!(out, ", node {}", code(node))?;
        }
        if let Some(module) = failure.module.as_ref().filter(|m| !m.is_empty()) {
            write!(out, " in module {}", code(module))?;
        }
        if failure.op.is_some() {
            write!(out, ": ")?;
        }
        writeln!(out, "{}", text(&failure.reason))?;
        if let (Some(file), Some(line)) = (&failure.file, failure.line) {
            writeln!(out, "   - {}", code(format_args!("{file}:{line}")))?;
        }
        if let Some(line) = failure.code.as_ref().filter(|c| !c.is_empty()) {
            writeln!(out, "   - {}", code(line))?;
        }
        if let Some(suggestion) = &failure.suggestion {
            writeln!(out, "   - **What to do:** {}", text(suggestion))?;
        }
        match others {
            0 => {}
            1 => writeln!(out, "   - and 1 more node for this reason")?,
            others => writeln!(out, "   - and {others} more nodes for this reason")?,
        }
    }
    Ok(())
}

fn program(out: &mut String, report: &Report) -> fmt::Result {
    let Some(program) = &report.program else {
        return Ok(());
    };
    writeln!(out, "\n## Program\n")?;
    writeln!(
        out,
        "Written by PyTorch {}, export schema {}; {} nodes.\n",
        text(&program.torch),
        program.schema,
        program.nodes
    )?;
    table(out, ["", "type", "tensors", "elements", "bytes"])?;
    for (what, tensors) in [
        ("parameters", &program.parameters),
        ("buffers", &program.buffers),
        ("constants", &program.constants),
    ] {
        let row = |out: &mut String, dtype: &str, tensors: &Tensors| {
            let Tensors { count, elements, bytes, .. } = tensors;
            writeln!(out, "| {what} | {dtype} | {count} | {elements} | {bytes} |")
        };
        match tensors.count {
            0 => row(out, "", tensors)?,
            _ => tensors.dtypes.iter().try_for_each(|(dtype, of)| row(out, dtype, of))?,
        }
    }
    ends(out, "Inputs", &program.inputs)?;
    ends(out, "Outputs", &program.outputs)?;
    if !program.dimensions.is_empty() {
        writeln!(out, "\n### Dynamic dimensions\n")?;
        for dimension in &program.dimensions {
            writeln!(out, "- {}: {}", code(&dimension.symbol), dimension.range())?;
        }
    }
    for (head, texts) in [
        ("What it writes into", &program.mutations),
        ("What it checks, and the model does not", &program.checks),
    ] {
        if !texts.is_empty() {
            writeln!(out, "\n### {head}\n")?;
        }
        texts.iter().try_for_each(|text| writeln!(out, "- {}", code(text)))?;
    }
    Ok(())
}

fn ends(out: &mut String, what: &str, ends: &[End]) -> fmt::Result {
    writeln!(out, "\n### {what}\n")?;
    for end in ends {
        match &end.name {
            Some(name) => writeln!(out, "- {}: {}", code(name), code(&end.r#type))?,
            None => writeln!(out, "- {}", text(&end.r#type))?,
        }
    }
    Ok(())
}

fn ops(out: &mut String, report: &Report) -> fmt::Result {
    if report.ops.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Ops of the program\n")?;
    table(out, ["op", "nodes", "supported", "becomes"])?;
    for op in &report.ops {
        let supported = match (op.supported, op.failed) {
            (true, 0) => "yes".to_owned(),
            (true, failed) => format!("yes, but {failed} failed"),
            (false, _) => "**no**".to_owned(),
        };
        let becomes = op.becomes.join(", ");
        let (name, count) = (code(&op.op), op.count);
        writeln!(out, "| {name} | {count} | {supported} | {becomes} |")?;
    }
    Ok(())
}

fn model(out: &mut String, report: &Report) -> fmt::Result {
    let Some(model) = &report.model else {
        return Ok(());
    };
    writeln!(out, "\n## Model\n")?;
    let (count, bytes) = (model.weights.count, model.weights.bytes);
    writeln!(
        out,
        "Opset {}, {} nodes, {count} weights of {bytes} bytes.",
        model.opset, model.nodes
    )?;
    if !model.files.is_empty() {
        writeln!(out)?;
    }
    for file in &model.files {
        let path = code(file.path.display());
        writeln!(out, "- {path}: {} bytes", file.bytes)?;
    }
    ends(out, "Inputs", &model.inputs)?;
    ends(out, "Outputs", &model.outputs)?;
    writeln!(out, "\n### Operators\n")?;
    table(out, ["operator", "nodes"])?;
    for (operator, count) in &model.operators {
        writeln!(out, "| {} | {count} |", code(operator))?;
    }
    if !model.functions.is_empty() {
        writeln!(out, "\n### Functions\n")?;
        table(out, ["function", "calls"])?;
    }
    for (function, count) in &model.functions {
        writeln!(out, "| {} | {count} |", code(function))?;
    }
    Ok(())
}

fn compressed(out: &mut String, report: &Report) -> fmt::Result {
    if report.compressed.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Compressed weights\n")?;
    table(out, ["weight", "form", "bytes before", "bytes", "SNR in dB", "largest error"])?;
    for weight in &report.compressed {
        let (name, form) = (code(&weight.name), &weight.form);
        let snr = weight.snr_db.map(|snr| format!("{snr:.1}")).unwrap_or_default();
        let error = weight.max_error.map(|error| format!("{error:.3e}")).unwrap_or_default();
        let (before, bytes) = (weight.bytes, weight.compressed_bytes);
        writeln!(out, "| {name} | {form} | {before} | {bytes} | {snr} | {error} |")?;
    }
    Ok(())
}

fn environment(out: &mut String, report: &Report) -> fmt::Result {
    let environment = &report.environment;
    writeln!(out, "\n## Environment\n")?;
    writeln!(out, "pt2onnx {} on {}, {}", environment.pt2onnx, environment.os, environment.arch)?;
    if let Some((archive, bytes)) = report.archive.as_ref().and_then(|a| Some((&a.path, a.bytes?)))
    {
        writeln!(out, "\nArchive: {}, {bytes} bytes", code(archive.display()))?;
    }
    writeln!(out, "\n### Options\n")?;
    let changed = report.options.as_ref().map_or(&[][..], |options| &options.changed);
    if changed.is_empty() {
        writeln!(out, "All have their default values.")?
    } else {
        table(out, ["option", "value"])?
    }
    for (option, value) in changed {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        writeln!(out, "| {option} | {} |", code(value))?;
    }
    writeln!(out, "\n### Time\n")?;
    table(out, ["stage", "ms"])?;
    for stage in &report.stages {
        writeln!(out, "| {} | {:.1} |", stage.name, stage.seconds * 1e3)?;
    }
    Ok(())
}

fn table<const N: usize>(out: &mut String, heads: [&str; N]) -> fmt::Result {
    writeln!(out, "| {} |\n|{}", heads.join(" | "), " --- |".repeat(N))
}

/// Escapes text of the program that Markdown would interpret.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    for c in message(&text.replace(['\n', '\r'], " ")).chars() {
        match c {
            '`' => quoted = !quoted,
            '*' | '_' | '<' | '[' | '#' | '|' | '\\' if !quoted => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Text as code, also in a table.
fn code(text: impl Display) -> String {
    let text = text.to_string().replace(['\n', '\r'], " ");
    let text = message(&text).replace('|', "\\|");
    let runs = text.split(|c| c != '`').map(str::len);
    match runs.max().unwrap_or_default() {
        0 => format!("`{text}`"),
        longest => {
            let fence = "`".repeat(longest + 1);
            format!("{fence} {text} {fence}")
        }
    }
}
