//! What runtimes lack of the standard: element types that an operator's kernels do not take are bridged by casts.

use crate::generated::ort_cpu;
use pt2onnx_ir::{
    Attribute, Attributes, InsertPoint, Model, NodeId, Type, Value,
    schema::{self, OpSchema, TypeSet},
};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The runtime that a model is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The standard, whatever runs it.
    #[default]
    Standard,
    /// ONNX Runtime on the CPU: casts around nodes whose element type it has no kernel for.
    OrtCpu,
}

/// Casts around each node that ONNX Runtime's CPU provider has no kernel for at the model's opset. Expects a legal model.
pub fn bridge_ort_cpu(model: &mut Model) {
    for id in model.graph_nodes() {
        for (variable, from, to) in gaps(model, id) {
            let Some(schema) = schema::lookup(&model[id].op, model.opset) else {
                continue;
            };
            bridge(model, id, schema, variable, from, to);
        }
    }
}

/// What of the model ONNX Runtime's CPU provider has no kernel for: `Conv of float64`, ...
pub fn lacking_ort_cpu(model: &Model) -> Vec<String> {
    let mut found = BTreeSet::new();
    for id in model.graph_nodes() {
        found.extend(
            gaps(model, id)
                .iter()
                .map(|(_, from, _)| format!("{} of {from}", model[id].op)),
        );
    }
    found.into_iter().collect()
}

type Gap = (&'static str, DType, DType);

/// The type variables of a node that stand for a type without kernel: variable, that type, the one to compute in.
fn gaps(model: &Model, id: NodeId) -> Vec<Gap> {
    let node = &model[id];
    let Some(schema) = schema::lookup(&node.op, model.opset).filter(|_| node.domain.is_empty())
    else {
        return Vec::new();
    };
    let start =
        ort_cpu::LACKING.partition_point(|row| (row.0, row.1) < (schema.name, schema.since));
    let rows = ort_cpu::LACKING[start..]
        .iter()
        .take_while(|row| (row.0, row.1) == (schema.name, schema.since));
    if rows
        .clone()
        .any(|row| row.2 == "*" && uniform(model, id, schema, row.3))
    {
        return Vec::new();
    }
    let gap = |&(_, _, variable, lacking): &(&str, u32, &'static str, u32)| {
        let from = bound(model, id, schema, variable)?;
        let allowed = schema.type_set(variable)?;
        let kernels = TypeSet {
            tensor: allowed.tensor & !lacking,
            ..*allowed
        };
        let to = (!kernels.has_tensor(from)).then(|| kernels.widened(from))??;
        Some((variable, from, to))
    };
    let reducing = reduces(node).then_some((schema.name, schema.since, "T", REDUCING_LACKING));
    rows.chain(reducing.as_ref()).filter_map(gap).collect()
}

/// The table knows operators at their default attributes. `ScatterElements` and `ScatterND` that reduce have fewer kernels.
const REDUCING_LACKING: u32 =
    1 << DType::F16 as u32 | 1 << DType::BF16 as u32 | 1 << DType::Bool as u32;

fn reduces(node: &pt2onnx_ir::Node) -> bool {
    let given = node
        .attributes
        .iter()
        .find(|(name, _)| &**name == "reduction");
    matches!(&*node.op, "ScatterElements" | "ScatterND")
        && given.is_some_and(|(_, how)| !matches!(how, Attribute::String(how) if &**how == "none"))
}

/// Whether all of a node's type variables that allow it stand for one of these types.
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

/// The element type that a variable stands for in a node.
pub(crate) fn bound(model: &Model, id: NodeId, schema: &OpSchema, variable: &str) -> Option<DType> {
    let node = &model[id];
    let inputs = node.inputs().iter().enumerate();
    let inputs = inputs
        .filter(|(i, _)| schema.input(*i).is_some_and(|p| p.ty == variable))
        .filter_map(|(_, v)| *v);
    let outputs = node.outputs().iter().enumerate();
    let outputs = outputs
        .filter(|(i, _)| schema.output(*i).is_some_and(|p| p.ty == variable))
        .map(|(_, v)| *v);
    inputs.chain(outputs).find_map(|v| dtype(model, v))
}

fn dtype(model: &Model, value: Value) -> Option<DType> {
    model[value].ty.as_ref()?.as_tensor().map(|t| t.dtype)
}

/// Lets the node compute in `to` where its variable stands for `from`.
pub(crate) fn bridge(
    model: &mut Model,
    id: NodeId,
    schema: &OpSchema,
    variable: &str,
    from: DType,
    to: DType,
) {
    let mut cast: FxHashMap<Value, Value> = FxHashMap::default();
    for i in 0..model[id].inputs().len() {
        let Some(value) = model[id]
            .input(i)
            .filter(|_| schema.input(i).is_some_and(|p| p.ty == variable))
        else {
            continue;
        };
        if dtype(model, value) == Some(from) {
            let wide = *cast
                .entry(value)
                .or_insert_with(|| insert_cast(model, InsertPoint::Before(id), value, to, id));
            model.replace_input(id, i, Some(wide));
        }
    }
    retarget(model, id, from, to);
    for (i, value) in model[id].outputs().to_vec().into_iter().enumerate() {
        let affected =
            schema.output(i).is_some_and(|p| p.ty == variable) && dtype(model, value) == Some(from);
        if !affected {
            continue;
        }
        // The node's own output becomes the wide one, so everybody else moves to the cast behind it.
        let after = match model.next(id) {
            Some(next) => InsertPoint::Before(next),
            None => InsertPoint::End(model[id].region()),
        };
        let narrow = insert_cast(model, after, value, from, id);
        let (name, ty) = (model[value].name.take(), model[value].ty.clone());
        let metadata = std::mem::take(&mut model[value].metadata);
        model.replace_all_uses(value, narrow);
        if let Some(cast) = model.producer(narrow) {
            model.replace_input(cast, 0, Some(value));
        }
        (model[narrow].name, model[narrow].ty, model[narrow].metadata) = (name, ty, metadata);
        if let Some(Type::Tensor(t)) = &mut model[value].ty {
            t.dtype = to;
        }
    }
}

/// Attributes that say of which type the outputs are.
fn retarget(model: &mut Model, id: NodeId, from: DType, to: DType) {
    for (name, attribute) in &mut model[id].attributes {
        let names_type = matches!(&**name, "to" | "dtype" | "output_dtype" | "output_datatype");
        if names_type && matches!(attribute, Attribute::Int(i) if *i == schema::data_type(from)) {
            *attribute = Attribute::Int(schema::data_type(to));
        }
    }
}

fn insert_cast(
    model: &mut Model,
    at: InsertPoint,
    value: Value,
    to: DType,
    origin: NodeId,
) -> Value {
    let attributes: Attributes = [("to".into(), Attribute::Int(schema::data_type(to)))]
        .into_iter()
        .collect();
    let node = model.add_node(at, "Cast", &[Some(value)], attributes, 1);
    model[node].origins = model[origin].origins.clone();
    let output = model[node].outputs()[0];
    let mut ty = model[value].ty.clone();
    if let Some(Type::Tensor(t)) = &mut ty {
        t.dtype = to;
    }
    model[output].ty = ty;
    output
}
