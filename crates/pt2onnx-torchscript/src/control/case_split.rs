//! Conditions on sizes whose branches cannot be merged: the whole method runs for each case.

use crate::{
    control::fork_join::Body,
    error::{Error, Problem, Result},
    eval::{Env, Evaluator, Flow, Step},
    value::Value,
};
use pt2onnx_symbolic::{Expr, Func};

/// The most conditions with cases: each doubles the program.
const MAX_CASES: usize = 4;

/// Why a condition on the number of chunks has cases.
const CHUNKS: &str = "the number of chunks depends on it";

/// Conditions that caused earlier runs to fail.
#[derive(Default)]
pub(crate) struct Cases {
    /// The conditions that they lacked the cases of, with their errors.
    found: Vec<(Expr, Error)>,
    /// Whether the number of chunks is taken to be the requested one, as its cases do not help.
    pub(crate) assume_exact_chunks: bool,
}

impl Cases {
    pub(crate) fn conditions(&self) -> Vec<Expr> {
        self.found.iter().map(|(condition, _)| condition.clone()).collect()
    }

    /// Learns from a failed run.
    ///
    /// # Errors
    /// That of the run, if another one will not do better.
    pub(crate) fn record(&mut self, error: Error) -> Result<()> {
        let Error::Run { problem, .. } = &error else {
            return Err(error);
        };
        if let Problem::Sizes { condition, .. } = problem
            && self.found.len() < MAX_CASES
            && !self.found.iter().any(|(known, _)| known == condition)
        {
            self.found.push((condition.clone(), error));
            return Ok(());
        }
        let all = self.found.len();
        let is_of_chunks = |error: &Error| match error {
            Error::Run { problem: Problem::Sizes { why, .. }, .. } => why == CHUNKS,
            _ => false,
        };
        self.found.retain(|(_, error)| !is_of_chunks(error));
        if self.found.len() < all {
            self.assume_exact_chunks = true;
            return Ok(());
        }
        // It was found where the results of both cases meet.
        let first = self.found.iter().find_map(|(known, first)| match (problem, first) {
            (Problem::Sizes { condition, .. }, Error::Run { site, .. }) if known == condition => {
                Some(site.clone())
            }
            _ => None,
        });
        Err(match first {
            Some(site) => Error::Run { site, problem: problem.clone() },
            None => error,
        })
    }
}

impl Problem {
    /// A condition on the number of chunks is not decided.
    pub(crate) fn chunk_count(condition: Expr) -> Self {
        Self::Sizes { condition, why: CHUNKS.to_owned() }
    }

    /// Why the cases of a condition on sizes cannot share one model.
    pub(crate) fn of_sizes(condition: &Expr, why: &Self) -> Self {
        let why = match why {
            Self::Branch(why) => why.clone(),
            other => other.to_string(),
        };
        Self::Sizes { condition: condition.clone(), why }
    }
}

impl Evaluator<'_> {
    /// Calls a method of the root module, once for each case.
    pub(crate) fn run_cases(&mut self, root: &Value, method: &str, args: &[Value]) -> Step<Value> {
        let run: Body<'_> = &|ev, _| ev.run_root(root, method, args.to_vec()).map(Flow::Return);
        match self.run_case(&self.policy.cases.clone(), run, &mut Env::default())? {
            Flow::Return(value) => Ok(value),
            Flow::Next => Ok(Value::None),
        }
    }

    fn run_case(&mut self, cases: &[Expr], run: Body<'_>, env: &mut Env) -> Step<Flow> {
        let Some((condition, others)) = cases.split_first() else {
            return run(self, env);
        };
        if self.decide(condition).is_some() {
            return self.run_case(others, run, env);
        }
        let case: Body<'_> = &|ev, env| ev.run_case(others, run, env);
        let both = self.fork_join(&Value::Bool(condition.clone()), [case, case], env);
        both.map_err(|problem| match problem {
            Problem::Branch(_) => Problem::of_sizes(condition, &problem),
            other => other,
        })
    }

    /// The truth of a condition, if it is known in the case that runs.
    pub(crate) fn decide(&self, condition: &Expr) -> Option<bool> {
        if let Some(known) = crate::value::known(condition) {
            return Some(known != 0.0);
        }
        let constraints = &self.state.facts.constraints;
        let known = constraints.decide(condition);
        if known.is_some() || self.state.path_condition.is_empty() {
            return known;
        }
        if self.state.path_condition.contains(condition) {
            return Some(true);
        }
        if self.state.path_condition.contains(&Expr::call(Func::Not, vec![condition.clone()])) {
            return Some(false);
        }
        let mut constraints = constraints.clone();
        self.state.path_condition.iter().for_each(|holds| constraints.assume(holds));
        constraints.decide(condition)
    }
}
