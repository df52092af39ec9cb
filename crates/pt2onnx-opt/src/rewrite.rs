//! Replacing values and nodes: helpers for passes, and [`Rewrite`], the result of every rule.

use crate::Changed;
use pt2onnx_ir::{Attributes, InsertPoint, Metadata, Model, NodeId, Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

/// Makes everything that uses `old` use `new`, a new value that takes its place: if a node computes
/// `new` and it has no name, it gets the name and type of `old`, or keeps its own type if only that
/// has sizes. `new` must dominate the users. Region outputs keep their names and types in any case.
///
/// To use an existing value instead, [`Model::replace_all_uses`] is enough. The node of `old` is
/// not erased.
pub fn substitute(model: &mut Model, old: Value, new: Value) {
    // First, because region outputs take their names from `old`.
    model.replace_all_uses(old, new);
    if model[new].name.is_none() && model.producer(new).is_some() {
        model[new].name = model[old].name.take();
        model[new].ty = Type::fuller(model[old].ty.clone(), model[new].ty.take());
    }
}

/// Makes all users of a node's only output use the existing value `new` instead, and erases the
/// node. `new` must dominate the users. Returns whether anything changed; a node with another
/// number of outputs is not changed.
pub fn bypass(model: &mut Model, node: NodeId, new: Value) -> Changed {
    let [old] = *model[node].outputs() else { return false };
    model.replace_all_uses(old, new);
    model.erase(node)
}

/// Makes a node another operator of ONNX's own domain, with these inputs and attributes. Its
/// outputs stay, its bodies go.
pub fn become_node(
    model: &mut Model,
    node: NodeId,
    op: &'static str,
    inputs: &[Option<Value>],
    attributes: Attributes,
) {
    model.set_inputs(node, inputs);
    model.set_op(node, op);
    model[node].domain = "".into();
    model.set_attributes(node, attributes);
}

/// Adds a `Split` of `x` before a node, with its origins, into parts of these sizes.
pub(crate) fn add_split(
    model: &mut Model,
    before: NodeId,
    x: Value,
    axis: usize,
    sizes: &[i64],
) -> Option<(NodeId, Vec<Value>)> {
    let (dtype, shape) = model.tensor_type(x)?;
    let shape = shape.clone();
    let lengths = model.add_constant(Tensor::vector(sizes));
    let attributes = Attributes::from_iter([("axis".into(), (axis as i64).into())]);
    let (at, inputs) = (InsertPoint::Before(before), [Some(x), Some(lengths)]);
    let node = model.add_node(at, "Split", &inputs, attributes, sizes.len());
    model[node].origins = model[before].origins.clone();
    let parts = model[node].outputs().to_vec();
    for (&part, &size) in parts.iter().zip(sizes) {
        let mut own = shape.clone();
        own[axis] = Expr::int(size);
        model[part].ty = Some(Type::tensor(dtype, own));
    }
    Some((node, parts))
}

/// A value that a rewrite puts somewhere.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// An existing value, which keeps its name and type.
    Value(Value),
    /// A new value, which takes the name and type of the one that it replaces.
    New(Value),
    /// A new constant.
    Constant(Tensor),
    /// A new constant with metadata.
    Folded(Tensor, Metadata),
    /// No input.
    Absent,
}

impl Operand {
    /// A constant vector.
    pub fn ints(ints: &[i64]) -> Self {
        Self::Constant(Tensor::vector(ints))
    }

    fn add_to(self, model: &mut Model) -> Option<Value> {
        match self {
            Self::Value(value) | Self::New(value) => Some(value),
            Self::Constant(tensor) => Some(model.add_constant(tensor)),
            Self::Folded(tensor, metadata) => {
                let value = model.add_constant(tensor);
                model[value].metadata = metadata;
                Some(value)
            }
            Self::Absent => None,
        }
    }
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<Option<Value>> for Operand {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }
}

/// A change of a node whose outputs stay.
#[derive(Clone, Debug)]
pub(crate) enum NodeEdit {
    /// Makes it this operator of ONNX's own domain.
    Become { op: &'static str, inputs: Vec<Operand>, attributes: Attributes },
    /// Replaces an input.
    SetInput(usize, Operand),
    /// Computes these values from `source` instead of a transpose or reshape of it: the first is
    /// the node's operand, the last is computed from the source.
    Commute { between: Vec<Value>, source: Value },
}

/// A change of a graph, as data: rules return it, [`apply`](Self::apply) makes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewrite {
    /// Edits of nodes, which are made first.
    pub nodes: SmallVec<[(NodeId, NodeEdit); 1]>,
    /// Values, and what takes their places.
    pub replace: SmallVec<[(Value, Operand); 1]>,
    /// Nodes that are erased if nothing uses them afterwards.
    pub erase: SmallVec<[NodeId; 4]>,
}

