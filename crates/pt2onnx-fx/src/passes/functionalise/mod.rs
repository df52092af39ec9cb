//! Takes writes out of the graph: `add_(x, 1)` becomes `add(x, 1)`, and who reads `x` later reads the result.
//!
//! `views` knows which operators share memory, `twins` what is written; `memory` follows both, `emit` makes the nodes
//! that carry a write to the other tensors of the same memory, `rules` treats the writes that need more than a twin.

mod emit;
mod memory;
mod rules;
mod strides;
mod twins;
mod views;

use super::problem;
use crate::{
    error::{PassProblem, Result},
    graph::{
        Argument, ExportedProgram, Graph, InputSpec, Mutation, MutationKind, Name, Node, OpName,
        OutputSpec,
    },
};
use emit::Emitter;
use memory::{Id, Memory};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use twins::Write;
use views::{Shared, View};

/// Replaces operators that write into an argument by their out-of-place twins, in bodies too.
///
/// Tensors that share the memory get its new content where they are read later: a write to a view is put back into
/// its base (`select_scatter`, ...), other views are taken again. Sizes in what is added are integers or
/// [`SymArg::Expr`](crate::graph::SymArg::Expr). What is written into parameters, buffers, constants and inputs is listed
/// in [`ExportedProgram::mutations`], as is what the signature says of them.
///
/// - The twin's recorded result has the type and sizes of the value written, whatever the twin itself would give:
///   `add_(f16, f32)` becomes an `add` whose result is recorded as f16. The lowering has to convert to it.
/// - Batch and instance normalisation in training mode stay, and the update of their running statistics is added.
/// - An operator of another library that returns nothing gets a result, the new value of the tensor it writes into:
///   its only tensor, or the only one that is no input of the graph. Whether an operator that returns something also
///   writes cannot be seen.
///
/// Errors: writes to elements that share memory or to operands of bodies, `resize_` to more elements, operators without
/// a twin.
pub fn functionalise(program: &mut ExportedProgram) -> Result<()> {
    let specs = &program.signature.inputs;
    let tied = Tied::new(program);
    let finals = graph(&mut program.graph, &program.constraints, &tied)?;
    for (spec, output) in program.signature.outputs.iter_mut().zip(&program.graph.outputs) {
        match (spec.name_mut(), output.name()) {
            (Some(name), Some(new)) => *name = new.clone(),
            (None, _) => *spec = OutputSpec::UserOutput(output.clone()),
            _ => {}
        }
    }
    for Final { input, value, node, source } in finals {
        let spec = specs.get(input);
        let Some((kind, target)) = spec.and_then(owner) else {
            continue;
        };
        let Some(input) = spec.and_then(InputSpec::name).cloned() else {
            continue;
        };
        program.mutations.push(Mutation { kind, target, input, value, node: Some(node), source });
    }
    let said = program.signature.outputs.iter().filter_map(|spec| {
        let (kind, name, target) = match spec {
            OutputSpec::BufferMutation { name, target } => (MutationKind::Buffer, name, target),
            OutputSpec::ParameterMutation { name, target } => {
                (MutationKind::Parameter, name, target)
            }
            OutputSpec::UserInputMutation { name, target } => {
                (MutationKind::UserInput, name, target)
            }
            _ => return None,
        };
        let of = |spec: &&InputSpec| owner(spec).is_some_and(|is| is == (kind, target.clone()));
        let input = program.signature.inputs.iter().find(of)?.name()?;
        Some(Mutation {
            kind,
            target: target.clone(),
            input: input.clone(),
            value: name.clone(),
            node: None,
            source: None,
        })
    });
    program.mutations.extend(said);
    Ok(())
}

/// What kind of tensor an input is, and what it is called outside the graph.
fn owner(spec: &InputSpec) -> Option<(MutationKind, Name)> {
    match spec {
        InputSpec::Parameter { target, .. } => Some((MutationKind::Parameter, target.clone())),
        InputSpec::Buffer { target, .. } => Some((MutationKind::Buffer, target.clone())),
        InputSpec::TensorConstant { target, .. } => Some((MutationKind::Constant, target.clone())),
        InputSpec::UserInput(arg) => Some((MutationKind::UserInput, arg.name()?.clone())),
        _ => None,
    }
}

