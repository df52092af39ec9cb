//! Whether two values are equal, as keys of dicts and elements of lists are compared.

use super::State;
use crate::{
    eval::arith::compare,
    value::{Item, Ref, Value},
};
use pt2onnx_symbolic::Func;
use std::cell::Cell;

/// How deeply lists that are compared may nest.
const MAX_NESTING: usize = 20;
/// How many values are compared at most.
const MAX_COMPARED: usize = 1_000_000;

impl State {
    /// Whether two values are known to be equal.
    pub(crate) fn same(&self, a: &Value, b: &Value) -> bool {
        let left = Cell::new(MAX_COMPARED);
        let same = self.same_within(a, b, MAX_NESTING, &left);
        let compared = (MAX_COMPARED - left.get()) as u64;
        self.work.set(self.work.get().saturating_add(compared));
        same
    }

    fn items(&self, list: Ref) -> Option<&[Value]> {
        self.heap.reads(list);
        match self.heap.get(list.0) {
            Some(Item::List { items, .. }) => Some(items),
            _ => None,
        }
    }

    fn same_within(&self, a: &Value, b: &Value, depth: usize, left: &Cell<usize>) -> bool {
        if depth == 0 || left.get() == 0 {
            return false;
        }
        left.set(left.get() - 1);
        let within = |a: &[Value], b: &[Value]| {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| self.same_within(a, b, depth - 1, left))
        };
        match (a, b) {
            (Value::None, Value::None) => true,
            (Value::Str(a), Value::Str(b)) => a == b,
            // Nobody reads them.
            (Value::UnknownStr(_), Value::UnknownStr(_)) => true,
            (Value::Enum(a), Value::Enum(b)) => (&a.class, &a.name) == (&b.class, &b.name),
            (Value::Tensor(a), Value::Tensor(b)) => a == b,
            (Value::Quantized(a), Value::Quantized(b)) => a == b,
            (Value::Packed(a), Value::Packed(b)) => a == b,
            (Value::Device(a), Value::Device(b)) => a == b,
            (Value::Object(a), Value::Object(b)) | (Value::Dict(a), Value::Dict(b)) => a == b,
            (Value::Complex(a, b), Value::Complex(c, d)) => (a, b) == (c, d),
            (Value::Tuple(a), Value::Tuple(b)) => within(&a.items, &b.items),
            (Value::List(a), Value::List(b)) => {
                a == b || self.items(*a).zip(self.items(*b)).is_some_and(|(a, b)| within(a, b))
            }
            (Value::Optional(a), Value::Optional(b)) => {
                a.present == b.present && self.same_within(&a.value, &b.value, depth - 1, left)
            }
            _ => match (a.number(), b.number()) {
                (Some(x), Some(y)) => {
                    let constraints = &self.facts.constraints;
                    constraints.decide(&compare(Func::Eq, x, y)).unwrap_or(x == y)
                }
                _ => false,
            },
        }
    }
}
