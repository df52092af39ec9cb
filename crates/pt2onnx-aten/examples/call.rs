//! Prints the ONNX model of one call, without an archive: the way to test an op.
//! `cargo run -p pt2onnx-aten --example call "aten.gelu(x: f32[s0, 3]) -> f32[s0, 3]"`

use pt2onnx_aten::{
    Options, Registry,
    fx::{passes, text},
    lower,
};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let call = std::env::args().nth(1).filter(|call| call.contains("->"));
    let call = call.as_deref().unwrap_or("aten.gelu(x: f32[s0, 3]) -> f32[s0, 3]");
    let mut program = text::parse_call(call)?;
    passes::prepare(&mut program)?;
    let lowering = lower(&program, &Registry::default(), Options::default())?;
    writeln!(std::io::stdout(), "{}", lowering.model)?;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
