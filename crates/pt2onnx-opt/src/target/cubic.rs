//! Keeps a `Transpose` in front of a cubic `Resize` that makes images smaller.
//!
//! ONNX Runtime's optimiser moves it behind the `Resize`, whose kernel then refuses images with the
//! channels last. It does not move it through a `Reshape`, not even one that keeps all sizes.

use crate::analysis::every;
use pt2onnx_ir::{Builder, InsertPoint, Model, Node, NodeId, Value, attrs};
use pt2onnx_symbolic::{Constraints, Expr};
use rustc_hash::FxHashSet;

/// Operators through which it does not move a `Transpose`.
const FIXED: [&str; 6] = ["AveragePool", "Conv", "ConvTranspose", "Gemm", "MaxPool", "Reshape"];

/// Puts a `Reshape` in front of these nodes.
pub(super) fn keep_order(model: &mut Model) {
    for id in model.nodes_in(&[Model::MAIN]) {
        if let Some(x) = shrunk(model, &model[id])
            && is_transposed(model, x)
        {
            reshape(model, id, x);
        }
    }
}

/// The images of a cubic `Resize` that may make them smaller.
fn shrunk(model: &Model, node: &Node) -> Option<Value> {
    let options = node.is("Resize").then(|| attrs::Resize::read(node).ok())??;
    let x = node.input(0).filter(|_| options.mode == "cubic" && !options.antialias)?;
    let scales = node.input(2).and_then(|scales| model[scales].constant());
    let grows = || {
        let (from, to) = (model.shape(x)?, model.shape(*node.outputs().first()?)?);
        let known = |(from, to): (&Expr, &Expr)| {
            from == to || from.as_int().zip(to.as_int()).is_some_and(|(from, to)| from <= to)
        };
        Some(from.iter().zip(to).all(known))
    };
    let grows = scales.is_some_and(|s| every(s, |s| s >= 1.0)) || grows().unwrap_or(false);
    (!grows).then_some(x)
}

/// Whether a value is computed from what a `Transpose` gives, by nodes through which that may move.
fn is_transposed(model: &Model, value: Value) -> bool {
    let (mut seen, mut left) = (FxHashSet::default(), vec![value]);
    while let Some(value) = left.pop() {
        let Some(producer) = model.producer(value) else { continue };
        let node = &model[producer];
        if node.is("Transpose") {
            return true;
        }
        if seen.insert(producer) && !FIXED.iter().any(|op| node.is(op)) {
            left.extend(node.inputs().iter().flatten());
        }
    }
    false
}

fn reshape(model: &mut Model, id: NodeId, x: Value) {
    let Some(rank) = model.shape(x).map(Vec::len) else { return };
    let origins = model[id].origins.clone();
    let ty = model[x].ty.clone();
    let cx = Builder::new(model, InsertPoint::Before(id), Constraints::default());
    cx.set_origins(&origins);
    let same = cx.reshape_op(x, cx.ints(&vec![0; rank]), attrs::Reshape::default());
    if let Some(ty) = ty {
        cx.set_type(same, ty);
    }
    drop(cx);
    model.replace_input(id, 0, Some(same));
}
