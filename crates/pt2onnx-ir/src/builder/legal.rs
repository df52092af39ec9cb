//! Element types that an operator does not take: it computes in a wider type that it takes, between casts.
//!
//! So lowerings need not know which operator takes int8. What the standard allows but a runtime lacks a kernel for is no
//! matter of the builder: a pass bridges that for the runtime in question.

use super::Builder;
use crate::{
    Value,
    schema::{self, OpSchema, TypeSet},
};
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
                let to = widened(given, allowed)?;
                wider.push((formal.ty, given, to));
            }
        }
        (!wider.is_empty()).then_some(Detour { schema, wider })
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

/// The first type of the set that holds all values of `dtype` (or comes nearest to it).
fn widened(dtype: DType, allowed: &TypeSet) -> Option<DType> {
    use DType::*;
    let order: &[DType] = match dtype {
        Bool => &[U8, I32, I64, F32],
        I8 | U8 => &[I32, I64, F32, F64],
        I16 | U16 => &[I32, I64, F32, F64],
        I32 => &[I64, F64, F32],
        U32 => &[I64, U64, F64, F32],
        I64 => &[F64, F32],
        U64 => &[I64, F64, F32],
        F16 | BF16 => &[F32, F64],
        F32 => &[F64],
        F64 => &[F32],
        F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F8E8M0 => &[F16, F32],
        _ => &[],
    };
    order.iter().copied().find(|&d| allowed.has_tensor(d))
}
