//! What two models differ in: facts under names, and the nodes as text.

use pt2onnx_ir::{Attribute, Def, Metadata, Model, NodeId, Value};
use pt2onnx_tensor::Tensor;
use sha2::{Digest, Sha256};
use similar::{Algorithm, TextDiff};
use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

/// What [`diff`] looks at besides opsets, inputs, outputs, operators, nodes, names and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Whether weights have the same elements; all are read for that.
    pub weights: bool,
    /// Metadata and words about models, graphs, values and nodes.
    pub metadata: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { weights: true, metadata: false }
    }
}

/// What two models differ in; to print it is to tell it to people.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Differences {
    /// By what they are about; none without changes.
    pub sections: Vec<Section>,
    /// The nodes, bodies and functions that differ, as a unified diff of their texts; empty if all are the same.
    pub graph: String,
}

/// Differences of one kind.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Section {
    /// What they are about: `opsets`, `inputs`, `outputs`, `operators`, `weights`, `values`, `nodes`, `metadata`.
    pub name: &'static str,
    /// Each difference.
    pub changes: Vec<Change>,
}

/// A fact that the models do not agree about.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Change {
    /// What it is of: the name of a value, of an operator or of a key.
    pub what: String,
    /// What the first model says, if it has this at all.
    pub a: Option<String>,
    /// What the second model says.
    pub b: Option<String>,
}

impl Differences {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.graph.is_empty()
    }
}

impl Display for Differences {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for section in &self.sections {
            writeln!(f, "{}:", section.name)?;
            for Change { what, a, b } in &section.changes {
                let says = |said: &Option<String>| said.clone().unwrap_or_else(|| "-".to_owned());
                writeln!(f, "  {what}: {} | {}", says(a), says(b))?;
            }
        }
        if !self.graph.is_empty() {
            writeln!(f, "graph:")?;
        }
        for line in self.graph.lines() {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

/// Compares two models whose values have names. What they say of a value counts where both have a value of that name; other
/// values are told by the nodes that make them.
pub fn diff(a: &Model, b: &Model, options: &DiffOptions) -> Differences {
    let facts = Facts::of(a, options).into_iter();
    let sections = facts
        .zip(Facts::of(b, options))
        .map(|(a, b)| Section { name: a.name, changes: a.changes(b) });
    let (a, b) = (nodes(a), nodes(b));
    let graph =
        TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(a.as_str(), b.as_str());
    Differences {
        sections: sections.filter(|s| !s.changes.is_empty()).collect(),
        graph: graph.unified_diff().context_radius(1).to_string(),
    }
}

/// What a model says, under one heading.
struct Facts {
    name: &'static str,
    /// Whether what only one of the models has is told here.
    alone: bool,
    /// In the model's order.
    said: Vec<(String, String)>,
}

impl Facts {
    /// The same headings in the same order for every model.
    fn of(model: &Model, options: &DiffOptions) -> Vec<Self> {
        let facts = |name, alone, said| Self { name, alone, said };
        let own = Some(("ai.onnx".to_owned(), model.opset.to_string()));
        let imports = model.imports.iter();
        let imports = imports.map(|(domain, version)| (domain.clone(), version.to_string()));
        let ir_version = ("ir_version".to_owned(), model.ir_version().to_string());
        let opsets = own.filter(|_| model.opset > 0).into_iter().chain(imports);
        let typed = |values: &[Value]| values.iter().map(|v| typed(model, *v)).collect();
        vec![
            facts("opsets", true, opsets.chain([ir_version]).collect()),
            facts("inputs", true, typed(model.inputs())),
            facts("outputs", true, typed(&model.output_values().collect::<Vec<_>>())),
            facts("operators", true, operators(model)),
            facts("weights", true, weights(model, options)),
            facts("values", false, inner(model)),
            facts("nodes", false, node_names(model)),
            facts("metadata", true, metadata(model, options)),
        ]
    }

    fn changes(self, other: Self) -> Vec<Change> {
        let (a, b) = (map(&self.said), map(&other.said));
        let same_keys = a.len() == b.len() && a.keys().eq(b.keys());
        let mut changes = Vec::new();
        for (what, a) in &self.said {
            let b = b.get(what.as_str()).map(|b| (*b).to_owned());
            if b.as_ref() != Some(a) && (self.alone || b.is_some()) {
                let (what, a) = (what.clone(), Some(a.clone()));
                changes.push(Change { what, a, b });
            }
        }
        let added = other.said.iter().filter(|(what, _)| !a.contains_key(what.as_str()));
        changes.extend(added.filter(|_| self.alone).map(|(what, b)| Change {
            what: what.clone(),
            a: None,
            b: Some(b.clone()),
        }));
        let ends = matches!(self.name, "inputs" | "outputs");
        if ends && same_keys && !self.said.iter().map(|s| &s.0).eq(other.said.iter().map(|s| &s.0))
        {
            let list = |said: &[(String, String)]| {
                let names: Vec<&str> = said.iter().map(|(name, _)| name.as_str()).collect();
                Some(names.join(", "))
            };
            changes.push(Change {
                what: "order".to_owned(),
                a: list(&self.said),
                b: list(&other.said),
            });
        }
        changes
    }
}

fn map(said: &[(String, String)]) -> BTreeMap<&str, &str> {
    said.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
}

fn name(model: &Model, value: Value) -> String {
    model[value].name.as_deref().unwrap_or_default().to_owned()
}

fn typed(model: &Model, value: Value) -> (String, String) {
    let ty = model[value].ty.as_ref();
    let ty = ty.map_or_else(|| "of unknown type".to_owned(), ToString::to_string);
    (name(model, value), ty)
}

/// The nodes of the main graph and of each function, with what tells names there from those of other scopes.
fn scopes(model: &Model) -> Vec<(String, Vec<NodeId>)> {
    let main = (String::new(), model.nodes_in(&[Model::MAIN]));
    let functions = model.functions.iter().map(|f| {
        let scope = format!("{}.{}{}: ", f.domain, f.name, f.overload);
        (scope, model.nodes_in(&[f.body]))
    });
    [main].into_iter().chain(functions).collect()
}

/// Values that nodes make, but for the outputs of the main graph, and inputs of bodies.
fn inner(model: &Model) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (scope, nodes) in scopes(model) {
        let made = nodes.iter().flat_map(|n| model[*n].outputs());
        let bodies = nodes.iter().flat_map(|n| model[*n].regions());
        let given = bodies.flat_map(|r| model[r].inputs());
        for &value in made.chain(given) {
            if !model[value].is_left_out() && !model.output_values().any(|v| v == value) {
                let (name, ty) = typed(model, value);
                all.push((format!("{scope}{name}"), ty));
            }
        }
    }
    all
}

fn operators(model: &Model) -> Vec<(String, String)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for id in model.all_nodes() {
        let node = &model[id];
        let operator = match &*node.domain {
            "" => node.op().to_string(),
            domain => format!("{domain}.{}", node.op()),
        };
        *counts.entry(operator).or_default() += 1;
    }
    let counts = counts.into_iter();
    counts.map(|(op, n)| (op, n.to_string())).collect()
}

