//! ATen ops that are kept as nodes `ATen` of the domain `org.pytorch.aten`, the form of PyTorch's TorchScript exporter: all arguments are
//! inputs in the order of the schema, and attributes name the operator and its overload.

use super::{
    foreign::{Passed, pass},
    walk::Driver,
};
use crate::{ArgError, LowerError, Lowered};
use pt2onnx_fx::graph::{Argument, MemoryFormat, Node, OpName};
use pt2onnx_ir::{Attribute, Attributes, Value};
use pt2onnx_schemas::{LIST, Schema};
use pt2onnx_tensor::DType;

/// The schema of an op.
fn schema_of(op: &OpName) -> Option<Schema<'static>> {
    let name = match &*op.overload {
        "default" => format!("{}::{}(", op.namespace, op.name),
        overload => format!("{}::{}.{overload}(", op.namespace, op.name),
    };
    LIST.lines().find(|line| line.starts_with(&name)).and_then(Schema::parse)
}

/// The value of a parameter that is not given.
fn default_of(text: &str) -> Option<Argument> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if let Some(inner) = inner {
        let items = inner.split(',').map(str::trim).filter(|item| !item.is_empty());
        return items
            .map(|item| item.parse().ok())
            .collect::<Option<Vec<i64>>>()
            .map(Argument::Ints);
    }
    Some(match text {
        "True" => Argument::Bool(true),
        "False" => Argument::Bool(false),
        "Mean" => Argument::Int(1),
        "contiguous_format" => Argument::Int(0),
        _ => match (text.parse(), text.parse(), text.get(1..text.len().saturating_sub(1))) {
            (Ok(int), ..) => Argument::Int(int),
            (_, Ok(float), _) => Argument::Float(float),
            (.., Some(word)) if text.starts_with(['"', '\'']) => Argument::String(word.into()),
            _ => return None,
        },
    })
}

impl<'a> Driver<'a> {
    /// Emits an ATen op as a node `ATen`.
    pub(super) fn aten_node(&self, domain: &str, node: &'a Node) -> Lowered<Vec<Value>> {
        let op = &node.target;
        let mut inputs = Vec::new();
        let fits = |schema: &Schema<'_>| {
            let known = |name: &str| schema.params.iter().any(|param| param.name == name);
            node.args.iter().all(|arg| known(&arg.name))
        };
        match schema_of(op).filter(fits) {
            Some(schema) => {
                for param in &schema.params {
                    let default = || param.default.and_then(default_of);
                    let input = match node.arg(param.name) {
                        Some(arg) => self.aten_input(param.name, arg)?,
                        None => match default() {
                            Some(default) => self.aten_input(param.name, &default)?,
                            None => None,
                        },
                    };
                    inputs.push(input);
                }
            }
            None => {
                for arg in &node.args {
                    inputs.push(self.aten_input(&arg.name, &arg.value)?);
                }
            }
        }
        let overload = if op.overload == "default" { "" } else { &op.overload };
        let attributes: Attributes = vec![
            ("operator".into(), Attribute::from(&*op.name)),
            ("overload_name".into(), Attribute::from(overload)),
        ];
        let types = self.result_types(node)?;
        Ok(self.builder.emit_custom(domain, "ATen", &inputs, attributes, &types).to_vec())
    }

    /// An argument as an input; `None` for Python's None.
    fn aten_input(&self, name: &str, arg: &Argument) -> Lowered<Option<Value>> {
        let b = &self.builder;
        Ok(Some(match arg {
            Argument::Bool(value) => b.scalar(*value, DType::Bool),
            Argument::Bools(values) => b.vector(values),
            Argument::Float(value) => b.scalar(*value, DType::F64),
            Argument::Floats(values) => b.vector(values),
            Argument::String(text) => {
                let value = Attribute::String(text.to_string());
                b.emit1("Constant", &[], vec![("value_string".into(), value)])
            }
            Argument::DType(dtype) => match torch_number(*dtype) {
                Some(number) => b.scalar(number, DType::I64),
                None => {
                    return Err(refused(name, "of an element type without a number in PyTorch"));
                }
            },
            Argument::MemoryFormat(format) => {
                let number = match format {
                    MemoryFormat::Contiguous => 0,
                    MemoryFormat::Preserve => 1,
                    MemoryFormat::ChannelsLast => 2,
                    MemoryFormat::ChannelsLast3d => 3,
                    _ => return Err(refused(name, "that is an unknown memory format")),
                };
                b.scalar(number, DType::I64)
            }
            // The runtime chooses layout and device.
            Argument::Layout(_) | Argument::Device(_) => return Ok(None),
            other => {
                let passed = pass(&self.context(), other);
                match passed.map_err(|what| ArgError { name: name.to_owned(), what })? {
                    Passed::Nothing => return Ok(None),
                    Passed::Attribute(Attribute::Int(value)) => b.scalar(value, DType::I64),
                    Passed::Attribute(Attribute::Ints(values)) => b.ints(&values),
                    Passed::Attribute(_) => return Err(refused(name, "of this type")),
                    Passed::Inputs(values) => match (values.as_slice(), other) {
                        (&[value], Argument::Tensor(_) | Argument::OptionalTensor(_)) => {
                            return Ok(value);
                        }
                        (_, Argument::Tensors(_) | Argument::OptionalTensors(_)) => {
                            return Err(refused(name, "that is a list of tensors"));
                        }
                        (&[value], _) => return Ok(value),
                        _ => return Err(refused(name, "of this type")),
                    },
                }
            }
        }))
    }
}

fn refused(name: &str, what: &str) -> LowerError {
    LowerError::unsupported(format!("a node `ATen` cannot have an argument {what} (`{name}`)"))
}

/// PyTorch's number of an element type.
fn torch_number(dtype: DType) -> Option<i64> {
    const NUMBERED: [DType; 12] = [
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::C32,
        DType::C64,
        DType::C128,
        DType::Bool,
    ];
    match dtype {
        DType::BF16 => Some(15),
        _ => NUMBERED.iter().position(|d| *d == dtype).and_then(|n| i64::try_from(n).ok()),
    }
}
