//! Branches on data: both run on copies, and what they change is merged into the results of a `cond` node.

use super::{Env, Flow, Interp, Step, graph::Body, merge::Merged, parts_list::Sample};
use crate::{
    error::Problem,
    syntax::Stmt,
    types::{Contents, Symbols},
    value::{Item, Ref, Value},
};
use pt2onnx_fx::{Argument, Name, Node};
use pt2onnx_symbolic::Expr;
use rustc_hash::{FxHashMap, FxHashSet};

/// What a branch left behind.
struct Branch {
    flow: Flow,
    env: Env,
    heap: Vec<Item>,
    nodes: Vec<Node>,
    contents: FxHashMap<Name, Contents>,
    /// What the memory that branches write into is at its end.
    copies: Vec<Name>,
    /// Other memory from outside that it writes into.
    outside: Vec<Name>,
}

/// What decides between two branches.
struct Condition {
    predicate: Argument,
    /// The condition, if only sizes of inputs decide.
    sizes: Option<Expr>,
}

/// What became of both branches.
enum Both {
    Merged(Flow),
    /// They write into this memory.
    Writes(Vec<Name>),
    /// They give these lists different lengths; what the elements are like.
    Lists(Vec<(Ref, Option<Sample>)>),
}

impl Interp<'_> {
    /// A condition that is not known: both branches run. Where sizes decide and the branches cannot be merged, the general case is
    /// taken. So it is where a tensor may be empty.
    pub(super) fn undecided(
        &mut self,
        test: &Value,
        then: &[Stmt],
        other: &[Stmt],
        env: &mut Env,
    ) -> Step<Flow> {
        let Value::Bool(condition) = test else {
            return self.both(test, then, other, env);
        };
        let of_sizes = self.generally(condition);
        let Some(general) = of_sizes.or_else(|| self.unless_empty(condition)) else {
            return self.both(test, then, other, env);
        };
        let (heap, contents) = (self.heap.clone(), self.facts.contents.clone());
        self.steps(heap.len())?;
        let (nodes, frames, depth) = (self.nodes.len(), self.frames.len(), self.depth);
        let (warnings, mut within) = (self.warnings.len(), env.clone());
        // A size of which it was said that it may be 0 is asked for that. Whether a size is even, or which of two is larger, nothing tells.
        let asked = self.may_be_zero(condition) || !self.is_general(condition);
        let general_sizes = of_sizes.is_some() && !asked;
        self.sizes_decide |= general_sizes;
        let strict = self.strict || (self.general && general_sizes);
        let outer = std::mem::replace(&mut self.strict, strict);
        let optional = std::mem::replace(&mut self.optional, false);
        let both = self.both(test, then, other, &mut within);
        (self.strict, self.optional) = (outer, optional);
        match both {
            Ok(flow) => {
                *env = within;
                return Ok(flow);
            }
            Err(problem @ (Problem::Steps(_) | Problem::Memory(_))) => return Err(problem),
            Err(problem) if of_sizes.is_none() && !matches!(problem, Problem::Branch(_)) => {
                return Err(problem);
            }
            Err(_) => {}
        }
        (self.heap, self.facts.contents) = (heap, contents);
        self.nodes.truncate(nodes);
        self.waiting.clear();
        self.frames.truncate(frames);
        self.depth = depth;
        self.warnings.truncate(warnings);
        let value = if general { "true" } else { "false" };
        let when = if of_sizes.is_some() { "for all sizes" } else { "as nothing is empty" };
        self.note(format!("`{condition}` is taken to be {value} {when}"));
        let branch = if general { then } else { other };
        self.deeper(|interp| interp.block(branch, env))
    }

    /// Whether a condition is about a size of an input that may be 0.
    fn may_be_zero(&self, condition: &Expr) -> bool {
        let least = |symbol: &str| self.facts.constraints.range(symbol).min;
        condition.symbols().iter().any(|s| !Symbols::makes(s) && least(s) == Some(0))
    }

    fn both(&mut self, test: &Value, then: &[Stmt], other: &[Stmt], env: &mut Env) -> Step<Flow> {
        let predicate = self.predicate(test)?;
        let of_sizes = |e: &Expr| !e.symbols().iter().any(|s| Symbols::makes(s));
        let sizes = match test {
            Value::Bool(condition) if of_sizes(condition) => Some(condition.clone()),
            _ => None,
        };
        let condition = Condition { predicate, sizes };
        let mut memory = Vec::new();
        loop {
            match self.run_both(&condition, [then, other], env, &memory)? {
                Both::Merged(flow) => return Ok(flow),
                Both::Writes(more) => memory.extend(more),
                Both::Lists(lists) => {
                    for (list, sample) in lists {
                        self.loosen(list, sample)?;
                    }
                }
            }
        }
    }

    /// Runs both branches. In each, copies stand for the memory that they write into.
    fn run_both(
        &mut self,
        condition: &Condition,
        [then, other]: [&[Stmt]; 2],
        env: &mut Env,
        memory: &[Name],
    ) -> Step<Both> {
        self.copies()?;
        self.steps(self.facts.contents.len().saturating_add(env.len()))?;
        let (heap, contents) = (self.heap.clone(), self.facts.contents.clone());
        let (before, known) = (heap.clone(), contents.clone());
        self.elements = self.elements.saturating_add(heap.len());
        let outer = std::mem::take(&mut self.nodes);
        let old = heap.len();
        let yes = self.branch(then, env.clone(), memory);
        // The second branch sees what was there before; what the first one made stays where it is.
        let mut heap = heap;
        heap.extend(self.heap.drain(old.min(self.heap.len())..));
        let first = std::mem::replace(&mut self.heap, heap);
        let after = std::mem::replace(&mut self.facts.contents, contents);
        let yes = yes.map(|yes| Branch { heap: first, contents: after, ..yes });
        let no = self.branch(other, env.clone(), memory);
        self.nodes = outer;
        let mut outside: Vec<Name> =
            [&yes, &no].into_iter().flatten().flat_map(|b| b.outside.iter().cloned()).collect();
        outside.sort();
        outside.dedup();
        if !outside.is_empty() {
            (self.heap, self.facts.contents) = (before, known);
            return Ok(Both::Writes(outside));
        }
        if let (Ok(yes), Ok(_)) = (&yes, &no) {
            let lists = self.resized(&before, &yes.heap);
            if !lists.is_empty() && !self.strict {
                (self.heap, self.facts.contents) = (before, known);
                return Ok(Both::Lists(lists));
            }
        }
        Ok(Both::Merged(match (yes, no) {
            (Ok(yes), Ok(no)) => self.merge(condition, (yes, no), old, memory, env)?,
            // A branch that raises is an assertion that the other one is taken.
            (Err(Problem::Raises(_)), Ok(no)) => {
                self.nodes.extend(no.nodes);
                *env = no.env;
                self.written_back(memory, no.copies)?;
                no.flow
            }
            (Ok(yes), Err(Problem::Raises(_))) => {
                // What the first branch made stands behind what was there before, in the heap of the second one.
                let made = self.heap.drain(old.min(self.heap.len())..).collect::<Vec<_>>();
                self.heap = yes.heap;
                self.heap.extend(made);
                self.facts.contents = yes.contents;
                self.nodes.extend(yes.nodes);
                *env = yes.env;
                self.written_back(memory, yes.copies)?;
                yes.flow
            }
            (Err(problem), _) | (_, Err(problem)) => return Err(problem),
        }))
    }

    /// The lists from before that have other lengths after one branch than after the other.
    fn resized(&self, before: &[Item], first: &[Item]) -> Vec<(Ref, Option<Sample>)> {
        let mut found = Vec::new();
        for (at, item) in before.iter().enumerate() {
            let length = |item: Option<&Item>| match item {
                Some(Item::List { items, .. }) => Some(items.len()),
                _ => None,
            };
            let (a, b) = (length(first.get(at)), length(self.heap.get(at)));
            if !matches!(item, Item::List { .. }) || a == b {
                continue;
            }
            let list = Ref(at);
            let last = match first.get(at) {
                Some(Item::List { items, .. }) => items.last(),
                _ => None,
            };
            let sample = self.sample(list).or_else(|| last.and_then(|item| self.sample_of(item)));
            found.push((list, sample));
        }
        found
    }

    /// Runs a branch; its nodes are kept apart.
    fn branch(&mut self, body: &[Stmt], mut env: Env, memory: &[Name]) -> Step<Branch> {
        let (frames, depth) = (self.frames.len(), self.depth);
        let (replaced, hidden) = (self.replaced.clone(), self.hidden.clone());
        let writes = std::mem::take(&mut self.writes);
        let owned = memory.iter().try_for_each(|root| self.own(root, Value::Tensor(root.clone())));
        let flow = owned.and_then(|()| self.deeper(|interp| interp.block(body, &mut env)));
        let nodes = std::mem::take(&mut self.nodes);
        let made: FxHashSet<Name> = nodes.iter().flat_map(Node::output_names).collect();
        let written = std::mem::replace(&mut self.writes, writes);
        let outside = written.into_iter().filter(|root| !made.contains(root)).collect();
        let copies = memory.iter().map(|root| self.current(root)).collect();
        (self.replaced, self.hidden) = (replaced, hidden);
        if let Err(Problem::Raises(_)) = &flow {
            self.frames.truncate(frames);
            self.depth = depth;
        }
        Ok(Branch {
            flow: flow?,
            env,
            heap: Vec::new(),
            nodes,
            contents: FxHashMap::default(),
            copies,
            outside,
        })
    }

    /// Writes what branches made of memory back into it.
    fn written_back(&mut self, memory: &[Name], made: Vec<Name>) -> Step<()> {
        for (root, made) in memory.iter().zip(made) {
            let args = vec![Value::Tensor(root.clone()), Value::Tensor(made)];
            self.operator("aten", "copy_", args, Vec::new())?;
        }
        Ok(())
    }

    fn merge(
        &mut self,
        condition: &Condition,
        (yes, no): (Branch, Branch),
        old: usize,
        memory: &[Name],
        env: &mut Env,
    ) -> Step<Flow> {
        let mut bodies = [yes.nodes, no.nodes];
        let copies = yes.copies.iter().cloned().zip(no.copies.iter().cloned());
        let memory_of = memory.iter().cloned().zip(copies.map(|(a, b)| [a, b]));
        let mut merged = Merged {
            memory: memory_of.collect(),
            old,
            sizes: condition.sizes.clone(),
            ..Merged::default()
        };
        let flow = match (yes.flow, no.flow) {
            (Flow::Next, Flow::Next) => Flow::Next,
            (Flow::Return(a), Flow::Return(b)) => {
                Flow::Return(self.merge_values(&a, &b, &mut merged, &mut bodies)?)
            }
            _ => return Err(Problem::Branch("only one of its branches returns".to_owned())),
        };
        let names: FxHashSet<Name> = yes.env.keys().cloned().collect();
        let mut names: Vec<Name> =
            names.into_iter().filter(|name| no.env.contains_key(name)).collect();
        names.sort();
        let mut after = Env::default();
        for name in names {
            if let (Some(a), Some(b)) = (yes.env.get(&name), no.env.get(&name)) {
                let value = self.merge_values(a, b, &mut merged, &mut bodies)?;
                after.insert(name, value);
            }
        }
        *env = after;
        for at in 0..old {
            self.merge_items(at, yes.heap.get(at), &mut merged, &mut bodies)?;
        }
        let known = &mut self.facts.contents;
        known.retain(|name, contents| yes.contents.get(name) == Some(contents));
        let mut written = Vec::with_capacity(memory.len());
        for (a, b) in yes.copies.iter().zip(&no.copies) {
            written.push(self.merge_contents(a, b, &mut merged)?);
        }
        self.cond(condition.predicate.clone(), merged, bodies)?;
        self.written_back(memory, written)?;
        Ok(flow)
    }

    /// The node, unless nothing depends on the condition.
    fn cond(&mut self, predicate: Argument, merged: Merged, bodies: [Vec<Node>; 2]) -> Step<()> {
        if merged.results.is_empty() {
            return Ok(());
        }
        let [yes, no] = bodies;
        let results = |at: usize| {
            merged.results.iter().filter_map(|pair| pair.get(at).cloned()).collect::<Vec<_>>()
        };
        let bodies = [
            Body { inputs: Vec::new(), nodes: yes, outputs: results(0) },
            Body { inputs: Vec::new(), nodes: no, outputs: results(1) },
        ];
        let names = ["true_graph", "false_graph"];
        let node =
            self.higher_order("cond", &[predicate], bodies, &names, merged.outputs.clone())?;
        self.push(node)?;
        self.read_numbers()
    }

    /// `a` if the condition holds, and `b` otherwise.
    pub(super) fn either(&mut self, test: &Value, a: &Name, b: &Name) -> Step<Name> {
        let predicate = self.predicate(test)?;
        let mut merged = Merged::default();
        let name = self.merge_contents(a, b, &mut merged)?;
        self.cond(predicate, merged, [Vec::new(), Vec::new()])?;
        Ok(name)
    }

    /// The condition of a branch as an argument.
    pub(super) fn predicate(&mut self, test: &Value) -> Step<Argument> {
        match test {
            Value::Tensor(name) => Ok(Argument::Tensor(name.clone())),
            _ => {
                let truth = self.truth_of(test)?;
                if let Some(name) = truth.number().and_then(|e| self.truths.get(e)) {
                    return Ok(Argument::Tensor(name.clone()));
                }
                match self.operator("prim", "NumToTensor", vec![truth], Vec::new())? {
                    Value::Tensor(name) => Ok(Argument::Tensor(name)),
                    other => super::expected("a tensor", &other),
                }
            }
        }
    }
}
