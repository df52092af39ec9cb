//! Reductions of dimensions.

use super::types::typed;
use crate::{Cx, Lowered, arguments};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

arguments! {
    /// Arguments of reductions. Without `dim`, they are over all dimensions.
    pub struct Reduced {
        /// The tensor.
        pub input: Value,
        /// The dimensions.
        pub dim: Option<Vec<i64>>,
        /// Whether the reduced dimensions stay, with size 1.
        pub keepdim: Option<bool>,
        /// The element type of the result.
        pub dtype: Option<DType>,
    }
}

impl Reduced {
    /// The sizes without the reduced dimensions, or with 1 for them.
    ///
    /// # Errors
    /// The tensor has no such dimension.
    pub fn sizes(&self, cx: &Cx) -> Lowered<Vec<Expr>> {
        let axes = cx.axes(self.input, self.dim.as_deref())?;
        let keep = self.keepdim.unwrap_or(false);
        let size = |(i, d)| if axes.contains(&i) { keep.then_some(Expr::ONE) } else { Some(d) };
        Ok(cx.shape(self.input).into_iter().enumerate().filter_map(size).collect())
    }
}

/// The type of sums: integers and bools become int64.
pub fn sum_type(cx: &Cx, x: Value) -> DType {
    let dtype = cx.dtype(x);
    if dtype.is_int() || dtype == DType::Bool { DType::I64 } else { dtype }
}

/// A sum or product.
pub fn sum(cx: &Cx, args: Reduced) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(sum_type(cx, args.input)), &args.sizes(cx)?))
}

/// A mean.
pub fn mean(cx: &Cx, args: Reduced) -> Lowered {
    Ok(typed(cx, args.dtype.unwrap_or(cx.dtype(args.input)), &args.sizes(cx)?))
}

/// A norm or deviation, which is real.
pub fn norm(cx: &Cx, args: Reduced) -> Lowered {
    let dtype = args.dtype.unwrap_or(cx.dtype(args.input)).to_real();
    Ok(typed(cx, dtype, &args.sizes(cx)?))
}
