//! Operators with an argument that sizes or data decide, a truth value such as `is_causal` or what
//! may be None: a condition chooses between the results for both values.

use crate::{
    eval::{Evaluator, Step, overload::Bound, unsupported},
    schema::{Param, Schema, Type},
    types::of_data,
    value::Value,
};

impl Evaluator<'_> {
    /// The result for an unknown truth value or what may be None; `None` for other arguments.
    pub(crate) fn guarded_call(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let is_unknown = |(value, param): &(&Option<Value>, &Param)| match value {
            Some(Value::Bool(e)) => e.as_int().is_none() && *param.ty.given() == Type::Bool,
            value => matches!(value, Some(Value::Optional(_))),
        };
        let unknown = bound.iter().zip(&schema.params).enumerate();
        let unknown = unknown.filter(|(_, argument)| is_unknown(argument));
        // An argument that may be None is chosen last: its operator runs only where it is there.
        let first = unknown.min_by_key(|(_, (value, _))| matches!(value, Some(Value::Optional(_))));
        let (at, condition, values) = match first {
            Some((at, (Some(Value::Bool(e)), _))) => (at, e, [true, false].map(Value::bool)),
            Some((at, (Some(Value::Optional(maybe)), _))) => {
                (at, &maybe.present, [maybe.value.clone(), Value::None])
            }
            _ => return Ok(None),
        };
        let aliases = schema.params.iter().any(|param| param.alias.is_some());
        if aliases || schema.returns.iter().any(|result| result.alias.is_some()) {
            let who = if of_data(condition) { "data" } else { "sizes" };
            return unsupported(format!(
                "what {who} decide, as an argument of an operator that returns or changes a part of its input,"
            ));
        }
        let [yes, no] = values.map(|value| {
            let mut bound = bound.clone();
            bound[at] = Some(value);
            bound
        });
        let emit = |ev: &mut Evaluator<'_>, bound: &Bound| ev.emit(schema, bound.clone());
        self.choose(&Value::Bool(condition.clone()), [&yes, &no], emit).map(Some)
    }
}
