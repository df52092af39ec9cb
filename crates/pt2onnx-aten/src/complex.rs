//! How complex arguments come to a lowering: tensors of real/imaginary pairs, in a trailing dimension of 2.
//!
//! Which values are complex is what the program says of their names: `view_as_real` changes a type, not a value.

use crate::Cx;
use pt2onnx_fx::graph::ValueMeta;
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

/// How complex arguments come to the lowering that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not at all.
    Real,
    /// As one of their parts: 0 the real ones, 1 the imaginary ones.
    Part(usize),
    /// As [`Complex`](crate::Complex); as real/imaginary pairs where a plain `Value` is wanted.
    Complex,
}

impl Cx<'_> {
    /// Whether an FX value is a complex tensor.
    pub(crate) fn is_complex(&self, name: &str) -> bool {
        matches!(self.meta(name), Some(ValueMeta::Tensor(meta)) if meta.dtype.is_complex())
    }

    /// Part 0 (real) or 1 (imaginary) of real/imaginary pairs. Of pairs just made of two parts, those parts.
    pub fn part(&self, pairs: Value, part: usize) -> Value {
        match self.parts_of(pairs) {
            Some(parts) => parts[part],
            None => self.take(pairs, self.rank(pairs).saturating_sub(1), &Expr::int(part as i64)),
        }
    }
}
