//! `pt2onnx inspect`: what an archive holds, as text.

use crate::report::Report;
use pt2onnx::{
    Error, Registry,
    aten::ops_used,
    fx::{
        Argument, Constant, ExportedProgram, InputSpec, OutputSpec, SymArg, ValueMeta, archive,
        passes,
    },
    symbolic::Range,
    tensor::Tensor,
};
use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Write},
    path::Path,
};

/// What an archive holds.
pub fn inspect(path: &Path) -> Result<String, Report> {
    let program = archive::read(path).map_err(Error::Archive)?;
    let mut out = String::new();
    // A String takes whatever is written to it.
    let _ = describe(&mut out, program);
    Ok(out)
}

fn describe(out: &mut String, mut program: ExportedProgram) -> fmt::Result {
    let (major, minor) = program.schema_version;
    writeln!(
        out,
        "program: torch {}, export schema {major}.{minor}",
        program.torch_version
    )?;
    let mut symbols = BTreeSet::new();

    writeln!(out, "\ninputs:")?;
    for input in &program.signature.inputs {
        if let InputSpec::UserInput(arg) = input {
            writeln!(out, "  {}", value(&program, arg, &mut symbols))?;
        }
    }
    writeln!(out, "\noutputs:")?;
    for output in &program.signature.outputs {
        match output {
            OutputSpec::UserOutput(arg) => {
                writeln!(out, "  {}", value(&program, arg, &mut symbols))?
            }
            OutputSpec::BufferMutation { target, .. } => {
                writeln!(out, "  new value of buffer {target}")?
            }
            OutputSpec::ParameterMutation { target, .. } => {
                writeln!(out, "  new value of parameter {target}")?
            }
            OutputSpec::UserInputMutation { target, .. } => {
                writeln!(out, "  new value of input {target}")?
            }
            _ => {}
        }
    }
    if !program.range_constraints.is_empty() || !symbols.is_empty() {
        writeln!(out, "\ndynamic dimensions:")?;
        for (expr, range) in &program.range_constraints {
            symbols.remove(expr.as_str());
            writeln!(out, "  {expr}: {}", bounds(range))?;
        }
        for symbol in symbols {
            writeln!(out, "  {symbol}: any")?;
        }
    }
    weights(out, &program)?;

    // What is translated is the program behind these passes.
    let unprepared = program.clone();
    let obstacle = passes::prepare(&mut program).err();
    let program = if obstacle.is_some() {
        unprepared
    } else {
        program
    };
    let used = ops_used(&program.graph, &Registry::default());
    let width = used.iter().map(|op| op.op.len()).max().unwrap_or_default();
    let nodes: usize = used.iter().map(|op| op.count).sum();
    writeln!(out, "\nops: {} in {nodes} nodes", used.len())?;
    for op in &used {
        let verdict = if op.supported { "" } else { "  NOT SUPPORTED" };
        writeln!(out, "  {:width$} {:>6}{verdict}", op.op, op.count)?;
    }
    match (obstacle, used.iter().filter(|op| !op.supported).count()) {
        (Some(obstacle), _) => writeln!(out, "\nnot convertible: {obstacle}"),
        (None, 0) => writeln!(out, "\nall ops are supported"),
        (None, 1) => writeln!(out, "\nnot convertible: 1 of the ops is not supported"),
        (None, n) => writeln!(out, "\nnot convertible: {n} of the ops are not supported"),
    }
}

/// `x: float32[s0, 8]`, and the symbols in it.
fn value(program: &ExportedProgram, arg: &Argument, symbols: &mut BTreeSet<String>) -> String {
    let Some(name) = arg.name() else {
        return match arg {
            Argument::None => "None".to_owned(),
            Argument::Int(i) | Argument::SymInt(SymArg::Value(i)) => {
                format!("{i}, fixed at export")
            }
            Argument::Float(f) | Argument::SymFloat(SymArg::Value(f)) => {
                format!("{f}, fixed at export")
            }
            Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => {
                format!("{b}, fixed at export")
            }
            Argument::String(s) => format!("\"{s}\", fixed at export"),
            other => format!("{other:?}"),
        };
    };
    let ty = match program.graph.values.get(name) {
        Some(ValueMeta::Tensor(meta)) => {
            symbols.extend(
                meta.sizes
                    .iter()
                    .flat_map(|s| s.symbols())
                    .map(|s| s.to_string()),
            );
            let sizes: Vec<String> = meta.sizes.iter().map(ToString::to_string).collect();
            format!("{}[{}]", meta.dtype, sizes.join(", "))
        }
        Some(ValueMeta::SymInt { expr, .. }) => format!("int {expr}"),
        Some(ValueMeta::SymFloat { expr, .. }) => format!("float {expr}"),
        Some(ValueMeta::SymBool { expr, .. }) => format!("bool {expr}"),
        Some(ValueMeta::CustomObj { class }) => format!("object of {class}"),
        None => "of unknown type".to_owned(),
    };
    format!("{name}: {ty}")
}

fn bounds(range: &Range) -> String {
    match (range.min, range.max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("{min} and more"),
        (None, Some(max)) => format!("up to {max}"),
        (None, None) => "any".to_owned(),
    }
}

/// How many tensors, bytes (of each storage once), tensors that share a storage with an earlier one, and without values.
fn weights(out: &mut String, program: &ExportedProgram) -> fmt::Result {
    let constants = program.constants.values().filter_map(|c| match c {
        Constant::Tensor(t) => Some(t),
        Constant::Opaque { .. } => None,
    });
    let all: Vec<&Tensor> = program.state.values().chain(constants).collect();
    let (mut storages, mut bytes, mut shared) = (HashSet::new(), 0, 0);
    for storage in all.iter().filter_map(|t| t.storage()) {
        let data = storage.bytes();
        match data.is_empty() || storages.insert((data.as_ptr(), data.len())) {
            true => bytes += data.len(),
            false => shared += 1,
        }
    }
    let absent: Vec<&&Tensor> = all.iter().filter(|t| !t.has_data()).collect();
    write!(out, "\nweights: {} tensors, {bytes} bytes", all.len())?;
    if shared > 0 {
        write!(out, ", {shared} sharing the storage of others")?;
    }
    if !absent.is_empty() {
        let missing: usize = absent.iter().map(|t| t.nbytes()).sum();
        write!(
            out,
            ", {} without values (fake), {missing} bytes",
            absent.len()
        )?;
    }
    writeln!(out)
}
