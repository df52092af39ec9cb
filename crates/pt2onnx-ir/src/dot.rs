//! Draws models.

use crate::{
    ids::{NodeId, RegionId, Value},
    model::Model,
};
use petgraph::{
    dot::Dot,
    graph::{DiGraph, NodeIndex},
};
use rustc_hash::FxHashMap;

/// Draws a model in the DOT language of Graphviz: the nodes, inputs and outputs of the main graph
/// and its bodies. An edge is a value, with its type. An edge without a label leads from a body to
/// its node. Constants are not drawn.
///
/// ```
/// use pt2onnx_ir::{Model, dot};
///
/// let model: Model = "g (float[2] x) => (float[2] y) { y = Relu (x) }".parse()?;
/// assert!(dot(&model).contains(r#"0 -> 1 [ label = "float[2] x" ]"#));
/// # Ok::<(), pt2onnx_ir::ParseError>(())
/// ```
pub fn dot(model: &Model) -> String {
    let mut drawing = Drawing { model, graph: DiGraph::new(), makers: FxHashMap::default() };
    drawing.region(Model::MAIN, None);
    for output in model.outputs() {
        let name = model
            .output_name(output)
            .map_or_else(|| drawing.name(output.value()), ToString::to_string);
        let end = drawing.graph.add_node(format!("output {name}"));
        drawing.edge(output.value(), end);
    }
    Dot::new(&drawing.graph).to_string()
}

struct Drawing<'m> {
    model: &'m Model,
    graph: DiGraph<String, String>,
    /// The node or input that makes each value.
    makers: FxHashMap<Value, NodeIndex>,
}

impl Drawing<'_> {
    fn region(&mut self, region: RegionId, owner: Option<NodeIndex>) {
        for &input in self.model[region].inputs() {
            let made = self.graph.add_node(format!("input {}", self.name(input)));
            self.makers.insert(input, made);
        }
        for node in self.model.nodes(region) {
            self.node(node);
        }
        if let Some(owner) = owner {
            let values: Vec<Value> = self.model[region].output_values().collect();
            for value in values {
                if let Some(maker) = self.makers.get(&value) {
                    self.graph.update_edge(*maker, owner, String::new());
                }
            }
        }
    }

    fn node(&mut self, id: NodeId) {
        let node = &self.model[id];
        let drawn = self.graph.add_node(if node.domain.is_empty() {
            node.op().to_owned()
        } else {
            format!("{}.{}", node.domain, node.op())
        });
        for &input in node.inputs().iter().flatten() {
            self.edge(input, drawn);
        }
        for region in node.regions() {
            self.region(region, Some(drawn));
        }
        self.makers.extend(node.outputs().iter().map(|output| (*output, drawn)));
    }

    fn edge(&mut self, value: Value, to: NodeIndex) {
        if let Some(&from) = self.makers.get(&value) {
            let ty = self.model[value].ty.as_ref().map(|ty| format!("{ty} "));
            let label = format!("{}{}", ty.unwrap_or_default(), self.name(value));
            self.graph.add_edge(from, to, label);
        }
    }

    fn name(&self, value: Value) -> String {
        let name = self.model[value].name.as_ref();
        name.map_or_else(|| format!("_{}", value.index()), ToString::to_string)
    }
}
