//! `pt2onnx passes`: lists the passes of the optimiser.

use pt2onnx::opt::{Pass, Passes};

/// The passes, each with its level, what it does, and its precondition.
pub fn list() -> String {
    let mut text = String::new();
    for Pass { name, level, description, precondition, .. } in Passes::standard().iter() {
        let level = *level as u8;
        text += &format!(
            "{name} (level {level})\n    {description}\n    Precondition: {precondition}\n"
        );
    }
    text
}