/// Inputs that share memory with an earlier one.
#[derive(Default)]
struct Tied(Vec<Shared>);

impl Tied {
    fn new(program: &ExportedProgram) -> Self {
        let mut groups: FxHashMap<(usize, usize), Vec<(&Name, &Tensor)>> = FxHashMap::default();
        let mut order = Vec::new();
        for spec in &program.signature.inputs {
            let (Some(name), Some(tensor)) = (spec.name(), program.tensor_of(spec)) else {
                continue;
            };
            let Some(bytes) = tensor.storage().map(|s| s.bytes()) else {
                continue;
            };
            if !bytes.is_empty() {
                let key = (bytes.as_ptr().addr(), bytes.len());
                let group = groups.entry(key).or_default();
                if group.is_empty() {
                    order.push(key);
                }
                group.push((name, tensor));
            }
        }
        let groups = order.iter().filter_map(|key| groups.get(key));
        Self(groups.flat_map(|group| tie(group)).collect())
    }
}

/// How each of the tensors looks at the largest contiguous one.
fn tie(group: &[(&Name, &Tensor)]) -> Vec<Shared> {
    let whole = group.iter().filter(|(_, t)| t.is_contiguous());
    // The first of the largest.
    let whole = whole.rev().max_by_key(|(_, t)| t.numel()).or(group.first());
    let Some(&(of, whole)) = whole else {
        return Vec::new();
    };
    let expr = |n: usize| i64::try_from(n).map(Expr::int);
    let exprs = |list: &[usize]| list.iter().map(|&n| expr(n)).collect::<Result<Vec<_>, _>>();
    let view = |tensor: &Tensor| {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        let like = tensor.dtype() == whole.dtype();
        if like
            && shape == whole.shape()
            && strides == whole.strides()
            && tensor.offset() == whole.offset()
        {
            return Some(View::Same);
        }
        let offset = tensor.offset().checked_sub(whole.offset())?;
        let last = shape.iter().zip(strides.iter()).try_fold(offset, |at, (&n, &stride)| {
            at.checked_add(n.saturating_sub(1).checked_mul(stride)?)
        })?;
        if !like || !whole.is_contiguous() || last >= whole.numel() {
            return None;
        }
        Some(View::AsStrided {
            size: exprs(shape).ok()?,
            stride: exprs(&strides).ok()?,
            offset: expr(offset).ok()?,
        })
    };
    let others = group.iter().filter(|(name, _)| *name != of);
    others
        .map(|(name, tensor)| Shared {
            result: (*name).clone(),
            of: of.clone(),
            view: view(tensor).unwrap_or(View::Opaque),
        })
        .collect()
}

/// An input that was written into.
struct Final {
    /// Its number.
    input: usize,
    value: Name,
    node: Name,
    source: Option<String>,
}

/// Functionalises one graph; returns which inputs it writes into.
fn graph(graph: &mut Graph, known: &Constraints, tied: &Tied) -> Result<Vec<Final>> {
    let written = |body: &mut Graph| -> Result<Option<Name>> {
        let finals = self::graph(body, known, &Tied::default())?;
        let name = |w: &Final| body.inputs.get(w.input).and_then(Argument::name).cloned();
        Ok(finals.first().map(|w| name(w).unwrap_or_default()))
    };
    for node in &mut graph.nodes {
        let mut written = node.bodies_mut().map(written).filter_map(Result::transpose);
        if let Some(name) = written.next().transpose()? {
            drop(written);
            return Err(problem(node, PassProblem::WriteToOperand { name }));
        }
    }
    if graph.nodes.iter().all(|n| twins::write(n) == Write::None) {
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
        pass.node(node)?;
    }
    let Pass { mut memory, mut emit, .. } = pass;
    let mut outputs = std::mem::take(&mut emit.graph.outputs);
    for output in &mut outputs {
        current(output, &mut memory, &mut emit)?;
    }
    emit.graph.outputs = outputs;
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
                value: memory.value(id, &mut emit)?,
                source: write.site.source_line().map(|l| l.to_string()),
                node: write.site.node,
            });
        }
    }
    emit.finish(finals.iter().map(|f| &f.value));
    Ok(finals)
}

