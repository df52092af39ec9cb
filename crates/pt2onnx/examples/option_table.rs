//! Prints the descriptions of all options as JSON, for `cargo xtask regen-options`.

#![expect(clippy::print_stdout, reason = "its purpose")]

use pt2onnx::Options;

fn main() -> Result<(), serde_json::Error> {
    let defaults = serde_json::to_value(Options::default())?;
    let described = Options::META.iter().map(|option| option.to_json(&defaults));
    println!("{}", serde_json::to_string(&described.collect::<Vec<_>>())?);
    Ok(())
}
