//! Mends types that PyTorch records wrongly.

use crate::graph::{Argument, ExportedProgram, Graph, Name, Node, ValueMeta, Values};
use crate::strides::contiguous;
use std::sync::Arc;

/// Mends the recorded sizes of `unique_consecutive` along dimension -1. Its rule for fake tensors
/// joins the sizes before the dimension, the number of runs, and those from `dim + 1` on, which are
/// all sizes if `dim` is -1.
pub fn mend_records(program: &mut ExportedProgram) {
    mend(&mut program.graph);
}

fn mend(graph: &mut Graph) {
    for node in &graph.nodes {
        let dim = node.arg("dim").and_then(Argument::as_int);
        if node.target.is_aten("unique_consecutive") && dim == Some(-1) {
            mend_runs(node, &mut graph.values);
        }
    }
    graph.bodies_mut().for_each(mend);
}

/// Cuts the sizes that the first result has too many.
fn mend_runs(node: &Node, values: &mut Arc<Values>) {
    let name = |arg: Option<&Argument>| arg?.name().cloned();
    let Some((input, result)) =
        name(node.args.first().map(|a| &a.value)).zip(name(node.outputs.first()))
    else {
        return;
    };
    let rank = |name: &Name| Some(values.get(name)?.tensor()?.sizes.len());
    let Some(rank) = rank(&input).filter(|of| *of > 0 && rank(&result) == Some(2 * of)) else {
        return;
    };
    if let Some(ValueMeta::Tensor(meta)) = Arc::make_mut(values).get_mut(&result) {
        let meta = Arc::make_mut(meta);
        meta.sizes.truncate(rank);
        meta.strides = contiguous(&meta.sizes);
    }
}
