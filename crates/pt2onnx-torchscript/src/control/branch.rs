//! Conditions that are not known: strategies to continue after one, tried in order.

use super::fork_join::Body;
use crate::{
    error::Problem,
    eval::{Env, Evaluator, Flow, Step},
    state::JoinPolicy,
    types::{Symbols, of_data},
    value::Value,
};
use pt2onnx_fx::printer::brief;
use pt2onnx_torchscript_archive::syntax::Stmt;

/// How often what follows a condition runs in each of its branches, at most.
const MAX_TAIL_DUPLICATIONS: usize = 32;

impl Evaluator<'_> {
    /// A condition that is not known, tried in this order:
    ///
    /// 1. Both branches run and are joined.
    /// 2. Each branch also runs what follows, the last block of `continuation` first, and the
    ///    result is that of the function or loop.
    /// 3. Where data decide whether a tensor is empty, it is taken not to be.
    /// 4. Where sizes of inputs decide, the error names the condition, and the whole method runs
    ///    for each case ([`case_split`](super::case_split)).
    ///
    /// Returns the flow after the continuation, if that ran. A branch that is taken joins it.
    pub(crate) fn eval_symbolic_branch<'s>(
        &mut self,
        test: &Value,
        [then, other]: [&'s [Stmt]; 2],
        continuation: &mut Vec<&'s [Stmt]>,
        env: &mut Env,
    ) -> Step<Option<Flow>> {
        let bodies: [Body<'_>; 2] =
            [&|ev, env| ev.block(then, env), &|ev, env| ev.block(other, env)];
        let marks = self.state.marks();
        let mut problem = match self.try_branches(test, bodies, env)? {
            Ok(Flow::Next) => return Ok(None),
            Ok(flow) => return Ok(Some(flow)),
            Err(problem) => problem,
        };
        if !continuation.is_empty() && self.budget.tail_duplications < MAX_TAIL_DUPLICATIONS {
            self.budget.tail_duplications += 1;
            self.state.unwind(marks);
            let whole = |branch| [continuation.as_slice(), &[branch]].concat();
            let bodies: [Body<'_>; 2] =
                [&|ev, env| ev.blocks(whole(then), env), &|ev, env| ev.blocks(whole(other), env)];
            match (&problem, self.try_branches(test, bodies, env)) {
                (_, Ok(Ok(flow))) => return Ok(Some(flow)),
                (_, Ok(Err(second))) => problem = second,
                // The cases may do better.
                (
                    Problem::Sizes { .. },
                    Err(Problem::Raises(_) | Problem::Type { .. } | Problem::Kind { .. }),
                ) => {}
                (_, Err(second)) => return Err(second),
            }
        }
        let (Value::Bool(condition), Problem::Branch(_) | Problem::Unsupported(_)) =
            (test, &problem)
        else {
            return Err(problem);
        };
        let Some(truth) = self.unless_empty(condition) else {
            return Err(problem);
        };
        self.state.unwind(marks);
        let condition = brief(condition);
        self.note(format!("`{condition}` is taken to be {truth} as nothing is empty"));
        continuation.push(if truth { then } else { other });
        Ok(None)
    }

    /// Runs and joins both branches. If they cannot be joined, all but the calls is as before, and
    /// the problem is returned, with the condition if sizes of inputs decide.
    fn try_branches(
        &mut self,
        test: &Value,
        bodies: [Body<'_>; 2],
        env: &mut Env,
    ) -> Step<Step<Flow>> {
        let (snapshot, variables) = (self.state.fork(), env.fork());
        match self.join_branches(test, bodies, env) {
            Ok(flow) => {
                self.state.commit(snapshot);
                env.commit(variables);
                Ok(Ok(flow))
            }
            Err(problem) => {
                env.rewind(variables);
                self.state.rewind(snapshot);
                if !matches!(problem, Problem::Branch(_) | Problem::Unsupported(_)) {
                    return Err(problem);
                }
                Ok(Err(match test {
                    Value::Bool(condition) if !of_data(condition) => {
                        Problem::of_sizes(condition, &problem)
                    }
                    _ => problem,
                }))
            }
        }
    }

    /// Runs both branches by the policy for what decides.
    fn join_branches(&mut self, test: &Value, bodies: [Body<'_>; 2], env: &mut Env) -> Step<Flow> {
        let condition = match test {
            Value::Bool(condition)
                if !of_data(condition) || self.unless_empty(condition).is_some() =>
            {
                condition
            }
            _ => return self.fork_join(test, bodies, env),
        };
        // A size that may be 0 by its declaration is asked for that. Nothing says whether a size is
        // even, or which of two is larger.
        let least = |symbol: &str| self.constraints().range(symbol).min;
        let symbols = condition.symbols();
        let may_be_zero = symbols.iter().any(|s| !Symbols::makes(s) && least(s) == Some(0));
        let general = !may_be_zero && self.is_general(condition);
        self.saw_symbolic_branch |= general;
        let exact = self.state.join == JoinPolicy::Exact || (self.policy.case_split && general);
        let how = if exact { JoinPolicy::Exact } else { JoinPolicy::AllowNumbers };
        let outer = std::mem::replace(&mut self.state.join, how);
        let flow = self.fork_join(test, bodies, env);
        self.state.join = outer;
        flow
    }
}
