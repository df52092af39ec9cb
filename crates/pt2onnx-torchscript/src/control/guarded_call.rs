//! Operators with an argument that sizes or data decide, a truth value such as `is_causal` or what
//! may be None: a condition chooses between the results for both values.

use crate::{
    eval::{Evaluator, Step, overload::Bound, unsupported},
    schema::{Param, Schema, Type},
    types::of_data,
    value::Value,
};
use pt2onnx_fx::Node;

impl Evaluator<'_> {
    /// The result for an unknown truth value or what may be None; `None` for other arguments.
    pub(crate) fn guarded_call(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let flag = |(value, param): (&Option<Value>, &Param)| match value {
            Some(Value::Bool(e)) => e.as_int().is_none() && *param.ty.given() == Type::Bool,
            _ => false,
        };
        let maybe = |value: &Option<Value>| matches!(value, Some(Value::Optional(_)));
        let flag = bound.iter().zip(&schema.params).position(flag);
        // An argument that may be None is chosen last: its operator runs only where it is there.
        let Some(at) = flag.or_else(|| bound.iter().position(maybe)) else { return Ok(None) };
        let (condition, values) = match bound.get(at) {
            Some(Some(Value::Bool(e))) => (e, [true, false].map(Value::bool)),
            Some(Some(Value::Optional(maybe))) => {
                (&maybe.present, [maybe.value.clone(), Value::None])
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
        let predicate = self.predicate(&Value::Bool(condition.clone()))?;
        let [yes, no] = values.map(|value| {
            let mut bound = bound.clone();
            if let Some(slot) = bound.get_mut(at) {
                *slot = Some(value);
            }
            let value = self.emit(schema, bound)?;
            // Nodes of its arguments stay outside.
            let of_it = |node: &mut Node| *node.target.name == *schema.name;
            Ok((value, self.state.nodes.pop_if(of_it).into_iter().collect::<Vec<_>>()))
        });
        let ((a, yes), (b, no)) = (yes?, no?);
        let plain = |value: &Value| match value {
            Value::Tensor(_) => true,
            Value::Tuple(tuple) => tuple.items.iter().all(|v| matches!(v, Value::Tensor(_))),
            _ => false,
        };
        if !plain(&a) || !plain(&b) {
            return unsupported(
                "a truth value that is not known, as an argument of this operator,",
            );
        }
        let sizes = Some(condition.clone()).filter(|condition| !of_data(condition));
        self.choose(predicate, sizes, &[a, b], [yes, no]).map(Some)
    }
}
