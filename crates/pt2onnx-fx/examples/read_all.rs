//! Reads every `.pt2` file under the folders given and says how many could be read and how many the passes refuse; each failure on a line.
//! `cargo run --release -p pt2onnx-fx --example read_all FOLDER...`

use std::{
    collections::BTreeMap,
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

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut found = Vec::new();
    for folder in std::env::args_os().skip(1) {
        archives(Path::new(&folder), &mut found)?;
    }
    found.sort();
    let (mut read, mut nodes, mut slowest) = (0, 0, (Duration::ZERO, PathBuf::new()));
    let start = Instant::now();
    let mut failures = BTreeMap::<String, usize>::new();
    for path in &found {
        let at = Instant::now();
        match pt2onnx_fx::archive::read(path) {
            Ok(mut program) => {
                (read, nodes) = (read + 1, nodes + program.graph.nodes.len());
                if at.elapsed() > slowest.0 {
                    slowest = (at.elapsed(), path.clone());
                }
                if let Err(error) = pt2onnx_fx::passes::prepare(&mut program) {
                    let place = format!("{}: {error}", path.display());
                    writeln!(out, "{place}")?;
                    let kind = match error {
                        pt2onnx_fx::Error::Pass { problem, .. } => format!("{problem:?}"),
                        _ => "?".to_owned(),
                    };
                    let kind = kind.split([' ', '{']).next().unwrap_or_default().to_owned();
                    *failures.entry(kind).or_default() += 1;
                }
            }
            Err(error) => {
                writeln!(out, "{error}")?;
                *failures.entry("not read".to_owned()).or_default() += 1;
            }
        }
    }
    writeln!(
        out,
        "read {read} of {}, {nodes} nodes, in {:?}",
        found.len(),
        start.elapsed()
    )?;
    writeln!(out, "slowest: {:?} {}", slowest.0, slowest.1.display())?;
    failures
        .iter()
        .try_for_each(|(what, n)| writeln!(out, "{n} {what}"))
}
