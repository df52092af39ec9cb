//! Checks a model against what every consumer relies on.

use crate::{
    Model, Node, NodeId, RegionId, Type, Value,
    model::Def,
    names::Taken,
    schema::{self, OpSchema, ParamKind},
};

/// What is wrong, and in which node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct VerifyError {
    /// The node, with where it comes from if that is known; or the graph's input or output.
    pub place: String,
    /// What is wrong with it.
    pub what: String,
}

/// Checks that
/// - every used value is defined before its use, in the same region or one around it;
/// - no name stands for two values of the graph or of a function, or for two nodes;
/// - every node of ONNX's own domain is an operator of the model's opset (or its function's), with as many inputs and outputs, the
///   attributes and the element types that the operator's schema allows, type variables bound once;
/// - inputs and outputs of the main graph have types;
/// - other domains are imported.
///
/// # Errors
/// Everything found, in order of the nodes.
pub fn verify(model: &Model) -> Result<(), Vec<VerifyError>> {
    let mut v = Verifier {
        model,
        opset: model.opset,
        defined: vec![false; model.values().count()],
        errors: Vec::new(),
    };
    v.names();
    v.signature();
    v.region(Model::MAIN);
    for function in &model.functions {
        v.opset = function.imports.get("").copied().unwrap_or(model.opset);
        v.region(function.body);
    }
    if v.errors.is_empty() { Ok(()) } else { Err(v.errors) }
}

struct Verifier<'a> {
    model: &'a Model,
    /// Of the graph or function at hand.
    opset: u32,
    defined: Vec<bool>,
    errors: Vec<VerifyError>,
}

impl Verifier<'_> {
    fn error(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.errors.push(VerifyError { place: place.into(), what: what.into() });
    }

    fn at(&mut self, node: NodeId, what: impl Into<String>) {
        self.error(self.model.describe(node), what);
    }

    fn names(&mut self) {
        let scopes = self.model.scopes();
        let mut taken = vec![Taken::default(); self.model.functions.len() + 1];
        taken[0].reserve(scopes.len());
        for (value, data) in self.model.values() {
            let live = data.uses().len() > 0 || self.model.inputs().contains(&value);
            if let Some(name) = data.name.as_ref().filter(|_| live)
                && !taken[scopes[value.index()]].insert(name.clone())
            {
                self.error(format!("value `{name}`"), "two values have this name");
            }
        }
        let nodes = self.model.all_nodes();
        let mut taken = Taken::default();
        taken.reserve(nodes.len());
        for node in nodes {
            if let Some(name) = &self.model[node].name
                && !taken.insert(name.clone())
            {
                self.at(node, "two nodes have this name");
            }
        }
    }

    fn signature(&mut self) {
        for (kind, values) in [("input", self.model.inputs()), ("output", self.model.outputs())] {
            for (i, &value) in values.iter().enumerate() {
                if self.model[value].ty.is_none() {
                    self.error(format!("{kind} {i} of the graph"), "its type is not known");
                }
            }
        }
    }

    fn region(&mut self, region: RegionId) {
        let mut scope: Vec<Value> = self.model[region].inputs().to_vec();
        scope.iter().for_each(|v| self.defined[v.index()] = true);
        for id in self.model.nodes(region) {
            let node = &self.model[id];
            for value in node.inputs().iter().flatten() {
                self.used(*value, || self.model.describe(id));
            }
            node.regions().for_each(|r| self.region(r));
            match node.domain.is_empty() {
                true => self.operator(id, node),
                false => self.custom(id, node),
            }
            for &value in node.outputs() {
                self.defined[value.index()] = true;
                scope.push(value);
            }
        }
        for &value in self.model[region].outputs() {
            self.used(value, || "the graph's outputs".to_owned());
        }
        scope.into_iter().for_each(|v| self.defined[v.index()] = false);
    }

    fn used(&mut self, value: Value, place: impl Fn() -> String) {
        let data = &self.model[value];
        if !self.defined[value.index()] && !matches!(data.def(), Def::Constant(_)) {
            let name = data.name.as_deref().unwrap_or("an unnamed value").to_owned();
            self.error(place(), format!("uses {name} before it is defined"));
        }
    }

    fn custom(&mut self, id: NodeId, node: &Node) {
        let local = self.model.functions.iter().any(|f| f.is_called_by(node));
        if !local && !self.model.imports.contains_key(&*node.domain) {
            self.at(id, format!("the domain {} is not imported", node.domain));
        }
    }

    fn operator(&mut self, id: NodeId, node: &Node) {
        let opset = self.opset;
        let Some(schema) = schema::lookup(&node.op, opset) else {
            return self.at(id, format!("opset {opset} has no operator {}", node.op));
        };
        if schema.deprecated {
            return self.at(id, format!("{} is deprecated in opset {opset}", node.op));
        }
        if let Err(what) = conforms(self.model, node, schema) {
            self.at(id, what);
        }
    }
}

