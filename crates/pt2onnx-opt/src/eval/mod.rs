//! Evaluates nodes whose inputs are known, exactly as the operators of the canonical opset are
//! defined.
//!
//! Integers wrap as in C; `float16` and `bfloat16` are computed in `float` and rounded after each
//! node; transcendental functions are those of the platform's math library. Where the standard
//! leaves a result open, or runtimes differ (division of integers by zero, a maximum of NaN,
//! indices out of bounds), nothing is returned. NaN and floats out of range become the least int32
//! or int64, which is what PyTorch and ONNX Runtime give on x86-64.

mod arithmetic;
mod array;
mod call;
mod cast;
mod convolution;
mod elements;
mod indices;
mod logic;
mod matmul;
mod normalization;
mod number;
mod quantization;
mod reduce;
mod resize;
mod scatter;
mod select;
mod shape;
mod signal;

pub(crate) use pt2onnx_symbolic::axis;
pub(crate) use select::slice_positions;
pub(crate) use shape::shape_range;

use array::{array, by_number, by_width, doubles, floats, of_elements, shaped, tensor};
use call::{Call, Eval, Row, axes, broadcast, dim};
use number::{Binary, Number};
use pt2onnx_ir::Node;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

static TABLE: LazyLock<FxHashMap<&'static str, &'static Eval>> = LazyLock::new(|| {
    let families = [
        arithmetic::OPS,
        cast::OPS,
        convolution::OPS,
        indices::OPS,
        logic::OPS,
        matmul::OPS,
        normalization::OPS,
        quantization::OPS,
        reduce::OPS,
        resize::OPS,
        scatter::OPS,
        select::OPS,
        shape::OPS,
        signal::OPS,
    ];
    families.into_iter().flatten().map(|(name, eval)| (*name, eval)).collect()
});

/// Whether nodes of ONNX's own operator `op` can be evaluated at all.
pub fn knows(op: &str) -> bool {
    TABLE.contains_key(op)
}

/// The outputs of `node` given its inputs; `None` where they are not defined, not implemented, or
/// any of them would take more than `max_bytes` bytes. `node` must conform to the schema of its
/// operator at [`CANONICAL_OPSET`](pt2onnx_ir::schema::CANONICAL_OPSET).
pub fn evaluate(node: &Node, inputs: &[Option<&Tensor>], max_bytes: usize) -> Option<Vec<Tensor>> {
    if !node.domain.is_empty() || inputs.iter().flatten().any(|t| !t.has_data()) {
        return None;
    }
    let call = Call { node, inputs, max_bytes };
    let outputs = match TABLE.get(node.op())? {
        Eval::One(eval) => vec![eval(&call)?],
        Eval::Many(eval) => eval(&call)?,
    };
    let complete =
        outputs.len() == node.outputs().len() && outputs.iter().all(|t| t.nbytes() <= max_bytes);
    complete.then_some(outputs)
}
