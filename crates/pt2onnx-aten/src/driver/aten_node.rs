//! Keeps ATen ops as nodes `ATen` of the domain `org.pytorch.aten`, the form of PyTorch's
//! TorchScript exporter.
//!
//! All arguments are inputs in the order of the schema, and attributes name the operator and its
//! overload.

use super::{
    lower_graph::Driver,
    opaque::{Passed, pass_argument},
};
use crate::{ArgError, LowerError, Lowered, Schema};
use pt2onnx_fx::archive::c10_number;
use pt2onnx_fx::graph::{Argument, MemoryFormat, Node, OpName};
use pt2onnx_ir::{Attribute, Attributes, Value};
use pt2onnx_schemas::LIST;
use pt2onnx_tensor::DType;

/// The schema of an op.
fn schema_of(op: &OpName) -> Option<Schema> {
    let name = match &*op.overload {
        "default" => format!("{}::{}(", op.namespace, op.name),
        overload => format!("{}::{}.{overload}(", op.namespace, op.name),
    };
    Schema::parse(LIST.lines().find(|line| line.starts_with(&name))?).ok()
}

impl<'a> Driver<'a> {
    /// Emits an ATen op as a node `ATen`.
    pub(super) fn aten_node(&self, domain: &str, node: &'a Node) -> Lowered<Vec<Value>> {
        let op = &node.target;
        let mut inputs = Vec::new();
        let fits = |schema: &Schema| {
            let known = |name: &str| schema.params.iter().any(|param| param.name == name);
            node.args.iter().all(|arg| known(&arg.name))
        };
        match schema_of(op).filter(fits) {
            Some(schema) => {
                for param in &schema.params {
                    let input = node.arg(&param.name).or(param.default.as_ref());
                    let input = input.map(|arg| self.aten_input(&param.name, arg)).transpose()?;
                    inputs.push(input.flatten());
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
            Argument::DType(dtype) => match c10_number(*dtype) {
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
                let passed = pass_argument(&self.context(), other);
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
