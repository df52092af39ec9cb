//! Verifies that a model is valid ONNX.

use crate::{
    Def, FunctionIndex, Model, Name, Node, NodeId, RegionId, Value, conforms, is_possible, nesting,
    par_join::par_join,
    schema::{self, NEWEST_OPSET},
};
use indexmap::IndexMap;
use rustc_hash::FxHashSet;

/// Something that makes a model invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct VerifyError {
    /// Where the error is: a node with its origin (if known), a value, or an input or output of the
    /// graph.
    pub place: String,
    /// The problem.
    pub what: String,
}

/// Verifies that a model is valid ONNX:
/// - It imports an opset up to [`NEWEST_OPSET`], or another domain.
/// - Bodies form trees: none is in two places, and at most [`MAX_NESTING`](crate::MAX_NESTING) are
///   within each other.
/// - Every value is defined before its use, in the same region or in one around it.
/// - Names of values are unique within the main graph with its bodies, within each function, and
///   within each body of an operator of another domain, with what it uses from around it. Unused
///   inputs of bodies count, too.
/// - Names of nodes are unique.
/// - Sizes are not negative, and tensors have at most 2^48 elements.
/// - Every node of the default domain fits the schema of its operator ([`conforms()`]) at the opset
///   of the model or function. Runtimes run operators that are deprecated, such as
///   `GroupNormalization` of opset 18.
/// - Every other domain in use is imported, or the node calls a function of the model.
/// - Inputs and outputs of the main graph have types; outputs have unique names.
///
/// # Errors
/// Returns all errors: names first, then inputs and outputs, then nodes in order. If bodies form no
/// trees, that is the only one; if opsets are not known, there are only those.
pub fn verify(model: &Model) -> Result<(), Vec<VerifyError>> {
    verify_with(model, false)
}

/// Does the same as [`verify`] for a model of another producer: outputs of the main graph need no
/// types, operators that ONNX never had are those of a runtime, and the opset may be newer than
/// those that are known.
///
/// # Errors
/// Those of [`verify`].
pub fn verify_imported(model: &Model) -> Result<(), Vec<VerifyError>> {
    verify_with(model, true)
}

fn verify_with(model: &Model, imported: bool) -> Result<(), Vec<VerifyError>> {
    if let Some((place, what)) = nesting::misplaced(model) {
        return Err(vec![VerifyError { place, what }]);
    }
    let header = opsets(model, imported);
    if !header.is_empty() {
        return Err(header);
    }
    let (ends_and_nodes, mut errors) =
        par_join(model, || ends_and_nodes(model, imported), || Verifier::new(model).names());
    errors.extend(ends_and_nodes);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Problems of the opsets that the model and its functions import.
fn opsets(model: &Model, imported: bool) -> Vec<VerifyError> {
    let nothing = model.opset == 0 && model.imports.is_empty();
    let of_model = [("the model".to_owned(), model.opset)];
    let of_functions = model.functions.iter().filter_map(|function| {
        Some((format!("function `{}`", function.name), *function.imports.get("")?))
    });
    let all = of_model.into_iter().chain(of_functions);
    let newer = all.filter(|(_, opset)| !imported && *opset > NEWEST_OPSET);
    let newer = newer.map(|(place, opset)| VerifyError {
        place,
        what: format!("opset {opset} is not known; the newest is {NEWEST_OPSET}"),
    });
    let nothing = nothing.then(|| VerifyError {
        place: "the model".to_owned(),
        what: "it imports no operators, neither an opset nor another domain".to_owned(),
    });
    nothing.into_iter().chain(newer).collect()
}

/// Problems of inputs, outputs and nodes.
fn ends_and_nodes(model: &Model, imported: bool) -> Vec<VerifyError> {
    let mut v = Verifier { imported, ..Verifier::new(model) };
    v.interface();
    v.defined = vec![false; model.values().count()];
    v.region(Model::MAIN);
    for function in &model.functions {
        v.opset = function.imports.get("").copied().unwrap_or(model.opset);
        v.imports = if function.imports.is_empty() { &model.imports } else { &function.imports };
        v.region(function.body);
    }
    v.errors
}

struct Verifier<'a> {
    model: &'a Model,
    /// Whether another producer made the model.
    imported: bool,
    functions: FunctionIndex,
    /// Opset of the graph or function that is being verified.
    opset: u32,
    /// The other domains that are imported there.
    imports: &'a IndexMap<String, u32>,
    /// Whether each value is defined at the current node.
    defined: Vec<bool>,
    errors: Vec<VerifyError>,
}

