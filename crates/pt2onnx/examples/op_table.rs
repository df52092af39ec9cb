//! Which lowerings the cases under `testdata/cases` run, and what they emit: on standard output a line for each overload (name,
//! cases, ONNX operators, lowest opset, element types; tabs between), on standard error the lowerings that no case runs.
//! `cargo xtask regen-ops` and `cargo xtask coverage` call it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its purpose")]

use pt2onnx::fx::passes;
use pt2onnx::{Registry, State, aten, fx, ir};
use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs,
    io::{Read, Write},
    path::Path,
};

/// What is seen of one overload.
#[derive(Default)]
struct Row {
    cases: usize,
    operators: BTreeSet<String>,
    dtypes: BTreeSet<&'static str>,
}

type Rows = BTreeMap<String, Row>;

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
    let model = aten::lower(&program, registry, State::Outputs).ok()?.model;
    let mut operators: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for node in model.all_nodes() {
        for &origin in &model[node].origins {
            operators.entry(&model[origin].op).or_default().insert(model[node].op().to_string());
        }
    }
    note(&program.graph, &operators, rows);
    Some(())
}

fn note(graph: &fx::Graph, operators: &BTreeMap<&str, BTreeSet<String>>, rows: &mut Rows) {
    let mut seen = BTreeSet::new();
    for node in &graph.nodes {
        node.bodies().for_each(|body| note(body, operators, rows));
        let row = rows.entry(node.target.schema_name()).or_default();
        if seen.insert(node.target.schema_name()) {
            row.cases += 1;
        }
        row.operators
            .extend(operators.get(&*node.target.to_string()).into_iter().flatten().cloned());
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
        println!("{}\t{}\t{operators}\t{opset}\t{dtypes}", op.name(), row.cases);
    }
    eprintln!("{} of {} lowerings are run by no case", missed.len(), registry.ops().len());
    missed.iter().for_each(|name| eprintln!("  {name}"));
}
