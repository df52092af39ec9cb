//! Both branches of a condition run on one state, and are joined into a `cond` node.

use super::{
    higher_order,
    join::Joiner,
    phi::{Base, Branch, Joined, Operand, Phi},
};
use crate::{
    error::Problem,
    eval::{
        Env, Evaluator, Flow, Step, context::RunPolicy, expected, overload::Bound,
        to_fx::positional, unsupported,
    },
    schema::{Param, Schema, Type},
    state::{Delta, JoinPolicy, State, liveness::reachable, may_alias},
    types::of_data,
    value::{Item, Ref, Value, dyn_list::element_spec::ElementSpec},
};
use pt2onnx_fx::{Argument, Name, Node, OpName, ValueMeta};
use pt2onnx_symbolic::{Expr, Func, Range};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The code of a branch.
pub(crate) type Body<'b> = &'b dyn Fn(&mut Evaluator<'_>, &mut Env) -> Step<Flow>;

/// Lists that branches give different lengths.
type ResizedLists = Vec<(Ref, Option<ElementSpec>)>;

impl Evaluator<'_> {
    /// Runs both branches, again with lists of unknown length, until they can be joined.
    pub(crate) fn fork_join(
        &mut self,
        test: &Value,
        [then, other]: [Body<'_>; 2],
        env: &mut Env,
    ) -> Step<Flow> {
        let predicate = self.predicate(test)?;
        let holds = match test {
            Value::Bool(condition) => Some(condition.clone()),
            _ => None,
        };
        let fails = holds.clone().map(|holds| Expr::call(Func::Not, vec![holds]));
        loop {
            let new = self.state.facts.symbols.clone().next(false);
            let yes = self.run_branch(then, env, holds.clone());
            let (yes, no) = match (yes, self.run_branch(other, env, fails.clone())) {
                (Ok(yes), Ok(no)) => (yes, no),
                (Err(Problem::Raises(_)), Ok(only)) => {
                    return self.take_other(test, false, only, env);
                }
                (Ok(only), Err(Problem::Raises(_))) => {
                    return self.take_other(test, true, only, env);
                }
                (Err(problem), _) | (_, Err(problem)) => return Err(problem),
            };
            let changed = self.live_changes(&yes, &no)?;
            let lists = self.resized_lists(&yes.delta, &no.delta, &changed, &new);
            if lists.is_empty() || self.state.join == JoinPolicy::Exact {
                let branches = [yes, no];
                self.add_stale(&branches)?;
                let sizes = holds.filter(|condition| !of_data(condition));
                return self.join_ends((predicate, sizes), branches, &changed, env);
            }
            for (list, element) in lists {
                self.generalize(list, element)?;
            }
        }
    }

    /// Takes a branch whose other one raises, which is an assertion that a condition is `truth`.
    fn take_other(&mut self, test: &Value, truth: bool, only: Branch, env: &mut Env) -> Step<Flow> {
        self.assert_sizes(test, truth)?;
        env.apply(only.env);
        self.state.apply(only.delta);
        Ok(only.flow)
    }

    /// Adds the assertion that a condition is `truth` to the program, as `torch._check` does, if
    /// sizes of inputs decide. Those of bodies are left out, as a body may never run.
    pub(crate) fn assert_sizes(&mut self, test: &Value, truth: bool) -> Step<()> {
        let Value::Bool(condition) = test else { return Ok(()) };
        if of_data(condition) || self.state.region > 0 {
            return Ok(());
        }
        let fails = Expr::call(Func::Not, vec![condition.clone()]);
        let expr = if truth { condition.clone() } else { fails };
        let name =
            self.number_node("sym_not", Vec::new(), ValueMeta::SymBool { expr, hint: None })?;
        let args = vec![
            positional("self", self.value_argument(&name)),
            positional("assert_msg", Argument::String("".into())),
        ];
        let mut node = self.node(OpName::new("aten", "_assert_scalar", "default"), args)?;
        node.outputs.push(Argument::None);
        self.push(node)
    }

    /// Notes the memory that writes did not reach. The second branch has none of the first one's.
    fn add_stale(&mut self, [yes, no]: &[Branch; 2]) -> Step<()> {
        self.steps(yes.delta.stale.len() + no.delta.stale.len())?;
        let values = &self.state.facts.values;
        let of_first =
            |name: &Name| values.get_index_of(name).is_some_and(|at| yes.made.contains(&at));
        let second = no.delta.stale.iter().filter(|(name, _)| !of_first(name));
        let stale = yes.delta.stale.iter().chain(second);
        let stale = stale.filter_map(|(name, site)| Some((name.clone(), site.clone()?)));
        self.state.copies.stale.extend(stale);
        Ok(())
    }

    /// The lists whose lengths the branches change differently. `new` is their first new symbol.
    fn resized_lists(
        &self,
        yes: &Delta,
        no: &Delta,
        changed: &BTreeSet<usize>,
        new: &Expr,
    ) -> ResizedLists {
        let mut found = Vec::new();
        for &at in changed {
            if !matches!(self.state.heap.get(at), Some(Item::List { .. })) {
                continue;
            }
            let after = [yes, no].map(|delta| item_after(&self.state, delta, at));
            let [first, second] = after.map(|item| match item {
                Some(Item::List { items, .. }) => Some(items.len()),
                _ => None,
            });
            if first == second {
                continue;
            }
            let elements = after.into_iter().rev().flatten();
            let elements: Vec<_> = elements.filter_map(|item| self.spec_of_item(item)).collect();
            let mut jagged = elements.iter().filter_map(|element| element.jagged_from(new));
            let jagged = jagged.find(|element| element.jagged.is_some());
            found.push((Ref(at), jagged.or_else(|| elements.into_iter().next())));
        }
        found
    }

    /// The older items that the branches change, other than those that are lost as both return from
    /// the function that has made them.
    fn live_changes(&mut self, yes: &Branch, no: &Branch) -> Step<BTreeSet<usize>> {
        let changed = [yes, no].into_iter().flat_map(|branch| branch.delta.heap.items.keys());
        let mut all: BTreeSet<usize> = changed.copied().collect();
        self.steps(all.len())?;
        let older = self.state.calls.frames.last().map_or(usize::MAX, |frame| frame.heap);
        if let (Flow::Return(a), Flow::Return(b)) = (&yes.flow, &no.flow)
            && all.last().is_some_and(|last| *last >= older)
        {
            let mut live = FxHashSet::default();
            for (value, delta) in [(a, &yes.delta), (b, &no.delta)] {
                let mut open: Vec<Ref> = (0..older).map(Ref).collect();
                value.references(&mut open);
                reachable(|at| item_after(&self.state, delta, at), open, &mut live);
            }
            self.steps(live.len())?;
            all.retain(|at| live.contains(at));
        }
        Ok(all)
    }

    /// Runs a branch, in which a condition holds, and undoes it.
    fn run_branch(&mut self, body: Body<'_>, env: &mut Env, holds: Option<Expr>) -> Step<Branch> {
        let marks = self.state.marks();
        let (snapshot, variables) = (self.state.fork(), env.fork());
        let region = self.state.facts.values.len();
        self.state.region = region;
        self.state.path_condition.extend(holds);
        let flow = self.deeper(|ev| body(ev, env));
        let made = region..self.state.facts.values.len();
        let delta = self.state.rewind(snapshot);
        let env = env.rewind(variables);
        if let Err(Problem::Raises(_)) = &flow {
            self.state.unwind(marks);
        }
        Ok(Branch { flow: flow?, env, delta, made })
    }

    /// Joins both branches into the results of a `cond` node, and returns their flow. `sizes` is
    /// the condition, if only sizes of inputs decide.
    fn join_ends(
        &mut self,
        (predicate, sizes): (Argument, Option<Expr>),
        branches: [Branch; 2],
        changed: &BTreeSet<usize>,
        env: &mut Env,
    ) -> Step<Flow> {
        let Self { state, memory, numbers, names, policy, .. } = self;
        let RunPolicy { allow_sequences, limits, .. } = *policy;
        let (truths, max_steps) = (&numbers.truths, limits.steps);
        let base = Base { state, memory, truths, names, allow_sequences, max_steps };
        let mut joiner = Joiner { base, ends: &branches, sizes, joined: Joined::default() };
        let flow = joiner.flows()?;
        let variables =
            if matches!(flow, Flow::Next) { joiner.variables(env)? } else { Vec::new() };
        joiner.items(changed)?;
        let mut joined = joiner.joined;
        let phis = std::mem::take(&mut joined.phis);
        for (name, value) in variables {
            match value {
                Some(value) => env.insert(name, value),
                None => env.remove(&name),
            }
        }
        let [yes, no] = branches.map(|branch| branch.delta);
        self.apply_joined(joined, [&yes, &no])?;
        self.cond(predicate, &phis, [yes, no])?;
        Ok(flow)
    }

    fn apply_joined(&mut self, joined: Joined, deltas: [&Delta; 2]) -> Step<()> {
        self.step()?;
        for size in &joined.sizes {
            self.state.facts.constraints.constrain(size, Range::at_least(0));
        }
        for item in joined.made {
            self.alloc(item)?;
        }
        for (at, item) in joined.items {
            if let Some(slot) = self.state.heap.get_mut(at) {
                *slot = item;
            }
        }
        for delta in deltas {
            self.state.mod_set.extend(delta.mod_set.iter().cloned());
        }
        for (copy, of) in joined.copies {
            self.state.copies.link(&may_alias::memory_of(copy), &may_alias::memory_of(of));
        }
        let [yes, no] = deltas.map(|delta| &delta.contents);
        self.steps(yes.len() + no.len())?;
        for name in yes.keys().chain(no.keys()) {
            let contents = &mut self.state.facts.contents;
            let no = contents.after(no, name);
            let both = contents.after(yes, name).filter(|yes| no.as_ref() == Some(yes));
            contents.set(name.clone(), both);
        }
        Ok(())
    }

    /// The node whose results the phis are, if there are any.
    fn cond(&mut self, predicate: Argument, phis: &[Phi], mut deltas: [Delta; 2]) -> Step<()> {
        if phis.is_empty() && deltas.iter().all(|delta| delta.mod_set.is_empty()) {
            return Ok(());
        }
        let (mut results, mut reads): ([Vec<Name>; 2], _) = (Default::default(), Vec::new());
        for phi in phis {
            let mut operands = Vec::with_capacity(2);
            for (operand, delta) in phi.operands.iter().zip(&mut deltas) {
                operands.push(self.operand_tensor(operand, delta)?);
            }
            reads.extend(self.define_phi(phi, &operands)?);
            results.iter_mut().zip(operands).for_each(|(results, name)| results.push(name));
        }
        let graph = |name, Delta { nodes, .. }, outputs| higher_order::Body {
            name,
            inputs: Vec::new(),
            nodes,
            outputs,
        };
        let ([yes, no], [first, second]) = (deltas, results);
        let bodies = [graph("true_graph", yes, first), graph("false_graph", no, second)];
        let outputs = phis.iter().map(|phi| phi.name.clone()).collect();
        let node = self.higher_order("cond", &[predicate], bodies, &[], outputs)?;
        self.push(node)?;
        reads.into_iter().try_for_each(|node| self.push(node))
    }

    /// The tensor of an operand at the end of its branch.
    fn operand_tensor(&mut self, operand: &Operand, delta: &mut Delta) -> Step<Name> {
        let first = self.state.nodes.len();
        let tensor = match operand {
            Operand::Tensor(name) => Ok(name.clone()),
            Operand::Number(value) => self.as_tensor(value),
            Operand::Zeros(meta) => self.nothing(meta.dtype, meta.sizes.clone()),
            Operand::Sequence(item) => self.sequence_of(item).map(|(name, _)| name),
            Operand::NoTensors(dtype) => self.sequence_of_tensors(&[], *dtype),
        };
        delta.nodes.extend(self.state.nodes.split_off(first));
        tensor
    }

    /// Notes the type and memory of a result. Returns the nodes that read it as numbers.
    fn define_phi(&mut self, phi: &Phi, operands: &[Name]) -> Step<Vec<Node>> {
        let Some(meta) = &phi.meta else {
            self.listed(&phi.name, operands)?;
            return Ok(Vec::new());
        };
        self.declare(&phi.name, meta.clone());
        self.copied(&phi.name, operands);
        let mut reads = Vec::with_capacity(phi.numbers.len());
        for symbol in &phi.numbers {
            let (node, number) = self.read_node(&phi.name, meta.dtype, symbol.clone())?;
            reads.push(node);
            if let Value::Bool(truth) = number {
                self.numbers.truths.insert(truth, phi.name.clone());
            }
        }
        Ok(reads)
    }

    /// `a` if the condition holds, and `b` otherwise.
    pub(crate) fn either(&mut self, test: &Value, a: &Name, b: &Name) -> Step<Name> {
        let chosen = self.choose(test, [a, b], |_, name| Ok(Value::Tensor(name.clone())))?;
        chosen.tensor().cloned()
    }

    /// The value for the first case if a condition holds, or else that for the second one.
    pub(crate) fn choose<T>(
        &mut self,
        test: &Value,
        [yes, no]: [&T; 2],
        value: impl Fn(&mut Evaluator<'_>, &T) -> Step<Value>,
    ) -> Step<Value> {
        let bodies: [Body<'_>; 2] =
            [&|ev, _| value(ev, yes).map(Flow::Return), &|ev, _| value(ev, no).map(Flow::Return)];
        match self.fork_join(test, bodies, &mut Env::default())? {
            Flow::Return(value) => Ok(value),
            Flow::Next => Ok(Value::None),
        }
    }

    /// The result of an operator with an argument that sizes or data decide, a truth value such as
    /// `is_causal` or what may be None; `None` for other arguments.
    pub(crate) fn guarded_call(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let is_unknown = |(value, param): &(&Option<Value>, &Param)| match value {
            Some(Value::Bool(e)) => e.as_int().is_none() && *param.ty.given() == Type::Bool,
            value => matches!(value, Some(Value::Optional(_))),
        };
        let unknown = bound.iter().zip(&schema.params).enumerate();
        let unknown = unknown.filter(|(_, argument)| is_unknown(argument));
        // An argument that may be None is chosen last: its operator runs only where it is there.
        let first = unknown.min_by_key(|(_, (value, _))| matches!(value, Some(Value::Optional(_))));
        let (at, condition, values) = match first {
            Some((at, (Some(Value::Bool(e)), _))) => (at, e, [true, false].map(Value::bool)),
            Some((at, (Some(Value::Optional(maybe)), _))) => {
                (at, &maybe.present, [maybe.value.clone(), Value::None])
            }
            _ => return Ok(None),
        };
        let aliases = schema.params.iter().any(|param| param.alias.is_some());
        if aliases || schema.returns.iter().any(|result| result.alias.is_some()) {
            let who = if of_data(condition) { "data" } else { "sizes" };
            return unsupported(format!(
                "what {who} decide, as an argument of an operator that returns or changes a part of its input,"
            ));
        }
        let [yes, no] = values.map(|value| {
            let mut bound = bound.clone();
            bound[at] = Some(value);
            bound
        });
        let emit = |ev: &mut Evaluator<'_>, bound: &Bound| ev.emit(schema, bound.clone());
        self.choose(&Value::Bool(condition.clone()), [&yes, &no], emit).map(Some)
    }

    /// The condition of a branch as an argument.
    pub(crate) fn predicate(&mut self, test: &Value) -> Step<Argument> {
        if let Value::Tensor(name) = test {
            return Ok(Argument::Tensor(self.readable(name)?));
        }
        let truth = self.truth_of(test)?;
        if let Some(name) = truth.number().and_then(|e| self.numbers.truths.get(e)) {
            return Ok(Argument::Tensor(name.clone()));
        }
        self.as_tensor(&truth).map(Argument::Tensor)
    }

    /// A number as a tensor without dimensions.
    pub(crate) fn as_tensor(&mut self, number: &Value) -> Step<Name> {
        match self.operator("prim", "NumToTensor", vec![number.clone()], Vec::new())? {
            Value::Tensor(name) => Ok(name),
            other => expected("a tensor", &other),
        }
    }
}

pub(crate) fn item_after<'s>(state: &'s State, delta: &'s Delta, at: usize) -> Option<&'s Item> {
    delta.heap.items.get(&at).or_else(|| state.heap.get(at))
}
