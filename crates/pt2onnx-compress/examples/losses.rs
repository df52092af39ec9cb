//! Stores the weights of a model, in ONNX's textual syntax, in 8 and in 4 bits, and prints what
//! each loses. `cargo run -p pt2onnx-compress --example losses MODEL.onnxtxt`

use pt2onnx_compress::{Options, Quantize, compress, ir::Model};
use std::io::Write;

const EXAMPLE: &str = r#"<ir_version: 10, opset_import: ["" : 21]>
main_graph (float[n,2] x) => (float[n,2] y) <float[2,2] w = {1, 2, 3, 4}> { y = MatMul (x, w) }"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = match std::env::args_os().nth(1) {
        Some(path) if path.to_string_lossy().ends_with(".onnxtxt") => {
            std::fs::read_to_string(path)?
        }
        _ => EXAMPLE.to_owned(),
    };
    let mut out = std::io::stdout().lock();
    for quantize in [Quantize::Int8, Quantize::Int4] {
        let mut model: Model = text.parse()?;
        let options = Options { quantize: Some(quantize), min_elements: 1, ..Options::default() };
        let compressed = compress(&mut model, &options)?;
        for weight in compressed.weights() {
            writeln!(out, "{quantize:?}: {weight}")?;
        }
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