/// Puts the newest values in place of those named.
fn current(arg: &mut Argument, memory: &mut Memory, emit: &mut Emitter<'_>) -> Result<()> {
    let mut result = Ok(());
    arg.for_each_name_mut(&mut |name| match memory.read(name, emit) {
        Ok(new) => *name = new,
        Err(error) => result = Err(error),
    });
    result
}

struct Pass<'a> {
    memory: Memory,
    emit: Emitter<'a>,
    /// The tensors that the graph is given.
    inputs: FxHashSet<Id>,
}

impl Pass<'_> {
    fn node(&mut self, mut node: Node) -> Result<()> {
        let write = twins::write(&node);
        // The tensor written into, as the archive names it.
        let first = node.args.first().and_then(|a| a.value.name()).cloned();
        let outs = match &write {
            Write::Outs(_) => rules::take_outs(&mut node)?,
            _ => Vec::new(),
        };
        for arg in &mut node.args {
            current(&mut arg.value, &mut self.memory, &mut self.emit)?;
        }
        match write {
            Write::None => {
                self.views(&mut node)?;
                self.emit.nodes.push(node);
            }
            Write::Unknown => return Err(problem(&node, PassProblem::NoTwin)),
            Write::Same(twin) => {
                node.target = twin;
                node.args.truncate(1);
                self.views(&mut node)?;
                self.emit.nodes.push(node);
            }
            Write::View(twin) => {
                let by = memory::Write::by(&node);
                node.target = twin;
                self.views(&mut node)?;
                let result = node.outputs.first().and_then(Argument::name);
                if let (Some(first), Some(result)) = (first, result) {
                    let id = self.memory.tensor(result);
                    self.memory.rename(&first, id, by);
                }
                self.emit.nodes.push(node);
            }
            Write::First(twin) => self.first(node, twin)?,
            Write::Outs(twin) => self.outs(node, twin, &outs)?,
            Write::Resize => self.resize(node, first)?,
            Write::Replace => self.replace(node, first)?,
            Write::FillDiagonal => self.fill_diagonal(node)?,
            Write::Statistics(kind) => self.statistics(node, kind)?,
            Write::Custom => self.custom(node)?,
        }
        Ok(())
    }

    /// Notes the results of a node that share memory with its argument.
    fn views(&mut self, node: &mut Node) -> Result<()> {
        for mut shared in views::shared(node, self.emit.graph, self.emit.known) {
            let base = self.memory.tensor(&shared.of);
            match shared.view {
                View::AsStrided { .. } => {
                    rules::of_storage(node, &mut shared, base, &mut self.memory, &mut self.emit)?
                }
                // A conjugate is conjugated for good by `resolve_conj`: that is a copy.
                View::Same
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

    /// `add_(x, y)`.
    fn first(&mut self, mut node: Node, twin: OpName) -> Result<()> {
        let Some(x) = node.args.first().and_then(|a| a.value.name()).cloned() else {
            return Err(problem(&node, PassProblem::NoTwin));
        };
        // The parameter that is `self` in `dropout_` is `input` in `dropout`.
        if twin.name.ends_with("dropout")
            && let Some(arg) = node.args.first_mut()
        {
            arg.name = "input".into();
        }
        let by = memory::Write::by(&node);
        node.target = twin;
        let id = self.memory.tensor(&x);
        let new = self.result(&mut node, &x)?;
        self.emit.nodes.push(node);
        self.memory.write(id, &new, by, &mut self.emit);
        Ok(())
    }
}
