//! Prints the signatures of the methods of a TorchScript file, and its weights. Nothing in the file
//! is executed. `cargo run -p pt2onnx-torchscript-archive --example methods MODEL.pt`

use pt2onnx_torchscript_archive::Archive;
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("no MODEL.pt")?;
    let archive = Archive::open(path)?;
    let mut out = std::io::stdout().lock();
    for method in &archive.root_class()?.class.methods {
        writeln!(out, "{}", method.signature())?;
    }
    Ok(())
}
