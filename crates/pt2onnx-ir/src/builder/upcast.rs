//! Upcasts: if an operator does not take an element type, casts are inserted before and after it.
//!
//! So lowerings need not know which operator takes int8. The builder only knows the ONNX standard.
//! If the standard allows a type but the runtime has no kernel for it, a pass inserts the casts.

use super::Builder;
use crate::{
    Value,
    schema::{self, OpSchema},
};
use pt2onnx_tensor::DType;

/// The type variables of a node that are computed in a wider type than the inputs have.
pub(super) struct Upcast {
    schema: &'static OpSchema,
    /// For each: the type variable, the type of the inputs, the type to compute in.
    wider: Vec<(&'static str, DType, DType)>,
}

impl Builder<'_> {
    /// The upcast that `op` needs for these inputs; `None` if it takes their types, or no wider
    /// type.
    pub(super) fn upcast(&self, op: &str, inputs: &[Option<Value>]) -> Option<Upcast> {
        let schema = schema::lookup(op, schema::CANONICAL_OPSET)?;
        let mut wider: Vec<(&'static str, DType, DType)> = Vec::new();
        for (i, value) in inputs.iter().enumerate() {
            let (Some(formal), Some(value)) = (schema.input(i), value) else {
                continue;
            };
            // An input that allows one type only, such as axes, has no type variable.
            let (Some(given), Some(allowed)) =
                (self.known_dtype(*value), schema.type_set(formal.ty))
            else {
                continue;
            };
            if !allowed.has_tensor(given)
                && !wider.iter().any(|(variable, ..)| *variable == formal.ty)
            {
                // A sum of bools can be above 255.
                let to = match (op, given) {
                    ("Einsum", DType::Bool) => DType::I32,
                    _ => allowed.widened(given)?,
                };
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

    /// Casts an input to the type that is computed in.
    pub(super) fn enter(&self, cx: &Builder, input: usize, value: Value) -> Value {
        let upcast = self.schema.input(input).and_then(|formal| self.of(formal.ty));
        upcast.map_or(value, |&(_, _, to)| cx.cast(value, to))
    }

    /// Casts an output back.
    pub(super) fn leave(&self, cx: &Builder, output: usize, value: Value) -> Value {
        let upcast = self.schema.output(output).and_then(|formal| self.of(formal.ty));
        upcast.map_or(value, |&(_, from, _)| cx.cast(value, from))
    }
}
