//! Element types that an operator does not take: it computes in a wider type that it takes, between casts.
//!
//! So lowerings need not know which operator takes int8. What the standard allows but a runtime lacks a kernel for is no
//! matter of the builder: a pass bridges that for the runtime in question.

use super::Builder;
use crate::{
    Value,
    schema::{self, OpSchema},
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The type variables of one node that stand for another type than the caller's.
pub(super) struct Detour {
    schema: &'static OpSchema,
    /// Type variable, the caller's type, the type computed in.
    wider: Vec<(&'static str, DType, DType)>,
}

impl Builder<'_> {
    /// What `op` needs to take inputs of these types; nothing if it takes them as they are.
    pub(super) fn detour(&self, op: &str, inputs: &[Option<Value>]) -> Option<Detour> {
        let schema = schema::lookup(op, schema::CANONICAL_OPSET)?;
        let mut wider: Vec<(&'static str, DType, DType)> = Vec::new();
        for (i, value) in inputs.iter().enumerate() {
            let (Some(formal), Some(value)) = (schema.input(i), value) else {
                continue;
            };
            let Some(given) = self.known_dtype(*value) else {
                continue;
            };
            let allowed = schema.type_set(formal.ty)?;
            if !allowed.has_tensor(given)
                && !wider.iter().any(|(variable, ..)| *variable == formal.ty)
            {
                let to = allowed.widened(given)?;
                wider.push((formal.ty, given, to));
            }
        }
        (!wider.is_empty()).then_some(Detour { schema, wider })
    }
}

impl Builder<'_> {
    /// The inputs of a `Pad` without `axes`: pads of all dimensions. ONNX Runtime moves transposes through `Pad` as though it
    /// always had those (its transpose optimiser does not look at `axes`).
    pub(super) fn whole_pads(
        &self,
        x: Option<Value>,
        pads: Option<Value>,
        value: Option<Value>,
        axes: Value,
    ) -> Option<[Option<Value>; 3]> {
        let rank = self.known_shape(x?)?.len();
        let (given, axes) = (self.contents(pads?)?, self.contents(axes)?);
        let mut all = vec![Expr::int(0); 2 * rank];
        for (i, axis) in axes.iter().enumerate() {
            let axis = axis.as_int()?;
            let axis = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok()?;
            *all.get_mut(axis).filter(|_| axis < rank)? = given.get(i)?.clone();
            *all.get_mut(rank + axis)? = given.get(axes.len() + i)?.clone();
        }
        Some([x, Some(self.sizes(&all)), value])
    }
}

impl Detour {
    fn of(&self, variable: &str) -> Option<&(&'static str, DType, DType)> {
        self.wider.iter().find(|(name, ..)| *name == variable)
    }

    pub(super) fn enter(&self, cx: &Builder, input: usize, value: Value) -> Value {
        let detour = self
            .schema
            .input(input)
            .and_then(|formal| self.of(formal.ty));
        detour.map_or(value, |&(_, _, to)| cx.cast(value, to))
    }

    pub(super) fn leave(&self, cx: &Builder, output: usize, value: Value) -> Value {
        let detour = self
            .schema
            .output(output)
            .and_then(|formal| self.of(formal.ty));
        detour.map_or(value, |&(_, from, _)| cx.cast(value, from))
    }
}
