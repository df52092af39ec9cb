//! Branches on data: both run on copies, and what they change is merged into the results of a
//! `cond` node.

use super::{
    Env, Flow, Interp, Step, graph,
    graph::made_by,
    heap::Heap,
    merge::{Merged, Scope},
    sample::Sample,
};
use crate::{
    error::Problem,
    types::{Contents, of_data},
    value::{Item, Ref, Value},
};
use pt2onnx_fx::{Argument, Name, Node};
use pt2onnx_symbolic::{Expr, Func};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The condition, or its contrary.
fn if_so(condition: &Expr, truth: bool) -> Expr {
    if truth { condition.clone() } else { Expr::call(Func::Not, vec![condition.clone()]) }
}

/// What a branch does.
pub(super) type Body<'b> = &'b dyn Fn(&mut Interp<'_>, &mut Env) -> Step<Flow>;

/// What a branch left behind.
struct Branch {
    flow: Flow,
    env: Env,
    heap: Heap,
    nodes: Vec<Node>,
    contents: FxHashMap<Name, Contents>,
    /// What the memory that branches write into is at its end.
    copies: Vec<Name>,
    /// What took the place of tensors in it.
    scope: Scope,
    /// Other memory from outside that it writes into.
    outside: Vec<Name>,
    /// Memory that its writes did not reach.
    outdated: FxHashMap<Name, Arc<str>>,
}

/// What decides between two branches.
struct Condition {
    predicate: Argument,
    /// The condition, if it is one on numbers.
    known: Option<Expr>,
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
    /// Runs both branches, again with more of what they write into, until their ends can be merged.
    pub(super) fn both(
        &mut self,
        test: &Value,
        bodies: [Body<'_>; 2],
        env: &mut Env,
    ) -> Step<Flow> {
        let predicate = self.predicate(test)?;
        let known = match test {
            Value::Bool(condition) => Some(condition.clone()),
            _ => None,
        };
        let sizes = known.clone().filter(|condition| !of_data(condition));
        let condition = Condition { predicate, known, sizes };
        let mut memory = Vec::new();
        loop {
            match self.run_both(&condition, bodies, env, &memory)? {
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
        [then, other]: [Body<'_>; 2],
        env: &mut Env,
        memory: &[Name],
    ) -> Step<Both> {
        self.copy_of_heap()?;
        self.steps(self.facts.contents.len().saturating_add(env.len()))?;
        let (heap, contents) = (self.heap.clone(), self.facts.contents.clone());
        let (before, known) = (heap.clone(), contents.clone());
        self.elements = self.elements.saturating_add(heap.len());
        let outer = std::mem::take(&mut self.nodes);
        let (old, new) = (heap.len(), self.facts.symbols.clone().next(false));
        let holds = |truth: bool| condition.known.as_ref().map(|c| if_so(c, truth));
        let yes = self.branch(then, env.clone(), (memory, holds(true)));
        // The second branch sees what was there before; what the first one made stays where it is.
        let mut heap = heap;
        heap.extend(self.heap.made_since(old));
        let first = std::mem::replace(&mut self.heap, heap);
        let after = std::mem::replace(&mut self.facts.contents, contents);
        let yes = yes.map(|yes| Branch { heap: first, contents: after, ..yes });
        let mut no = self.branch(other, env.clone(), (memory, holds(false)));
        self.nodes = outer;
        let mut outside: Vec<Name> =
            [&yes, &no].into_iter().flatten().flat_map(|b| b.outside.iter().cloned()).collect();
        outside.sort();
        outside.dedup();
        if !outside.is_empty() {
            (self.heap, self.facts.contents) = (before, known);
            return Ok(Both::Writes(outside));
        }
        if let (Ok(yes), Ok(no)) = (&yes, &no) {
            let live = self.live_after(yes, no, old);
            let lists = self.resized(&before, &yes.heap, &live, &new);
            if !lists.is_empty() && !self.strict {
                (self.heap, self.facts.contents) = (before, known);
                return Ok(Both::Lists(lists));
            }
        }
        if let (Ok(yes), Ok(no)) = (&yes, &mut no)
            && !no.outdated.is_empty()
        {
            // What the first branch made is not there in the second one.
            let made = made_by(&yes.nodes);
            self.steps(made.len())?;
            no.outdated.retain(|name, _| !made.contains(name));
        }
        for branch in [&yes, &no].into_iter().flatten() {
            let outdated = branch.outdated.iter();
            self.copies.outdated.extend(outdated.map(|(name, site)| (name.clone(), site.clone())));
        }
        Ok(Both::Merged(match (yes, no) {
            (Ok(yes), Ok(no)) => self.merge(condition, (yes, no), old, memory, env)?,
            // A branch that raises is an assertion that the other one is taken.
            (Err(Problem::Raises(_)), Ok(no)) => self.only(no, memory, env)?,
            (Ok(mut yes), Err(Problem::Raises(_))) => {
                // What the first branch made stands behind what was there before, in the heap of
                // the second one.
                let made = self.heap.made_since(old);
                self.heap = std::mem::take(&mut yes.heap);
                self.heap.extend(made);
                self.facts.contents = std::mem::take(&mut yes.contents);
                self.only(yes, memory, env)?
            }
            (Err(problem), _) | (_, Err(problem)) => return Err(problem),
        }))
    }

    /// The lists from before that have other lengths after one branch than after the other. `new`
    /// is the first symbol that the branches may have made.
    fn resized(
        &self,
        before: &[Item],
        first: &[Item],
        live: &[usize],
        new: &Expr,
    ) -> Vec<(Ref, Option<Sample>)> {
        let mut found = Vec::new();
        for &at in live {
            let Some(item) = before.get(at) else { continue };
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
            let added = last.and_then(|item| self.sample_of(item));
            let samples: Vec<Sample> = [self.sample(list), added].into_iter().flatten().collect();
            let mut ragged = samples.iter().filter_map(|sample| sample.ragged_from(new));
            let ragged = ragged.find(|sample| sample.ragged.is_some());
            found.push((list, ragged.or_else(|| samples.into_iter().next())));
        }
        found
    }

    /// The items from before the branches that can be read after them: if both return from the
    /// function, what it has made for itself is lost.
    fn live_after(&self, yes: &Branch, no: &Branch, old: usize) -> Vec<usize> {
        let (Flow::Return(a), Flow::Return(b)) = (&yes.flow, &no.flow) else {
            return (0..old).collect();
        };
        let mut live = FxHashSet::default();
        self.live(&yes.heap, a, &mut live);
        self.live(&self.heap, b, &mut live);
        (0..old).filter(|at| live.contains(at)).collect()
    }

    /// Runs a branch, in which a condition holds; its nodes are kept apart.
    fn branch(
        &mut self,
        body: Body<'_>,
        mut env: Env,
        (memory, holds): (&[Name], Option<Expr>),
    ) -> Step<Branch> {
        let assumed = self.assumed.len();
        self.assumed.extend(holds);
        let (frames, depth) = (self.frames.len(), self.depth);
        let (replaced, hidden) = (self.replaced.clone(), self.hidden.clone());
        let writes = std::mem::take(&mut self.writes);
        let before = self.copies.outdated.clone();
        let resized = std::mem::take(&mut self.resized);
        let owned = memory.iter().try_for_each(|root| self.own(root, Value::Tensor(root.clone())));
        let flow = owned.and_then(|()| self.deeper(|interp| body(interp, &mut env)));
        let nodes = std::mem::take(&mut self.nodes);
        let made: FxHashSet<Name> = nodes.iter().flat_map(Node::output_names).collect();
        let written = std::mem::replace(&mut self.writes, writes);
        let outside = written.into_iter().filter(|root| !made.contains(root)).collect();
        let copies = memory.iter().map(|root| self.current(root)).collect();
        let outdated = std::mem::replace(&mut self.copies.outdated, before);
        let scope = Scope {
            replaced: std::mem::replace(&mut self.replaced, replaced),
            hidden: std::mem::replace(&mut self.hidden, hidden),
        };
        let ended = self.end_of_scope(&scope.replaced, &made);
        self.resized = resized;
        self.assumed.truncate(assumed);
        if let Err(Problem::Raises(_)) = &flow {
            self.frames.truncate(frames);
            self.depth = depth;
        }
        let flow = flow?;
        ended?;
        Ok(Branch {
            flow,
            env,
            heap: Heap::default(),
            nodes,
            contents: FxHashMap::default(),
            copies,
            scope,
            outside,
            outdated,
        })
    }

    /// Goes on after the branch that runs for certain.
    fn only(&mut self, branch: Branch, memory: &[Name], env: &mut Env) -> Step<Flow> {
        self.nodes.extend(branch.nodes);
        *env = branch.env;
        self.written_back(memory, branch.copies.clone())?;
        self.disown(memory, &branch.copies);
        Ok(branch.flow)
    }

    /// Where a branch runs for certain, what stood for memory in it is that memory from its end on.
    fn disown(&mut self, memory: &[Name], copies: &[Name]) {
        for (memory, copy) in memory.iter().zip(copies) {
            let copy = self.roots.get(copy).unwrap_or(copy).clone();
            let names = self.roots.iter().filter(|(_, root)| **root == copy);
            let names: Vec<Name> = names.map(|(name, _)| name.clone()).collect();
            for name in names {
                if self.whole_of(&name) == copy {
                    self.replaced.insert(name, memory.clone());
                } else {
                    self.hidden.insert(name);
                }
            }
        }
    }

    /// Writes what branches made of memory back into it.
    fn written_back(&mut self, memory: &[Name], made: Vec<Name>) -> Step<()> {
        for (root, made) in memory.iter().zip(made) {
            self.write_back(root, Value::Tensor(made))?;
        }
        Ok(())
    }

    /// Merges what both branches left behind into the results of a `cond` node, and returns what
    /// they do with the flow.
    fn merge(
        &mut self,
        condition: &Condition,
        (yes, no): (Branch, Branch),
        old: usize,
        memory: &[Name],
        env: &mut Env,
    ) -> Step<Flow> {
        let live = self.live_after(&yes, &no, old);
        self.heap.learn(&yes.heap);
        let mut bodies = [yes.nodes, no.nodes];
        let copies = yes.copies.iter().cloned().zip(no.copies.iter().cloned());
        let memory_of = memory.iter().cloned().zip(copies.map(|(a, b)| [a, b]));
        let mut merged = Merged {
            memory: memory_of.collect(),
            scopes: [yes.scope, no.scope],
            old,
            first: yes.heap,
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
        // Nobody reads the variables of a function that has returned.
        let goes_on = matches!(flow, Flow::Next);
        let both = yes.env.keys().filter(|name| goes_on && no.env.contains_key(*name));
        let mut names: Vec<Name> = both.cloned().collect();
        names.sort();
        let mut after = Env::default();
        for name in names {
            if let (Some(a), Some(b)) = (yes.env.get(&name), no.env.get(&name)) {
                let value = self.merge_values(a, b, &mut merged, &mut bodies)?;
                after.insert(name, value);
            }
        }
        *env = after;
        for at in live {
            self.merge_items(at, &mut merged, &mut bodies)?;
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
    pub(super) fn cond(
        &mut self,
        predicate: Argument,
        merged: Merged,
        bodies: [Vec<Node>; 2],
    ) -> Step<()> {
        if merged.results.is_empty() {
            return Ok(());
        }
        let [yes, no] = bodies;
        let results = |at: usize| {
            merged.results.iter().filter_map(|pair| pair.get(at).cloned()).collect::<Vec<_>>()
        };
        let bodies = [
            graph::Body { inputs: Vec::new(), nodes: yes, outputs: results(0) },
            graph::Body { inputs: Vec::new(), nodes: no, outputs: results(1) },
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
            Value::Tensor(name) => Ok(Argument::Tensor(self.readable(name)?)),
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
