//! Prints the overloads of an op, and the type of each parameter.
//! `cargo run -p pt2onnx-schemas --example overloads aten::add`

use pt2onnx_schemas::{LIST, Schema};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted = std::env::args().nth(1).unwrap_or_else(|| "aten::add".to_owned());
    let mut out = std::io::stdout().lock();
    for line in LIST.lines().filter(|line| line.starts_with(&wanted)) {
        let Ok(schema) = Schema::parse(line) else { continue };
        if format!("{}::{}", schema.namespace, schema.name) != wanted {
            continue;
        }
        writeln!(out, "{line}")?;
        for param in &schema.params {
            let (written, default) = (param.slot.written, param.default.unwrap_or("none"));
            writeln!(
                out,
                "  {}: {}, default {default}, written {written}",
                param.name, param.slot.ty
            )?;
        }
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
