//! Prints which lowerings the cases under `testdata/cases` run, and what they emit.
//!
//! On standard output is a line for each overload (name, cases, ONNX operators, lowest opset,
//! element types, operators in older opsets; tabs between), on standard error the lowerings that no
//! case runs. The last cell lists for each opset that changes something, from new to old, the
//! operators that are no longer or newly used: `13 -Trilu +Less +Where`. At the end are `9!`, if no
//! case can be written in opset 9 and older ones, and `9?` if one of them cannot. `cargo xtask
//! regen-ops` and `cargo xtask coverage` call it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its purpose")]

use pt2onnx::fx::passes;
use pt2onnx::{Mutations, OPSETS, Registry, aten, fx, ir, opt};
use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs,
    io::{Read, Write},
    path::Path,
};

/// The observations of one overload.
#[derive(Default)]
struct Row {
    cases: usize,
    operators: BTreeSet<String>,
    dtypes: BTreeSet<&'static str>,
    /// The operators in each opset that a case was written in.
    opsets: BTreeMap<u32, BTreeSet<String>>,
    /// The highest opset that a case of this op alone cannot be written in.
    refused: Option<u32>,
}

type Rows = BTreeMap<String, Row>;
type Operators = BTreeMap<String, BTreeSet<String>>;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cases");
    let registry = Registry::default();
    let mut rows = Rows::new();
    for bundle in fs::read_dir(folder)? {
        let unpacked = ruzstd::decoding::StreamingDecoder::new(fs::File::open(bundle?.path())?)?;
        for entry in tar::Archive::new(unpacked).entries()? {
            let mut entry = entry?;
            if entry.path()?.ends_with("model.pt2") {
                let mut archive = tempfile::Builder::new().suffix(".pt2").tempfile()?;
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                archive.write_all(&bytes)?;
                // A case that is known to fail says nothing of the ops.
                let _ = look(archive.path(), &registry, &mut rows);
            }
        }
    }
    print(&registry, &rows);
    Ok(())
}

/// Lowers a program and notes what became of its ops.
fn look(path: &Path, registry: &Registry, rows: &mut Rows) -> Option<()> {
    let mut program = fx::archive::read(path).ok()?;
    passes::prepare(&mut program).ok()?;
    let model = aten::lower(&program, registry, Mutations::Outputs).ok()?.model;
    let newest = operators(&model);
    note(&program.graph, &newest, rows);
    let mut names = BTreeMap::new();
    ops(&program.graph, &mut names);
    older(&model, newest, &names, rows);
    Some(())
}

/// The operators that each op became.
fn operators(model: &ir::Model) -> Operators {
    let mut operators = Operators::new();
    for node in model.all_nodes() {
        for &origin in &model[node].origins {
            let of = operators.entry(model[origin].op.to_string()).or_default();
            of.insert(model[node].op().to_string());
        }
    }
    operators
}

/// The names of the ops of a graph, in the form of origins and of rows.
fn ops(graph: &fx::Graph, names: &mut BTreeMap<String, String>) {
    for node in &graph.nodes {
        node.bodies().for_each(|body| ops(body, names));
        names.insert(node.target.to_string(), node.target.schema_name().to_owned());
    }
}

/// Notes what ops become in older opsets, down to the first that cannot express the model.
fn older(
    model: &ir::Model,
    mut found: Operators,
    names: &BTreeMap<String, String>,
    rows: &mut Rows,
) {
    for opset in (*OPSETS.start()..=ir::schema::CANONICAL_OPSET).rev() {
        // Nothing changes if no operator has a form that came with the opset above.
        let changes = |op: &String| ir::schema::versions(op).iter().any(|s| s.since == opset + 1);
        if found.values().flatten().any(changes) {
            let mut written = model.clone();
            if opt::legalise(&mut written, opset).is_err() {
                if let Some((_, only)) = names.first_key_value().filter(|_| names.len() == 1) {
                    let refused = &mut rows.entry(only.clone()).or_default().refused;
                    *refused = (*refused).max(Some(opset));
                }
                return;
            }
            found = operators(&written);
        }
        for (op, operators) in &found {
            if let Some(row) = names.get(op).and_then(|name| rows.get_mut(name)) {
                row.opsets.entry(opset).or_default().extend(operators.iter().cloned());
            }
        }
    }
}

fn note(graph: &fx::Graph, operators: &Operators, rows: &mut Rows) {
    let mut seen = BTreeSet::new();
    for node in &graph.nodes {
        node.bodies().for_each(|body| note(body, operators, rows));
        let row = rows.entry(node.target.schema_name().to_owned()).or_default();
        if seen.insert(node.target.schema_name()) {
            row.cases += 1;
        }
        row.operators
            .extend(operators.get(&node.target.to_string()).into_iter().flatten().cloned());
        let metas = node.output_names().into_iter().chain(node.input_names());
        if let Some(meta) = metas.filter_map(|n| graph.tensor(&n).map(|m| m.dtype)).next() {
            row.dtypes.insert(meta.name());
        }
    }
}

fn print(registry: &Registry, rows: &Rows) {
    let mut missed = Vec::new();
    let nothing = Row::default();
    for op in registry.ops() {
        let row = rows.get(op.name()).unwrap_or(&nothing);
        if row.cases == 0 {
            missed.push(op.name());
        }
        let first = |op: &String| ir::schema::versions(op).first().map_or(1, |s| s.since);
        let opset =
            row.operators.iter().map(first).max().map_or_else(String::new, |o| o.to_string());
        let operators = row.operators.iter().cloned().collect::<Vec<_>>().join(" ");
        let dtypes = row.dtypes.iter().copied().collect::<Vec<_>>().join(" ");
        let older = steps(row);
        println!("{}\t{}\t{operators}\t{opset}\t{dtypes}\t{older}", op.name(), row.cases);
    }
    eprintln!("{} of {} lowerings are run by no case", missed.len(), registry.ops().len());
    missed.iter().for_each(|name| eprintln!("  {name}"));
}

/// The opsets that change the operators, from new to old.
fn steps(row: &Row) -> String {
    let (mut last, mut steps) = (&row.operators, Vec::new());
    for (opset, operators) in row.opsets.iter().rev() {
        if operators != last {
            let gone = last.difference(operators).map(|op| format!(" -{op}"));
            let new = operators.difference(last).map(|op| format!(" +{op}"));
            steps.push(format!("{opset}{}", gone.chain(new).collect::<String>()));
        }
        last = operators;
    }
    // The opset below the lowest one that a case was written in.
    let lowest = row.opsets.keys().next().filter(|lowest| *lowest > OPSETS.start());
    steps.extend(lowest.map(|lowest| format!("{}!", lowest - 1)));
    let refused = row.refused.filter(|r| row.opsets.contains_key(r));
    steps.extend(refused.map(|refused| format!("{refused}?")));
    steps.join(";")
}
