//! The seam to pt2onnx-symbolic.

use pt2onnx_symbolic::Expr;

/// Bounds of an integer, inclusive; `None` where infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Least value.
    pub min: Option<i64>,
    /// Greatest value.
    pub max: Option<i64>,
}

/// What is known of the symbols.
#[derive(Clone, Debug, Default)]
pub struct Constraints(Vec<(Expr, Range)>);

impl Constraints {
    pub(crate) fn bound(&mut self, expr: Expr, range: Range) {
        self.0.push((expr, range));
    }
}
