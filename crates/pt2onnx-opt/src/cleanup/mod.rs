//! Clean-up: nodes that do nothing go, chains of nodes that one node can do are joined.

mod chain;
mod noop;

use crate::{Changed, Options, rewrite};
use pt2onnx_ir::{Attribute, Attributes, Model, Node, NodeId, Shape, Value};
use pt2onnx_symbolic::Expr;

/// What to do about a node.
enum Action {
    /// Its output is this value.
    Forward(Value),
    /// It becomes this node; its output stays what it was.
    Become(&'static str, Vec<Option<Value>>, Box<Attributes>),
    /// It becomes `Reshape` of a value to these sizes, one at most -1.
    Reshape(Value, Vec<i64>),
}

/// What a rule sees: a node with one output.
struct Seen<'a> {
    model: &'a Model,
    node: &'a Node,
}

pub(crate) fn run(model: &mut Model, _: &Options) -> Changed {
    let mut changed = false;
    // In order, so that a chain is joined link by link in one walk.
    for id in model.graph_nodes() {
        if !model.contains(id)
            || model[id].outputs().len() != 1
            || !model[id].domain.is_empty()
            || model.is_unused(id)
        {
            continue;
        }
        let seen = Seen { model, node: &model[id] };
        if let Some(action) = noop::rule(&seen).map(Action::Forward).or_else(|| chain::rule(&seen))
        {
            changed |= apply(model, id, action);
        }
    }
    changed
}

fn apply(model: &mut Model, id: NodeId, action: Action) -> Changed {
    match action {
        Action::Forward(value) => return rewrite::bypass(model, id, value),
        Action::Become(op, inputs, attributes) => {
            join_origins(model, id, inputs.first().copied().flatten());
            rewrite::become_node(model, id, op, &inputs, *attributes)
        }
        Action::Reshape(x, sizes) => {
            join_origins(model, id, Some(x));
            let sizes = model.add_constant(pt2onnx_tensor::Tensor::vector(&sizes));
            rewrite::become_node(model, id, "Reshape", &[Some(x), Some(sizes)], Attributes::new());
        }
    }
    true
}

/// A node that skips the node in front of it, to begin with what that begins with, does that one's work as well.
fn join_origins(model: &mut Model, id: NodeId, source: Option<Value>) {
    let input = model[id].input(0);
    if input != source
        && let Some(skipped) = input.and_then(|v| model.producer(v))
    {
        model.merge_origins(id, skipped);
    }
}

impl<'a> Seen<'a> {
    /// The same for the node that makes a value, if that has one output and is ONNX's own operator.
    fn producer(&self, value: Value) -> Option<Seen<'a>> {
        let node = &self.model[self.model.producer(value)?];
        (node.domain.is_empty() && node.outputs().len() == 1)
            .then_some(Seen { model: self.model, node })
    }

    fn output(&self) -> Value {
        self.node.outputs()[0]
    }

    /// Sizes, if the rank is known.
    fn shape(&self, value: Value) -> Option<&'a Shape> {
        self.model[value].ty.as_ref()?.as_tensor()?.shape.as_ref()
    }

    fn dtype(&self, value: Value) -> Option<pt2onnx_tensor::DType> {
        Some(self.model[value].ty.as_ref()?.as_tensor()?.dtype)
    }

    /// Whether both surely have the same sizes.
    fn same_shape(&self, a: Value, b: Value) -> bool {
        match (self.shape(a), self.shape(b)) {
            (Some(a), Some(b)) => a == b && a.iter().all(known),
            _ => false,
        }
    }

    /// The elements of an integer constant.
    fn ints(&self, input: usize) -> Option<Vec<i64>> {
        let t = self.model[self.node.input(input)?].constant()?;
        t.to_vec::<i64>().or_else(|| Some(t.to_vec::<i32>()?.into_iter().map(i64::from).collect()))
    }

    fn int_list(&self, name: &str) -> Option<&'a [i64]> {
        match self.node.attribute(name)? {
            Attribute::Ints(list) => Some(list),
            _ => None,
        }
    }
}

/// Whether a size is what its expression says: unknown ones have symbols that begin with `?`, made up anew wherever a
/// size is not known, so that equal ones prove nothing.
pub(crate) fn known(dim: &Expr) -> bool {
    dim.is_static() || !dim.symbols().iter().any(|s| s.starts_with('?'))
}
