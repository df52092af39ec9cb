//! Takes writes out of the graph: `add_(x, 1)` becomes `add(x, 1)`, and who reads `x` later reads the result.
//!
//! Only writes to *whole* values so far: nothing else that shares the memory is read afterwards, and it is no input
//! of the graph. `views` knows which operators share memory, `twins` what is written.

mod twins;
mod views;

use super::{
    names::{Substitution, substitute},
    problem,
};
use crate::{
    error::{PassProblem, Result},
    graph::{Argument, ExportedProgram, Graph, InputSpec, Name, Node, OutputSpec},
};
use rustc_hash::FxHashMap;
use twins::Write;
use views::Alias;

/// Replaces operators that write into their first argument by their out-of-place twins, in bodies too.
///
/// The twin's recorded result has the type and sizes of the value written, whatever the twin itself would give:
/// `add_(f16, f32)` becomes an `add` whose result is recorded as f16. The lowering has to convert to it.
/// Writes through views, writes to inputs, parameters and buffers and `out=` overloads are errors.
pub fn functionalise(program: &mut ExportedProgram) -> Result<()> {
    let kinds = program.signature.inputs.iter().map(|spec| match spec {
        InputSpec::Parameter { .. } => "a parameter",
        InputSpec::Buffer { .. } => "a buffer",
        InputSpec::TensorConstant { .. } => "a constant",
        _ => "an input",
    });
    let kinds: Vec<_> = kinds.collect();
    let renamed = graph(&mut program.graph, &kinds)?;
    for output in &mut program.signature.outputs {
        if let OutputSpec::UserOutput(arg) = output {
            // Values are only renamed: that always fits.
            let _ = substitute(arg, &renamed);
        } else if let Some(name) = output.name_mut()
            && let Some(new) = renamed.get(name).and_then(Argument::name)
        {
            *name = new.clone();
        }
    }
    Ok(())
}

