//! Prints an archive's program as PyTorch does: graph, signature, range constraints.
//!
//! With `--prepared` as the passes leave it, and what it writes into. `cargo run -p pt2onnx-fx
//! --example print [--prepared] MODEL.pt2...`

use pt2onnx_fx::{archive, passes, printer};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let mut prepared = false;
    for path in std::env::args_os().skip(1) {
        if path == "--prepared" {
            prepared = true;
            continue;
        }
        let mut program = archive::read(&path)?;
        if prepared {
            passes::prepare(&mut program)?;
        }
        writeln!(out, "{}", printer::Printer::new(&program))?;
        writeln!(out, "{}", program.signature)?;
        writeln!(out, "{}", printer::range_constraints(&program))?;
        for m in &program.mutations {
            writeln!(out, "{:?} {} is {} after", m.kind, m.target, m.value)?;
        }
    }
    Ok(())
}
