//! Draws an ONNX model.

use super::{Drawing, DrawnNode, DrawnValue, Texts, shortened};
use pt2onnx_ir::{Attribute, Def, Model, ModuleId, NodeId, RegionId, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;
use std::fmt::Debug;

/// Draws a model: its main graph, bodies and functions. Nodes are grouped by the modules that the
/// model knows, or that their metadata name.
pub(crate) fn of_model(model: &Model) -> Drawing {
    let mut painter = Painter {
        model,
        drawing: Drawing::default(),
        values: FxHashMap::default(),
        modules: FxHashMap::default(),
        named: FxHashMap::default(),
        texts: Texts::default(),
    };
    painter.drawing.inputs = model.inputs().iter().map(|v| painter.value(*v)).collect();
    painter.region(Model::MAIN, None);
    painter.drawing.outputs = model.output_values().map(|v| painter.value(v)).collect();
    for function in &model.functions {
        let name = format!("function {}::{}", function.domain, function.name);
        let group = painter.drawing.group(None, &name, "");
        painter.region(function.body, Some(group));
    }
    painter.drawing.texts = painter.texts.all;
    painter.drawing
}

struct Painter<'m> {
    model: &'m Model,
    drawing: Drawing,
    values: FxHashMap<Value, usize>,
    /// The groups of calls of modules.
    modules: FxHashMap<ModuleId, usize>,
    /// The groups of modules that metadata name, by their text.
    named: FxHashMap<String, usize>,
    texts: Texts,
}

impl Painter<'_> {
    fn region(&mut self, region: RegionId, group: Option<usize>) {
        let nodes: Vec<NodeId> = self.model.nodes(region).collect();
        for id in nodes {
            self.node(id, group);
        }
    }

    fn node(&mut self, id: NodeId, body: Option<usize>) {
        let node = &self.model[id];
        let group = body.or_else(|| self.group(id));
        let origins = || node.origins.iter().map(|o| &self.model[*o]);
        let from = origins().filter(|o| !o.op.is_empty()).map(|o| format!("{} {}", o.op, o.node));
        let from = from.collect::<Vec<_>>().join("\n");
        let source = origins().find_map(|o| o.location.as_deref()).unwrap_or_default().to_owned();
        let op = if node.domain.is_empty() {
            node.op().to_owned()
        } else {
            format!("{}::{}", node.domain, node.op())
        };
        let attributes = node.attributes.iter();
        let attributes = attributes.map(|(name, a)| (name.to_string(), shortened(text(a))));
        let attributes = attributes.collect();
        let metadata = node.origins.first().map(|o| &self.model[*o].metadata);
        let metadata = metadata.into_iter().flatten();
        let metadata = metadata
            .map(|(k, v)| (self.texts.place(k), self.texts.place(&v.to_string())))
            .collect();
        let inputs = node.inputs().iter().map(|v| v.map(|v| self.value(v))).collect();
        let outputs = node.outputs().iter().filter(|v| !self.model[**v].is_left_out());
        let outputs = outputs.copied().collect::<Vec<_>>();
        let outputs = outputs.into_iter().map(|v| self.value(v)).collect();
        let name = node.name.as_deref().unwrap_or_default().to_owned();
        self.drawing.nodes.push(DrawnNode {
            name: name.clone(),
            op,
            group,
            inputs,
            outputs,
            attributes,
            from,
            source,
            metadata,
            mark: "",
        });
        for (attribute, value) in &node.attributes {
            for &region in value.regions() {
                let body = self.drawing.group(group, &format!("{name} {attribute}"), "body");
                self.region(region, Some(body));
            }
        }
    }

    /// The group of the module that a node belongs to.
    fn group(&mut self, node: NodeId) -> Option<usize> {
        match self.model.module_of(node) {
            Some(module) => self.module(module),
            None => self.namespace(node),
        }
    }

    /// The group of a call; the program itself has none.
    fn module(&mut self, module: ModuleId) -> Option<usize> {
        let mut calls: Vec<ModuleId> = self.model.modules_around(module).collect();
        calls.pop();
        let mut parent = None;
        for id in calls.into_iter().rev() {
            let known = self.modules.get(&id).copied();
            parent = Some(known.unwrap_or_else(|| {
                let call = &self.model[id];
                let group = self.drawing.group(parent, &call.path, &call.class);
                self.modules.insert(id, group);
                group
            }));
        }
        parent
    }

    /// The group that the metadata `namespace` of a file names: `: m.Net/layer: m.Layer/relu:
    /// aten.relu.default`.
    fn namespace(&mut self, node: NodeId) -> Option<usize> {
        let mut origins = self.model[node].origins.iter().flat_map(|o| &self.model[*o].metadata);
        let (_, text) = origins.find(|(key, _)| key == "namespace")?;
        let text = text.to_string();
        let (modules, _) = text.rsplit_once('/')?;
        let (mut parent, mut end) = (None, 0);
        for (i, module) in modules.split('/').enumerate() {
            end += module.len() + usize::from(i > 0);
            if i == 0 {
                continue;
            }
            let key = &modules[..end];
            let known = self.named.get(key).copied();
            parent = Some(known.unwrap_or_else(|| {
                let (path, class) = module.split_once(": ").unwrap_or((module, ""));
                let group = self.drawing.group(parent, path, class);
                self.named.insert(key.to_owned(), group);
                group
            }));
        }
        parent
    }

    fn value(&mut self, value: Value) -> usize {
        if let Some(&known) = self.values.get(&value) {
            return known;
        }
        let data = &self.model[value];
        let bytes = match data.def() {
            Def::Constant(tensor) => Some(tensor.nbytes()),
            _ => None,
        };
        let r#type = match (&data.ty, data.def()) {
            (Some(ty), _) => ty.to_string(),
            (None, Def::Constant(tensor)) => tensor_type(tensor),
            (None, _) => String::new(),
        };
        let name = data.name.as_deref().unwrap_or_default().to_owned();
        self.drawing.values.push(DrawnValue { name, r#type, bytes });
        let place = self.drawing.values.len() - 1;
        self.values.insert(value, place);
        place
    }
}

fn tensor_type(tensor: &Tensor) -> String {
    format!("{}{:?}", tensor.dtype(), tensor.shape())
}

fn text(attribute: &Attribute) -> String {
    match attribute {
        Attribute::Float(f) => f.to_string(),
        Attribute::Int(i) => i.to_string(),
        Attribute::String(s) => s.clone(),
        Attribute::Tensor(t) => tensor_type(t),
        Attribute::Type(t) => t.to_string(),
        Attribute::Floats(all) => list(all),
        Attribute::Ints(all) => list(all),
        Attribute::Strings(all) => list(all),
        Attribute::Region(_) => "a body".to_owned(),
        Attribute::Regions(all) => format!("{} bodies", all.len()),
        Attribute::Reference { name, .. } => format!("the function's attribute {name}"),
        Attribute::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{:?}", other.kind()),
    }
}

fn list<T: Debug>(all: &[T]) -> String {
    const MOST: usize = 64;
    match all.get(..MOST) {
        Some(first) if all.len() > MOST => format!("{first:?} and {} more", all.len() - MOST),
        _ => format!("{all:?}"),
    }
}
