//! Inserts casts where ONNX Runtime's CPU provider has no kernel for an element type.
//!
//! The kernel table was measured on the pinned release.

use super::{error::Unrunnable, runtime::types};
use crate::{
    casts::{bound, cast_around},
    generated::ort_cpu,
    legalise::compute_bits,
    pool,
};
use pt2onnx_ir::{
    Model, NodeId, attrs,
    schema::{self, OpSchema, TypeSet},
};
use pt2onnx_tensor::DType;
use std::collections::BTreeSet;

/// Inserts casts around each node without a kernel at the model's opset. Returns a warning if a
/// type computed in does not hold all values. The model must be legal.
///
/// # Errors
/// The nodes whose operator has no kernel at all.
pub(super) fn bridge_all(model: &mut Model) -> Result<Option<String>, Vec<Unrunnable>> {
    let (mut narrower, mut failures) = (BTreeSet::new(), Vec::new());
    for id in model.nodes_in(&[Model::MAIN]) {
        if model[id].is(BIT_CAST) && !gaps(model, id).is_empty() {
            // Otherwise it fails below.
            compute_bits(model, id);
        }
    }
    for id in model.nodes_in(&[Model::MAIN]) {
        for (variable, from, to) in gaps(model, id) {
            let Some(schema) = schema::lookup(model[id].op(), model.opset) else { continue };
            let Some(to) = to else {
                let (name, newest) = (schema.name, schema.since - 1);
                let reason = if name == BIT_CAST {
                    format!("ONNX Runtime has no CPU kernel for {name} of {from}")
                } else {
                    format!(
                        "ONNX Runtime has no CPU kernel for {name} of opset {}: give an opset up to {newest}",
                        schema.since
                    )
                };
                failures.push(Unrunnable { place: model.describe(id), reason });
                break;
            };
            if narrows(from, to) {
                narrower.insert(format!("{} of {from} (computed in {to})", model[id].op()));
            }
            cast_around(model, id, schema, variable, from, to);
        }
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    let list = Vec::from_iter(narrower).join(", ");
    Ok((!list.is_empty())
        .then(|| format!("ONNX Runtime has no CPU kernel for {list}: the results are less exact")))
}

/// Casts around each `Clip` of bfloat16 below opset 16: ONNX Runtime's `Where` lacks the type.
pub(super) fn bridge_clips(model: &mut Model) {
    let Some(schema) = schema::lookup("Clip", model.opset).filter(|_| model.opset < 16) else {
        return;
    };
    for id in model.nodes_in(&[Model::MAIN]) {
        let first = model[id].input(0).and_then(|x| model.dtype(x));
        if model[id].is("Clip") && first == Some(DType::BF16) {
            cast_around(model, id, schema, "T", DType::BF16, DType::F32);
        }
    }
}

fn narrows(from: DType, to: DType) -> bool {
    use DType::*;
    matches!((from, to), (F64, F32) | (I64 | U64, F64 | F32) | (I32 | U32, F32) | (U64, I64))
}

/// Warns of nodes without a kernel, such as `Conv of float64`.
pub(super) fn warnings(model: &Model) -> Vec<String> {
    let (mut casts, mut newer, mut computed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let nodes = model.nodes_in(&[Model::MAIN]);
    let found = pool::find(&nodes, |id| Some(gaps(model, id)).filter(|gaps| !gaps.is_empty()));
    for (place, gaps) in found {
        let op = model[nodes[place]].op();
        for (_, from, to) in gaps {
            match to {
                Some(_) => casts.insert(format!("{op} of {from}")),
                None if op == BIT_CAST => computed.insert(format!("{op} of {from}")),
                None => newer.insert(format!("{op} of opset {}", model.opset)),
            };
        }
    }
    let kinds = [
        (casts, "the target `ort-cpu` inserts casts"),
        (newer, "give an older opset"),
        (computed, "the target `ort-cpu` computes it"),
    ];
    let kinds = kinds.into_iter().filter(|(what, _)| !what.is_empty());
    let texts = kinds.map(|(what, help)| {
        let what = Vec::from_iter(what).join(", ");
        format!("ONNX Runtime has no CPU kernel for {what}; {help}")
    });
    texts.collect()
}

type Gap = (&'static str, DType, Option<DType>);

/// The type variables without a kernel: variable, type, and the type to compute in, if any.
fn gaps(model: &Model, id: NodeId) -> Vec<Gap> {
    let node = &model[id];
    let Some(schema) = schema::lookup(node.op(), model.opset).filter(|_| node.domain.is_empty())
    else {
        return Vec::new();
    };
    if schema.name == BIT_CAST {
        return bit_cast_gaps(model, id, schema);
    }
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
        if kernels.has_tensor(from) {
            return None;
        }
        match kernels.tensor & PROBED {
            0 => Some((variable, from, None)),
            _ => Some((variable, from, Some(kernels.widened(from)?))),
        }
    };
    let reducing = reduces(node).then_some((schema.name, schema.since, "T", REDUCING_LACKING));
    rows.chain(reducing.as_ref()).filter_map(gap).collect()
}

/// A cast before it would change the bits, so there is nothing to compute in. `regen-kernels`
/// cannot probe it: it varies one type at a time.
const BIT_CAST: &str = "BitCast";

/// ONNX Runtime has kernels for numbers of whole bytes, and none for bools and floats of 8 bits.
fn bit_cast_gaps(model: &Model, id: NodeId, schema: &'static OpSchema) -> Vec<Gap> {
    let variables = schema.constraints.iter().map(|c| c.name);
    let typed = variables.filter_map(|v| Some((v, bound(model, id, schema, v)?)));
    let lacking =
        typed.filter(|(_, dtype)| PROBED & types(&[*dtype]) == 0 || *dtype == DType::Bool);
    lacking.map(|(variable, dtype)| (variable, dtype, None)).collect()
}

/// The element types that `regen-kernels` probes.
const PROBED: u32 = {
    use DType::*;
    types(&[F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool])
};

/// The table is for default attributes: with a reduction, scattering has fewer kernels.
const REDUCING_LACKING: u32 = types(&[DType::F16, DType::BF16, DType::Bool]);

fn reduces(node: &pt2onnx_ir::Node) -> bool {
    matches!(node.op(), "ScatterElements" | "ScatterND")
        && attrs::ScatterND::read(node).is_ok_and(|s| s.reduction != "none")
}

/// Whether all type variables of a node that allow it have the same type, one of `types`.
fn uniform(model: &Model, id: NodeId, schema: &OpSchema, types: u32) -> bool {
    let bound = |c: &schema::TypeConstraint| bound(model, id, schema, c.name);
    let Some(dtype) = schema.constraints.iter().find_map(bound) else { return false };
    let same = |c: &schema::TypeConstraint| {
        !c.types.has_tensor(dtype) || bound(c).is_none_or(|other| other == dtype)
    };
    types & (1 << dtype as u32) != 0 && schema.constraints.iter().all(same)
}
