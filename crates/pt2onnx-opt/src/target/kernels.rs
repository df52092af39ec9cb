//! Kernels of ONNX Runtime's CPU provider. Where it has none for an element type, casts are inserted around the node. The
//! kernel table was measured on the pinned release.

use crate::{
    casts::{bound, cast_around},
    generated::ort_cpu,
};
use pt2onnx_ir::{
    Model, NodeId, attrs,
    schema::{self, OpSchema, TypeSet},
};
use pt2onnx_tensor::DType;
use std::collections::BTreeSet;

/// Inserts casts around each node without a kernel at the model's opset. Returns a warning if a type computed in does not hold
/// all values. The model must be legal.
pub(super) fn bridge_all(model: &mut Model) -> Option<String> {
    let mut narrower = BTreeSet::new();
    for id in model.nodes_in(&[Model::MAIN]) {
        for (variable, from, to) in gaps(model, id) {
            let Some(schema) = schema::lookup(model[id].op(), model.opset) else {
                continue;
            };
            if narrows(from, to) {
                narrower.insert(format!("{} of {from} (computed in {to})", model[id].op()));
            }
            cast_around(model, id, schema, variable, from, to);
        }
    }
    let list = Vec::from_iter(narrower).join(", ");
    (!list.is_empty())
        .then(|| format!("ONNX Runtime has no CPU kernel for {list}: the results are less exact"))
}

/// Whether type `to` does not hold all values of type `from`.
fn narrows(from: DType, to: DType) -> bool {
    use DType::*;
    matches!((from, to), (F64, F32) | (I64 | U64, F64 | F32) | (I32 | U32, F32) | (U64, I64))
}

/// Nodes without a kernel, such as `Conv of float64`.
pub(super) fn lacking(model: &Model) -> Vec<String> {
    let mut found = BTreeSet::new();
    for id in model.nodes_in(&[Model::MAIN]) {
        found.extend(
            gaps(model, id).iter().map(|(_, from, _)| format!("{} of {from}", model[id].op())),
        );
    }
    found.into_iter().collect()
}

type Gap = (&'static str, DType, DType);

/// The type variables of a node whose type has no kernel: variable, its type, the type to compute in.
fn gaps(model: &Model, id: NodeId) -> Vec<Gap> {
    let node = &model[id];
    let Some(schema) = schema::lookup(node.op(), model.opset).filter(|_| node.domain.is_empty())
    else {
        return Vec::new();
    };
    let start =
        ort_cpu::LACKING.partition_point(|row| (row.0, row.1) < (schema.name, schema.since));
    let rows = ort_cpu::LACKING[start..]
        .iter()
        .take_while(|row| (row.0, row.1) == (schema.name, schema.since));
    if rows.clone().any(|row| row.2 == "*" && uniform(model, id, schema, row.3)) {
        return Vec::new();
    }
    let gap = |&(_, _, variable, lacking): &(&str, u32, &'static str, u32)| {
        let from = bound(model, id, schema, variable)?;
        let allowed = schema.type_set(variable)?;
        let kernels = TypeSet { tensor: allowed.tensor & !lacking, ..*allowed };
        let to = (!kernels.has_tensor(from)).then(|| kernels.widened(from))??;
        Some((variable, from, to))
    };
    let reducing = reduces(node).then_some((schema.name, schema.since, "T", REDUCING_LACKING));
    rows.chain(reducing.as_ref()).filter_map(gap).collect()
}

/// The table is for default attributes. `ScatterElements` and `ScatterND` with a reduction have fewer kernels.
const REDUCING_LACKING: u32 =
    1 << DType::F16 as u32 | 1 << DType::BF16 as u32 | 1 << DType::Bool as u32;

fn reduces(node: &pt2onnx_ir::Node) -> bool {
    matches!(node.op(), "ScatterElements" | "ScatterND")
        && attrs::ScatterND::read(node).is_ok_and(|s| s.reduction != "none")
}

/// Whether all type variables of a node that allow it have the same type, one of `types`.
fn uniform(model: &Model, id: NodeId, schema: &OpSchema, types: u32) -> bool {
    let bound = |c: &schema::TypeConstraint| bound(model, id, schema, c.name);
    let Some(dtype) = schema.constraints.iter().find_map(bound) else {
        return false;
    };
    let same = |c: &schema::TypeConstraint| {
        !c.types.has_tensor(dtype) || bound(c).is_none_or(|other| other == dtype)
    };
    types & (1 << dtype as u32) != 0 && schema.constraints.iter().all(same)
}
