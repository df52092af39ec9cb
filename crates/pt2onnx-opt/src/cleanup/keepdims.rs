//! Squeeze → elementwise → Unsqueeze: drops both and keeps the unit dimensions.

use super::{NodeView, eval, known};
use crate::{Changed, Options, folded_constants::FoldedConstants, rewrite};
use pt2onnx_ir::{Model, NodeId, Traits, Type, Use, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// At most this many values keep dimensions.
const MANY: usize = 64;

/// Values that keep dimensions, and the nodes around them.
#[derive(Default)]
struct Kept {
    /// The dimensions, counted in what the values become.
    axes: Vec<usize>,
    /// The number of dimensions before.
    rank: usize,
    values: Vec<Value>,
    /// The nodes that take the dimensions away: `Gather` with a scalar, `Squeeze`, reductions.
    takers: Vec<NodeId>,
    /// The nodes that add them again: `Unsqueeze`, or `Reshape`.
    adders: Vec<NodeId>,
}

/// The nodes that can keep dimensions, with the constants that they take then.
type Found = (Kept, FxHashMap<Value, Tensor>);

/// The rule, with its answers: they are the same for all nodes that add the same to a value.
pub(super) struct Keepdims<'a> {
    options: &'a Options,
    constants: FoldedConstants,
    applies: Mutex<FxHashMap<Key, bool>>,
}

/// A value, and the dimensions that nodes add to it.
type Key = (Value, Vec<usize>);

impl<'a> Keepdims<'a> {
    pub fn new(options: &'a Options) -> Self {
        Self { options, constants: FoldedConstants::default(), applies: Mutex::default() }
    }

    /// Forgets the answers, after a change.
    pub fn forget(&self) {
        self.answers().clear();
    }

    fn answers(&self) -> MutexGuard<'_, FxHashMap<Key, bool>> {
        self.applies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a node that adds dimensions, if all that leads there can keep them.
    pub fn run(&self, model: &mut Model, id: NodeId) -> Changed {
        let Some(key) = key(model, id).filter(|key| self.answers().get(key) != Some(&false)) else {
            return false;
        };
        let found = self.find(model, id, key.1.clone());
        let changed = found.is_some();
        match found {
            Some((kept, constants)) => kept.apply(model, &constants, &self.constants),
            None => _ = self.answers().insert(key, false),
        }
        changed
    }

    /// Whether [`run`](Self::run) removes a node.
    pub fn applies(&self, model: &Model, id: NodeId) -> bool {
        let Some(key) = key(model, id) else { return false };
        if let Some(&known) = self.answers().get(&key) {
            return known;
        }
        let applies = self.find(model, id, key.1.clone()).is_some();
        self.answers().insert(key, applies);
        applies
    }

    fn find(&self, model: &Model, id: NodeId, axes: Vec<usize>) -> Option<Found> {
        let kept = Kept::find(model, id, axes)?;
        let constants = kept.constants(model, self.options)?;
        Some((kept, constants))
    }
}

/// The operand of a node and the dimensions that it adds, if they are not only taken away again.
fn key(model: &Model, id: NodeId) -> Option<Key> {
    let axes = added(model, id)?;
    let squeezed = |u: Use| matches!(u, Use::Input(user, 0) if model[user].is("Squeeze"));
    let taken_away = model[id].outputs().iter().all(|v| model[*v].uses().all(squeezed));
    Some((model[id].input(0).filter(|_| !taken_away)?, axes))
}

