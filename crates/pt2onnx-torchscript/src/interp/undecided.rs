//! Conditions that are not known: the ways to go on after one, tried in order.

use super::{Env, Flow, Interp, Step, branch::Body, heap::Heap};
use crate::{
    error::Problem,
    syntax::Stmt,
    types::{Contents, Symbols, of_data},
    value::Value,
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How often what follows a condition runs in each of its branches, at most.
const MAX_TAILS: usize = 32;

/// What is left to do after a condition that is not known.
pub(super) enum After<'s> {
    /// Both branches are merged.
    Merged,
    /// So is what follows them.
    End(Flow),
    /// This branch is taken.
    Branch(&'s [Stmt]),
}

/// What branches that run may change, as it was before.
struct Before {
    heap: Heap,
    contents: FxHashMap<Name, Contents>,
    outdated: FxHashMap<Name, Arc<str>>,
    nodes: usize,
    frames: usize,
    depth: usize,
    warnings: usize,
}

impl Interp<'_> {
    /// A condition that is not known: both branches run. If they cannot be merged, each also runs
    /// what follows, the last block of `behind` first, and the result is that of the function or
    /// loop. If that fails, too, and sizes of inputs decide, the error names the condition, so that
    /// the whole method runs for each case. Where data decide whether a tensor is empty, it is
    /// taken to be not.
    pub(super) fn undecided<'s>(
        &mut self,
        test: &Value,
        [then, other]: [&'s [Stmt]; 2],
        behind: &[&'s [Stmt]],
        env: &mut Env,
    ) -> Step<After<'s>> {
        self.steps(self.heap.len())?;
        let before = self.before();
        let bodies: [Body<'_>; 2] =
            [&|interp, env| interp.block(then, env), &|interp, env| interp.block(other, env)];
        let mut problem = match self.try_branches(test, bodies, env) {
            Ok(Flow::Next) => return Ok(After::Merged),
            Ok(flow) => return Ok(After::End(flow)),
            Err(problem @ (Problem::Branch(_) | Problem::Unsupported(_))) => {
                self.of_sizes(test, problem)
            }
            Err(problem) => return Err(problem),
        };
        if !behind.is_empty() && self.tails < MAX_TAILS {
            self.tails += 1;
            self.go_back(&before);
            let whole = |branch| [behind, &[branch]].concat();
            let bodies: [Body<'_>; 2] =
                [&|interp, env| interp.blocks(whole(then), env), &|interp, env| {
                    interp.blocks(whole(other), env)
                }];
            match self.try_branches(test, bodies, env) {
                Ok(flow) => return Ok(After::End(flow)),
                Err(second) => match (&problem, self.of_sizes(test, second)) {
                    // The cases may do better.
                    (
                        Problem::Sizes { .. },
                        Problem::Raises(_) | Problem::Type { .. } | Problem::Kind { .. },
                    ) => {}
                    (_, second) => problem = second,
                },
            }
        }
        let (Value::Bool(condition), Problem::Branch(_) | Problem::Unsupported(_)) =
            (test, &problem)
        else {
            return Err(problem);
        };
        let Some(general) = self.unless_empty(condition) else {
            return Err(problem);
        };
        self.go_back(&before);
        let value = if general { "true" } else { "false" };
        self.note(format!("`{condition}` is taken to be {value} as nothing is empty"));
        Ok(After::Branch(if general { then } else { other }))
    }

    fn before(&self) -> Before {
        Before {
            heap: self.heap.clone(),
            contents: self.facts.contents.clone(),
            outdated: self.copies.outdated.clone(),
            nodes: self.nodes.len(),
            frames: self.frames.len(),
            depth: self.depth,
            warnings: self.warnings.len(),
        }
    }

    /// Undoes what branches did that could not be merged.
    fn go_back(&mut self, before: &Before) {
        self.heap.clone_from(&before.heap);
        self.facts.contents.clone_from(&before.contents);
        self.copies.outdated.clone_from(&before.outdated);
        self.nodes.truncate(before.nodes);
        self.waiting.clear();
        self.frames.truncate(before.frames);
        self.depth = before.depth;
        self.warnings.truncate(before.warnings);
    }

    /// Runs both branches. The variables stay as they are if that fails.
    fn try_branches(&mut self, test: &Value, bodies: [Body<'_>; 2], env: &mut Env) -> Step<Flow> {
        let mut within = env.clone();
        let flow = self.of_branches(test, bodies, &mut within)?;
        *env = within;
        Ok(flow)
    }

    /// Runs both branches. Where sizes decide, nothing is None in one of them only, and in a run by
    /// cases all numbers are the same.
    fn of_branches(&mut self, test: &Value, bodies: [Body<'_>; 2], env: &mut Env) -> Step<Flow> {
        let condition = match test {
            Value::Bool(condition)
                if !of_data(condition) || self.unless_empty(condition).is_some() =>
            {
                condition
            }
            _ => return self.both(test, bodies, env),
        };
        // A size of which it was said that it may be 0 is asked for that. Whether a size is even,
        // or which of two is larger, nothing tells.
        let general = !self.may_be_zero(condition) && self.is_general(condition);
        self.sizes_decide |= general;
        let strict = self.strict || (self.by_cases && general);
        let outer = std::mem::replace(&mut self.strict, strict);
        let optional = std::mem::replace(&mut self.optional, false);
        let both = self.both(test, bodies, env);
        (self.strict, self.optional) = (outer, optional);
        both
    }

    /// The problem of branches that cannot be merged, with the condition if sizes of inputs decide.
    fn of_sizes(&self, test: &Value, problem: Problem) -> Problem {
        match (test, &problem) {
            (Value::Bool(condition), Problem::Branch(_) | Problem::Unsupported(_))
                if !of_data(condition) =>
            {
                Problem::of_sizes(condition, &problem)
            }
            _ => problem,
        }
    }

    /// Whether a condition is about a size of an input that may be 0.
    fn may_be_zero(&self, condition: &Expr) -> bool {
        let least = |symbol: &str| self.facts.constraints.range(symbol).min;
        condition.symbols().iter().any(|s| !Symbols::makes(s) && least(s) == Some(0))
    }
}
