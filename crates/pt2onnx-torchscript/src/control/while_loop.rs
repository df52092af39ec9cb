//! Loops on data become `while_loop` nodes, which carry what the body changes.

use crate::{
    control::{
        higher_order::Body,
        loop_carried::{Carried, Loop, Slot, Test, assigned, at_path, with_path},
        loop_effects::Change,
    },
    eval::{Env, Evaluator, Flow, Step, in_loop},
    schema::Type,
    state::Delta,
    syntax::Stmt,
    types::Symbols,
    value::{Item, Value},
};
use pt2onnx_fx::{Argument, Name, TensorMeta, ValueMeta, strides};
use pt2onnx_symbolic::{Expr as Sym, Func};
use rustc_hash::FxHashSet;

/// How often a body is tried with more general types of what it carries.
const MAX_ITERATIONS: usize = 8;

/// The result of one run of a loop's body.
enum Iteration {
    Done([Body; 2]),
    /// The body changes more than was thought.
    Changes(Vec<Change>),
}

/// The variables that the body assigns to; the one that counts begins with its first value.
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
        let (unique_owners, changing) = (FxHashSet::default(), Vec::new());
        let mut the_loop = Loop { test, body, names, unique_owners, carried, changing };
        for _ in 0..MAX_ITERATIONS {
            let (iteration, delta) = self.iterate(&the_loop, env)?;
            match iteration {
                Iteration::Changes(changes) => {
                    for change in changes {
                        self.carry_change(change, env, &mut the_loop)?;
                    }
                    for variable in &mut the_loop.carried {
                        variable.meta = self.meta(&variable.initial)?.clone();
                    }
                }
                Iteration::Done(bodies) => {
                    if !self.widen(&mut the_loop, &bodies[1].outputs)? {
                        return self.finish_loop(bodies, &the_loop, delta, env);
                    }
                }
            }
        }
        in_loop("the sizes of its tensors cannot be told")
    }

    /// Gives sizes that an iteration changes symbols, forgets such strides, and returns whether any
    /// did.
    fn widen(&mut self, the_loop: &mut Loop<'_>, made: &[Name]) -> Step<bool> {
        let Loop { carried, changing, .. } = the_loop;
        let mut changed = false;
        for (Carried { meta, .. }, name) in carried.iter_mut().zip(made) {
            let next = self.meta(name)?.clone();
            let plain = [&*meta, &next].map(|meta| self.is_contiguous(meta)) == [Some(true); 2];
            if next.dtype != meta.dtype || next.sizes.len() != meta.sizes.len() {
                return in_loop(
                    "a tensor that it changes gets another type or number of dimensions",
                );
            }
            for (size, other) in meta.sizes.iter_mut().zip(&next.sizes) {
                let same = self.constraints().prove_eq(size, other) == Some(true);
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

    /// Runs test and body once, and undoes all but what is in the graph.
    fn iterate(&mut self, the_loop: &Loop<'_>, env: &Env) -> Step<(Iteration, Delta)> {
        let snapshot = self.state.fork();
        let fresh = self.state.facts.symbols.clone();
        let result = self.iteration(the_loop, env, fresh);
        let delta = self.state.rewind(snapshot);
        // The next iteration begins with what this one has written.
        let mut read_contents = false;
        for memory in &delta.mod_set {
            read_contents |= self.forget(memory);
        }
        let iteration = match result? {
            Iteration::Done(_) if read_contents => Iteration::Changes(Vec::new()),
            iteration => iteration,
        };
        Ok((iteration, delta))
    }

    fn iteration(&mut self, the_loop: &Loop<'_>, env: &Env, mut fresh: Symbols) -> Step<Iteration> {
        let Loop { test, body, names, carried, .. } = the_loop;
        let (first, count) = (self.state.nodes.len(), self.state.heap.len());
        let (inputs, within) = self.enter(env, carried)?;
        let outputs = vec![self.verdict(test, &within, carried, &inputs)?];
        let nodes = self.state.nodes.split_off(first);
        let test_body = Body { name: "cond_graph", inputs, nodes, outputs };

        self.state.mod_set.clear();
        let (inputs, mut within) = self.enter(env, carried)?;
        if let Flow::Return(_) = self.deeper(|ev| ev.block(body, &mut within))? {
            return in_loop("it returns");
        }
        let others = self.move_items(the_loop, (env, &mut within), count)?;
        if !others.is_empty() {
            return Ok(Iteration::Changes(others));
        }
        let mut changes = self.changes(carried, &fresh.next(false))?;
        changes.extend(self.memory_changes(the_loop, &inputs, [env, &within])?);
        for name in names {
            if let (Some(before), Some(after)) = (env.get(name), within.get(name)) {
                let form = self.form(name, before, after)?;
                changes.extend(form.then(|| Change::Widen(name.clone(), after.clone())));
            }
        }
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
            let output = self.leave(variable, &within, input)?;
            let class = self.memory.class_of(&output);
            let is_written = self.state.mod_set.contains(class) && !self.state.is_of_region(class);
            outputs.push(if is_written { self.copy_of(&output)? } else { output });
        }
        let nodes = self.state.nodes.split_off(first);
        let body = Body { name: "body_graph", inputs, nodes, outputs };
        self.check_kept(carried, &body)?;
        self.stale_copies([&test_body, &body])?;
        Ok(Iteration::Done([test_body, body]))
    }

    /// The value of a slot at the end of an iteration, as a tensor; `input` is that at its
    /// beginning.
    fn leave(&mut self, carried: &Carried, within: &Env, input: &Name) -> Step<Name> {
        let value = match &carried.slot {
            Slot::Variable(name, path) => {
                match within.get(name).and_then(|value| at_path(value, path)) {
                    // Nobody reads it.
                    None | Some(Value::Undef(_)) => return Ok(input.clone()),
                    value => value,
                }
            }
            Slot::Member(of, place, path) => {
                self.value_at(*of, place).and_then(|value| at_path(&value, path))
            }
            Slot::List(list) => self.dyn_list(*list).map(|parts| Value::Tensor(parts.tensor)),
        };
        match (value.unwrap_or(Value::None), &carried.like) {
            (Value::Tensor(name), Value::Tensor(_)) => self.readable(&name),
            (value, like) if value.number().is_some() && value.kind() == like.kind() => {
                self.as_tensor(&value)
            }
            _ => in_loop(format!("`{}` gets a value of another type", carried.slot.name())),
        }
    }

    /// The inputs of a body, and the variables that are seen in it.
    fn enter(&mut self, env: &Env, carried: &[Carried]) -> Step<(Vec<Name>, Env)> {
        let mut within = env.clone();
        let mut inputs = Vec::with_capacity(carried.len());
        for variable in carried {
            let name = self.fresh(&variable.slot.name());
            self.declare(&name, variable.meta.clone());
            self.copied(&name, std::slice::from_ref(&variable.initial));
            inputs.push(name);
        }
        self.state.region = self.state.facts.values.len();
        for (variable, name) in carried.iter().zip(&inputs) {
            let tensor = if variable.own { self.copy_of(name)? } else { name.clone() };
            self.fill(variable, tensor, &mut within)?;
        }
        Ok((inputs, within))
    }

    /// Notes the type of a tensor, which has memory for itself.
    pub(crate) fn declare(&mut self, name: &Name, meta: TensorMeta) {
        self.state.facts.values.insert(name.clone(), ValueMeta::from(meta));
        self.memory.own(name);
    }

    /// Gives a slot the value in a tensor.
    fn fill(&mut self, variable: &Carried, tensor: Name, env: &mut Env) -> Step<()> {
        let value = match &variable.like {
            Value::Tensor(_) => Value::Tensor(tensor.clone()),
            _ => self.scalar_of(&Value::Tensor(tensor.clone()), &Type::Number)?,
        };
        match &variable.slot {
            Slot::Variable(name, path) => {
                let whole = env.get(name).map(|whole| with_path(whole, path, value));
                env.extend(whole.map(|whole| (name.clone(), whole)));
            }
            Slot::List(list) => {
                self.state.heap.changes(*list);
                if let Some(Item::DynList(parts)) = self.state.heap.get_mut(list.0) {
                    parts.tensor = tensor;
                }
            }
            Slot::Member(of, place, path) => {
                let whole = self.value_at(*of, place);
                let whole = whole.map(|whole| with_path(&whole, path, value));
                self.set_value_at(*of, place, whole.unwrap_or(Value::None));
            }
        }
        Ok(())
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
                    _ => return in_loop("its range is not known"),
                }
            }
        };
        match self.predicate(&condition)? {
            Argument::Tensor(name) => Ok(name),
            _ => in_loop("its condition is not a tensor"),
        }
    }

    fn finish_loop(
        &mut self,
        bodies: [Body; 2],
        the_loop: &Loop<'_>,
        delta: Delta,
        env: &mut Env,
    ) -> Step<Flow> {
        let Loop { carried, changing, .. } = the_loop;
        let mut initial = Vec::with_capacity(carried.len());
        for Carried { initial: name, .. } in carried {
            // The body may replace it: it shares no memory with what the body writes into.
            let is_written = delta.mod_set.contains(self.memory.class_of(name));
            initial.push(if is_written { self.copy_of(name)? } else { name.clone() });
        }
        self.state.copies.stale.apply(delta.stale);
        self.state.mod_set.extend(delta.mod_set);
        let mut results = Vec::with_capacity(carried.len());
        for Carried { mut meta, .. } in carried.iter().cloned() {
            for size in &mut meta.sizes {
                // The sizes after the loop are others than those within.
                if changing.contains(size) {
                    *size = self.size_symbol();
                }
            }
            if !meta.strides.is_empty() {
                meta.strides = strides::contiguous(&meta.sizes);
            }
            let result = self.fresh("while_loop");
            self.declare(&result, meta);
            results.push(result);
        }
        let (body, initial) = (bodies[1].clone(), [Argument::Tensors(initial)]);
        let node = self.higher_order("while_loop", &[], bodies, &initial, results.clone())?;
        self.push(node)?;
        for (variable, name) in carried.iter().zip(&results) {
            self.fill(variable, name.clone(), env)?;
        }
        self.copied_by_loop(carried, &body, &results)?;
        Ok(Flow::Next)
    }
}
