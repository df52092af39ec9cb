//! Ops that are kept: they become nodes of a custom domain, for runtimes that support them.

use super::{lower_graph::Driver, types::onnx_type};
use crate::{ArgError, Cx, FromArg, LowerError, Lowered, args::brief, cx::Outputs};
use pt2onnx_fx::graph::{Argument, Node, SymArg, ValueMeta};
use pt2onnx_ir::{Attribute, Attributes, Type, Value, schema};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The domain of ATen ops.
const ATEN_DOMAIN: &str = "org.pytorch.aten";

/// The form of an argument in a node that keeps the op's parameters.
pub(super) enum Passed {
    /// Inputs; `None` for a gap in a list.
    Inputs(Vec<Option<Value>>),
    /// An attribute.
    Attribute(Attribute),
    /// Nothing, because it is None.
    Nothing,
}

/// Converts an argument. Tensors, and numbers that are only known at run time, become inputs, all
/// others attributes.
pub(super) fn pass_argument(cx: &Cx, arg: &Argument) -> Result<Passed, String> {
    let one = |value| Ok(Passed::Inputs(vec![Some(value)]));
    Ok(Passed::Attribute(match arg {
        Argument::None | Argument::OptionalTensor(None) => return Ok(Passed::Nothing),
        // An empty list of any type.
        Argument::Tensors(names) if names.is_empty() => Attribute::Ints(Vec::new()),
        Argument::Tensor(_) | Argument::OptionalTensor(_) | Argument::SymFloat(SymArg::Name(_)) => {
            return one(Value::from_arg(cx, arg)?);
        }
        Argument::SymBool(SymArg::Name(name)) => {
            let value = cx.value(name);
            return one(value.ok_or_else(|| format!("nothing in the program computes `{name}`"))?);
        }
        Argument::Tensors(_) | Argument::OptionalTensors(_) => {
            return Vec::from_arg(cx, arg).map(Passed::Inputs);
        }
        Argument::Int(_) | Argument::SymInt(_) => {
            let value = Expr::from_arg(cx, arg)?;
            match value.as_int() {
                Some(i) => Attribute::Int(i),
                None => return one(cx.size(&value)),
            }
        }
        Argument::Ints(_) | Argument::SymInts(_) => {
            let values = Vec::<Expr>::from_arg(cx, arg)?;
            match values.iter().map(Expr::as_int).collect() {
                Some(ints) => Attribute::Ints(ints),
                None => return one(cx.sizes(&values)),
            }
        }
        Argument::Float(f) | Argument::SymFloat(SymArg::Value(f)) => Attribute::Float(*f as f32),
        Argument::Floats(v) => Attribute::Floats(v.iter().map(|&f| f as f32).collect()),
        Argument::Bool(b) | Argument::SymBool(SymArg::Value(b)) => Attribute::Int((*b).into()),
        Argument::Bools(v) => Attribute::Ints(v.iter().map(|&b| b.into()).collect()),
        Argument::String(s) => Attribute::String(s.to_string()),
        Argument::Strings(v) => Attribute::Strings(v.iter().map(ToString::to_string).collect()),
        Argument::DType(d) => Attribute::Int(schema::data_type(*d)),
        Argument::MemoryFormat(f) => Attribute::String(f.to_string()),
        Argument::Layout(l) => Attribute::String(l.to_string()),
        Argument::Device(d) => Attribute::String(d.to_string()),
        Argument::Complex(re, im) => Attribute::Floats(vec![*re as f32, *im as f32]),
        other => return Err(format!("ONNX has no attribute type for {}", brief(other))),
    }))
}

impl<'a> Driver<'a> {
    /// Emits the node as a node of the op's domain.
    pub(super) fn opaque_node(&self, node: &'a Node) -> Lowered<Outputs> {
        let op = &node.target;
        if self.aten_nodes && &*op.namespace == "aten" {
            return Ok(self.aten_node(ATEN_DOMAIN, node)?.into());
        }
        let (mut inputs, mut names, mut attributes) =
            (Vec::new(), Vec::new(), Attributes::default());
        for arg in &node.args {
            let passed = pass_argument(&self.context(), &arg.value)
                .map_err(|what| ArgError { name: arg.name.to_string(), what })?;
            match passed {
                Passed::Nothing => {}
                Passed::Attribute(value) => attributes.push((arg.name.to_string().into(), value)),
                Passed::Inputs(values) => {
                    names.extend(values.iter().map(|_| arg.name.to_string()));
                    inputs.extend(values);
                }
            }
        }
        if !names.is_empty() {
            attributes.push(("input_names".into(), Attribute::Strings(names)));
        }
        if &*op.overload != "default" {
            attributes.push(("overload_name".into(), Attribute::from(&*op.overload)));
        }
        let domain = match &*op.namespace {
            "aten" => ATEN_DOMAIN,
            other => other,
        };
        let types = self.result_types(node)?;
        let results = self.builder.emit_custom(domain, &op.name, &inputs, attributes, &types);
        Ok(results.to_vec().into())
    }

    /// The recorded types of a node's results. `None` stands for results that nothing uses.
    pub(super) fn result_types(&self, node: &'a Node) -> Lowered<Vec<Option<Type>>> {
        let results = self.results(node);
        if results.is_empty() {
            return Err(LowerError::unsupported(
                "it has no result, and ONNX has no nodes without results",
            ));
        }
        if results.iter().flat_map(|(_, meta)| meta).any(|m| m.dtype.is_complex()) {
            return Err(LowerError::unsupported(
                "its result is complex, but ONNX has no complex types",
            ));
        }
        let number = |dtype| Some(Type::tensor(dtype, []));
        let types = results.into_iter().map(|(name, meta)| match meta {
            Some(meta) => Some(onnx_type(meta)),
            None => match self.scope.meta(name?)? {
                ValueMeta::SymInt { .. } => number(DType::I64),
                ValueMeta::SymFloat { .. } => number(DType::F64),
                ValueMeta::SymBool { .. } => number(DType::Bool),
                ValueMeta::Tensor(_) | ValueMeta::CustomObj { .. } => None,
            },
        });
        Ok(types.collect())
    }
}