impl Model {
    /// A node for messages: its operator, and the source node and line it comes from.
    pub fn describe(&self, node: NodeId) -> String {
        let node = &self[node];
        let origin = node.origins.first().map(|o| &self[*o]);
        let Some(origin) = origin.filter(|o| !o.op.is_empty()) else {
            return match &node.name {
                Some(name) => format!("{} `{name}`", node.op),
                None => node.op.to_string(),
            };
        };
        let place = origin.location.as_deref().map(|l| format!(" at {l}")).unwrap_or_default();
        format!("{} (from {} `{}`{place})", node.op, origin.op, origin.node)
    }
}

/// Whether a node fits an operator's schema.
///
/// # Errors
/// What does not fit, in words.
pub fn conforms(model: &Model, node: &Node, schema: &OpSchema) -> Result<(), String> {
    let op = &node.op;
    let missing = |i: usize| {
        let wanted = schema.input(i).is_some_and(|p| p.kind == ParamKind::Single);
        (wanted || i >= node.inputs().len()) && node.input(i).is_none()
    };
    let variadic_from = schema.inputs.iter().position(|p| p.kind == ParamKind::Variadic);
    if variadic_from.is_none() && node.inputs().len() > schema.inputs.len() {
        return Err(format!(
            "{op} takes {} inputs, {} are given",
            schema.inputs.len(),
            node.inputs().len()
        ));
    }
    if let Some(missing) = (0..schema.min_inputs as usize).find(|&i| missing(i)) {
        return Err(format!("{op} needs input {missing}"));
    }
    let variadic_outputs = schema.outputs.last().is_some_and(|p| p.kind == ParamKind::Variadic);
    if node.outputs().len() < schema.min_outputs as usize
        || (!variadic_outputs && node.outputs().len() > schema.outputs.len())
    {
        return Err(format!("{op} does not have {} outputs", node.outputs().len()));
    }
    for (name, value) in &node.attributes {
        match schema.attribute(name) {
            None => {
                return Err(format!("{op} of opset {} has no attribute {name}", schema.since));
            }
            Some(formal) if formal.kind != value.kind() => {
                return Err(format!(
                    "attribute {name} of {op} is {:?}, given is {:?}",
                    formal.kind,
                    value.kind()
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(missing) =
        schema.attributes.iter().find(|a| a.required && node.attribute(a.name).is_none())
    {
        return Err(format!("{op} needs the attribute {}", missing.name));
    }
    let mut bound: Vec<(&str, pt2onnx_tensor::DType)> = Vec::new();
    let inputs = node.inputs().iter().enumerate().map(|(i, v)| (*v, schema.input(i)));
    let outputs = node.outputs().iter().enumerate().map(|(i, v)| (Some(*v), schema.output(i)));
    for (value, formal) in inputs.chain(outputs) {
        let (Some(value), Some(formal)) = (value, formal) else {
            continue;
        };
        let t = match &model[value].ty {
            Some(Type::Tensor(t)) => t,
            Some(other) if schema.type_set(formal.ty).is_some_and(|set| !set.has(other)) => {
                return Err(format!(
                    "{op} of opset {} does not take {other} as {}",
                    schema.since, formal.name
                ));
            }
            _ => continue,
        };
        let Some(allowed) = schema.type_set(formal.ty) else {
            if formal.ty != format!("tensor({})", crate::types::onnx_name(t.dtype)) {
                return Err(format!(
                    "{} of {op} is {}, given is {}",
                    formal.name, formal.ty, t.dtype
                ));
            }
            continue;
        };
        if !allowed.has_tensor(t.dtype) {
            return Err(format!(
                "{op} of opset {} does not take {} as {}",
                schema.since, t.dtype, formal.name
            ));
        }
        if formal.kind == ParamKind::Variadic && !formal.homogeneous {
            continue;
        }
        match bound.iter().find(|(name, _)| *name == formal.ty) {
            Some((_, other)) if *other != t.dtype => {
                return Err(format!(
                    "{} of {op} is {}, where {other} is wanted",
                    formal.name, t.dtype
                ));
            }
            Some(_) => {}
            None => bound.push((formal.ty, t.dtype)),
        }
    }
    Ok(())
}
