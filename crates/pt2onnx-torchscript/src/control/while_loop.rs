//! Loops whose number of iterations depends on data: a `while_loop` node, which carries what the
//! body changes.

use crate::{
    control::{
        higher_order::Body,
        loop_carried::{Carried, Slot, assigned, at_path, with_path},
        loop_effects::Change,
        loop_heap::UniqueOwners,
    },
    error::Problem,
    eval::{Env, Evaluator, Flow, Step, expected},
    state::journal::Changes,
    syntax::{Expr, Stmt},
    types::Symbols,
    value::{Item, Value},
};
use pt2onnx_fx::{Argument, Name, TensorMeta, ValueMeta, strides};
use pt2onnx_symbolic::{Expr as Sym, Func};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// How often a body is tried with more general types of what it carries.
const MAX_ITERATIONS: usize = 8;

/// The condition of a loop.
pub(crate) enum Test<'e> {
    /// The condition of `while`.
    While(&'e Expr),
    /// `for target in range(start, end)`: the variable that counts, its first value and the end.
    Range(Name, Value, Value),
}

/// A loop, the variables that its body assigns to, and those with a separate list or dict for it.
struct Loop<'e> {
    test: &'e Test<'e>,
    body: &'e [Stmt],
    names: Vec<Name>,
    unique_owners: UniqueOwners,
}

/// The result of one run of a loop's body.
enum Iteration {
    /// The bodies, what is carried as it is at the end of an iteration, and memory that writes do
    /// not reach.
    Done([Body; 2], Vec<Name>, Changes<Name, Arc<str>>),
    /// The body changes more than was thought.
    Changes(Vec<Change>),
}

/// The variables from before the loop that its body assigns to. The one that counts gets its first
/// value.
fn loop_variables(test: &Test<'_>, body: &[Stmt], env: &mut Env) -> Vec<Name> {
    let mut names = Vec::new();
    assigned(body, &mut names);
    if let Test::Range(target, start, _) = test {
        env.insert(target.clone(), start.clone());
        names.push(target.clone());
    }
    let mut seen = FxHashSet::default();
    names.retain(|name| env.contains_key(name) && seen.insert(name.clone()));
    names
}