/// Initialisers, defaults of inputs, and tensors in attributes, which may be too large for the text of a node.
fn weights(model: &Model, options: &DiffOptions) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: String, tensor: &Tensor| {
        let ty = pt2onnx_ir::Type::tensor(tensor.dtype(), dims(tensor));
        let contents = match options.weights {
            true => format!(" {}", fingerprint(tensor)),
            false => String::new(),
        };
        all.push((name, format!("{ty}{contents}")));
    };
    for (value, data) in model.values() {
        match data.def() {
            Def::Constant(tensor) if data.uses().len() > 0 => add(name(model, value), tensor),
            Def::Input(..) => {
                if let Some(default) = &data.default {
                    add(name(model, value), default);
                }
            }
            _ => {}
        }
    }
    for (scope, nodes) in scopes(model) {
        for id in nodes {
            for (attribute, value) in &model[id].attributes {
                let tensors = match value {
                    Attribute::Tensor(tensor) => std::slice::from_ref(tensor),
                    Attribute::Tensors(tensors) => tensors,
                    _ => &[],
                };
                for tensor in tensors {
                    add(format!("{scope}{attribute} of {}", made(model, id)), tensor);
                }
            }
        }
    }
    all
}

fn dims(tensor: &Tensor) -> Vec<pt2onnx_symbolic::Expr> {
    let sizes = tensor.shape().iter();
    let sizes = sizes.map(|&s| pt2onnx_symbolic::Expr::int(i64::try_from(s).unwrap_or(i64::MAX)));
    sizes.collect()
}

/// The first half of the SHA-256 of the elements.
fn fingerprint(tensor: &Tensor) -> String {
    if !tensor.has_data() && tensor.nbytes() > 0 {
        return "without values".to_owned();
    }
    let mut hash = Sha256::new();
    match tensor.as_strings() {
        Some(strings) => strings.iter().for_each(|s| {
            hash.update((s.len() as u64).to_le_bytes());
            hash.update(s);
        }),
        None => hash.update(tensor.to_bytes()),
    }
    let digest = hash.finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What a node is known by: its first output.
fn made(model: &Model, id: NodeId) -> String {
    let output = model[id].outputs().first();
    output.map(|v| name(model, *v)).unwrap_or_default()
}

/// Names of nodes.
fn node_names(model: &Model) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (scope, nodes) in scopes(model) {
        for id in nodes {
            if let Some(own) = &model[id].name {
                all.push((format!("{scope}{}", made(model, id)), own.to_string()));
            }
        }
    }
    all
}

fn metadata(model: &Model, options: &DiffOptions) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if !options.metadata {
        return all;
    }
    let mut add = |of: &str, key: &str, value: &str| {
        if !value.is_empty() {
            all.push((format!("{of}, {key}"), value.replace('\n', "\\n")));
        }
    };
    let mut entries = |of: &str, metadata: &Metadata, words: Option<&str>| {
        for (key, value) in metadata {
            add(of, key, value);
        }
        add(of, "doc_string", words.unwrap_or_default());
    };
    entries("the model", &model.metadata, model.doc_string.as_deref());
    let main = model[Model::MAIN].doc_string.as_deref();
    entries("the graph", &model.graph_metadata, main);
    for (value, data) in model.values() {
        let of = format!("`{}`", name(model, value));
        entries(&of, &data.metadata, data.doc_string.as_deref());
    }
    for (scope, nodes) in scopes(model) {
        for id in nodes {
            let of = format!("{scope}the node of `{}`", made(model, id));
            for origin in &model[id].origins {
                let origin = &model[*origin];
                entries(&of, &origin.metadata, origin.doc_string.as_deref());
            }
        }
    }
    let version = model.model_version.map(|v| v.to_string());
    for (key, value) in [
        ("producer_name", &model.producer),
        ("producer_version", &model.producer_version),
        ("domain", &model.domain),
        ("model_version", &version),
    ] {
        add("the model", key, value.as_deref().unwrap_or_default());
    }
    add("the graph", "name", &model.name);
    all
}

/// The text of a model from its nodes on.
fn nodes(model: &Model) -> String {
    let text = model.to_string();
    let nodes = text.split_once("\n{\n").map(|(_, nodes)| nodes);
    nodes.unwrap_or_default().to_owned()
}
