//! Operators with a truth value that sizes or data decide, such as `is_causal`: a condition chooses between the results for both values.

use super::{Interp, Step, fits::Bound, merge::Merged, unsupported};
use crate::{schema::Schema, schema::Type, types::of_data, value::Value};
use pt2onnx_fx::Node;

impl Interp<'_> {
    /// The result of an operator of which a truth value is not known; `None` if all are.
    pub(super) fn by_flag(&mut self, schema: &Schema, bound: &Bound) -> Step<Option<Value>> {
        let flag = bound.iter().zip(&schema.params).position(|(value, param)| match value {
            Some(Value::Bool(e)) => e.as_int().is_none() && *param.ty.given() == Type::Bool,
            _ => false,
        });
        let Some(at) = flag else { return Ok(None) };
        let Some(Some(test @ Value::Bool(condition))) = bound.get(at) else { return Ok(None) };
        let aliases = schema.params.iter().any(|param| param.alias.is_some());
        if aliases || schema.returns.iter().any(|result| result.alias.is_some()) {
            let who = if of_data(condition) { "data" } else { "sizes" };
            return unsupported(format!(
                "a truth value that {who} decide, as an argument of an operator that returns or changes a part of its input,"
            ));
        }
        let predicate = self.predicate(test)?;
        let [yes, no] = [true, false].map(|truth| {
            let mut bound = bound.clone();
            if let Some(slot) = bound.get_mut(at) {
                *slot = Some(Value::bool(truth));
            }
            let value = self.emit(schema, bound)?;
            // What its arguments need stays outside.
            let of_it = |node: &mut Node| *node.target.name == *schema.name;
            Ok((value, self.nodes.pop_if(of_it).into_iter().collect::<Vec<_>>()))
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
        let mut merged = Merged { sizes, ..Merged::default() };
        let mut bodies = [yes, no];
        let value = self.merge_values(&a, &b, &mut merged, &mut bodies)?;
        self.cond(predicate, merged, bodies)?;
        Ok(Some(value))
    }
}
