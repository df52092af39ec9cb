//! The operands of a higher-order op, in the order of the inputs of its bodies.

use crate::graph::{ArgKind, Argument, NamedArg, Node, SymArg};
use std::ops::Range;

/// The higher-order ops whose bodies may write into operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `cond(predicate, true_graph, false_graph, *operands)`.
    Cond,
    /// `while_loop(cond_graph, body_graph, carried, *operands)`.
    WhileLoop,
    /// `scan(graph, init, xs, dim = 0, reverse = False, *operands)`.
    Scan,
    /// `map_impl(graph, xs, *operands)`.
    Map,
}

/// Operands of a node, one [`Argument`] for each input of a body.
pub(super) struct Operands {
    pub(super) kind: Kind,
    /// First values of what a loop carries.
    pub(super) carried: Vec<Argument>,
    /// Tensors that iterations get slice by slice.
    pub(super) sliced: Vec<Argument>,
    /// Operands that are the same in each iteration.
    pub(super) captured: Vec<Argument>,
    /// The position of the first captured operand among the node's arguments.
    first_captured: usize,
    /// The dimension of the slices.
    pub(super) dim: i64,
}

impl Operands {
    /// The operands of a node; `None` if the op is another one, or has other arguments.
    pub(super) fn of(node: &Node) -> Option<Self> {
        let arg = |at: usize| node.args.get(at).map(|arg| &arg.value);
        let (kind, carried, sliced, mut first_captured) = match &*node.target.name {
            "cond" => (Kind::Cond, None, None, 3),
            "while_loop" => (Kind::WhileLoop, Some(2), None, 3),
            "scan" => (Kind::Scan, Some(1), Some(2), 3),
            "map_impl" => (Kind::Map, None, Some(1), 2),
            _ => return None,
        };
        let mut dim = 0;
        if kind == Kind::Scan
            && let (Some(Argument::Int(at)), Some(Argument::Bool(_))) = (arg(3), arg(4))
        {
            (dim, first_captured) = (*at, 5);
        }
        let list = |at: Option<usize>| at.map_or(Some(Vec::new()), |at| Some(flatten(arg(at)?)));
        let captured = node.args.get(first_captured..)?.iter();
        let operands = Self {
            kind,
            carried: list(carried)?,
            sliced: list(sliced)?,
            captured: captured.flat_map(|arg| flatten(&arg.value)).collect(),
            first_captured,
            dim,
        };
        let count = operands.iter().count();
        node.bodies().all(|body| body.inputs.len() == count).then_some(operands)
    }

    /// The positions of the sliced operands.
    pub(super) fn slices(&self) -> Range<usize> {
        self.carried.len()..self.carried.len() + self.sliced.len()
    }

    /// All operands.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Argument> {
        self.carried.iter().chain(&self.sliced).chain(&self.captured)
    }

    /// Gives a node these operands. Returns `false` if carried values have no common type of list.
    #[must_use]
    pub(super) fn write(self, node: &mut Node) -> bool {
        if self.kind == Kind::WhileLoop || self.kind == Kind::Scan {
            let at = if self.kind == Kind::Scan { 1 } else { 2 };
            let tensor = |arg: &Argument| match arg {
                Argument::Tensor(name) => Some(name.clone()),
                _ => None,
            };
            let Some(names) = self.carried.iter().map(tensor).collect() else {
                return false;
            };
            if let Some(arg) = node.args.get_mut(at) {
                arg.value = Argument::Tensors(names);
            }
        }
        node.args.truncate(self.first_captured);
        for operand in self.captured {
            match (operand, node.args.get_mut(self.first_captured..).and_then(<[_]>::last_mut)) {
                (
                    Argument::Tensor(name),
                    Some(NamedArg { value: Argument::Tensors(names), .. }),
                ) => names.push(name),
                (operand, _) => node.args.push(NamedArg {
                    name: "".into(),
                    kind: ArgKind::Positional,
                    value: match operand {
                        Argument::Tensor(name) => Argument::Tensors(vec![name]),
                        other => other,
                    },
                }),
            }
        }
        true
    }
}

/// The operands that an argument lists.
pub(super) fn flatten(arg: &Argument) -> Vec<Argument> {
    let sym = |arg: &SymArg<i64>| Argument::SymInt(arg.clone());
    match arg {
        Argument::Tensors(names) => names.iter().cloned().map(Argument::Tensor).collect(),
        Argument::Ints(all) => all.iter().copied().map(Argument::Int).collect(),
        Argument::SymInts(all) => all.iter().map(sym).collect(),
        other => vec![other.clone()],
    }
}
