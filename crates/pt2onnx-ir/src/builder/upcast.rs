//! Upcasts: if an operator does not take an element type, casts are inserted before and after it.
//!
//! So lowerings need not know which operator takes int8. The builder goes by the standard; for types that the standard
//! allows and a runtime has no kernel for, a pass inserts casts.

use super::Builder;
use crate::{
    Value,
    schema::{self, OpSchema},
};
use pt2onnx_tensor::DType;

/// The type variables of a node that are computed in another type than the caller's.
pub(super) struct Upcast {
    schema: &'static OpSchema,
    /// Type variable, the caller's type, the type computed in.
    wider: Vec<(&'static str, DType, DType)>,
}

impl Builder<'_> {
    /// What `op` needs to take inputs of these types; nothing if it takes them as they are.
    pub(super) fn upcast(&self, op: &str, inputs: &[Option<Value>]) -> Option<Upcast> {
        let schema = schema::lookup(op, schema::CANONICAL_OPSET)?;
        let mut wider: Vec<(&'static str, DType, DType)> = Vec::new();
        for (i, value) in inputs.iter().enumerate() {
            let (Some(formal), Some(value)) = (schema.input(i), value) else {
                continue;
            };
            // Inputs of one type, such as axes, have no variable.
            let (Some(given), Some(allowed)) =
                (self.known_dtype(*value), schema.type_set(formal.ty))
            else {
                continue;
            };
            if !allowed.has_tensor(given)
                && !wider.iter().any(|(variable, ..)| *variable == formal.ty)
            {
                let to = allowed.widened(given)?;
                wider.push((formal.ty, given, to));
            }
        }
        (!wider.is_empty()).then_some(Upcast { schema, wider })
    }
}

impl Upcast {
    fn of(&self, variable: &str) -> Option<&(&'static str, DType, DType)> {
        self.wider.iter().find(|(name, ..)| *name == variable)
    }

    pub(super) fn enter(&self, cx: &Builder, input: usize, value: Value) -> Value {
        let upcast = self.schema.input(input).and_then(|formal| self.of(formal.ty));
        upcast.map_or(value, |&(_, _, to)| cx.cast(value, to))
    }

    pub(super) fn leave(&self, cx: &Builder, output: usize, value: Value) -> Value {
        let upcast = self.schema.output(output).and_then(|formal| self.of(formal.ty));
        upcast.map_or(value, |&(_, from, _)| cx.cast(value, from))
    }
}