impl<'a> Verifier<'a> {
    fn new(model: &'a Model) -> Self {
        Self {
            model,
            imported: false,
            functions: model.function_index(),
            opset: model.opset,
            imports: &model.imports,
            defined: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn error(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.errors.push(VerifyError { place: place.into(), what: what.into() });
    }

    fn at(&mut self, node: NodeId, what: impl Into<String>) {
        self.error(self.model.describe(node), what);
    }

    /// Problems of names and sizes.
    fn names(mut self) -> Vec<VerifyError> {
        let nodes = self.model.all_nodes();
        let bodies = nodes.iter().flat_map(|n| self.model[*n].regions());
        let functions = self.model.functions.iter().map(|f| f.body);
        let regions: FxHashSet<_> = bodies.chain(functions).chain([Model::MAIN]).collect();
        let scopes = self.model.scopes();
        let mut taken: Vec<FxHashSet<&Name>> = vec![FxHashSet::default(); scopes.count];
        taken[0].reserve(scopes.of.len());
        for (value, data) in self.model.values() {
            let shape = data.ty.as_ref().and_then(|ty| ty.as_tensor()?.shape.as_ref());
            if shape.is_some_and(|shape| !is_possible(shape)) {
                let name = data.name.as_deref().unwrap_or_default();
                self.error(format!("value `{name}`"), "no tensor has that many elements");
            }
            let is_input = matches!(data.def(), Def::Input(region, _) if regions.contains(region));
            if let Some(name) = data.name.as_ref().filter(|_| is_input || data.uses().len() > 0)
                && !taken[scopes.of[value.index()]].insert(name)
            {
                self.error(format!("value `{name}`"), "two values have this name");
            }
        }
        for (&value, bodies) in &scopes.captured {
            if let Some(name) = &self.model[value].name
                && bodies.iter().any(|&body| !taken[body].insert(name))
            {
                self.error(format!("value `{name}`"), "two values in a body have this name");
            }
        }
        let mut taken: FxHashSet<&Name> = FxHashSet::default();
        taken.reserve(nodes.len());
        for node in nodes {
            if let Some(name) = &self.model[node].name
                && !taken.insert(name)
            {
                self.at(node, "two nodes have this name");
            }
        }
        self.errors
    }

    /// Inputs and outputs of the main graph.
    fn interface(&mut self) {
        let model = self.model;
        for (i, &input) in model.inputs().iter().enumerate() {
            if model[input].ty.is_none() {
                self.error(format!("input {i} of the graph"), "its type is not known");
            }
        }
        let mut taken = FxHashSet::default();
        for (i, output) in model.outputs().iter().enumerate() {
            let place = format!("output {i} of the graph");
            if !self.imported && model.output_type(output).is_none() {
                self.error(&place, "its type is not known");
            }
            match model.output_name(output) {
                None => self.error(&place, "it has no name"),
                Some(name) if !taken.insert(name.clone()) => {
                    self.error(&place, format!("another output has the name `{name}`"));
                }
                Some(_) => {}
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
            if node.domain.is_empty() {
                self.operator(id, node)
            } else {
                self.custom(id, node)
            }
            for &value in node.outputs() {
                self.defined[value.index()] = true;
                scope.push(value);
            }
        }
        for value in self.model[region].output_values() {
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
        let local = self.functions.called(self.model, node).is_some();
        let imports = [self.imports, &self.model.imports];
        if !local && !imports.iter().any(|i| i.contains_key(&*node.domain)) {
            self.at(id, format!("the domain {} is not imported", node.domain));
        }
    }

    fn operator(&mut self, id: NodeId, node: &Node) {
        let opset = self.opset;
        let foreign = self.imported && schema::versions(&node.op).is_empty();
        if foreign || schema::is_extension(&node.op, opset) {
            return;
        }
        let Some(schema) = schema::lookup(&node.op, opset) else {
            return self.at(id, format!("opset {opset} has no operator {}", node.op));
        };
        if let Err(what) = conforms(self.model, node, schema) {
            self.at(id, what);
        }
    }
}