impl Evaluator<'_> {
    /// A loop on data. Its body may change tensors, numbers and lists of them.
    pub(crate) fn repeat(&mut self, test: &Test<'_>, body: &[Stmt], env: &mut Env) -> Step<Flow> {
        let names = loop_variables(test, body, env);
        let mut carried = Vec::new();
        for name in &names {
            let Some(like) = env.get(name).cloned() else { continue };
            self.carry_variable(name, &like, &mut carried)?;
        }
        let mut metas = self.initial_metas(&carried)?;
        let mut the_loop = Loop { test, body, names, unique_owners: UniqueOwners::new() };
        // The symbols of sizes that change from iteration to iteration.
        let mut changing = Vec::new();
        for _ in 0..MAX_ITERATIONS {
            match self.iterate(&the_loop, env, &carried, &metas)? {
                Iteration::Changes(changes) => {
                    for change in changes {
                        match change {
                            Change::Owner(name, of) => {
                                self.make_unique_owner(
                                    name,
                                    &of,
                                    env,
                                    &mut the_loop.unique_owners,
                                )?;
                            }
                            change => self.carry_change(change, env, &mut carried)?,
                        }
                    }
                    metas = self.initial_metas(&carried)?;
                }
                Iteration::Done(bodies, made, stale) => {
                    if !self.widen(&mut metas, &made, &mut changing)? {
                        self.state.stale.apply(stale);
                        return self.finish_loop(bodies, &carried, (metas, &changing), env);
                    }
                }
            }
        }
        Err(Problem::Loop("the sizes of its tensors cannot be told".to_owned()))
    }

    /// The types of what is carried, before the loop.
    fn initial_metas(&self, carried: &[Carried]) -> Step<Vec<TensorMeta>> {
        carried.iter().map(|variable| self.meta(&variable.initial).cloned()).collect()
    }

    /// Gives each size that an iteration changes a symbol, and forgets strides that it changes.
    /// Returns whether any type changed.
    fn widen(
        &mut self,
        metas: &mut [TensorMeta],
        made: &[Name],
        changing: &mut Vec<Sym>,
    ) -> Step<bool> {
        let mut changed = false;
        for (meta, name) in metas.iter_mut().zip(made) {
            let next = self.meta(name)?.clone();
            let plain = [&*meta, &next].map(|meta| self.is_contiguous(meta)) == [Some(true); 2];
            if next.dtype != meta.dtype || next.sizes.len() != meta.sizes.len() {
                let text = "a tensor that it changes gets another type or number of dimensions";
                return Err(Problem::Loop(text.to_owned()));
            }
            for (size, other) in meta.sizes.iter_mut().zip(&next.sizes) {
                let same = self.state.facts.constraints.prove_eq(size, other) == Some(true);
                if !same && !changing.contains(size) {
                    *size = self.size_symbol();
                    changing.push(size.clone());
                    changed = true;
                }
            }
            changed |= !plain && !meta.strides.is_empty();
            meta.strides = if plain { strides::contiguous(&meta.sizes) } else { Vec::new() };
        }
        Ok(changed)
    }

    /// Runs test and body once, over variables of these types. All but what the graph has is as
    /// before then.
    fn iterate(
        &mut self,
        the_loop: &Loop<'_>,
        env: &Env,
        carried: &[Carried],
        metas: &[TensorMeta],
    ) -> Step<Iteration> {
        let snapshot = self.state.fork();
        let fresh = self.state.facts.symbols.clone();
        let result = self.iteration(the_loop, env, carried, metas, fresh);
        let delta = self.state.rewind(snapshot);
        match result {
            Ok(Iteration::Done(bodies, made, _)) => Ok(Iteration::Done(bodies, made, delta.stale)),
            other => other,
        }
    }

    fn iteration(
        &mut self,
        the_loop: &Loop<'_>,
        env: &Env,
        carried: &[Carried],
        metas: &[TensorMeta],
        mut fresh: Symbols,
    ) -> Step<Iteration> {
        let (nodes, count) = (self.state.nodes.len(), self.state.heap.len());
        let (inputs, within) = self.enter(env, carried, metas)?;
        let Loop { test, body, names, unique_owners } = the_loop;
        let verdict = self.verdict(test, &within, carried, &inputs)?;
        let test_body =
            Body { inputs, nodes: self.state.nodes.split_off(nodes), outputs: vec![verdict] };

        self.state.mod_set.clear();
        let (inputs, mut within) = self.enter(env, carried, metas)?;
        if let Flow::Return(_) = self.deeper(|ev| ev.block(body, &mut within))? {
            return Err(Problem::Loop("it returns".to_owned()));
        }
        let others = self.move_items((names, unique_owners), (env, &mut within), count)?;
        if !others.is_empty() {
            return Ok(Iteration::Changes(others));
        }
        let mut changes = self.changes(carried, &inputs, &fresh.next(false))?;
        for name in names {
            if let (Some(before), Some(after)) = (env.get(name), within.get(name)) {
                let form = self.form(name, before, after)?;
                changes.extend(form.then(|| Change::Widen(name.clone(), after.clone())));
            }
        }
        changes.extend(self.replaced_memory(carried, &within));
        if !changes.is_empty() {
            return Ok(Iteration::Changes(changes));
        }
        if let Test::Range(target, ..) = test
            && let Some(Value::Int(i)) = within.get(target).cloned()
        {
            within.insert(target.clone(), Value::Int(i + 1));
        }
        let mut outputs = Vec::with_capacity(carried.len());
        for (variable, input) in carried.iter().zip(&inputs) {
            outputs.push(self.leave(variable, &within, input)?);
        }
        let nodes = self.state.nodes.split_off(nodes);
        let body = Body { inputs, nodes, outputs: outputs.clone() };
        self.kept_memory(carried, &body)?;
        self.kept_copies(carried, &body)?;
        self.stale_copies([&test_body, &body])?;
        Ok(Iteration::Done([test_body, body], outputs, Changes::default()))
    }

    /// The value of a carried slot at the end of an iteration, as a tensor. `input` is its value at
    /// the beginning.
    fn leave(&mut self, carried: &Carried, within: &Env, input: &Name) -> Step<Name> {
        let (value, name) = match &carried.slot {
            Slot::Variable(name, path) => {
                let value = within.get(name).and_then(|value| at_path(value, path));
                match value {
                    // Nobody reads it.
                    None | Some(Value::Undef(_)) => return Ok(input.clone()),
                    value => (value, name.clone()),
                }
            }
            Slot::Member(of, place, path) => {
                let value = self.value_at(*of, place);
                (value.and_then(|value| at_path(&value, path)), place.name())
            }
            Slot::List(list) => {
                let parts = self.dyn_list(*list);
                (parts.map(|parts| Value::Tensor(parts.tensor)), "a list".into())
            }
            Slot::Memory(root) => (Some(Value::Tensor(root.clone())), root.clone()),
        };
        let value = value.unwrap_or(Value::None);
        match (&value, &carried.like) {
            (Value::Tensor(name), Value::Tensor(_)) => self.readable(name),
            (Value::Int(_), Value::Int(_))
            | (Value::Float(_), Value::Float(_))
            | (Value::Bool(_), Value::Bool(_)) => self.as_tensor(&value),
            _ => Err(Problem::Loop(format!("`{name}` gets a value of another type"))),
        }
    }

    /// The inputs of a body, and the variables that are seen in it.
    fn enter(
        &mut self,
        env: &Env,
        carried: &[Carried],
        metas: &[TensorMeta],
    ) -> Step<(Vec<Name>, Env)> {
        let mut within = env.clone();
        let mut inputs = Vec::with_capacity(carried.len());
        for (variable, meta) in carried.iter().zip(metas) {
            let name = self.fresh(&variable.slot.name());
            self.state.facts.values.insert(name.clone(), ValueMeta::from(meta.clone()));
            self.memory.own(&name);
            if variable.memory().is_none() {
                self.copied(&name, std::slice::from_ref(&variable.initial));
            }
            inputs.push(name);
        }
        self.state.region = self.state.facts.values.len();
        for (variable, name) in carried.iter().zip(inputs.iter().cloned()) {
            let tensor = if variable.own { self.copy_of(&name)? } else { Value::Tensor(name) };
            if let Slot::Memory(root) = &variable.slot {
                self.own(root, tensor)?;
                continue;
            }
            self.fill(variable, tensor, &mut within)?;
        }
        Ok((inputs, within))
    }

    /// Gives a slot the value in a tensor.
    fn fill(&mut self, variable: &Carried, tensor: Value, env: &mut Env) -> Step<()> {
        let value = match &variable.like {
            Value::Tensor(_) => tensor,
            _ => self.scalar_of(&tensor, &crate::schema::Type::Number)?,
        };
        match (&variable.slot, value) {
            (Slot::Variable(name, path), value) => {
                let whole = env.get(name).map(|whole| with_path(whole, path, value));
                env.extend(whole.map(|whole| (name.clone(), whole)));
            }
            (Slot::List(list), Value::Tensor(name)) => {
                self.state.heap.changes(*list);
                if let Some(Item::DynList(parts)) = self.state.heap.get_mut(list.0) {
                    parts.tensor = name;
                }
            }
            (Slot::Member(of, place, path), value) => {
                let whole = self.value_at(*of, place);
                let whole = whole.map(|whole| with_path(&whole, path, value));
                self.set_value_at(*of, place, whole.unwrap_or(Value::None));
            }
            (Slot::Memory(root), value) => {
                self.write_back(root, value)?;
            }
            (Slot::List(_), other) => return expected("a tensor", &other),
        }
        Ok(())
    }

    /// A copy of a carried tensor stands for the memory `root` in a body, which can then write into
    /// it. Other tensors of that memory are not seen there.
    pub(crate) fn own(&mut self, root: &Name, tensor: Value) -> Step<()> {
        self.forget(root);
        let names = self.memory.aliases_of(root).to_vec();
        self.steps(names.len())?;
        let (same, views): (Vec<Name>, Vec<Name>) =
            names.into_iter().partition(|name| self.write_base_of(name) == *root);
        self.state.stale_views.extend(views.into_iter().map(|view| (view, ())));
        match self.operator("aten", "clone", vec![tensor], Vec::new())? {
            Value::Tensor(copy) => {
                self.bind_alias(&copy, root.clone());
                for name in same {
                    self.state.substitution.insert(name, copy.clone());
                }
                self.state.substitution.insert(root.clone(), copy);
                Ok(())
            }
            other => expected("a tensor", &other),
        }
    }

    fn verdict(
        &mut self,
        test: &Test<'_>,
        within: &Env,
        carried: &[Carried],
        inputs: &[Name],
    ) -> Step<Name> {
        let condition = match test {
            Test::While(test) => self.eval(test, within)?,
            Test::Range(target, _, end) => {
                let slot = Slot::Variable(target.clone(), Vec::new());
                let at = carried.iter().position(|variable| variable.slot == slot);
                match (within.get(target), end, at.and_then(|at| inputs.get(at))) {
                    (Some(Value::Int(i)), Value::Int(end), Some(_)) => {
                        Value::Bool(Sym::call(Func::Lt, vec![i.clone(), end.clone()]))
                    }
                    _ => return Err(Problem::Loop("its range is not known".to_owned())),
                }
            }
        };
        match self.predicate(&condition)? {
            Argument::Tensor(name) => Ok(name),
            _ => Err(Problem::Loop("its condition is not a tensor".to_owned())),
        }
    }

    fn finish_loop(
        &mut self,
        bodies: [Body; 2],
        carried: &[Carried],
        (metas, changing): (Vec<TensorMeta>, &[Sym]),
        env: &mut Env,
    ) -> Step<Flow> {
        let initial = carried.iter().map(|variable| variable.initial.clone()).collect();
        let body = bodies[1].clone();
        let mut results = Vec::with_capacity(carried.len());
        for mut meta in metas {
            for size in &mut meta.sizes {
                // The sizes after the loop are others than those within.
                if changing.contains(size) {
                    *size = self.size_symbol();
                }
            }
            if !meta.strides.is_empty() {
                meta.strides = strides::contiguous(&meta.sizes);
            }
            let name = self.fresh("while_loop");
            self.state.facts.values.insert(name.clone(), ValueMeta::from(meta));
            self.memory.own(&name);
            results.push(name);
        }
        let names = ["cond_graph", "body_graph"];
        let node = self.higher_order_with(
            "while_loop",
            &[],
            bodies,
            &names,
            &[Argument::Tensors(initial)],
            results.clone(),
        )?;
        self.push(node)?;
        for (variable, name) in carried.iter().zip(&results) {
            self.fill(variable, Value::Tensor(name.clone()), env)?;
        }
        self.copied_by_loop(carried, &body, &results)?;
        Ok(Flow::Next)
    }
}
