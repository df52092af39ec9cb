//! Reads every `.pt2` file under the folders given and says how many could be read and how many the
//! passes refuse; each failure on a line. `cargo run --release -p pt2onnx-fx --example read_all
//! FOLDER...`

use pt2onnx_fx::{Argument, ExportedProgram, Name};
use std::{
    collections::{BTreeMap, HashSet},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

fn archives(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            archives(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "pt2") {
            found.push(path);
        }
    }
    Ok(())
}

/// A value that is read before anything defines it.
fn undefined(program: &ExportedProgram) -> Option<Name> {
    let mut defined: HashSet<Name> = HashSet::new();
    let graph = &program.graph;
    defined.extend(graph.inputs.iter().filter_map(Argument::name).cloned());
    for node in &graph.nodes {
        let mut inputs = node.input_names().into_iter();
        if let Some(name) = inputs.find(|name| !defined.contains(name)) {
            return Some(name);
        }
        defined.extend(node.output_names());
    }
    let mut outputs = graph.outputs.iter().filter_map(Argument::name);
    outputs.find(|name| !defined.contains(*name)).cloned()
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut found = Vec::new();
    for folder in std::env::args_os().skip(1) {
        archives(Path::new(&folder), &mut found)?;
    }
    found.sort();
    let (mut read, mut nodes, mut slowest) = (0, 0, (Duration::ZERO, PathBuf::new()));
    let start = Instant::now();
    let mut counts = BTreeMap::<&str, usize>::new();
    for path in &found {
        let at = Instant::now();
        match pt2onnx_fx::archive::read(path) {
            Ok(mut program) => {
                (read, nodes) = (read + 1, nodes + program.graph.nodes.len());
                if at.elapsed() > slowest.0 {
                    slowest = (at.elapsed(), path.clone());
                }
                let kind = match pt2onnx_fx::passes::prepare(&mut program) {
                    Err(error) => {
                        writeln!(out, "{}: {error}", path.display())?;
                        "refused by the passes"
                    }
                    Ok(()) => match undefined(&program) {
                        Some(name) => {
                            writeln!(out, "{}: {name} is not defined", path.display())?;
                            "not defined"
                        }
                        None => "prepared",
                    },
                };
                *counts.entry(kind).or_default() += 1;
            }
            Err(error) => {
                writeln!(out, "{error}")?;
                *counts.entry("not read").or_default() += 1;
            }
        }
    }
    writeln!(out, "read {read} of {}, {nodes} nodes, in {:?}", found.len(), start.elapsed())?;
    writeln!(out, "slowest: {:?} {}", slowest.0, slowest.1.display())?;
    counts.iter().try_for_each(|(what, n)| writeln!(out, "{n} {what}"))
}
