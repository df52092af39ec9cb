//! Ops whose translations are ONNX functions. Their nodes become calls.

use super::{
    lower_graph::Driver,
    opaque::{Passed, pass_argument},
};
use crate::{ArgError, LowerError, Lowered, cx::Outputs};
use pt2onnx_fx::graph::Node;
use pt2onnx_ir::{
    Attribute, Attributes, Function, Model, Use, Value,
    schema::{self, AttributeKind, ParamKind},
};
use pt2onnx_tensor::Tensor;

/// The inputs and attributes of a call.
struct Operands {
    inputs: Vec<Option<Value>>,
    attributes: Attributes,
}

impl<'a> Driver<'a> {
    /// Emits a call of a function of `library`. It passes the node's arguments by name.
    pub(super) fn call_function(
        &self,
        library: &Model,
        function: &Function,
        node: &'a Node,
    ) -> Lowered<Outputs> {
        let Operands { inputs, mut attributes } =
            self.function_operands(library, function, node)?;
        let body = &library[function.body];
        for (&input, _) in body.inputs().iter().zip(&inputs).filter(|(_, given)| given.is_none()) {
            if let Some(operator) = needs(library, input) {
                return Err(LowerError::unsupported(format!(
                    "the program does not give `{}`, which the function's {operator} needs",
                    name_of(library, input)
                )));
            }
        }
        // Not every runtime applies the defaults.
        for (name, default) in &function.defaults {
            if !attributes.iter().any(|(given, _)| given == name) {
                attributes.push((name.clone(), default.clone()));
            }
        }
        let missing = |name: &&String| !attributes.iter().any(|(given, _)| given == *name);
        if let Some(missing) = function.attributes.iter().find(missing) {
            return Err(LowerError::unsupported(format!(
                "the program does not give `{missing}`, for which the function has no default"
            )));
        }
        let types = self.result_types(node)?;
        if types.len() > body.outputs().len() {
            return Err(LowerError::unsupported(format!(
                "the op has {} results, but the function has {}",
                types.len(),
                body.outputs().len()
            )));
        }
        let (domain, op) = (&function.domain, &function.name);
        let results = self.builder.emit_custom(domain, op, &inputs, attributes, &types);
        self.builder.edit(|model| {
            if let Some(call) = results.first().and_then(|v| model.producer(*v)) {
                model[call].overload = function.overload.clone().into();
            }
        });
        Ok(results.to_vec().into())
    }

    /// The node's arguments as inputs and attributes of a function. Inputs that are not given are
    /// `None`.
    fn function_operands(
        &self,
        library: &Model,
        function: &Function,
        node: &'a Node,
    ) -> Lowered<Operands> {
        let parameters: Vec<&str> =
            library[function.body].inputs().iter().map(|v| name_of(library, *v)).collect();
        let mut inputs: Vec<Option<Value>> = vec![None; parameters.len()];
        let mut attributes = Attributes::new();
        let place = |name: &str| parameters.iter().position(|p| *p == name);
        for arg in &node.args {
            let name = &*arg.name;
            let error = |what: String| ArgError { name: name.to_owned(), what };
            let untaken = |what: String| {
                error(format!("the function {}.{} has no {what}", function.domain, function.name))
            };
            match (pass_argument(&self.context(), &arg.value).map_err(error)?, place(name)) {
                (Passed::Nothing, _) => {}
                (Passed::Inputs(values), Some(place)) if values.len() == 1 => {
                    inputs[place] = values[0];
                }
                (Passed::Inputs(values), _) => {
                    for (i, value) in values.into_iter().enumerate() {
                        let element = format!("{name}_{i}");
                        let place = place(&element);
                        let place = place.ok_or_else(|| untaken(format!("input `{element}`")))?;
                        inputs[place] = value;
                    }
                }
                (Passed::Attribute(value), Some(place)) => {
                    let tensor = tensor(&value);
                    let tensor =
                        tensor.ok_or_else(|| error("it cannot become a tensor".to_owned()))?;
                    inputs[place] = Some(self.builder.constant(tensor));
                }
                (Passed::Attribute(value), None) => {
                    let kind = kind_of(library, function, name);
                    let kind = kind.ok_or_else(|| untaken(format!("attribute `{name}`")))?;
                    let value = convert(value, kind).map_err(error)?;
                    attributes.push((name.to_owned().into(), value));
                }
            }
        }
        Ok(Operands { inputs, attributes })
    }
}

/// The name of an input of a function.
fn name_of(library: &Model, input: Value) -> &str {
    library[input].name.as_deref().unwrap_or_default()
}

/// The operator or output of a function that needs an input. `None` if the input may be missing.
fn needs(library: &Model, value: Value) -> Option<String> {
    library[value].uses().find_map(|at| match at {
        Use::Output(..) => Some("output".to_owned()),
        Use::Input(node, i) => {
            let node = &library[node];
            let schema = schema::lookup(node.op(), schema::CANONICAL_OPSET);
            let formal = schema.filter(|_| node.domain.is_empty());
            let formal = formal.and_then(|s| s.input(i as usize));
            let optional = formal.is_some_and(|p| p.kind == ParamKind::Optional);
            (!optional).then(|| node.op().to_string())
        }
    })
}

/// `Some` if the function has the attribute `name`. Within, its type, if the default or a use shows
/// it.
fn kind_of(library: &Model, function: &Function, name: &str) -> Option<Option<AttributeKind>> {
    if let Some((_, default)) = function.defaults.iter().find(|(n, _)| n == name) {
        return Some(Some(default.kind()));
    }
    function.attributes.iter().find(|n| *n == name)?;
    let nodes = library.nodes_in(&[function.body]);
    let mut attributes = nodes.iter().flat_map(|n| &library[*n].attributes);
    Some(attributes.find_map(|(_, value)| match value {
        Attribute::Reference { name: of, kind } if of == name => Some(*kind),
        _ => None,
    }))
}

/// The value as an attribute of type `kind`, if that is known. In PyTorch, integers can be given
/// for floats, and empty lists have no type.
fn convert(value: Attribute, kind: Option<AttributeKind>) -> Result<Attribute, String> {
    let Some(kind) = kind.filter(|kind| *kind != value.kind()) else {
        return Ok(value);
    };
    let converted = match (&value, kind) {
        (Attribute::Int(i), AttributeKind::Float) => Some(Attribute::Float(*i as f32)),
        (Attribute::Ints(v), AttributeKind::Floats) => {
            Some(Attribute::Floats(v.iter().map(|&i| i as f32).collect()))
        }
        (Attribute::Ints(v), AttributeKind::Strings) if v.is_empty() => {
            Some(Attribute::Strings(Vec::new()))
        }
        (_, AttributeKind::Tensor) => tensor(&value).map(Attribute::Tensor),
        _ => None,
    };
    converted.ok_or_else(|| {
        let (expected, found) = (kind.name(), value.kind().name());
        format!("the function expects an attribute of type {expected}, found {found}")
    })
}

/// Numbers as a 0-d or 1-d tensor of int64 or float32.
fn tensor(value: &Attribute) -> Option<Tensor> {
    Some(match value {
        Attribute::Int(i) => Tensor::scalar(*i),
        Attribute::Float(f) => Tensor::scalar(*f),
        Attribute::Ints(v) => Tensor::vector(v),
        Attribute::Floats(v) => Tensor::vector(v),
        _ => return None,
    })
}
