//! Operators that return their argument itself where there is nothing to do: what changes the
//! result in place, its shape too, changes the argument.

use crate::{
    eval::{Evaluator, Step},
    value::Value,
};
use pt2onnx_fx::{
    Name,
    views::{Alias, View},
};

impl Evaluator<'_> {
    /// The result that is an argument. In a list of results, such arguments take their places.
    pub(crate) fn identity_result(
        &mut self,
        shared: &[Alias],
        results: &[Value],
    ) -> Step<Option<Value>> {
        // A constant counts as a number only where nothing was made of it.
        let is_kept = |shared: &&Alias| {
            shared.view == View::Itself && !self.cx.pool_numbers.contains(&shared.base)
        };
        // In the order of the results.
        let kept: Vec<&Alias> = shared.iter().filter(is_kept).collect();
        let mut rest = kept.iter().peekable();
        let mut argument = |result: &Name| {
            let shared = rest.next_if(|shared| shared.result == *result)?;
            Some(Value::Tensor(shared.base.clone()))
        };
        match results {
            [Value::Tensor(result)] => Ok(argument(result)),
            [Value::List(list)] if !kept.is_empty() => {
                for item in self.items_mut(*list)? {
                    if let Value::Tensor(result) = item
                        && let Some(of) = argument(result)
                    {
                        *item = of;
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}
