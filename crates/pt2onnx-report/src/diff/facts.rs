//! Lists facts about a model that can be compared.

use super::{Change, DiffOptions};
use pt2onnx_ir::{Attribute, Def, Metadata, Model, NodeId, Value};
use pt2onnx_tensor::Tensor;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Facts of one kind about a model.
pub(super) struct Facts {
    pub(super) name: &'static str,
    /// Whether a fact of only one model is a difference.
    alone: bool,
    /// Name and text of each, in the model's order.
    entries: Vec<(String, String)>,
}

impl Facts {
    /// The facts of all kinds, in the same order for every model.
    pub(super) fn of(model: &Model, options: &DiffOptions) -> Vec<Self> {
        let facts = |name, alone, entries| Self { name, alone, entries };
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

    pub(super) fn changes(self, other: Self) -> Vec<Change> {
        let (a, b) = (map(&self.entries), map(&other.entries));
        let same_keys = a.len() == b.len() && a.keys().eq(b.keys());
        let mut changes = Vec::new();
        for (what, a) in &self.entries {
            let b = b.get(what.as_str()).map(|b| (*b).to_owned());
            if b.as_ref() != Some(a) && (self.alone || b.is_some()) {
                let (what, a) = (what.clone(), Some(a.clone()));
                changes.push(Change { what, a, b });
            }
        }
        let added = other.entries.iter().filter(|(what, _)| !a.contains_key(what.as_str()));
        changes.extend(added.filter(|_| self.alone).map(|(what, b)| Change {
            what: what.clone(),
            a: None,
            b: Some(b.clone()),
        }));
        let ends = matches!(self.name, "inputs" | "outputs");
        if ends
            && same_keys
            && !self.entries.iter().map(|s| &s.0).eq(other.entries.iter().map(|s| &s.0))
        {
            let list = |entries: &[(String, String)]| {
                let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
                Some(names.join(", "))
            };
            changes.push(Change {
                what: "order".to_owned(),
                a: list(&self.entries),
                b: list(&other.entries),
            });
        }
        changes
    }
}

fn map(entries: &[(String, String)]) -> BTreeMap<&str, &str> {
    entries.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
}

fn name(model: &Model, value: Value) -> String {
    model[value].name.as_deref().unwrap_or_default().to_owned()
}

fn typed(model: &Model, value: Value) -> (String, String) {
    let ty = model[value].ty.as_ref();
    let ty = ty.map_or_else(|| "of unknown type".to_owned(), ToString::to_string);
    (name(model, value), ty)
}

/// The nodes of the main graph and of each function, with a prefix for the names in that scope.
fn scopes(model: &Model) -> Vec<(String, Vec<NodeId>)> {
    let main = (String::new(), model.nodes_in(&[Model::MAIN]));
    let functions = model.functions.iter().map(|f| {
        let scope = format!("{}.{}{}: ", f.domain, f.name, f.overload);
        (scope, model.nodes_in(&[f.body]))
    });
    [main].into_iter().chain(functions).collect()
}

/// Results of nodes other than outputs of the main graph, and inputs of bodies.
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

/// Initialisers, default values of inputs, and tensors in attributes, which the text of a node can
/// shorten; and strings that are no text.
fn weights(model: &Model, options: &DiffOptions) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: String, tensor: &Tensor| {
        let ty = pt2onnx_ir::Type::tensor(tensor.dtype(), dims(tensor));
        let contents =
            if options.weights { format!(" {}", fingerprint(tensor)) } else { String::new() };
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
    let mut bytes_of = Vec::new();
    for (scope, nodes) in scopes(model) {
        for id in nodes {
            for (attribute, value) in &model[id].attributes {
                let tensors = match value {
                    Attribute::Tensor(tensor) => std::slice::from_ref(tensor),
                    Attribute::Tensors(tensors) => tensors,
                    _ => &[],
                };
                let of = || format!("{scope}{attribute} of {}", made(model, id));
                tensors.iter().for_each(|tensor| add(of(), tensor));
                // The text of a node does not show these bytes.
                let bytes = match value {
                    Attribute::Bytes(bytes) => vec![bytes.clone()],
                    Attribute::BytesList(list) => list.clone(),
                    _ => continue,
                };
                let hash = Sha256::digest(format!("{bytes:?}"));
                bytes_of.push((of(), format!("bytes {}", half(&hash))));
            }
        }
    }
    all.extend(bytes_of);
    all
}

fn dims(tensor: &Tensor) -> Vec<pt2onnx_symbolic::Expr> {
    let sizes = tensor.shape().iter();
    let sizes = sizes.map(|&s| pt2onnx_symbolic::Expr::int(i64::try_from(s).unwrap_or(i64::MAX)));
    sizes.collect()
}

/// The first half of the SHA-256 of the elements.
pub fn fingerprint(tensor: &Tensor) -> String {
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
    half(&digest)
}

fn half(digest: &[u8]) -> String {
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The name of a node's first output, which identifies the node.
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
                let own = origin.metadata.iter();
                let own = own.map(|(key, text)| (key.clone(), text.to_string().into())).collect();
                entries(&of, &own, origin.doc_string.as_deref());
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
