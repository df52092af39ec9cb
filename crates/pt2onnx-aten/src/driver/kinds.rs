//! Nodes that need no registered translation: computations on sizes, and higher-order ops.

use pt2onnx_fx::graph::{Argument, Node};

/// Higher-order ops that become regions.
const SUPPORTED: &[&str] = &["associative_scan", "cond", "map_impl", "scan", "while_loop"];

/// Whether a node only computes sizes. The program has its results as expressions, which are
/// computed where they are needed.
pub(super) fn is_symbolic(node: &Node) -> bool {
    let symbol = |a: &Argument| {
        matches!(a, Argument::SymInt(_) | Argument::SymFloat(_) | Argument::SymBool(_))
    };
    let sizes = matches!(&*node.target.namespace, "_operator" | "math" | "torch" | "builtins")
        || node.target.name.starts_with("sym_");
    sizes && !node.outputs.is_empty() && node.outputs.iter().all(symbol)
}

/// Whether a node needs no registered translation.
pub(super) fn needs_no_translation(node: &Node) -> bool {
    is_symbolic(node) || (node.target.is_higher_order() && SUPPORTED.contains(&&*node.target.name))
}
