//! Products of matrices.

use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_tensor::Scalar;

pub(super) static OPS: &[AtenOp] = &[
    aten!(
        "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        addmm
    ),
    aten!("aten::bmm(Tensor self, Tensor mat2) -> Tensor", matmul),
    aten!(
        "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
        linear
    ),
    aten!("aten::matmul(Tensor self, Tensor other) -> Tensor", matmul),
    aten!("aten::mm(Tensor self, Tensor mat2) -> Tensor", matmul),
];

fn matmul(cx: &Cx, a: Value, b: Value) -> Lowered {
    Ok(cx.matmul(a, b))
}

/// `beta * c + alpha * (a @ b)`: `Gemm`, where `c` may be broadcast.
fn addmm(cx: &Cx, c: Value, a: Value, b: Value, beta: Scalar, alpha: Scalar) -> Lowered {
    let (alpha, beta) = (alpha.to_f64(), beta.to_f64());
    if !cx.dtype(a).is_float() {
        return Ok(cx.add(
            cx.mul(c, Scalar::Int(beta as i64)),
            cx.mul(cx.matmul(a, b), Scalar::Int(alpha as i64)),
        ));
    }
    Ok(cx.gemm(
        a,
        b,
        c,
        attrs::Gemm {
            alpha: alpha as f32,
            beta: beta as f32,
            ..Default::default()
        },
    ))
}

/// `x @ weight.T + bias`: `Gemm` for matrices, `MatMul` and `Add` for the rest.
fn linear(cx: &Cx, x: Value, weight: Value, bias: Option<Value>) -> Lowered {
    let (rank, weight_rank) = (cx.rank(x), cx.rank(weight));
    if (rank, weight_rank) == (2, 2)
        && bias.is_none_or(|b| cx.rank(b) == 1)
        && cx.dtype(x).is_float()
    {
        return Ok(cx.gemm(
            x,
            weight,
            bias,
            attrs::Gemm {
                trans_b: true,
                ..Default::default()
            },
        ));
    }
    let transposed = if weight_rank == 2 {
        cx.transpose(weight, &[1, 0])
    } else {
        weight
    };
    let product = cx.matmul(x, transposed);
    Ok(bias.map_or(product, |bias| cx.add(product, bias)))
}
