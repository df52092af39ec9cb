//! Checks a node against the schema of its operator.

use crate::{
    Attribute, Model, Node, Type, Value,
    schema::{OpSchema, Param, ParamKind, TypeSet},
    types::onnx_name,
};
use pt2onnx_tensor::DType;

/// The largest axis, size, stride or number of anything that an attribute may tell.
const MOST: u64 = 1 << 31;

/// Attributes with integers that are data, or that may lie beyond the end of a dimension.
const ANY_INTEGER: &[&str] =
    &["end", "ends", "pool_int64s", "start", "starts", "value_int", "value_ints"];

/// Checks a node against a schema: the number of inputs and outputs, the attributes, and the element types. Each type
/// variable must stand for one type.
///
/// # Errors
/// Returns a sentence about the first thing that does not fit.
pub fn conforms(model: &Model, node: &Node, schema: &OpSchema) -> Result<(), String> {
    inputs(node, schema)?;
    outputs(node, schema)?;
    attributes(node, schema)?;
    types(model, node, schema)
}

fn inputs(node: &Node, schema: &OpSchema) -> Result<(), String> {
    let (op, given) = (&node.op, node.inputs().len());
    let variadic = schema.inputs.iter().any(|p| p.kind == ParamKind::Variadic);
    if !variadic && given > schema.inputs.len() {
        return Err(format!("{op} takes {} inputs, {given} are given", schema.inputs.len()));
    }
    let missing = |i: &usize| {
        let wanted = schema.input(*i).is_some_and(|p| p.kind == ParamKind::Single);
        (wanted || *i >= given) && node.input(*i).is_none()
    };
    match (0..schema.min_inputs as usize).find(missing) {
        Some(missing) => Err(format!("{op} needs input {missing}")),
        None => Ok(()),
    }
}

fn outputs(node: &Node, schema: &OpSchema) -> Result<(), String> {
    let given = node.outputs().len();
    let variadic = schema.outputs.last().is_some_and(|p| p.kind == ParamKind::Variadic);
    let too_many = !variadic && given > schema.outputs.len();
    match given < schema.min_outputs as usize || too_many {
        true => Err(format!("{} does not have {given} outputs", node.op)),
        false => Ok(()),
    }
}

fn attributes(node: &Node, schema: &OpSchema) -> Result<(), String> {
    let op = &node.op;
    for (name, value) in &node.attributes {
        let Some(formal) = schema.attribute(name) else {
            return Err(format!("{op} of opset {} has no attribute {name}", schema.since));
        };
        let (wanted, given) = (formal.kind, value.kind());
        if wanted != given {
            return Err(format!("attribute {name} of {op} must be {wanted:?}, but is {given:?}"));
        }
        let numbers = match value {
            Attribute::Int(one) => std::slice::from_ref(one),
            Attribute::Ints(all) => all,
            _ => &[],
        };
        let sensible =
            |number: &i64| number.unsigned_abs() <= MOST || ANY_INTEGER.contains(&&**name);
        if let Some(number) = numbers.iter().find(|number| !sensible(number)) {
            return Err(format!("attribute {name} of {op} is {number}, which is out of range"));
        }
    }
    let mut required = schema.attributes.iter().filter(|a| a.required);
    match required.find(|a| node.attribute(a.name).is_none()) {
        Some(missing) => Err(format!("{op} needs the attribute {}", missing.name)),
        None => Ok(()),
    }
}

/// Element types; each type variable stands for one type.
fn types(model: &Model, node: &Node, schema: &OpSchema) -> Result<(), String> {
    let inputs = node.inputs().iter().enumerate().map(|(i, v)| (*v, schema.input(i)));
    let outputs = node.outputs().iter().enumerate().map(|(i, v)| (Some(*v), schema.output(i)));
    let mut bound: Vec<(&str, DType)> = Vec::new();
    for (value, formal) in inputs.chain(outputs) {
        let (Some(value), Some(formal)) = (value, formal) else {
            continue;
        };
        let Some(dtype) = allowed(model, value, formal, node, schema)? else {
            continue;
        };
        if formal.kind == ParamKind::Variadic && !formal.homogeneous {
            continue;
        }
        match bound.iter().find(|(name, _)| *name == formal.ty) {
            Some((_, other)) if *other != dtype => {
                return Err(format!(
                    "{} of {} is {dtype}, but must be {other}",
                    formal.name, node.op
                ));
            }
            Some(_) => {}
            None => bound.push((formal.ty, dtype)),
        }
    }
    Ok(())
}

/// The element type that the type variable of an input or output stands for; `None` if the formal type is not a variable,
/// or the type of the value is not known.
fn allowed(
    model: &Model,
    value: Value,
    formal: &Param,
    node: &Node,
    schema: &OpSchema,
) -> Result<Option<DType>, String> {
    let op = &node.op;
    let set: Option<&TypeSet> = schema.type_set(formal.ty);
    let refused = |given: &dyn std::fmt::Display| {
        Err(format!("{op} of opset {} does not take {given} as {}", schema.since, formal.name))
    };
    let tensor = match &model[value].ty {
        Some(Type::Tensor(tensor)) => tensor,
        Some(other) if set.is_some_and(|set| !set.has(other)) => return refused(other),
        _ => return Ok(None),
    };
    let dtype = tensor.dtype;
    match set {
        None if formal.ty != format!("tensor({})", onnx_name(dtype)) => {
            Err(format!("{} of {op} must be {}, but is {dtype}", formal.name, formal.ty))
        }
        None => Ok(None),
        Some(set) if !set.has_tensor(dtype) => refused(&dtype),
        Some(_) => Ok(Some(dtype)),
    }
}
