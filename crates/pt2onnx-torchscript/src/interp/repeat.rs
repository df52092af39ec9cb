//! Loops whose number of trips depends on data: a `while_loop` node, which carries what the body
//! changes.

use super::{
    Env, Flow, Interp, Step,
    carried::{Carried, Slot, assigned, at_path, with_path},
    changes::Change,
    expected,
    graph::Body,
    moves::Owners,
};
use crate::{
    error::Problem,
    syntax::{Expr, Stmt},
    types::Symbols,
    value::{Item, Value},
};
use pt2onnx_fx::{Argument, Name, Node, TensorMeta, ValueMeta, strides};
use pt2onnx_symbolic::{Expr as Sym, Func};
use rustc_hash::FxHashSet;

/// How often a body is tried with more general types of what it carries.
const MAX_TRIES: usize = 8;

/// What decides whether a loop goes on.
pub(super) enum Test<'e> {
    /// The condition of `while`.
    While(&'e Expr),
    /// `for target in range(start, end)`: the variable that counts, its first value and the end.
    Range(Name, Value, Value),
}

/// A loop, the variables that its body assigns to, and those that have a list or dict of their own
/// for it.
struct Course<'e> {
    test: &'e Test<'e>,
    body: &'e [Stmt],
    names: Vec<Name>,
    owners: Owners,
}

/// What a try of a loop's body tells.
enum Attempt {
    /// The bodies, and what is carried as it is at the end of a trip.
    Done([Body; 2], Vec<Name>),
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

impl Interp<'_> {
    /// A loop on data. What its body changes must be tensors, numbers and lists of them.
    pub(super) fn repeat(&mut self, test: &Test<'_>, body: &[Stmt], env: &mut Env) -> Step<Flow> {
        let names = loop_variables(test, body, env);
        let mut carried = Vec::new();
        for name in &names {
            let Some(like) = env.get(name).cloned() else { continue };
            self.carry_variable(name, &like, &mut carried)?;
        }
        let mut metas = self.initial_metas(&carried)?;
        let mut course = Course { test, body, names, owners: Owners::new() };
        // The symbols of sizes that change from trip to trip.
        let mut changing = Vec::new();
        for _ in 0..MAX_TRIES {
            let outdated = self.copies.outdated.clone();
            match self.attempt(&course, env, &carried, &metas)? {
                Attempt::Changes(changes) => {
                    for change in changes {
                        match change {
                            Change::Owner(name, of) => {
                                self.make_owner(name, &of, env, &mut course.owners)?;
                            }
                            change => self.carry_change(change, env, &mut carried)?,
                        }
                    }
                    metas = self.initial_metas(&carried)?;
                }
                Attempt::Done(bodies, made) => {
                    if !self.generalise(&mut metas, &made, &mut changing)? {
                        return self.finish_loop(bodies, &carried, (metas, &changing), env);
                    }
                    self.copies.outdated = outdated;
                }
            }
        }
        Err(Problem::Loop("the sizes of its tensors cannot be told".to_owned()))
    }

    /// The types of what is carried, before the loop.
    fn initial_metas(&self, carried: &[Carried]) -> Step<Vec<TensorMeta>> {
        carried.iter().map(|variable| self.meta(&variable.initial).cloned()).collect()
    }

