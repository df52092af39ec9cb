//! Operators that return their argument itself where there is nothing to do: what changes the result in place, its shape too, changes
//! the argument.

use super::{Interp, Step, emit::dtype_of, fits::Bound};
use crate::{schema::Schema, value::Value};
use pt2onnx_symbolic::Expr;

impl Interp<'_> {
    /// The tensor `self` where PyTorch returns it, `None` where the operator makes another one.
    pub(super) fn itself(&self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let given = |name: &str| {
            let at = schema.params.iter().position(|param| param.name == name)?;
            bound.get(at)?.as_ref().filter(|value| !matches!(value, Value::None))
        };
        let Some(Value::Tensor(tensor)) = given("self").or_else(|| given("input")) else {
            return Ok(None);
        };
        // A constant counts as a number only where nothing was made of it.
        if &*schema.namespace != "aten" || self.pool_numbers.contains(tensor) {
            return Ok(None);
        }
        let meta = self.meta(tensor)?;
        let rank = meta.sizes.len();
        let real = !meta.dtype.is_complex();
        // 0 is the contiguous order, 1 that of the tensor.
        let ordered = |usual: i64| {
            let order = given("memory_format").is_none_or(|order| order.as_int() == Some(usual));
            order && given("copy").is_none_or(|copy| copy.as_bool() == Some(false))
        };
        let same = match (&*schema.name, given("dtype"), given("other")) {
            ("positive", ..) => true,
            ("resolve_conj" | "resolve_neg" | "conj" | "conj_physical" | "real", ..) => real,
            ("dropout" | "alpha_dropout" | "feature_dropout" | "feature_alpha_dropout", ..) => {
                let off = given("train").is_some_and(|train| train.as_bool() == Some(false));
                off || given("p").is_some_and(|p| p.as_f64() == Some(0.0))
            }
            ("atleast_1d", ..) => rank >= 1,
            ("atleast_2d", ..) => rank >= 2,
            ("atleast_3d", ..) => rank >= 3,
            ("flatten", ..) => {
                let dim = |name: &str, default: i64| {
                    let dim = given(name).map_or(Some(default), Value::as_int)?;
                    Some(if dim < 0 { dim + i64::try_from(rank).ok()? } else { dim })
                };
                rank > 0
                    && dim("start_dim", 0).is_some_and(|start| dim("end_dim", -1) == Some(start))
            }
            ("sum_to_size", ..) => match given("size") {
                Some(Value::List(size)) => {
                    let size: Vec<Expr> =
                        self.items(*size).iter().filter_map(Value::number).cloned().collect();
                    self.are_equal(&size, &meta.sizes)
                }
                _ => false,
            },
            ("contiguous", ..) => self.is_contiguous(meta) == Some(true) && ordered(0),
            ("to", Some(dtype), None) => dtype_of(dtype)? == meta.dtype && ordered(1),
            ("to" | "type_as", None, Some(Value::Tensor(other))) => {
                self.meta(other)?.dtype == meta.dtype && ordered(1)
            }
            _ => false,
        };
        Ok(same.then(|| Value::Tensor(tensor.clone())))
    }

    /// Puts tensors of the list `given` that are like their results in the list `made` into their places.
    pub(super) fn keep_items(&mut self, given: &Value, made: &Value) -> Step<()> {
        let (Value::List(given), Value::List(made)) = (given, made) else { return Ok(()) };
        let kept = self.items(*given).to_vec();
        for (at, item) in kept.into_iter().enumerate() {
            let (Value::Tensor(old), Some(Value::Tensor(new))) = (&item, self.items(*made).get(at))
            else {
                continue;
            };
            if self.are_equal(&self.meta(old)?.sizes, &self.meta(new)?.sizes)
                && let Some(place) = self.items_mut(*made)?.get_mut(at)
            {
                *place = item;
            }
        }
        Ok(())
    }

    /// Whether sizes are known to be the same.
    fn are_equal(&self, a: &[Expr], b: &[Expr]) -> bool {
        let same = |(a, b)| self.constraints().prove_eq(a, b) == Some(true);
        a.len() == b.len() && a.iter().zip(b).all(same)
    }
}
