//! Systems whose matrix is given by its symmetric factors `P L D L^T P^T`.

use crate::math::matrix::ldl::solve;
use crate::{AtenOp, Complex, Cx, Lowered, op::op};
use pt2onnx_ir::Value;

pub(crate) static OPS: &[AtenOp] = &[op!(aten::linalg_ldl_solve, ldl_solve)];

/// The solution X of `A X = B`; with `hermitian`, A is `P L D L^H P^T`.
fn ldl_solve(cx: &Cx, factors: Complex, pivots: Value, b: Complex, hermitian: bool) -> Lowered {
    Ok(solve(cx, factors, pivots, b, hermitian).value(cx))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn a_system_without_columns_is_solved() {
        check!("aten.linalg_ldl_solve(ld: f32[2, 2], pivots: i32[2], b: f32[2, 0]) -> f32[2, 0]", @"
        (float[2,2] ld, int32[2] pivots, float[2,0] b) => (float[2,0] linalg_ldl_solve)
        <
          float val_0 = {0.0},
          int64[2] val_1 = {2, 0}
        >
        {
          linalg_ldl_solve = Expand (val_0, val_1)
        }
        ");
    }
}
