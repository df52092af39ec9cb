//! Prints the graph of an archive as text, and lists its weights with their types, sizes and bytes.
//!
//! No weight is read. `cargo run -p pt2onnx-fx --example show MODEL.pt2...`

use pt2onnx_fx::{archive, text};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args_os().skip(1) {
        let program = archive::read(&path)?;
        writeln!(out, "{}\n", text::print(&program))?;
        for (name, weight) in &program.state {
            let (dtype, shape, bytes) = (weight.dtype(), weight.shape(), weight.nbytes());
            writeln!(out, "{name}: {dtype}{shape:?}, {bytes} bytes")?;
        }
    }
    Ok(())
}