impl Kept {
    /// All values that would have to have the dimensions, from the operand of `id` on.
    fn find(model: &Model, id: NodeId, axes: Vec<usize>) -> Option<Self> {
        let region = model[id].region();
        let first = model[id].input(0)?;
        let rank = model.rank(first)?;
        let mut kept = Self { axes, rank, values: vec![first], ..Self::default() };
        let mut next = 0;
        while let Some(&value) = kept.values.get(next) {
            next += 1;
            if kept.values.len() > MANY || model.rank(value)? != rank {
                return None;
            }
            let made = model.producer(value).filter(|&made| model[made].region() == region)?;
            if kept.takes(model, made) {
                kept.takers.push(made);
            } else {
                kept.add(kept.varying(model, operands(model, made)?)?);
            }
            for at in model[value].uses() {
                let Use::Input(user, at) = at else { return None };
                if model[user].region() != region {
                    return None;
                }
                if adds(model, user, &kept.axes) == Some(true) {
                    kept.adders.push(user);
                } else if operands(model, user).is_some_and(|all| all.len() > at as usize) {
                    kept.add(model[user].outputs().to_vec());
                } else {
                    return None;
                }
            }
        }
        Some(kept)
    }

    fn add(&mut self, values: impl IntoIterator<Item = Value>) {
        for value in values {
            if !self.values.contains(&value) {
                self.values.push(value);
            }
        }
    }

    /// The operands that need the dimensions: scalars and constants do only if all are such.
    fn varying(&self, model: &Model, operands: &[Option<Value>]) -> Option<Vec<Value>> {
        let varies = |v: &Value| model[*v].constant().is_none();
        let wide = |v: &Value| self.rank == 0 || model.rank(*v) != Some(0);
        let varying = operands.iter().flatten().copied().filter(varies).filter(wide);
        let varying: Vec<Value> = varying.collect();
        (self.rank > 0 || !varying.is_empty()).then_some(varying)
    }

    /// Whether a node takes exactly the dimensions away, and can keep them.
    fn takes(&self, model: &Model, id: NodeId) -> bool {
        let taken = || {
            let node = &model[id];
            let n = view(model, id)?;
            let rank = model.rank(node.input(0)?)?;
            let axes = match node.op() {
                "Gather" => {
                    let index = model[node.input(1)?].constant()?;
                    let axis = attrs::Gather::read(node).ok()?.axis;
                    (index.rank() == 0 && index.has_data()).then(|| vec![axis])?
                }
                "Squeeze" => n.ints(1)?,
                "ArgMax" | "ArgMin" => {
                    // Both operators have the same attributes.
                    let given = attrs::ArgMax::read(node).ok()?;
                    (!given.keepdims).then(|| vec![given.axis])?
                }
                _ if node.traits().contains(Traits::REDUCTION) => {
                    // All reductions have this attribute.
                    let keeps = attrs::ReduceSum::read(node).ok()?.keepdims;
                    if keeps { None } else { n.ints(1) }?
                }
                _ => return None,
            };
            Some(counted(&axes, rank)? == self.axes && !axes.is_empty())
        };
        taken() == Some(true)
    }

    /// The constants that the nodes take, and what they become; none if one of them must stay.
    fn constants(&self, model: &Model, options: &Options) -> Option<FxHashMap<Value, Tensor>> {
        let mut constants = FxHashMap::default();
        for value in self.computed(model).filter_map(|id| operands(model, id)).flatten().flatten() {
            let Some(tensor) = model[*value].constant() else { continue };
            let missing = self.rank.checked_sub(tensor.rank())?;
            // All dimensions are added before those of the constant, and not by it.
            let before = self.axes.iter().enumerate().all(|(i, &axis)| axis <= missing + i);
            if tensor.rank() == 0 || missing > 0 && before {
                continue;
            }
            let is_weight = model[*value].name.is_some();
            if !tensor.has_data() || is_weight && !options.replace_weights {
                return None;
            }
            let mut sizes = vec![1; missing];
            sizes.extend_from_slice(tensor.shape());
            self.axes.iter().for_each(|&axis| sizes.insert(axis, 1));
            constants.insert(*value, tensor.reshaped(sizes)?);
        }
        Some(constants)
    }

    fn computed<'a>(&'a self, model: &'a Model) -> impl Iterator<Item = NodeId> + 'a {
        let made = self.values.iter().filter_map(|&value| model.producer(value));
        made.filter(|made| !self.takers.contains(made))
    }

