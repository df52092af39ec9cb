//! Whether two values are equal, as `==`, keys of dicts and elements of lists compare them.

use super::State;
use crate::{
    error::Step,
    eval::{
        arith::{compare, unknown_str},
        unsupported,
    },
    value::{Item, Value},
};
use pt2onnx_symbolic::{Expr, Func};
use std::{cell::Cell, sync::Arc};

/// How deeply lists that are compared may nest.
const MAX_NESTING: usize = 20;
/// How many values are compared at most.
const MAX_COMPARED: usize = 1_000_000;

impl State {
    /// Whether two values are known to be equal.
    pub(crate) fn same(&self, a: &Value, b: &Value) -> bool {
        // Nobody reads unknown texts.
        matches!((a, b), (Value::UnknownStr(_), Value::UnknownStr(_)))
            || self.equality(a, b).is_ok_and(|equal| equal.as_int() == Some(1))
    }

    /// Whether two values are equal, as a truth value that sizes may decide.
    pub(crate) fn equality(&self, a: &Value, b: &Value) -> Step<Expr> {
        let left = Cell::new(MAX_COMPARED);
        let equal = self.equality_within(a, b, MAX_NESTING, &left);
        let compared = (MAX_COMPARED - left.get()) as u64;
        self.work.set(self.work.get().saturating_add(compared));
        equal
    }

    fn equality_within(
        &self,
        a: &Value,
        b: &Value,
        depth: usize,
        left: &Cell<usize>,
    ) -> Step<Expr> {
        if depth == 0 || left.get() == 0 {
            return unsupported("comparing values that nest so deeply");
        }
        left.set(left.get() - 1);
        Ok(Expr::bool(match (a, b) {
            (Value::List(a), Value::List(b)) if a == b => true,
            (Value::List(_), Value::List(_)) | (Value::Tuple(_), Value::Tuple(_)) => {
                let (Some(a), Some(b)) = (self.items(a), self.items(b)) else {
                    return unsupported("comparing lists whose length depends on data");
                };
                let mut all = Expr::bool(a.len() == b.len());
                for (a, b) in a.iter().zip(b) {
                    if all.as_int() == Some(0) {
                        break;
                    }
                    let equal = self.equality_within(a, b, depth - 1, left)?;
                    all = Expr::call(Func::And, vec![all, equal]);
                }
                return Ok(all);
            }
            (Value::UnknownStr(_), _) | (_, Value::UnknownStr(_)) => return unknown_str(),
            (Value::Tensor(a), Value::Tensor(b)) if a != b => {
                return unsupported("comparing tensors in lists");
            }
            (Value::None, Value::None) | (Value::Tensor(_), Value::Tensor(_)) => true,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Enum(a), Value::Enum(b)) => (&a.class, &a.name) == (&b.class, &b.name),
            (Value::Quantized(a), Value::Quantized(b)) => a == b,
            (Value::Packed(a), Value::Packed(b)) => Arc::ptr_eq(a, b),
            (Value::Device(a), Value::Device(b)) => a == b,
            (Value::Object(a), Value::Object(b)) | (Value::Dict(a), Value::Dict(b)) => a == b,
            (Value::Complex(a, b), Value::Complex(c, d)) => (a, b) == (c, d),
            (Value::Optional(a), Value::Optional(b)) if a.present == b.present => {
                return self.equality_within(&a.value, &b.value, depth - 1, left);
            }
            _ => match (a.number(), b.number()) {
                (Some(x), Some(y)) => {
                    let equal = compare(Func::Eq, x, y);
                    return Ok(self.facts.constraints.decide(&equal).map_or(equal, Expr::bool));
                }
                _ => false,
            },
        }))
    }

    /// The items of a list or tuple of known length.
    fn items<'v>(&'v self, value: &'v Value) -> Option<&'v [Value]> {
        match value {
            Value::Tuple(tuple) => Some(&tuple.items),
            Value::List(list) => {
                self.reads(*list);
                match self.heap.get(list.0) {
                    Some(Item::List { items, .. }) => Some(items),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
