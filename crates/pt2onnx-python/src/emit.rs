//! Operators that Python emits: its objects as inputs and attributes of nodes.

use crate::values::Value;
use pt2onnx::{
    aten::Cx,
    ir::{
        self, Attribute, Attributes,
        schema::{self, AttributeKind, OpSchema, ParamKind},
    },
    symbolic::Expr,
    tensor::{DType, Scalar, Storage, Tensor},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyString},
};

/// Names of ONNX's operators that can be emitted.
pub fn operators() -> Vec<&'static str> {
    let current = schema::all().iter().filter(|s| s.since <= schema::CANONICAL_OPSET);
    let mut names: Vec<_> = current.filter(|s| !s.deprecated).map(|s| s.name).collect();
    names.dedup();
    names
}

/// Emits a node, of ONNX's own domain or another one. `types` are those of the outputs of another
/// domain, if PyTorch recorded none.
pub fn node(
    cx: &Cx,
    (domain, op): (&str, &str),
    inputs: &[Bound<'_, PyAny>],
    attributes: &Bound<'_, PyDict>,
    outputs: Option<usize>,
    types: &[(String, Vec<Option<i64>>)],
) -> PyResult<Vec<Value>> {
    let found = schema::lookup(op, schema::CANONICAL_OPSET).filter(|_| domain.is_empty());
    let made = match found {
        Some(schema) => {
            let inputs = with_types(cx, schema, inputs)?;
            let attributes = self::attributes(Some(schema), attributes)?;
            let outputs = outputs.unwrap_or_else(|| count(schema, &attributes));
            cx.emit(schema.name, &inputs, attributes, outputs)
        }
        None if domain.is_empty() => {
            return Err(PyValueError::new_err(format!("ONNX has no operator {op}")));
        }
        None => {
            let inputs: Vec<_> =
                inputs.iter().map(|i| input(cx, i, None)).collect::<PyResult<_>>()?;
            let attributes = self::attributes(None, attributes)?;
            let told = types.iter().map(|(name, sizes)| {
                let size = |s: &Option<i64>| s.map_or_else(|| cx.unknown_dim(), Expr::int);
                Ok(ir::Type::tensor(dtype(name)?, sizes.iter().map(size).collect::<Vec<_>>()))
            });
            let told: Vec<_> = told.collect::<PyResult<_>>()?;
            // The results have the types that PyTorch recorded for the op.
            let recorded = |i| {
                let meta = cx.recorded(i)?;
                Some(ir::Type::tensor(meta.dtype, meta.sizes.clone()))
            };
            let types =
                (0..outputs.unwrap_or(1)).map(|i| recorded(i).or_else(|| told.get(i).cloned()));
            cx.emit_custom(domain, op, &inputs, attributes, &types.collect::<Vec<_>>())
        }
    };
    diagnosed(cx)?;
    Ok(made.into_iter().map(Value).collect())
}

/// The default number of outputs of an operator: those that are not optional.
fn count(schema: &OpSchema, attributes: &Attributes) -> usize {
    let named = attributes.iter().find(|(name, _)| name == "num_outputs");
    if let Some((_, Attribute::Int(count))) = named {
        return usize::try_from(*count).unwrap_or(1);
    }
    let needed = schema.outputs.iter().filter(|o| o.kind == ParamKind::Single).count();
    if needed == 0 { schema.outputs.len() } else { needed }
}

/// The inputs of an operator of ONNX. A number gets the element type that the schema has for it, or
/// that of the inputs of the same type.
fn with_types(
    cx: &Cx,
    schema: &OpSchema,
    inputs: &[Bound<'_, PyAny>],
) -> PyResult<Vec<Option<ir::Value>>> {
    let formal = |i: usize| schema.input(i).map(|param| param.ty);
    let dtype = |i: usize| {
        let ty = formal(i)?;
        let only = schema.type_set(ty).and_then(|set| set.only_tensor());
        only.or_else(|| by_name(ty)).or_else(|| {
            let same = inputs.iter().enumerate().filter(|(j, _)| formal(*j) == Some(ty));
            let mut values = same.filter_map(|(_, input)| input.extract::<Value>().ok());
            values.find_map(|value| cx.known_dtype(value.0))
        })
    };
    inputs.iter().enumerate().map(|(i, given)| input(cx, given, dtype(i))).collect()
}

/// The element type of a schema's type `tensor(int64)`.
fn by_name(ty: &str) -> Option<DType> {
    match ty.strip_prefix("tensor(")?.strip_suffix(')')? {
        "float" => Some(DType::F32),
        "double" => Some(DType::F64),
        name => dtype(name).ok(),
    }
}

fn input(cx: &Cx, given: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<ir::Value>> {
    if given.is_none() {
        return Ok(None);
    }
    match given.extract::<Value>() {
        Ok(value) => Ok(Some(value.0)),
        Err(_) => constant(cx, given, dtype).map(Some),
    }
}

/// A constant: a number, a list of numbers, or an array as (element type, sizes, bytes). Without a
/// type, bools are bool, ints int64 and floats float32.
pub fn constant(cx: &Cx, value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<ir::Value> {
    let wrong = |e: &dyn std::fmt::Display| PyValueError::new_err(e.to_string());
    if let Some(scalar) = scalar(value) {
        return Ok(cx.scalar(scalar, dtype.unwrap_or_else(|| natural(scalar))));
    }
    if let Ok((name, sizes, bytes)) = value.extract::<(String, Vec<usize>, Vec<u8>)>() {
        let tensor = Tensor::whole(self::dtype(&name)?, sizes, Storage::new(bytes));
        return Ok(cx.constant(tensor.map_err(|e| wrong(&e))?));
    }
    let items: Option<Vec<Bound<'_, PyAny>>> = value.extract().ok();
    let scalars: Option<Vec<Scalar>> = items.and_then(|items| items.iter().map(scalar).collect());
    let scalars = scalars.ok_or_else(|| {
        let shown = value.repr().map(|r| r.to_string()).unwrap_or_default();
        PyTypeError::new_err(format!("{shown} cannot become a tensor"))
    })?;
    let widest = scalars.iter().find(|s| matches!(s, Scalar::Float(_))).or(scalars.first());
    let dtype = dtype.unwrap_or_else(|| widest.map_or(DType::I64, |s| natural(*s)));
    let mut bytes = Vec::new();
    for scalar in &scalars {
        let one = scalar.to_tensor(dtype);
        let one = one.ok_or_else(|| wrong(&format!("{dtype} cannot hold {scalar:?}")))?;
        bytes.extend_from_slice(&one.to_bytes());
    }
    let tensor = Tensor::whole(dtype, vec![scalars.len()], Storage::new(bytes));
    Ok(cx.constant(tensor.map_err(|e| wrong(&e))?))
}

/// A number of Python.
fn scalar(value: &Bound<'_, PyAny>) -> Option<Scalar> {
    if value.is_instance_of::<PyBool>() {
        return value.extract().ok().map(Scalar::Bool);
    }
    if value.is_instance_of::<PyInt>() {
        return value.extract().ok().map(Scalar::Int);
    }
    value.is_instance_of::<PyFloat>().then(|| value.extract().ok().map(Scalar::Float))?
}

fn natural(scalar: Scalar) -> DType {
    match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        _ => DType::F32,
    }
}

/// The element type that PyTorch and NumPy call so.
pub fn dtype(name: &str) -> PyResult<DType> {
    let wrong = || PyValueError::new_err(format!("there is no element type {name:?}"));
    DType::from_name(name).ok_or_else(wrong)
}

fn attributes(schema: Option<&OpSchema>, given: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    let mut made = Attributes::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        if value.is_none() {
            continue;
        }
        let kind = match schema {
            None => None,
            Some(schema) => Some(schema.attribute(&name).map(|a| a.kind).ok_or_else(|| {
                PyTypeError::new_err(format!("{} has no attribute {name:?}", schema.name))
            })?),
        };
        let attribute = attribute(&value, kind).map_err(|e| {
            PyTypeError::new_err(format!("attribute {name:?}: {}", e.value(value.py())))
        })?;
        made.push((name.into(), attribute));
    }
    Ok(made)
}

/// A value as an attribute; without a kind, of the kind that fits it.
fn attribute(value: &Bound<'_, PyAny>, kind: Option<AttributeKind>) -> PyResult<Attribute> {
    use AttributeKind::*;
    Ok(match kind.map_or_else(|| natural_kind(value), Ok)? {
        Int => Attribute::Int(value.extract()?),
        Float => Attribute::Float(value.extract()?),
        String => Attribute::String(value.extract()?),
        Ints => Attribute::Ints(value.extract()?),
        Floats => Attribute::Floats(value.extract()?),
        Strings => Attribute::Strings(value.extract()?),
        Tensor => {
            let (name, sizes, bytes): (std::string::String, Vec<usize>, Vec<u8>) =
                value.extract()?;
            let tensor = pt2onnx::tensor::Tensor::whole(dtype(&name)?, sizes, Storage::new(bytes));
            Attribute::Tensor(tensor.map_err(|e| PyValueError::new_err(e.to_string()))?)
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "attributes of type {other} are not supported"
            )));
        }
    })
}

