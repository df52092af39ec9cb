//! Products of three tensors.

use crate::{AtenOp, Cx, LowerError, Lowered, registry::aten};
use pt2onnx_ir::{Reduction, Type, Value};

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
        trilinear
    ),
    aten!(
        "aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        bilinear
    ),
];

/// `a @ W[o] @ b` for each `o`, and a bias: an `Einsum`.
fn bilinear(cx: &Cx, a: Value, b: Value, weight: Value, bias: Option<Value>) -> Lowered {
    let shape = cx.out_shape()?;
    if cx.numel(a).as_int() == Some(0) || cx.numel(b).as_int() == Some(0) {
        return Ok(cx.full(&shape, 0, cx.dtype(a)));
    }
    let lead = shape.len().saturating_sub(1);
    let letters = "abcdefgh"
        .get(..lead)
        .ok_or_else(|| LowerError::unsupported("a bilinear layer of so many dimensions"))?;
    let equation = format!("{letters}x,oxy,{letters}y->{letters}o");
    let product = cx.einsum(&[a, weight, b], &equation);
    cx.set_type(product, Type::tensor(cx.dtype(a), shape));
    Ok(bias.map_or(product, |bias| cx.add(product, bias)))
}

/// The product of all three, given dimensions of size 1 to broadcast by, summed over some.
#[expect(clippy::too_many_arguments, reason = "ATen's signature")]
fn trilinear(
    cx: &Cx,
    a: Value,
    b: Value,
    c: Value,
    expand_a: Vec<i64>,
    expand_b: Vec<i64>,
    expand_c: Vec<i64>,
    sum: Vec<i64>,
    _unroll_dim: i64,
) -> Lowered {
    let axes = |dims: &[i64]| -> Vec<usize> {
        dims.iter().filter_map(|&d| usize::try_from(d).ok()).collect()
    };
    let spread = |x, dims: &[i64]| cx.unsqueeze(x, &axes(dims));
    let product = cx.mul(cx.mul(spread(a, &expand_a), spread(b, &expand_b)), spread(c, &expand_c));
    Ok(match axes(&sum).as_slice() {
        [] => product,
        axes => cx.reduce(Reduction::Sum, product, axes, false),
    })
}
