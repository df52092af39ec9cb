//! Makes a page that shows two models side by side.

use super::write;
use crate::{
    diff::Differences,
    drawing::{self, Drawing, DrawnNode},
    edits::edits,
};
use pt2onnx_ir::Model;
use serde_json::json;
use similar::DiffOp;
use std::collections::HashMap;

/// A page that shows two models side by side, and how they differ. Each comes with its name; nodes
/// that only one has, and those that have one name and differ, are marked.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_report::{DiffOptions, diff, diff_page};
///
/// let a: Model = "g (float[2] x) => (float[2] y) { [n] y = Relu (x) }".parse()?;
/// let b: Model = "g (float[2] x) => (float[2] y) { [n] y = Abs (x) }".parse()?;
/// let differences = diff(&a, &b, &DiffOptions::default());
/// let page = diff_page(("a.onnx", &a), ("b.onnx", &b), &differences);
/// assert!(page.contains("\"mark\":\"changed\""));
/// # Ok::<(), pt2onnx_ir::ParseError>(())
/// ```
pub fn diff_page(a: (&str, &Model), b: (&str, &Model), differences: &Differences) -> String {
    let (mut old, mut new) = (drawing::of_model(a.1), drawing::of_model(b.1));
    mark(&mut old, &mut new);
    let title = format!("{} and {}", a.0, b.0);
    let data = json!({
        "kind": "diff",
        "title": title,
        "names": [a.0, b.0],
        "drawings": [old, new],
        "differences": differences,
    });
    write(&title, data, &differences.to_string())
}

/// The parts by which nodes are compared: all but their names and inputs, which shift.
fn signature(drawing: &Drawing, node: &DrawnNode) -> String {
    let types = node.outputs.iter().map(|v| drawing.values[*v].r#type.as_str());
    let types: Vec<&str> = types.collect();
    format!("{} {:?} {types:?} {}", node.op, node.attributes, node.inputs.len())
}

/// Marks nodes that only one drawing has, and nodes that changed under one name.
fn mark(a: &mut Drawing, b: &mut Drawing) {
    let all = |d: &Drawing| d.nodes.iter().map(|n| signature(d, n)).collect::<Vec<_>>();
    let ops = edits(&all(a), &all(b));
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        a.nodes[op.old_range()].iter_mut().for_each(|node| node.mark = "removed");
        b.nodes[op.new_range()].iter_mut().for_each(|node| node.mark = "added");
    }
    let marked = a.nodes.iter_mut().filter(|n| !n.mark.is_empty() && !n.name.is_empty());
    let mut gone: HashMap<String, &mut DrawnNode> =
        marked.map(|node| (node.name.clone(), node)).collect();
    for node in b.nodes.iter_mut().filter(|n| !n.mark.is_empty()) {
        if let Some(old) = gone.remove(&node.name) {
            (old.mark, node.mark) = ("changed", "changed");
        }
    }
}
