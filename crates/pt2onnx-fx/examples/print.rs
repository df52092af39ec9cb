//! Prints an archive's program as PyTorch does: graph, signature, range constraints.
//! `cargo run -p pt2onnx-fx --example print MODEL.pt2...`

use pt2onnx_fx::{archive, printer};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args_os().skip(1) {
        let program = archive::read(&path)?;
        writeln!(out, "{}", printer::Printer::new(&program))?;
        writeln!(out, "{}", program.signature)?;
        writeln!(out, "{}", printer::range_constraints(&program))?;
    }
    Ok(())
}
