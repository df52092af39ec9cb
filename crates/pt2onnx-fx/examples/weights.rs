//! Lists the weights of an archive, with types, sizes and bytes; none is read.
//! `cargo run -p pt2onnx-fx --example weights MODEL.pt2...`

use pt2onnx_fx::archive;
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args_os().skip(1) {
        for (name, weight) in &archive::read(&path)?.state {
            let (dtype, shape, bytes) = (weight.dtype(), weight.shape(), weight.nbytes());
            writeln!(out, "{name}: {dtype}{shape:?}, {bytes} bytes")?;
        }
    }
    Ok(())
}
