//! The state of the pass over one graph, and the addition of functional operators.

use super::{
    emit::{Emitter, arguments},
    memory::{Id, Memory},
    result_type::result_type,
};
use crate::{
    error::Result,
    graph::{Argument, Name, Node, OpName, TensorMeta},
    passes::problem::problem,
};
use rustc_hash::FxHashSet;

/// Replaces the names in an argument by those of the newest values.
pub(super) fn current(
    arg: &mut Argument,
    memory: &mut Memory,
    emit: &mut Emitter<'_>,
) -> Result<()> {
    let mut result = Ok(());
    arg.for_each_name_mut(&mut |name| match memory.read(name, emit) {
        Ok(new) => *name = new,
        Err(error) => result = Err(error),
    });
    result
}

/// The state of the pass over one graph.
pub(super) struct Pass<'a> {
    pub(super) memory: Memory,
    pub(super) emit: Emitter<'a>,
    /// The inputs of the graph.
    pub(super) inputs: FxHashSet<Id>,
}

impl Pass<'_> {
    /// The name of a node's result. A node without one gets a result of the type of `x`.
    pub(super) fn result(&mut self, node: &mut Node, x: &Name) -> Result<Name> {
        if let Some(name) = node.outputs.first().and_then(Argument::name) {
            return Ok(name.clone());
        }
        let meta = self.emit.meta(x).map_err(|p| problem(node, p))?;
        let name = self.emit.value(&node.target.name, meta);
        node.outputs = vec![Argument::Tensor(name.clone())];
        node.name = name.clone();
        Ok(name)
    }

    /// Adds a functional operator in place of one that wrote into a tensor. PyTorch converts what
    /// it writes to the type of that tensor: where the operator gives another type, a `_to_copy`
    /// follows.
    pub(super) fn push(&mut self, mut node: Node) -> Result<()> {
        let result = node.outputs.first().and_then(Argument::name).cloned();
        let given = result_type(&node, self.emit.graph);
        let (Some(result), Some(given), 1) = (result, given, node.outputs.len()) else {
            self.emit.nodes.push(node);
            return Ok(());
        };
        let meta = self.emit.meta(&result).map_err(|p| problem(&node, p))?;
        let to = meta.dtype;
        if given == to {
            self.emit.nodes.push(node);
            return Ok(());
        }
        let before = self.emit.value(&node.target.name, TensorMeta { dtype: given, ..meta });
        node.outputs = vec![Argument::Tensor(before.clone())];
        let cast = Node {
            name: self.emit.taken.unique(&"_to_copy".into()),
            target: OpName::new("aten", "_to_copy", "default"),
            args: arguments([("self", Argument::Tensor(before)), ("*dtype", Argument::DType(to))]),
            outputs: vec![Argument::Tensor(result)],
            single_return: None,
            meta: node.meta.clone(),
        };
        self.emit.nodes.extend([node, cast]);
        Ok(())
    }
}
