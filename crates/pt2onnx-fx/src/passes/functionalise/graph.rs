//! Walks the nodes of a graph, and lists the inputs that it writes into.

use super::{
    emit::Emitter,
    memory::{Id, Memory, Writer},
    pass::{self, Pass},
    rules,
    tied::Tied,
    variants::{self, Write},
};
use crate::{
    error::{PassProblem, Result},
    graph::{Argument, Graph, Name, Node, OpName},
    passes::problem::problem,
    views::{self, Shared, View},
};
use pt2onnx_symbolic::Constraints;
use std::sync::Arc;

/// An input that was written into.
pub(super) struct Final {
    /// Its position.
    pub(super) input: usize,
    pub(super) value: Name,
    pub(super) node: Name,
    pub(super) source: Option<String>,
}

/// Functionalises one graph. Returns the inputs that it writes into.
pub(super) fn functionalise(
    graph: &mut Graph,
    known: &Constraints,
    tied: &Tied,
) -> Result<Vec<Final>> {
    functionalise_bodies(graph, known)?;
    if graph.nodes.iter().all(|n| variants::write(n) == Write::None) {
        return Ok(Vec::new());
    }
    let mut memory = Memory::default();
    for shared in &tied.0 {
        memory.share(Shared {
            result: shared.result.clone(),
            of: shared.of.clone(),
            view: shared.view.clone(),
        });
    }
    let inputs = graph.inputs.iter().map(Argument::name);
    let inputs: Vec<(Option<Name>, Id)> =
        inputs.map(|name| (name.cloned(), name.map_or(0, |name| memory.tensor(name)))).collect();
    let nodes = std::mem::take(&mut graph.nodes);
    let mut pass = Pass {
        inputs: inputs.iter().map(|(_, id)| *id).collect(),
        memory,
        emit: Emitter::new(graph, known),
    };
    for node in nodes {
        pass.node(Arc::unwrap_or_clone(node))?;
    }
    let Pass { mut memory, mut emit, .. } = pass;
    let mut outputs = std::mem::take(&mut emit.graph.outputs);
    for output in &mut outputs {
        pass::current(output, &mut memory, &mut emit)?;
    }
    emit.graph.outputs = outputs;
    let finals = finals(&inputs, &mut memory, &mut emit)?;
    emit.finish(finals.iter().map(|f| &f.value));
    Ok(finals)
}

/// Functionalises the bodies of all nodes. It is an error if one writes into its input.
fn functionalise_bodies(graph: &mut Graph, known: &Constraints) -> Result<()> {
    let written = |body: &mut Graph| -> Result<Option<Name>> {
        let finals = functionalise(body, known, &Tied::default())?;
        let name = |w: &Final| body.inputs.get(w.input).and_then(Argument::name).cloned();
        Ok(finals.first().map(|w| name(w).unwrap_or_default()))
    };
    for node in graph.nodes.iter_mut().filter(|node| node.target.is_higher_order()) {
        let node = Arc::make_mut(node);
        let mut written = node.bodies_mut().map(written).filter_map(Result::transpose);
        if let Some(name) = written.next().transpose()? {
            drop(written);
            return Err(problem(node, PassProblem::WriteToOperand { name }));
        }
    }
    Ok(())
}

/// The inputs that were written into, with what they are at the end. `inputs` are their names, and
/// what they were at first.
fn finals(
    inputs: &[(Option<Name>, Id)],
    memory: &mut Memory,
    emit: &mut Emitter<'_>,
) -> Result<Vec<Final>> {
    let mut finals = Vec::new();
    for (input, (name, id)) in inputs.iter().enumerate() {
        let Some(name) = name else { continue };
        // `x.data = y` writes into `x` what `y` is.
        let now = memory.tensor(name);
        let replaced = memory.root(now) != memory.root(*id);
        let id = if replaced { now } else { *id };
        let write = memory.written(id).or(memory.renamed(name).filter(|_| replaced));
        if let Some(write) = write.cloned() {
            finals.push(Final {
                input,
                value: memory.value(id, emit)?,
                source: write.site.place(),
                node: write.site.node,
            });
        }
    }
    Ok(finals)
}

impl Pass<'_> {
    fn node(&mut self, mut node: Node) -> Result<()> {
        let write = variants::write(&node);
        // The tensor written into, as the archive names it.
        let first = node.args.first().and_then(|a| a.value.name()).cloned();
        let outs = match &write {
            Write::Outs(_) => rules::take_outs(&mut node)?,
            _ => Vec::new(),
        };
        for arg in &mut node.args {
            pass::current(&mut arg.value, &mut self.memory, &mut self.emit)?;
        }
        match write {
            Write::None => {
                self.views(&mut node)?;
                self.emit.nodes.push(node);
            }
            Write::Unknown => return Err(problem(&node, PassProblem::NoVariant)),
            Write::Same(variant) => {
                node.target = variant;
                node.args.truncate(1);
                self.views(&mut node)?;
                self.emit.nodes.push(node);
            }
            Write::View(variant) => {
                let by = Writer::by(&node);
                node.target = variant;
                self.views(&mut node)?;
                let result = node.outputs.first().and_then(Argument::name);
                if let (Some(first), Some(result)) = (first, result) {
                    let id = self.memory.tensor(result);
                    self.memory.rename(&first, id, by);
                }
                self.emit.nodes.push(node);
            }
            Write::First(variant) => self.first(node, variant)?,
            Write::Outs(variant) => self.outs(node, variant, &outs)?,
            Write::Resize => self.resize(node, first)?,
            Write::Replace => self.replace(node, first)?,
            Write::FillDiagonal => self.fill_diagonal(node)?,
            Write::Statistics(kind) => self.statistics(node, kind)?,
            Write::Argument(written) => self.argument(node, written)?,
            Write::Custom => self.custom(node)?,
        }
        Ok(())
    }

    /// Records which results of a node share memory with its argument.
    fn views(&mut self, node: &mut Node) -> Result<()> {
        for mut shared in views::shared(node, &self.emit.graph.values, self.emit.known) {
            let base = self.memory.tensor(&shared.of);
            match shared.view {
                View::AsStrided { .. } => {
                    rules::of_storage(node, &mut shared, base, &mut self.memory, &mut self.emit)?
                }
                // A conjugate is conjugated for good by `resolve_conj`: that is a copy.
                View::Itself
                    if node.target.name.starts_with("resolve_")
                        && matches!(
                            self.memory.view(base),
                            Some(View::Conj | View::Adjoint | View::Neg)
                        ) =>
                {
                    continue;
                }
                _ => {}
            }
            self.memory.share(shared);
        }
        Ok(())
    }

    /// Replaces an operator that writes into its first argument: `add_(x, y)`.
    fn first(&mut self, mut node: Node, variant: OpName) -> Result<()> {
        let Some(x) = node.args.first().and_then(|a| a.value.name()).cloned() else {
            return Err(problem(&node, PassProblem::NoVariant));
        };
        // The parameter that is `self` in `dropout_` is `input` in `dropout`.
        if variant.name.ends_with("dropout")
            && let Some(arg) = node.args.first_mut()
        {
            arg.name = "input".into();
        }
        let by = Writer::by(&node);
        node.target = variant;
        let id = self.memory.tensor(&x);
        let new = self.result(&mut node, &x)?;
        self.push(node)?;
        self.memory.write(id, &new, by, &mut self.emit);
        Ok(())
    }
}
