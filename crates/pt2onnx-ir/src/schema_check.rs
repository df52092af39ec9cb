//! Checks a node against the schema of its operator.

use crate::{
    Attribute, Model, Node, Type, Value,
    schema::{self, OpSchema, Param, ParamKind, TypeSet},
    types::{element_name, onnx_name},
};
use pt2onnx_tensor::DType;
use smallvec::SmallVec;

/// The largest axis, size, stride or count in an attribute.
const MOST: u64 = 1 << 31;

/// Attributes with integers that are data, or that may lie beyond the end of a dimension.
const ANY_INTEGER: &[&str] =
    &["end", "ends", "pool_int64s", "start", "starts", "value_int", "value_ints"];

/// Checks a node against a schema: the number of inputs and outputs, the attributes, and the
/// element types. Each type variable must stand for one type. Axes must be dimensions of the first
/// input, if their number is known.
///
/// # Errors
/// Returns a sentence about the first thing that does not fit.
pub fn conforms(model: &Model, node: &Node, schema: &OpSchema) -> Result<(), String> {
    inputs(node, schema)?;
    outputs(node, schema)?;
    attributes(node, schema)?;
    axes(model, node, schema)?;
    types(model, node, schema)
}

fn inputs(node: &Node, schema: &OpSchema) -> Result<(), String> {
    let (op, given) = (&node.op, node.inputs().len());
    let variadic = schema.inputs.iter().any(|p| p.kind == ParamKind::Variadic);
    if !variadic && given > schema.inputs.len() {
        let takes = schema.inputs.len();
        return Err(format!("{given} inputs are given, and {op} takes {takes}"));
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
    if given < schema.min_outputs as usize || too_many {
        Err(format!("{} does not have {given} outputs", node.op))
    } else {
        Ok(())
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
        numbers(name, value).map_err(|wrong| format!("attribute {name} of {op} is {wrong}"))?;
    }
    let mut required = schema.attributes.iter().filter(|a| a.required);
    match required.find(|a| node.attribute(a.name).is_none()) {
        Some(missing) => Err(format!("{op} needs the attribute {}", missing.name)),
        None => Ok(()),
    }
}

/// Whether the integers of an attribute mean something.
fn numbers(name: &str, value: &Attribute) -> Result<(), String> {
    let given = value.ints();
    let large = given.iter().find(|number| number.unsigned_abs() > MOST);
    if let Some(large) = large.filter(|_| !ANY_INTEGER.contains(&name)) {
        return Err(format!("{large}, which is out of range"));
    }
    let unknown = given.iter().find(|number| schema::dtype(**number).is_none());
    match unknown.filter(|_| ["dtype", "to"].contains(&name)) {
        Some(unknown) => Err(format!("{unknown}, which is not an element type")),
        None => Ok(()),
    }
}

/// Checks that axes in attributes are dimensions of the first input. A scalar counts as a vector.
fn axes(model: &Model, node: &Node, schema: &OpSchema) -> Result<(), String> {
    let op = &*node.op;
    // The first forms of `Add` and others align the second input there, which may have no
    // dimensions.
    if schema.attribute("broadcast").is_some() {
        return Ok(());
    }
    for name in ["axis", "axes", "perm"] {
        let Some(given @ (Attribute::Int(_) | Attribute::Ints(_))) = node.attribute(name) else {
            continue;
        };
        let given = given.ints();
        let ty = node.input(0).and_then(|x| model[x].ty.as_ref()?.as_tensor());
        let Some(rank) = ty.and_then(|ty| Some(ty.shape.as_ref()?.len())) else {
            continue;
        };
        let more = match op {
            // With one scale for all elements, the axis means nothing.
            "QuantizeLinear" | "DequantizeLinear" => continue,
            // The axis may be the end.
            "Flatten" | "Hardmax" | "LogSoftmax" | "OneHot" | "Softmax" => 1,
            // These are axes of the result.
            "Unsqueeze" => given.len(),
            _ => 0,
        };
        let end = (rank + more).max(1) as i64;
        let wrong = match name {
            "perm" => given.len() != rank || (0..rank as i64).any(|i| !given.contains(&i)),
            _ => given.iter().any(|axis| !(-end..end).contains(axis)),
        };
        if wrong {
            let given = match given {
                [one] => one.to_string(),
                all => format!("{all:?}"),
            };
            return Err(format!(
                "attribute {name} of {op} is {given}, but its input has {rank} dimensions"
            ));
        }
    }
    Ok(())
}

/// Element types; each type variable stands for one type.
fn types(model: &Model, node: &Node, schema: &OpSchema) -> Result<(), String> {
    let inputs = node.inputs().iter().enumerate().map(|(i, v)| (*v, schema.input(i)));
    let outputs = node.outputs().iter().enumerate().map(|(i, v)| (Some(*v), schema.output(i)));
    let mut bound: SmallVec<[(&str, DType); 4]> = SmallVec::new();
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

/// The element type that the type variable of an input or output stands for; `None` if the formal
/// type is not a variable, or the type of the value is not known.
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
        None if element_name(formal.ty) != Some(onnx_name(dtype)) => {
            Err(format!("{} of {op} must be {}, but is {dtype}", formal.name, formal.ty))
        }
        None => Ok(None),
        // The first form was only for floats, which no producer kept to.
        Some(set) if !set.has_tensor(dtype) && op != "Constant" => refused(&dtype),
        Some(_) => Ok(Some(dtype)),
    }
}