    /// Gives sizes that a trip changes a symbol of their own, and forgets strides that it changes.
    /// Whether any type became another one.
    fn generalise(
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
                let same = self.facts.constraints.prove_eq(size, other) == Some(true);
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
    fn attempt(
        &mut self,
        course: &Course<'_>,
        env: &Env,
        carried: &[Carried],
        metas: &[TensorMeta],
    ) -> Step<Attempt> {
        let outer = std::mem::take(&mut self.nodes);
        let writes = std::mem::take(&mut self.writes);
        let (replaced, hidden) = (self.replaced.clone(), self.hidden.clone());
        let outdated = self.copies.outdated.clone();
        let resized = std::mem::take(&mut self.resized);
        self.copy_of_heap()?;
        let (heap, fresh) = (self.heap.clone(), self.facts.symbols.clone());
        let result = self.trip(course, env, carried, metas, (&heap, fresh));
        self.nodes = outer;
        self.writes = writes;
        (self.replaced, self.hidden, self.heap) = (replaced, hidden, heap);
        self.resized = resized;
        if !matches!(&result, Ok(Attempt::Done(..))) {
            self.copies.outdated = outdated;
        }
        result
    }

    fn trip(
        &mut self,
        course: &Course<'_>,
        env: &Env,
        carried: &[Carried],
        metas: &[TensorMeta],
        (heap, mut fresh): (&[Item], Symbols),
    ) -> Step<Attempt> {
        let (inputs, within) = self.enter(env, carried, metas)?;
        let Course { test, body, names, owners } = course;
        let verdict = self.verdict(test, &within, carried, &inputs)?;
        let nodes = std::mem::take(&mut self.nodes);
        let test_body = Body { inputs, nodes, outputs: vec![verdict] };

        self.writes.clear();
        let (inputs, mut within) = self.enter(env, carried, metas)?;
        if let Flow::Return(_) = self.deeper(|interp| interp.block(body, &mut within))? {
            return Err(Problem::Loop("it returns".to_owned()));
        }
        let others = self.move_items((names, owners), (env, &mut within), heap)?;
        if !others.is_empty() {
            return Ok(Attempt::Changes(others));
        }
        let mut changes = self.changes(heap, carried, &inputs, &fresh.next(false))?;
        for name in names {
            if let (Some(before), Some(after)) = (env.get(name), within.get(name)) {
                let form = self.form(name, before, after)?;
                changes.extend(form.then(|| Change::Form(name.clone(), after.clone())));
            }
        }
        changes.extend(self.replaced_memory(carried, &within));
        if !changes.is_empty() {
            return Ok(Attempt::Changes(changes));
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
        let nodes = std::mem::take(&mut self.nodes);
        let body = Body { inputs, nodes, outputs: outputs.clone() };
        self.kept_memory(carried, &body)?;
        self.kept_copies(carried, &body)?;
        self.outdated_copies([&test_body, &body])?;
        Ok(Attempt::Done([test_body, body], outputs))
    }

    /// What a carried slot holds at the end of a trip, as a tensor. `input` is what it held at the
    /// beginning.
    fn leave(&mut self, carried: &Carried, within: &Env, input: &Name) -> Step<Name> {
        let (value, name) = match &carried.slot {
            Slot::Variable(name, path) => {
                let value = within.get(name).and_then(|value| at_path(value, path));
                match value {
                    // Nobody reads it.
                    None | Some(Value::Opaque(_)) => return Ok(input.clone()),
                    value => (value, name.clone()),
                }
            }
            Slot::Member(of, place, path) => {
                let value = self.value_at(*of, place);
                (value.and_then(|value| at_path(&value, path)), place.name())
            }
            Slot::List(list) => {
                let parts = self.parts_of(*list);
                (parts.map(|parts| Value::Tensor(parts.tensor)), "a list".into())
            }
            Slot::Memory(root) => (Some(Value::Tensor(root.clone())), root.clone()),
        };
        let value = value.unwrap_or(Value::None);
        match (&value, &carried.like) {
            (Value::Tensor(name), Value::Tensor(_)) => self.readable(name),
            (Value::Int(_), Value::Int(_))
            | (Value::Float(_), Value::Float(_))
            | (Value::Bool(_), Value::Bool(_)) => {
                let mut nodes: Vec<Node> = std::mem::take(&mut self.nodes);
                let name = self.tensor_in(&value, &mut nodes);
                self.nodes = nodes;
                name
            }
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
            self.facts.values.insert(name.clone(), ValueMeta::from(meta.clone()));
            self.roots.insert(name.clone(), name.clone());
            if variable.memory().is_none() {
                self.copied(&name, std::slice::from_ref(&variable.initial));
            }
            inputs.push(name.clone());
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
                self.heap.changes(*list);
                if let Some(Item::Parts(parts)) = self.heap.get_mut(list.0) {
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
    /// it. What the program has of that memory besides is not seen there.
    pub(super) fn own(&mut self, root: &Name, tensor: Value) -> Step<()> {
        self.forget(root);
        let names = self.roots.iter().filter(|(name, of)| *of == root && *name != root);
        let names = names.map(|(name, _)| name.clone());
        let (same, views): (Vec<Name>, Vec<Name>) =
            names.partition(|name| self.whole_of(name) == *root);
        self.hidden.extend(views);
        match self.operator("aten", "clone", vec![tensor], Vec::new())? {
            Value::Tensor(copy) => {
                self.stands_for(&copy, root.clone());
                for name in same {
                    self.replaced.insert(name, copy.clone());
                }
                self.replaced.insert(root.clone(), copy);
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
            self.facts.values.insert(name.clone(), ValueMeta::from(meta));
            self.roots.insert(name.clone(), name.clone());
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