impl Rewrite {
    /// Replaces the outputs of a node, and erases it.
    pub fn replace(
        node: NodeId,
        outputs: &[Value],
        by: impl IntoIterator<Item = impl Into<Operand>>,
    ) -> Self {
        let replace = outputs.iter().copied().zip(by.into_iter().map(Into::into)).collect();
        Self { replace, erase: smallvec![node], ..Self::default() }
    }

    /// Edits a node.
    pub fn edit(node: NodeId, edit: NodeEdit) -> Self {
        Self { nodes: smallvec![(node, edit)], ..Self::default() }
    }

    /// Makes the change. Returns whether the node that it is about changed or is gone.
    pub fn apply(self, model: &mut Model) -> Changed {
        let mut changed = false;
        for (node, edit) in self.nodes {
            apply_edit(model, node, edit);
            changed = true;
        }
        for (old, new) in self.replace {
            let is_new = matches!(new, Operand::New(_));
            if !is_new && model[old].uses().len() == 0 {
                continue;
            }
            match new.add_to(model) {
                Some(new) if is_new => substitute(model, old, new),
                Some(new) => model.replace_all_uses(old, new),
                None => {}
            }
        }
        // A node that several of the others use can be erased only after them.
        while self.erase.iter().any(|&n| model.contains(n) && model.erase(n)) {
            changed = true;
        }
        changed
    }
}

fn apply_edit(model: &mut Model, node: NodeId, edit: NodeEdit) {
    match edit {
        NodeEdit::Become { op, inputs, attributes } => {
            if op == "Concat" {
                join_concat_origins(model, node, &inputs);
            } else {
                join_origins(model, node, inputs.first());
            }
            let inputs: Vec<_> = inputs.into_iter().map(|input| input.add_to(model)).collect();
            become_node(model, node, op, &inputs, attributes);
        }
        NodeEdit::SetInput(input, value) => {
            let value = value.add_to(model);
            model.replace_input(node, input, value);
        }
        NodeEdit::Commute { between, source } => commute(model, &between, source),
    }
}

fn commute(model: &mut Model, between: &[Value], source: Value) {
    let shape = model.shape(source).cloned();
    for &value in between {
        if let Some(Type::Tensor(t)) = &mut model[value].ty {
            t.shape = shape.clone();
        }
    }
    if let Some(first) = between.last().and_then(|&v| model.producer(v)) {
        let from = |v: Option<Value>| {
            let made = v.and_then(|v| model.producer(v));
            made.is_some_and(|made| model[made].input(0) == Some(source))
        };
        let at = model[first].inputs().iter().position(|&v| from(v));
        model.replace_input(first, at.unwrap_or(0), Some(source));
    }
}

/// A node that takes the input of the node before it does that node's work: it gets its origins.
fn join_origins(model: &mut Model, id: NodeId, source: Option<&Operand>) {
    let same = |v: Value| matches!(source, Some(Operand::Value(source)) if *source == v);
    if let Some(input) = model[id].input(0)
        && !same(input)
        && let Some(skipped) = model.producer(input)
    {
        model.merge_origins(id, skipped);
    }
}

/// A `Concat` gets the origins of about this many nodes at most.
const MAX_SKIPPED: usize = 1 << 10;

/// The same for a `Concat` that takes the operands of others, or drops some without elements.
fn join_concat_origins(model: &mut Model, id: NodeId, taken: &[Operand]) {
    let taken: FxHashSet<Value> = taken
        .iter()
        .filter_map(|operand| match operand {
            Operand::Value(value) => Some(*value),
            _ => None,
        })
        .collect();
    let (mut open, mut visited) = (vec![id], FxHashSet::from_iter([id]));
    while let Some(node) = open.pop() {
        model.merge_origins(id, node);
        let skipped = model[node].inputs().iter().flatten().filter(|v| !taken.contains(v));
        let skipped = skipped.filter_map(|&v| model.producer(v));
        open.extend(skipped.filter(|&n| visited.insert(n)));
        if visited.len() > MAX_SKIPPED {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_becomes_another_loses_its_bodies() {
        let text = "g (bool c, float[2] x) => (float[2] y) {
            y = If (c) <
                then_branch = t () => (float[2] a) { a = Relu (x) },
                else_branch = e () => (float[2] b) { b = Exp (x) }
            >
        }";
        let mut model: Model = text.parse().unwrap();
        let (node, x) = (model.nodes(Model::MAIN).next().unwrap(), model.inputs()[1]);
        become_node(&mut model, node, "Neg", &[Some(x)], vec![]);
        assert_eq!(model[x].uses().len(), 1);
        assert!(model.to_string().contains("y = Neg (x)"), "{model}");
    }
}