    fn apply(
        self,
        model: &mut Model,
        constants: &FxHashMap<Value, Tensor>,
        folded: &FoldedConstants,
    ) {
        let computed: Vec<NodeId> = self.computed(model).collect();
        let mut replaced = FxHashMap::default();
        for id in computed {
            for (i, value) in model[id].inputs().to_vec().into_iter().enumerate() {
                let Some(tensor) = value.and_then(|v| constants.get(&v)) else { continue };
                let new = *replaced
                    .entry(value)
                    .or_insert_with(|| folded.add(model, tensor.clone(), value));
                model.replace_input(id, i, Some(new));
            }
        }
        for value in self.values {
            if let Some(Type::Tensor(ty)) = &mut model[value].ty
                && let Some(shape) = &mut ty.shape
            {
                self.axes.iter().for_each(|&axis| shape.insert(axis, Expr::int(1)));
            }
        }
        for id in self.takers {
            match model[id].op() {
                "Squeeze" => {
                    if let Some(source) = model[id].input(0) {
                        rewrite::bypass(model, id, source);
                    }
                }
                "Gather" => {
                    let index = model[id].input(1).and_then(|v| model[v].constant()?.reshaped([1]));
                    let index = index.map(|index| model.add_constant(index));
                    model.replace_input(id, 1, index);
                }
                _ => model[id].set_attribute("keepdims", 1),
            }
        }
        for id in self.adders {
            if let Some(source) = model[id].input(0) {
                rewrite::bypass(model, id, source);
            }
        }
    }
}

fn view(model: &Model, id: NodeId) -> Option<NodeView<'_>> {
    NodeView::of(model, id, 0)
}

fn operands(model: &Model, id: NodeId) -> Option<&[Option<Value>]> {
    let node = view(model, id)?.node;
    match node.traits() {
        t if t.contains(Traits::NARY) => Some(node.inputs()),
        t if t.contains(Traits::ELEMENTWISE) => node.inputs().get(..1),
        _ => None,
    }
}

/// The dimensions of size 1 that an `Unsqueeze` or `Reshape` adds, if it does nothing else.
pub(super) fn added(model: &Model, id: NodeId) -> Option<Vec<usize>> {
    let n = view(model, id)?;
    match n.node.op() {
        "Unsqueeze" => counted(&n.ints(1)?, n.shape(n.output())?.len()),
        "Reshape" => {
            let (from, to) = (n.shape(n.node.input(0)?)?, n.shape(n.output())?);
            if from.len() >= to.len() {
                return None;
            }
            let mut rest = from.iter().peekable();
            let new = |(_, size): &(usize, &Expr)| rest.next_if_eq(size).is_none();
            let axes: Vec<usize> = to.iter().enumerate().filter(new).map(|(i, _)| i).collect();
            adds(model, id, &axes)?.then_some(axes)
        }
        _ => None,
    }
}

/// Whether a node adds dimensions of size 1 at these places of its result, and does nothing else.
fn adds(model: &Model, id: NodeId, axes: &[usize]) -> Option<bool> {
    let n = view(model, id)?;
    if n.node.is("Unsqueeze") {
        return Some(added(model, id)? == axes);
    }
    let node = Some(n.node).filter(|node| node.is("Reshape") && !axes.is_empty())?;
    let (from, to) = (n.shape(node.input(0)?)?, n.shape(n.output())?);
    let one = |&i: &usize| to.get(i).and_then(|d| d.as_int()) == Some(1);
    let rest = to.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d);
    Some(axes.iter().all(one) && from.iter().all(known) && rest.eq(from))
}

/// Axes in order, counted from the front.
fn counted(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = axes.iter().map(|&a| eval::axis(a, rank)).collect::<Option<_>>()?;
    axes.sort_unstable();
    Some(axes)
}
