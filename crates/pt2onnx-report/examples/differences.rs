//! Prints how two models, in ONNX's textual syntax, differ, as `pt2onnx diff`.
//! `cargo run -p pt2onnx-report --example differences A.onnxtxt B.onnxtxt`

use pt2onnx_report::{DiffOptions, diff, ir::Model};
use std::{env, error::Error, fs, io::Write};

fn main() -> Result<(), Box<dyn Error>> {
    let read = |nth, otherwise: &str| -> Result<Model, Box<dyn Error>> {
        let path = env::args().nth(nth).filter(|path| path.ends_with(".onnxtxt"));
        let text = path.map_or(Ok(otherwise.to_owned()), fs::read_to_string)?;
        Ok(text.parse()?)
    };
    let a = read(1, "g (float[2] x) => (float[2] y) { y = Relu (x) }")?;
    let b = read(2, "g (float[2] x) => (float[2] y) { y = Abs (x) }")?;
    writeln!(std::io::stdout(), "{}", diff(&a, &b, &DiffOptions::default()))?;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