fn natural_kind(value: &Bound<'_, PyAny>) -> PyResult<AttributeKind> {
    if let Ok(items) = value.extract::<Vec<Bound<'_, PyAny>>>()
        && !value.is_instance_of::<PyString>()
    {
        let is = |ty: fn(&Bound<'_, PyAny>) -> bool| !items.is_empty() && items.iter().all(ty);
        return Ok(match () {
            () if is(|i| i.is_instance_of::<PyString>()) => AttributeKind::Strings,
            () if items.iter().any(|i| i.is_instance_of::<PyFloat>()) => AttributeKind::Floats,
            () => AttributeKind::Ints,
        });
    }
    match value {
        v if v.is_instance_of::<PyString>() => Ok(AttributeKind::String),
        v if v.is_instance_of::<PyInt>() => Ok(AttributeKind::Int),
        v if v.is_instance_of::<PyFloat>() => Ok(AttributeKind::Float),
        v => Err(PyTypeError::new_err(format!("{} is no attribute", v.repr()?))),
    }
}

/// The error that Python gets for a problem that the builder found.
fn diagnosed(cx: &Cx) -> PyResult<()> {
    match cx.take_diagnostics().into_iter().next() {
        Some(diagnostic) => Err(PyValueError::new_err(diagnostic.to_string())),
        None => Ok(()),
    }
}
