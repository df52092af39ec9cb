//! Loops on data become `while_loop` nodes, which carry what the body changes.

use crate::{
    control::{
        higher_order::Body,
        loop_carried::{Carried, Condition, Loop, Place, assigned, at_path, with_path},
        loop_effects::Change,
    },
    eval::{Env, Evaluator, Flow, Step, in_loop},
    schema::Type,
    state::Delta,
    types::Symbols,
    value::Value,
};
use pt2onnx_fx::{Argument, Name, TensorMeta, ValueMeta, strides};
use pt2onnx_torchscript_archive::syntax::Stmt;
use rustc_hash::FxHashSet;

/// How often a body is tried with more general types of what it carries.
const MAX_ITERATIONS: usize = 8;

/// A test and a body, or what the body changes more than was thought.
type Iteration = Result<[Body; 2], Vec<Change>>;

impl Evaluator<'_> {
    /// A loop on data. Its body may change tensors, numbers and lists of them.
    pub(crate) fn repeat(
        &mut self,
        (condition, counter): (Condition<'_>, Option<&Name>),
        body: &[Stmt],
        env: &mut Env,
    ) -> Step<Flow> {
        let mut names = Vec::new();
        assigned(body, &mut names);
        names.extend(counter.cloned());
        let mut seen = FxHashSet::default();
        names.retain(|name| env.contains_key(name) && seen.insert(name.clone()));
        let mut carried = Vec::new();
        for name in &names {
            let Some(like) = env.get(name).cloned() else { continue };
            self.carry(&Place::Variable(name.clone()), &like, &mut carried)?;
        }
        let (unique_owners, changing) = (FxHashSet::default(), Vec::new());
        let mut the_loop =
            Loop { condition, counter, body, names, unique_owners, carried, changing };
        for _ in 0..MAX_ITERATIONS {
            let snapshot = self.state.fork();
            let fresh = self.state.facts.symbols.clone();
            let result = self.iteration(&the_loop, env, fresh);
            let delta = self.state.rewind(snapshot);
            // The next iteration begins with what this one has written.
            let forgotten = delta.mod_set.iter().filter(|memory| self.forget(memory)).count();
            let changes = match result? {
                Ok(bodies) if forgotten == 0 => {
                    if !self.widen(&mut the_loop, &bodies[1].outputs)? {
                        return self.finish_loop(bodies, &the_loop, delta, env);
                    }
                    continue;
                }
                Ok(_) => Vec::new(),
                Err(changes) => changes,
            };
            for change in changes {
                self.carry_change(change, env, &mut the_loop)?;
            }
            for variable in &mut the_loop.carried {
                variable.meta = self.meta(&variable.initial)?.clone();
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

    /// Runs test and body once. `fresh` makes the symbols of the body.
    fn iteration(&mut self, the_loop: &Loop<'_>, env: &Env, fresh: Symbols) -> Step<Iteration> {
        let Loop { condition, counter, body, names, carried, .. } = the_loop;
        let (first, count) = (self.state.nodes.len(), self.state.heap.len());
        let (inputs, within) = self.enter(env, carried)?;
        let condition = condition(self, &within)?;
        let Argument::Tensor(condition) = self.predicate(&condition)? else {
            return in_loop("its condition is not a tensor");
        };
        let nodes = self.state.nodes.split_off(first);
        let test_body = Body { name: "cond_graph", inputs, nodes, outputs: vec![condition] };

        self.state.mod_set.clear();
        let (inputs, mut within) = self.enter(env, carried)?;
        if let Flow::Return(_) = self.deeper(|ev| ev.block(body, &mut within))? {
            return in_loop("it returns");
        }
        let others = self.move_items(the_loop, (env, &mut within), count)?;
        if !others.is_empty() {
            return Ok(Err(others));
        }
        let mut changes = self.heap_changes(carried, &fresh.next(false))?;
        changes.extend(self.memory_changes(the_loop, &inputs, [env, &within])?);
        for name in names {
            if let (Some(before), Some(after)) = (env.get(name), within.get(name))
                && self.needs_form(name, before, after)?
            {
                changes.push(Change::Value(Place::Variable(name.clone()), after.clone()));
            }
        }
        if !changes.is_empty() {
            return Ok(Err(changes));
        }
        if let Some(counter) = counter
            && let Some(Value::Int(i)) = within.get(*counter).cloned()
        {
            within.insert((*counter).clone(), Value::Int(i + 1));
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
        Ok(Ok([test_body, body]))
    }

    /// A carried value at the end of an iteration, as a tensor; `input` is that at its beginning.
    fn leave(&mut self, carried: &Carried, within: &Env, input: &Name) -> Step<Name> {
        let value = self.value_at(&carried.place, within);
        match (value.and_then(|value| at_path(&value, &carried.path)), &carried.like) {
            // Nobody reads it.
            (None | Some(Value::Undef(_)), _) => Ok(input.clone()),
            (Some(Value::Tensor(name)), Value::Tensor(_)) => self.readable(&name),
            (Some(value), like) if value.number().is_some() && value.kind() == like.kind() => {
                self.as_tensor(&value)
            }
            _ => in_loop(format!("`{}` gets a value of another type", carried.place.name())),
        }
    }

    /// The inputs of a body, and the variables that are seen in it.
    fn enter(&mut self, env: &Env, carried: &[Carried]) -> Step<(Vec<Name>, Env)> {
        let mut within = env.clone();
        let mut inputs = Vec::with_capacity(carried.len());
        for variable in carried {
            let name = self.fresh(&variable.place.name());
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
        self.memory.share(name.clone(), name.clone());
    }

    /// Gives a place the value in a tensor.
    fn fill(&mut self, variable: &Carried, tensor: Name, env: &mut Env) -> Step<()> {
        let mut value = Value::Tensor(tensor);
        if variable.like.number().is_some() {
            value = self.scalar_of(&value, &Type::Number)?;
        }
        let whole = self.value_at(&variable.place, env).unwrap_or(Value::None);
        self.set_value_at(&variable.place, with_path(&whole, &variable.path, value), env);
        Ok(())
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
