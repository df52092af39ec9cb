//! Turns `torch.vmap` into `map_impl`: what runs for each element of a batch becomes its body.
//!
//! The archive has `_vmap_increment_nesting`, `_add_batch_dim` for each batched input, the ops on
//! single elements, `_remove_batch_dim` for each result, `_vmap_decrement_nesting`. Values in
//! between are recorded without their batch dimension, so that the ops can stand in a body
//! unchanged. Nodes that do not depend on the batch stay outside.

use super::{names::Taken, problem::problem};
use crate::{
    error::{PassProblem, Result},
    graph::{
        Argument, ExportedProgram, Graph, Name, NamedArg, Node, NodeMeta, OpName, SymArg,
        TensorMeta, Values,
    },
};
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Replaces every `vmap` of the program and its bodies, nested ones innermost first.
pub fn vmap(program: &mut ExportedProgram) -> Result<()> {
    vmap_graph(&mut program.graph)
}

fn vmap_graph(graph: &mut Graph) -> Result<()> {
    graph.bodies_mut().try_for_each(vmap_graph)?;
    if !graph.nodes.iter().any(|n| is(n, "_vmap_increment_nesting")) {
        return Ok(());
    }
    graph.nodes.retain(|n| !is(n, "lazy_load_decompositions"));
    let mut taken = Taken::by(graph);
    while let Some(end) = graph.nodes.iter().position(|n| is(n, "_vmap_decrement_nesting")) {
        let start = graph.nodes[..end].iter().rposition(|n| is(n, "_vmap_increment_nesting"));
        let Some(start) = start else {
            return Err(problem(&graph.nodes[end], PassProblem::Body));
        };
        let mut between: Vec<Arc<Node>> = graph.nodes.drain(start..=end).collect();
        between.pop();
        let mapped = map(graph, between.split_off(1), &mut taken)?;
        graph.nodes.splice(start..start, mapped);
    }
    Ok(())
}

/// Whether a node is that function of `torch._functorch.predispatch`.
fn is(node: &Node, name: &str) -> bool {
    &*node.target.name == name && node.target.namespace.ends_with("predispatch")
}

/// Replaces the nodes of one level by those that do not depend on the batch, the map, and nodes
/// that move batch dimensions.
fn map(graph: &mut Graph, nodes: Vec<Arc<Node>>, taken: &mut Taken) -> Result<Vec<Arc<Node>>> {
    let mut parts = Parts::default();
    let mut outside = Vec::new();
    for node in nodes {
        if is(&node, "_add_batch_dim") {
            parts.add_input(graph, &node, &mut outside, taken)?;
        } else if is(&node, "_remove_batch_dim") {
            parts.removals.push(node);
        } else if node.input_names().iter().any(|n| parts.batched.contains(n)) {
            parts.batched.extend(node.output_names());
            parts.body.push(node);
        } else {
            outside.push(node);
        }
    }
    outside.extend(parts.finish(graph, taken)?);
    Ok(outside)
}

#[derive(Default)]
struct Parts {
    /// Batched inputs: the batch, its batch dimension first, and the name of one element.
    inputs: Vec<(Name, Name)>,
    /// Values that depend on the batch.
    batched: FxHashSet<Name>,
    body: Vec<Arc<Node>>,
    removals: Vec<Arc<Node>>,
}

impl Parts {
    /// `_add_batch_dim(batch, dim, level)`.
    fn add_input(
        &mut self,
        graph: &mut Graph,
        node: &Node,
        outside: &mut Vec<Arc<Node>>,
        taken: &mut Taken,
    ) -> Result<()> {
        let (Some(Argument::Tensor(batch)), Some(Argument::Int(dim)), Some(element)) =
            (value(node, 0), value(node, 1), node.output_names().pop())
        else {
            return Err(problem(node, PassProblem::Body));
        };
        let batch = move_dim(graph, node, batch, (*dim, 0), outside, taken)?;
        self.inputs.push((batch, element.clone()));
        self.batched.insert(element.clone());
        Ok(())
    }

