//! `pt2onnx passes`: the passes of the optimiser.

use pt2onnx::opt::{PASSES, Pass};

/// The passes, each with its level and what it does.
pub fn list() -> String {
    let mut text = String::new();
    for Pass { name, level, doc, .. } in PASSES {
        text += &format!("{name} (level {})\n    {doc}\n", *level as u8);
    }
    text
}
