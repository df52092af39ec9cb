//! Metadata of nodes, compared with PyTorch's nodes that come from the same node of the archive.

use crate::{FX_NODE, NAME_SCOPES, NAMESPACE, Props, STACK_TRACE, listed, props, strings};
use pt2onnx::ir::{Model, NodeId};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes by what they come from.
type Nodes = BTreeMap<String, Vec<Props>>;

/// The metadata of all nodes, also those of bodies.
pub fn said(model: &Model) -> BTreeSet<Props> {
    fn visit(model: &Model, nodes: Vec<NodeId>, said: &mut BTreeSet<Props>) {
        for id in nodes {
            let origins = model[id].origins.iter();
            said.extend(origins.map(|origin| props(&model[*origin].metadata)));
            for region in model[id].regions() {
                visit(model, model.nodes(region).collect(), said);
            }
        }
    }
    let mut all = BTreeSet::new();
    visit(model, model.nodes(Model::MAIN).collect(), &mut all);
    all
}

/// `relu` of `%relu : [num_users=1] = ..`.
fn name(node: &Props) -> &str {
    node[FX_NODE].split(' ').next().expect("a name")[1..].as_ref()
}

/// `aten.relu.default`.
fn operator(node: &Props) -> &str {
    node[NAMESPACE].rsplit(": ").next().expect("an operator")
}

/// A text of an FX node with other names for its values.
fn renamed(text: &str, names: &Props) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (name, rest) = part.split_at(end.unwrap_or(part.len()));
        out += "%";
        out += names.get(name).map_or(name, String::as_str);
        out += rest;
    }
    out
}

fn ours(model: &Model, sizes: &Props) -> Nodes {
    let mut nodes = Nodes::new();
    for mut node in said(model) {
        let name = name(&node).to_owned();
        node.insert(FX_NODE.to_owned(), renamed(&node[FX_NODE], sizes));
        nodes.entry(name).or_default().push(node);
    }
    nodes
}

/// With the names that the archive has; nodes that PyTorch inserted are those from "".
fn theirs(json: &Json) -> Nodes {
    let mut nodes = Nodes::new();
    for entry in json["nodes"].as_array().expect("nodes") {
        let mut entry = entry.as_object().expect("a node").clone();
        let mut take = |key: &str| entry.remove(key).expect("the key");
        let (from, names, trace) = (take("from"), take("names"), take(STACK_TRACE));
        let from = from.as_str().expect("a name").to_owned();
        let trace = usize::try_from(trace.as_u64().expect("a number")).expect("a small one");
        let mut node = strings(&Json::Object(entry));
        let trace = json["traces"][trace].as_str().expect("a text").to_owned();
        node.insert(STACK_TRACE.to_owned(), trace);
        if !from.is_empty() {
            let tail = |key: &str, before: &str, after: &str| {
                let (old, new) = (format!("{}{after}", name(&node)), format!("{from}{after}"));
                let path = node[key].strip_suffix(&old);
                let path = path.filter(|path| path.is_empty() || path.ends_with(before));
                path.expect("the name at the end").to_owned() + &new
            };
            let namespace = tail(NAMESPACE, "/", &format!(": {}", operator(&node)));
            let scopes = tail(NAME_SCOPES, "'", "']");
            node.insert(NAMESPACE.to_owned(), namespace);
            node.insert(NAME_SCOPES.to_owned(), scopes);
        }
        let text = renamed(&node[FX_NODE], &strings(&names));
        node.insert(FX_NODE.to_owned(), text);
        nodes.entry(from).or_default().push(node);
    }
    nodes
}

/// The entries that nodes of different operators share: the modules around them and the trace.
fn place(node: &Props) -> Props {
    let namespace = &node[NAMESPACE];
    let modules = namespace.rsplit_once('/').map_or("", |(path, _)| path);
    Props::from([
        (NAMESPACE.to_owned(), modules.to_owned()),
        (STACK_TRACE.to_owned(), node[STACK_TRACE].clone()),
    ])
}

/// Lines `node NAME: KEY: THEIRS -> OURS`, and how often PyTorch has something else for an
/// operator, or inserts one.
pub fn differences(json: &Json, model: &Model) -> Vec<String> {
    let (mut theirs, ours) = (theirs(json), ours(model, &strings(&json["sizes"])));
    let mut lines = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |what: String| *counts.entry(what).or_default() += 1;
    for node in theirs.remove("").unwrap_or_default() {
        count(format!("inserted {}", operator(&node)));
    }
    let none = Vec::new();
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for name in names {
        let mut left: Vec<&Props> = theirs.get(name).unwrap_or(&none).iter().collect();
        let mut unmatched = Vec::new();
        for node in ours.get(name).unwrap_or(&none) {
            let equal = left.iter().position(|t| *t == node);
            let alike = || left.iter().position(|t| operator(t) == operator(node));
            match equal.or_else(alike) {
                Some(i) => {
                    let texts = listed::texts(left.remove(i), node);
                    lines.extend(texts.iter().map(|text| format!("node {name}: {text}")));
                }
                None => unmatched.push(node),
            }
        }
        if left.is_empty() && unmatched.is_empty() {
            continue;
        }
        let operators = |nodes: &[&Props]| match nodes {
            [] => "nothing".to_owned(),
            _ => nodes.iter().map(|n| operator(n)).collect::<Vec<_>>().join(" "),
        };
        count(format!("{} -> {}", operators(&left), operators(&unmatched)));
        if let Some(node) = unmatched.first() {
            for other in left {
                let texts = listed::texts(&place(other), &place(node));
                lines.extend(texts.iter().map(|text| format!("node {name}: {text}")));
            }
        }
    }
    lines.extend(counts.iter().map(|(what, n)| format!("nodes: {n} x {what}")));
    lines
}