    /// The map and the nodes after it.
    fn finish(self, graph: &mut Graph, taken: &mut Taken) -> Result<Vec<Arc<Node>>> {
        let Some(first) = self.removals.first() else {
            return Ok(Vec::new());
        };
        let (name, meta) = (taken.unique(&"vmap".into()), first.meta.clone());
        let mut after = Vec::new();
        let (mut results, mut outputs) = (Vec::new(), Vec::new());
        for removal in &self.removals {
            // _remove_batch_dim(element, level, size, dim)
            let (Some(Argument::Tensor(element)), Some(Argument::Int(dim)), Some(result)) =
                (value(removal, 0), value(removal, 3), removal.output_names().pop())
            else {
                return Err(problem(removal, PassProblem::Body));
            };
            let stacked = match dim {
                0 => result.clone(),
                _ => taken.unique(&format!("{result}_stacked").into()),
            };
            if *dim != 0 {
                let moved = moved_meta(tensor(graph, removal, &result)?, (*dim, 0));
                graph.values_mut().insert(
                    stacked.clone(),
                    moved.ok_or_else(|| problem(removal, PassProblem::Body))?.into(),
                );
                after.push(movedim(result.clone(), &stacked, (0, *dim), removal.meta.clone()));
            }
            results.push(Argument::Tensor(element.clone()));
            outputs.push(Argument::Tensor(stacked));
        }
        let (xs, elements): (Vec<Name>, Vec<Name>) = self.inputs.into_iter().unzip();
        let (captured, values) = captures(graph, &self.body, &results, &elements);
        let inputs = elements.iter().chain(&captured).cloned().map(Argument::Tensor).collect();
        let body = Graph {
            nodes: self.body,
            inputs,
            outputs: results,
            values: Arc::new(values),
            is_single_tensor_return: false,
        };
        let args = [
            Argument::Graph { name: taken.unique(&"vmap_body".into()), graph: Box::new(body) },
            Argument::Tensors(xs),
            Argument::Tensors(captured),
        ];
        let map = Node {
            name,
            target: OpName::parse("torch.ops.higher_order.map_impl"),
            args: args.into_iter().map(|arg| NamedArg::positional("", arg)).collect(),
            outputs,
            single_return: Some(false),
            meta,
        };
        Ok(std::iter::once(map).chain(after).map(Arc::new).collect())
    }
}

/// Tensors that a body uses from outside, in order, and the types of all its values. Sizes are not
/// captured: they are expressions over the program's symbols.
fn captures(
    graph: &Graph,
    body: &[Arc<Node>],
    results: &[Argument],
    elements: &[Name],
) -> (Vec<Name>, Values) {
    let mut defined: FxHashSet<Name> = elements.iter().cloned().collect();
    defined.extend(body.iter().flat_map(|node| node.output_names()));
    let mut used: Vec<Name> = body.iter().flat_map(|node| node.input_names()).collect();
    results.iter().for_each(|r| r.for_each_name(&mut |n| used.push(n.clone())));
    let known = |name: &Name| Some((name.clone(), graph.values.get(name)?.clone()));
    let values = defined.iter().chain(&used).filter_map(known).collect();
    let mut captured = Vec::new();
    for name in used {
        if graph.tensor(&name).is_some() && defined.insert(name.clone()) {
            captured.push(name);
        }
    }
    (captured, values)
}

fn value(node: &Node, i: usize) -> Option<&Argument> {
    node.args.get(i).map(|a| &a.value)
}

fn tensor<'a>(graph: &'a Graph, node: &Node, name: &Name) -> Result<&'a TensorMeta> {
    graph.tensor(name).ok_or_else(|| problem(node, PassProblem::Body))
}

/// The value with dimension `from` moved to `to`: itself, or the result of a new node.
fn move_dim(
    graph: &mut Graph,
    node: &Node,
    name: &Name,
    (from, to): (i64, i64),
    outside: &mut Vec<Arc<Node>>,
    taken: &mut Taken,
) -> Result<Name> {
    if from == to {
        return Ok(name.clone());
    }
    let meta = moved_meta(tensor(graph, node, name)?, (from, to))
        .ok_or_else(|| problem(node, PassProblem::Body))?;
    let moved = taken.unique(&format!("{name}_moved").into());
    graph.values_mut().insert(moved.clone(), meta.into());
    let node = movedim(moved.clone(), name, (from, to), node.meta.clone());
    outside.push(node.into());
    Ok(moved)
}

fn moved_meta(meta: &TensorMeta, (from, to): (i64, i64)) -> Option<TensorMeta> {
    let axis = |d: i64| pt2onnx_symbolic::axis(d, meta.sizes.len());
    let (from, to) = (axis(from)?, axis(to)?);
    let moved = |all: &[Expr]| {
        let mut all = all.to_vec();
        let dim = all.remove(from);
        all.insert(to, dim);
        all
    };
    let strides = if meta.strides.len() == meta.sizes.len() {
        moved(&meta.strides)
    } else {
        meta.strides.clone()
    };
    Some(TensorMeta { sizes: moved(&meta.sizes), strides, ..meta.clone() })
}

/// `aten::movedim.int`.
fn movedim(result: Name, of: &Name, (from, to): (i64, i64), meta: Arc<NodeMeta>) -> Node {
    let int = |i: i64| Argument::SymInt(SymArg::Value(i));
    let args = vec![
        NamedArg::positional("self", Argument::Tensor(of.clone())),
        NamedArg::positional("source", int(from)),
        NamedArg::positional("destination", int(to)),
    ];
    Node::call(result, OpName::new("aten", "movedim", "int"), args, meta)
}
