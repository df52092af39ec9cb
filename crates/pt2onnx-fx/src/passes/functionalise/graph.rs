//! Walks the nodes of a graph, and lists the inputs that it writes into.

use super::{
    effects::{Effects, MutatedInput, Tie, Ties, returned},
    emit::Emitter,
    memory::{Id, Memory, Writer},
    pass::{self, Pass},
    rules,
    variants::{self, Write},
};
use crate::{
    error::{PassProblem, Result},
    graph::{Argument, Graph, Name, Node, NodeMeta, OpName},
    passes::problem::problem,
    views::{self, Alias, View},
};
use pt2onnx_symbolic::Constraints;
use std::{mem::take, sync::Arc};

/// Functionalises the graph of a program. `tied` are inputs that share memory. Returns the inputs
/// that it writes into, without those of the user that only may have been written into.
pub(super) fn functionalise(
    graph: &mut Graph,
    known: &Constraints,
    tied: Vec<Alias>,
    is_users: &dyn Fn(usize) -> bool,
) -> Result<Vec<MutatedInput>> {
    if !writes(graph) {
        return Ok(Vec::new());
    }
    let mut memory = Memory::default();
    for alias in tied {
        memory.share(alias);
    }
    let nodes = take(&mut graph.nodes);
    let mut mutated = walk(nodes, memory, Emitter::new(graph, known), is_users)?.mutated;
    mutated.retain(|m| m.is_written);
    Ok(mutated)
}

/// Whether a node of the graph or of a body writes.
pub(super) fn writes(graph: &Graph) -> bool {
    let writes_node = |n: &Arc<Node>| variants::write(n) != Write::None || n.bodies().any(writes);
    graph.nodes.iter().any(writes_node)
}

/// Functionalises a body. `ties` are inputs that share memory.
pub(super) fn functionalise_body(
    graph: &mut Graph,
    known: &Constraints,
    ties: &Ties,
) -> Result<Effects> {
    let inputs: Vec<Name> =
        graph.inputs.iter().map(|input| input.name().cloned().unwrap_or_default()).collect();
    let nodes = take(&mut graph.nodes);
    let (mut memory, mut emit) = (Memory::default(), Emitter::new(graph, known));
    for tie in &ties.views {
        if let (Some(input), Some(base)) = (inputs.get(tie.input), inputs.get(tie.base)) {
            share_input(tie, input, base, &mut memory, &mut emit);
        }
    }
    for (input, earlier) in &ties.unsure {
        if let (Some(input), Some(earlier)) = (inputs.get(*input), inputs.get(*earlier)) {
            let (id, earlier) = (memory.tensor(input), memory.tensor(earlier));
            memory.may_be(id, earlier);
        }
    }
    walk(nodes, memory, emit, &|_| false)
}

/// Records that an input is a view of another one. The views between them are taken, in case that a
/// write reaches them.
fn share_input(tie: &Tie, input: &Name, base: &Name, memory: &mut Memory, emit: &mut Emitter<'_>) {
    let mut share = |result: &Name, base: &Name, view: View| {
        memory.share(Alias { result: result.clone(), base: base.clone(), view });
    };
    let Some(((last, _), between)) = tie.path.split_last() else {
        return share(input, base, View::Same);
    };
    let from = Arc::new(NodeMeta::default());
    let mut at = base.clone();
    for (view, meta) in between {
        let Ok(Some(shown)) = emit.view_of(view, &at, meta.clone(), &from) else {
            return share(input, base, View::Unknown);
        };
        share(&shown, &at, view.clone());
        at = shown;
    }
    share(input, &at, last.clone());
}

/// Functionalises a graph of these nodes. If it is not known whether an input was written into,
/// that is an error, unless it may be left out.
fn walk(
    nodes: Vec<Arc<Node>>,
    mut memory: Memory,
    emit: Emitter<'_>,
    may_leave_out: &dyn Fn(usize) -> bool,
) -> Result<Effects> {
    let names = emit.graph.inputs.iter().map(Argument::name);
    let inputs: Vec<(Option<Name>, Id)> =
        names.map(|name| (name.cloned(), name.map_or(0, |name| memory.tensor(name)))).collect();
    let mut pass = Pass { inputs: inputs.iter().map(|(_, id)| *id).collect(), memory, emit };
    for node in nodes {
        pass.node(Arc::unwrap_or_clone(node))?;
    }
    let Pass { mut memory, mut emit, .. } = pass;
    let mut outputs = take(&mut emit.graph.outputs);
    let returned = returned(&inputs, &outputs, &mut memory);
    for output in &mut outputs {
        pass::current(output, &mut memory, &mut emit)?;
    }
    emit.graph.outputs = outputs;
    let known = |&(at, (_, id)): &(usize, &(_, Id))| !(memory.is_unknown(*id) && may_leave_out(at));
    let known: Vec<usize> = inputs.iter().enumerate().filter(known).map(|(at, _)| at).collect();
    let mutated = mutated(&inputs, known, &mut memory, &mut emit)?;
    emit.finish(mutated.iter().map(|m| &m.value));
    Ok(Effects { mutated, returned })
}

/// The `known` inputs that were written into, with their values at the end. `inputs` are all names,
/// and the first tensors of these.
fn mutated(
    inputs: &[(Option<Name>, Id)],
    known: Vec<usize>,
    memory: &mut Memory,
    emit: &mut Emitter<'_>,
) -> Result<Vec<MutatedInput>> {
    let mut mutated = Vec::new();
    for input in known {
        let Some((Some(name), id)) = inputs.get(input) else { continue };
        // `x.data = y` writes into `x` what `y` is.
        let now = memory.tensor(name);
        let replaced = memory.root(now) != memory.root(*id);
        let id = if replaced { now } else { *id };
        let renamed = memory.renamed(name);
        let write = memory.written(id).or(renamed.filter(|_| replaced));
        let (is_written, is_renamed) = (write.is_some(), renamed.is_some());
        if let Some(writer) = write.or(renamed).cloned() {
            let value = memory.value(id, emit)?;
            mutated.push(MutatedInput { input, value, writer, is_written, is_renamed });
        }
    }
    Ok(mutated)
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
            Write::None if node.target.is_higher_order() => self.higher_order(node)?,
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
        for mut alias in views::aliases(node, &self.emit.graph.values, self.emit.known) {
            let base = self.memory.tensor(&alias.base);
            match alias.view {
                View::AsStrided { .. } => {
                    rules::of_storage(node, &mut alias, base, &mut self.memory, &mut self.emit)?
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
            self.memory.share(alias);
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
