//! Runs a model, in ONNX's textual syntax, with random inputs. ONNX Runtime's library is
//! `ORT_DYLIB_PATH`. `cargo run -p pt2onnx-ort --example run MODEL.onnxtxt`

use pt2onnx_ort::{Session, SessionOptions, ir::Model, random_inputs};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("no MODEL.onnxtxt")?;
    let model: Model = std::fs::read_to_string(path)?.parse()?;
    let mut session = Session::new(&model, &SessionOptions::default(), &[])?;
    let inputs = random_inputs(&session.inputs()?, 0, |_| 2)?;
    let mut out = std::io::stdout().lock();
    for output in session.run(&inputs)? {
        writeln!(out, "{}{:?}", output.dtype(), output.shape())?;
    }
    Ok(())
}
