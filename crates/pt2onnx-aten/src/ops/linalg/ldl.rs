//! Systems whose matrix is given by its symmetric factors `P L D L^T P^T`.

use crate::math::matrix::ldl::solve;
use crate::{AtenOp, Complex, Cx, Lowered, op::op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[op!(aten::linalg_ldl_solve, ldl_solve)];

fn ldl_solve(cx: &Cx, factors: Complex, pivots: Value, b: Complex, hermitian: bool) -> Lowered {
    Ok(solve(cx, factors, pivots, b, hermitian).value(cx))
}