/// Functionalises one graph, whose inputs are of the kinds given; returns what values are called at its end.
fn graph(graph: &mut Graph, kinds: &[&'static str]) -> Result<Substitution> {
    let bodies = |node: &&mut Node| node.target.is_higher_order();
    for node in graph.nodes.iter_mut().filter(bodies) {
        for arg in &mut node.args {
            if let Argument::Graph { graph: body, .. } = &mut arg.value {
                let kinds = vec!["an operand of the body"; body.inputs.len()];
                self::graph(body, &kinds)?;
            }
        }
    }
    if graph
        .nodes
        .iter()
        .all(|node| twins::write(node) == Write::None)
    {
        return Ok(Substitution::default());
    }
    let mut memory = Memory::new(graph, kinds);
    let mut newest = Substitution::default();
    let mut nodes = std::mem::take(&mut graph.nodes);
    for (index, node) in nodes.iter_mut().enumerate() {
        // Memory is followed under the names as written.
        memory.run(index, node, graph)?;
        for arg in &mut node.args {
            let _ = substitute(&mut arg.value, &newest);
        }
        match twins::write(node) {
            Write::None => {}
            Write::Unknown => return Err(problem(node, PassProblem::NoTwin)),
            Write::Same(twin) => node.target = twin,
            Write::First(twin) => {
                node.target = twin;
                if let Some(new) = node.outputs.first().and_then(Argument::name) {
                    for old in memory.same_as(new) {
                        newest.insert(old.clone(), Argument::Tensor(new.clone()));
                    }
                }
            }
        }
    }
    graph.nodes = nodes;
    for output in &mut graph.outputs {
        let _ = substitute(output, &newest);
    }
    Ok(newest)
}

/// Which values share memory.
struct Memory {
    /// The index of the last node that reads a value; past all nodes where it is an output.
    last_use: FxHashMap<Name, usize>,
    values: FxHashMap<Name, Place>,
    blocks: Vec<Block>,
    tensors: usize,
}

/// A value: its memory, and which tensor it is. Values that are the same tensor see each other's writes at all elements.
#[derive(Clone, Copy)]
struct Place {
    block: usize,
    tensor: usize,
}

/// A piece of memory.
#[derive(Default)]
struct Block {
    /// What it belongs to, where that is not the graph.
    owner: Option<(Name, &'static str)>,
    members: Vec<Name>,
}

impl Memory {
    fn new(graph: &Graph, kinds: &[&'static str]) -> Self {
        let mut last_use = FxHashMap::default();
        for (index, node) in graph.nodes.iter().enumerate() {
            let args = node.args.iter().map(|a| &a.value);
            args.for_each(|arg| {
                arg.for_each_name(&mut |name| {
                    last_use.insert(name.clone(), index);
                });
            });
        }
        graph.outputs.iter().for_each(|output| {
            output.for_each_name(&mut |name| {
                last_use.insert(name.clone(), usize::MAX);
            });
        });
        let mut memory = Self {
            last_use,
            values: FxHashMap::default(),
            blocks: Vec::new(),
            tensors: 0,
        };
        for (input, kind) in graph.inputs.iter().zip(kinds) {
            if let Some(name) = input.name() {
                let place = memory.fresh(name);
                if let Some(block) = memory.blocks.get_mut(place.block) {
                    block.owner = Some((name.clone(), kind));
                }
            }
        }
        memory
    }

    fn fresh(&mut self, name: &Name) -> Place {
        let block = self.blocks.len();
        self.blocks.push(Block::default());
        self.tensors += 1;
        self.put(
            name,
            Place {
                block,
                tensor: self.tensors,
            },
        )
    }

    fn put(&mut self, name: &Name, place: Place) -> Place {
        self.values.insert(name.clone(), place);
        if let Some(block) = self.blocks.get_mut(place.block) {
            block.members.push(name.clone());
        }
        place
    }

    fn place(&mut self, name: &Name) -> Place {
        match self.values.get(name) {
            Some(place) => *place,
            None => self.fresh(name),
        }
    }

    /// Follows a node: where its results are, and whether it may write.
    fn run(&mut self, index: usize, node: &Node, graph: &Graph) -> Result<()> {
        let alias = match twins::write(node) {
            Write::First(_) => {
                self.may_write(index, node)?;
                Some(Alias::Same)
            }
            Write::Same(_) => Some(Alias::Same),
            Write::None | Write::Unknown => views::aliasing(node, graph),
        };
        let Some(alias) = alias else {
            return Ok(());
        };
        let first = node.args.first().map(|arg| &arg.value);
        let (sources, each) = match first {
            Some(Argument::Tensors(names)) => (names.clone(), true),
            other => (
                other
                    .and_then(Argument::name)
                    .cloned()
                    .into_iter()
                    .collect(),
                false,
            ),
        };
        for (i, result) in node.output_names().iter().enumerate() {
            let source = sources.get(if each { i } else { 0 }).cloned();
            let Some(source) = source else { continue };
            let Place { block, tensor } = self.place(&source);
            let tensor = match alias {
                Alias::Same => tensor,
                Alias::View => {
                    self.tensors += 1;
                    self.tensors
                }
            };
            self.put(result, Place { block, tensor });
        }
        Ok(())
    }

    fn may_write(&mut self, index: usize, node: &Node) -> Result<()> {
        let Some(base) = node.args.first().and_then(|arg| arg.value.name()).cloned() else {
            return Ok(());
        };
        let place = self.place(&base);
        let Some(block) = self.blocks.get(place.block) else {
            return Ok(());
        };
        if let Some((name, what)) = block.owner.clone() {
            return Err(problem(node, PassProblem::WriteToInput { name, what }));
        }
        let read_later = |name: &&Name| {
            let other = self
                .values
                .get(*name)
                .is_some_and(|p| p.tensor != place.tensor);
            other && self.last_use.get(*name).is_some_and(|&last| last > index)
        };
        match block.members.iter().find(read_later).cloned() {
            Some(view) => Err(problem(node, PassProblem::WriteThroughView { base, view })),
            None => Ok(()),
        }
    }

    /// The values that are the same tensor as `name`, without itself.
    fn same_as(&self, name: &Name) -> impl Iterator<Item = &Name> {
        let place = self.values.get(name).copied();
        let block = place.and_then(|p| self.blocks.get(p.block));
        let members = block.into_iter().flat_map(|b| &b.members);
        members.filter(move |&m| {
            m != name && self.values.get(m).map(|p| p.tensor) == place.map(|p| p.tensor)
        })
    }
}
