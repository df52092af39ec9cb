//! Attention that was decomposed: `tests/data/attention.txt`. All nodes of the programs are parts
//! of an attention.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

#[path = "common/cases.rs"]
mod cases;

use pt2onnx_fx::{passes::attention::restore_attention, text};
use std::sync::Arc;

const FROM: &str = r#"[{"name": "a", "target": "aten.scaled_dot_product_attention.default"}]"#;

fn restored(before: &str) -> String {
    let mut program = text::parse_program(before).unwrap();
    let written = text::print(&program).to_string();
    restore_attention(&mut program);
    // Without a record, nothing is changed.
    assert_eq!(text::print(&program).to_string(), written);
    for node in program.graph.nodes.iter_mut().map(Arc::make_mut) {
        Arc::make_mut(&mut node.meta).from_node = Some(FROM.into());
    }
    restore_attention(&mut program);
    text::print(&program).to_string()
}

#[test]
fn decomposed_attention_is_that_of_the_kernel() {
    cases::compare("attention.txt", restored);
}
