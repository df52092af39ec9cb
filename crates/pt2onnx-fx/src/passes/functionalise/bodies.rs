//! Bodies of higher-order ops: a write into an operand becomes an extra result of a branch or of a
//! map, and a carried value of a loop. After the op, the operand has that value.

use super::{
    effects::{Effects, Returned, Tie, Ties},
    graph::{functionalise_body, writes},
    memory::{Id, Writer},
    operands::{Kind, Operands, flatten},
    pass::Pass,
};
use crate::{
    error::{Error, PassProblem, Result},
    graph::{Argument, Graph, Name, Node, SymArg, TensorMeta, ValueMeta},
    passes::{names::Taken, problem::problem},
    strides,
    views::View,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Operands that share memory.
struct Group {
    /// The tensor that all of them view.
    base: Id,
    /// The position of the operand that is this tensor.
    at: usize,
    /// The positions of all these operands, and their tensors.
    members: Vec<(usize, Id)>,
}

/// The new value of an operand.
struct Written {
    operand: Id,
    value: Name,
    writer: Writer,
    /// The type of the operand, if the value has the dimension of its slices first.
    moved: Option<TensorMeta>,
}

impl Pass<'_> {
    /// Functionalises the bodies of a node. Their writes into operands follow the node.
    pub(super) fn higher_order(&mut self, mut node: Node) -> Result<()> {
        // PyTorch's list of the operands that are written into.
        node.args.retain(|arg| &*arg.name != "mutated_arg_indices");
        let Some(mut operands) = Operands::of(&node) else {
            let effects = self.functionalise_bodies(&mut node, &Ties::default())?;
            if let Some(mutated) = effects.iter().find_map(|e| e.mutated.first()) {
                return Err(refused(&node, (mutated.input, "this op cannot return it")));
            }
            self.emit.nodes.push(node);
            return Ok(());
        };
        let groups = if node.bodies().any(writes) {
            self.groups(&mut node, &mut operands)?
        } else {
            Vec::new()
        };
        let ties = self.ties(&node, &groups)?;
        let effects = self.functionalise_bodies(&mut node, &ties)?;
        let ids: Vec<Option<Id>> = operands.iter().map(|operand| self.id(operand)).collect();
        let results: Vec<Argument> = node.outputs.iter().flat_map(flatten).collect();
        let (kind, carried) = (operands.kind, operands.carried.len());
        let written: Vec<&Group> =
            groups.iter().filter(|g| effects.iter().any(|e| e.of(g.at).is_some())).collect();
        if let Some(why) = unsupported(&operands, &written, &effects) {
            return Err(refused(&node, why));
        }
        if written.is_empty() {
            self.emit.nodes.push(node);
        } else {
            node.outputs.clone_from(&results);
            node.single_return = Some(false);
            self.return_writes(node, operands, &written, &effects)?;
        }
        match (kind, effects.as_slice()) {
            (Kind::Cond, [first, rest @ ..]) => {
                for (at, result) in results.iter().enumerate() {
                    let one = first.returned.get(at).and_then(|r| r.input);
                    let same = |e: &Effects| e.returned.get(at).and_then(|r| r.input) == one;
                    let one = one.filter(|_| rest.iter().all(same));
                    let all = effects.iter().filter_map(|e| e.returned.get(at));
                    self.alias_result(result, one, all, &ids, &results);
                }
            }
            (Kind::WhileLoop | Kind::Scan, [.., body]) => {
                for (at, result) in results.iter().enumerate().take(carried) {
                    let all = carried_from(at, &body.returned, carried);
                    let one = body.returned.get(at).and_then(|r| r.input).filter(|&i| i == at);
                    self.alias_result(result, one, all.into_iter(), &ids, &results);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn functionalise_bodies(&mut self, node: &mut Node, ties: &Ties) -> Result<Vec<Effects>> {
        node.bodies_mut().map(|body| functionalise_body(body, self.emit.known, ties)).collect()
    }

    /// The tensor that an operand is.
    fn id(&mut self, operand: &Argument) -> Option<Id> {
        match operand {
            Argument::Tensor(name) => Some(self.memory.tensor(name)),
            _ => None,
        }
    }

    /// The operands by storage. Where several share one, and none of them is the base of the
    /// others, the base becomes an operand.
    fn groups(&mut self, node: &mut Node, operands: &mut Operands) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut of_storage = FxHashMap::default();
        for (at, operand) in operands.iter().enumerate() {
            let Some(id) = self.id(operand) else { continue };
            let group = *of_storage.entry(self.memory.storage(id)).or_insert(groups.len());
            match groups.get_mut(group) {
                Some(group) => group.members.push((at, id)),
                None => groups.push(Group { base: id, at, members: vec![(at, id)] }),
            }
        }
        let mut count = operands.iter().count();
        for group in groups.iter_mut().filter(|group| group.members.len() > 1) {
            let ids: Vec<Id> = group.members.iter().map(|(_, id)| *id).collect();
            group.base = self.memory.common_base(&ids);
            if let Some((at, _)) = group.members.iter().find(|(_, id)| *id == group.base) {
                group.at = *at;
                continue;
            }
            group.at = count;
            group.members.push((count, group.base));
            count += 1;
            let value = self.memory.value(group.base, &mut self.emit)?;
            let meta = self.meta(node, group.base)?;
            for body in node.bodies_mut() {
                let input = Taken::by(body).unique(&value);
                body.values_mut().insert(input.clone(), meta.clone().into());
                body.inputs.push(Argument::Tensor(input));
            }
            operands.captured.push(Argument::Tensor(value));
        }
        Ok(groups)
    }

    /// How the operands share memory.
    fn ties(&mut self, node: &Node, groups: &[Group]) -> Result<Ties> {
        let mut ties = Ties::default();
        let of_storage: FxHashMap<usize, usize> =
            groups.iter().map(|group| (self.memory.storage(group.base), group.at)).collect();
        for group in groups {
            for &(input, id) in group.members.iter().filter(|(at, _)| *at != group.at) {
                let mut path = Vec::new();
                for (view, first) in self.memory.path(group.base, id) {
                    let meta = self.emit.meta(&first).map_err(|p| problem(node, p))?;
                    path.push((unnamed(view, self.emit.graph), meta));
                }
                ties.views.push(Tie { input, base: group.at, path });
            }
            // The later one was made of the earlier one.
            let own = self.memory.storage(group.base);
            let related = self.memory.related(group.base);
            let earlier = related.iter().filter(|other| **other < own);
            let earlier = earlier.filter_map(|other| of_storage.get(other));
            ties.unsure.extend(earlier.map(|&at| (group.at, at)));
        }
        Ok(ties)
    }

    /// Adds a node whose bodies return what they write, and writes it into the operands.
    fn return_writes(
        &mut self,
        mut node: Node,
        mut operands: Operands,
        written: &[&Group],
        effects: &[Effects],
    ) -> Result<()> {
        let (slices, dim) = (operands.slices(), operands.dim);
        let mut values = FxHashMap::default();
        if operands.kind == Kind::Cond {
            for group in written {
                for (body, effects) in node.bodies_mut().zip(effects) {
                    let value = effects.of(group.at).map(|m| Argument::Tensor(m.value.clone()));
                    let value = value.or_else(|| body.inputs.get(group.at).cloned());
                    body.outputs.extend(value);
                    body.is_single_tensor_return = false;
                }
                let meta = self.meta(&node, group.base)?;
                let at = node.outputs.len();
                values.insert(group.at, self.add_result(&mut node, at, meta));
            }
        } else if let [.., effects] = effects {
            self.return_slices(&mut node, &operands, written, effects, &mut values)?;
            self.carry_writes(&mut node, &mut operands, written, effects, &mut values)?;
        }
        if !operands.write(&mut node) {
            let input = written.first().map_or(0, |group| group.at);
            return Err(refused(&node, (input, "the loop carries numbers, too")));
        }
        let mut news = Vec::with_capacity(written.len());
        for group in written {
            let mutated = effects.iter().find_map(|e| e.of(group.at));
            if let (Some(mutated), Some(value)) = (mutated, values.remove(&group.at)) {
                let meta = self.meta(&node, group.base)?;
                let is_moved = slices.contains(&group.at) && dim != 0;
                news.push(Written {
                    operand: group.base,
                    value,
                    writer: Writer { fills: false, ..mutated.writer.clone() },
                    moved: is_moved.then_some(meta),
                });
            }
        }
        let from = node.meta.clone();
        self.emit.nodes.push(node);
        for Written { operand, mut value, writer, moved } in news {
            if let Some(meta) = moved {
                let args = [
                    ("self", Argument::Tensor(value)),
                    ("source", Argument::Int(0)),
                    ("destination", Argument::Int(dim)),
                ];
                value = self.emit.op(("movedim", "int"), args, meta, &from);
            }
            self.memory.write(operand, &value, writer, &mut self.emit);
        }
        Ok(())
    }

    /// Makes the body return the slices that it writes into.
    fn return_slices(
        &mut self,
        node: &mut Node,
        operands: &Operands,
        written: &[&Group],
        effects: &Effects,
        values: &mut FxHashMap<usize, Name>,
    ) -> Result<()> {
        for group in written.iter().filter(|group| operands.slices().contains(&group.at)) {
            let mut meta = self.meta(node, group.base)?;
            let rank = i64::try_from(meta.sizes.len()).unwrap_or(0);
            let dim = if operands.dim < 0 { operands.dim + rank } else { operands.dim };
            if let Some(dim) = usize::try_from(dim).ok().filter(|&dim| dim < meta.sizes.len()) {
                meta.sizes[..=dim].rotate_right(1);
                meta.strides = strides::contiguous(&meta.sizes);
            }
            let value = effects.of(group.at).map(|m| Argument::Tensor(m.value.clone()));
            if let Some(body) = node.bodies_mut().last() {
                body.outputs.extend(value);
                body.is_single_tensor_return = false;
            }
            let at = node.outputs.len();
            values.insert(group.at, self.add_result(node, at, meta));
        }
        Ok(())
    }

    /// Makes the operands that the body writes into carried values.
    fn carry_writes(
        &mut self,
        node: &mut Node,
        operands: &mut Operands,
        written: &[&Group],
        effects: &Effects,
        values: &mut FxHashMap<usize, Name>,
    ) -> Result<()> {
        let (carried, first) = (operands.carried.len(), operands.slices().end);
        let mut members: Vec<(usize, Id)> =
            written.iter().flat_map(|group| &group.members).copied().collect();
        members.sort_unstable();
        // Each is taken out and put in before those that follow: their positions stay.
        for (count, &(input, id)) in members.iter().filter(|(at, _)| *at >= first).enumerate() {
            let at = carried + count;
            operands.carried.push(operands.captured.remove(input - first - count));
            for body in node.bodies_mut() {
                let moved = body.inputs.remove(input);
                body.inputs.insert(at, moved);
            }
            let value = effects.of(input).map(|m| Argument::Tensor(m.value.clone()));
            if let (Some(body), Some(value)) = (node.bodies_mut().last(), value) {
                body.outputs.insert(at, value);
                body.is_single_tensor_return = false;
            }
            let meta = self.meta(node, id)?;
            values.insert(input, self.add_result(node, at, meta));
        }
        for &(input, _) in members.iter().filter(|(at, _)| *at < carried) {
            let result = node.outputs.get(input).and_then(Argument::name);
            values.extend(result.map(|name| (input, name.clone())));
        }
        Ok(())
    }

    /// Adds a result of this type to a node.
    fn add_result(&mut self, node: &mut Node, at: usize, meta: TensorMeta) -> Name {
        let name = self.emit.value(&node.target.name, meta);
        node.outputs.insert(at, Argument::Tensor(name.clone()));
        name
    }

    /// The type of a tensor.
    fn meta(&self, node: &Node, id: Id) -> Result<TensorMeta> {
        self.emit.meta(&self.memory.first(id)).map_err(|p| problem(node, p))
    }

    /// Records that a result is the operand `one`, or else may be what some body returns.
    fn alias_result<'r>(
        &mut self,
        result: &Argument,
        one: Option<usize>,
        returned: impl Iterator<Item = &'r Returned>,
        ids: &[Option<Id>],
        results: &[Argument],
    ) {
        let id = |at: &usize| ids.get(*at).copied().flatten();
        let Argument::Tensor(name) = result else { return };
        if let Some(operand) = one.and_then(|at| id(&at)) {
            return self.memory.bind(name, operand);
        }
        for returned in returned {
            for operand in returned.shares.iter().filter_map(id) {
                let result = self.memory.tensor(name);
                self.memory.may_be(result, operand);
            }
            for other in returned.outputs.iter().filter_map(|&at| results.get(at)) {
                if let (Some(result), Some(other)) = (self.id(result), self.id(other)) {
                    self.memory.may_be(result, other);
                }
            }
        }
    }
}

/// The outputs that carried value `at` may come from: that of the body, and where this is another
/// carried value, those of that one.
fn carried_from(at: usize, returned: &[Returned], carried: usize) -> Vec<&Returned> {
    let (mut seen, mut all, mut next) = (FxHashSet::from_iter([at]), Vec::new(), vec![at]);
    while let Some(returned) = next.pop().and_then(|at| returned.get(at)) {
        let others = returned.shares.iter().filter(|&&other| other < carried);
        next.extend(others.copied().filter(|&other| seen.insert(other)));
        all.push(returned);
    }
    all
}

/// An input of bodies whose writes cannot be returned, and why.
type Refusal = (usize, &'static str);

fn unsupported(operands: &Operands, written: &[&Group], effects: &[Effects]) -> Option<Refusal> {
    let renamed = effects.iter().flat_map(|e| &e.mutated).find(|m| m.is_renamed);
    if let Some(renamed) = renamed {
        return Some((renamed.input, "it also replaces it or changes its sizes"));
    }
    if operands.kind == Kind::Cond {
        return None;
    }
    let (body, conditions) = effects.split_last()?;
    if let Some(mutated) = conditions.iter().find_map(|e| e.mutated.first()) {
        return Some((mutated.input, "the body is the condition of a loop"));
    }
    let slices = operands.slices();
    let mut inputs = FxHashSet::default();
    for group in written {
        for &(at, _) in &group.members {
            if slices.contains(&at) && group.members.len() > 1 {
                return Some((at, "the body gets other parts of the same memory"));
            }
            if operands.kind == Kind::Map && !slices.contains(&at) {
                return Some((at, "the iterations of a map have no order"));
            }
            inputs.insert(at);
        }
    }
    // A carried value that is written into must be one tensor in all iterations.
    let stays = |(at, returned): (usize, &Returned)| {
        returned.input == Some(at)
            || !(inputs.contains(&at) || returned.shares.iter().any(|i| inputs.contains(i)))
    };
    let moves = (0..operands.carried.len()).zip(&body.returned).find(|&pair| !stays(pair));
    moves.map(|(at, _)| (at, "the loop carries another tensor in its place"))
}

/// The error that a body writes into this input.
fn refused(node: &Node, (input, why): Refusal) -> Error {
    let inputs = node.bodies().filter_map(|body| body.inputs.get(input)?.name());
    let name = inputs.last().cloned().unwrap_or_default();
    problem(node, PassProblem::WriteToOperand { name, why })
}

/// A view whose numbers have no names of values: a body cannot read those of the graph around it.
fn unnamed(view: View, graph: &Graph) -> View {
    let number = |arg: &Argument| match arg {
        Argument::SymInt(SymArg::Name(name)) => match graph.values.get(name) {
            Some(ValueMeta::SymInt { expr, .. }) => Some(Argument::size(expr)),
            _ => None,
        },
        Argument::Tensor(_) => None,
        other => Some(other.clone()),
    };
    match &view {
        View::Select { dim, index } => {
            number(index).map_or(View::Unknown, |index| View::Select { dim: *dim, index })
        }
        View::Slice { dim, start, end, step } => match (number(start), number(end), number(step)) {
            (Some(start), Some(end), Some(step)) => View::Slice { dim: *dim, start, end, step },
            _ => View::Unknown,
        },
        _ => view,
    }
}
