//! Conditions on sizes whose branches cannot be merged: the whole method runs for each case.

use super::{Env, Flow, Interp, Step, branch::Body};
use crate::{
    error::{Error, Problem, Result},
    value::Value,
};
use pt2onnx_symbolic::{Expr, Func};

/// The most conditions of which a method has cases: each doubles the program.
const MAX_CASES: usize = 4;

/// The conditions that failed runs lacked the cases of, with the errors of these.
#[derive(Default)]
pub(super) struct Cases(Vec<(Expr, Error)>);

impl Cases {
    pub(super) fn conditions(&self) -> Vec<Expr> {
        self.0.iter().map(|(condition, _)| condition.clone()).collect()
    }

    /// Adds the condition that a failed run lacks the cases of.
    ///
    /// # Errors
    /// That of the run, if cases do not help.
    pub(super) fn learn(&mut self, error: Error) -> Result<()> {
        let Error::Run { problem: problem @ Problem::Sizes { condition, .. }, .. } = &error else {
            return Err(error);
        };
        match self.0.iter().find(|(known, _)| known == condition) {
            // It was found where the results of both cases meet.
            Some((_, Error::Run { site, .. })) => {
                Err(Error::Run { site: site.clone(), problem: problem.clone() })
            }
            None if self.0.len() < MAX_CASES => {
                self.0.push((condition.clone(), error));
                Ok(())
            }
            _ => Err(error),
        }
    }
}

impl Problem {
    /// What stands against a model for both cases of a condition on sizes.
    pub(super) fn of_sizes(condition: &Expr, why: &Self) -> Self {
        let why = match why {
            Self::Branch(why) => why.clone(),
            other => other.to_string(),
        };
        Self::Sizes { condition: condition.clone(), why }
    }
}

impl Interp<'_> {
    /// Calls a method of the root module, once for each case.
    pub(super) fn run_cases(&mut self, root: &Value, method: &str, args: &[Value]) -> Step<Value> {
        let run: Body<'_> =
            &|interp, _| interp.run_root(root, method, args.to_vec()).map(Flow::Return);
        match self.run_case(&self.cases.clone(), run, &mut Env::default())? {
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
        let case: Body<'_> = &|interp, env| interp.run_case(others, run, env);
        let both = self.both(&Value::Bool(condition.clone()), [case, case], env);
        both.map_err(|problem| match problem {
            Problem::Branch(_) => Problem::of_sizes(condition, &problem),
            other => other,
        })
    }

    /// The truth of a condition, if it is known in the case that runs.
    pub(super) fn decide(&self, condition: &Expr) -> Option<bool> {
        if let Some(known) = crate::value::known(condition) {
            return Some(known != 0.0);
        }
        let constraints = &self.facts.constraints;
        let known = constraints.decide(condition);
        if known.is_some() || self.assumed.is_empty() {
            return known;
        }
        if self.assumed.contains(condition) {
            return Some(true);
        }
        if self.assumed.contains(&Expr::call(Func::Not, vec![condition.clone()])) {
            return Some(false);
        }
        let mut constraints = constraints.clone();
        self.assumed.iter().for_each(|holds| constraints.assume(holds));
        constraints.decide(condition)
    }
}
