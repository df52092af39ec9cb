//! Element types that an older form does not take: the node computes between casts in a type that
//! gives exactly the same.

use crate::casts::{bound, cast_around};
use pt2onnx_ir::{
    Model, NodeId, Traits,
    schema::{OpSchema, TypeSet},
};
use pt2onnx_tensor::DType;

/// Inserts casts around a node for types that `form` does not take; whether there are any.
pub(super) fn casts(model: &mut Model, id: NodeId, form: &'static OpSchema) -> bool {
    // Casts would change what a cast computes, and the types of values in the node's bodies.
    if matches!(form.name, "Cast" | "CastLike") || model[id].regions().next().is_some() {
        return false;
    }
    let gap = |model: &Model, variable: &str, types: &TypeSet| {
        let from = bound(model, id, form, variable)?;
        let missing = !types.has_tensor(from);
        let to = missing.then(|| exact(form.name, from, types))??;
        Some((from, to))
    };
    let mut any = false;
    for constraint in form.constraints {
        if let Some((from, to)) = gap(model, constraint.name, &constraint.types) {
            cast_around(model, id, form, constraint.name, from, to);
            any = true;
        }
    }
    any
}

/// A type of the set in which the operator, cast back, gives the same as in `from`.
fn exact(op: &str, from: DType, types: &TypeSet) -> Option<DType> {
    use DType::*;
    let (same, selecting): (&[DType], &[DType]) = match from {
        // Sums need not fit 8 bits.
        Bool if op == "Einsum" => (&[I32, I64], &[]),
        // Runtimes lack reductions of uint8.
        Bool if Traits::of(op).contains(Traits::REDUCTION) => (&[I32, I64, U8], &[F32]),
        Bool => (&[U8, I32, I64], &[F32]),
        I8 | U8 | I16 | U16 => (&[I32, I64], &[F32, F64]),
        I32 | U32 => (&[I64], &[F64]),
        F16 | BF16 => (&[F32, F64], &[]),
        F32 => (&[F64], &[]),
        F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F4E2M1 => (&[F16, F32], &[]),
        _ => (&[], &[]),
    };
    // Floats that hold the integers give the same if elements are only selected or compared.
    let selecting = selecting.iter().filter(|_| Traits::of(op).contains(Traits::SELECTING));
    let mut order = same.iter().chain(selecting).copied();
    order.find(|&to| types.has_tensor(to))
}

pub(super) fn is_of(model: &Model, id: NodeId, types: &[DType]) -> bool {
    let node = &model[id];
    let first = node.input(0).and_then(|v| model.dtype(v));
    first.is_some_and(|d| types.contains(&d))
}
