//! Ranges, lengths and divisions with rest.

use crate::{
    builtins::Call,
    eval::{Evaluator, Step},
    schema::Type,
    value::Value,
};
use pt2onnx_symbolic::Expr;

type Found = Step<Option<Value>>;

pub(crate) fn len_of_tuple(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [Value::Tuple(tuple)] = call.args else { return Ok(None) };
    Ok(Some(Value::int(i64::try_from(tuple.items.len()).unwrap_or(i64::MAX))))
}

pub(crate) fn range_list(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_] = call.args else { return Ok(None) };
    let items = ev.range(call.args)?;
    ev.list(items, Some(Type::Int)).map(Some)
}

pub(crate) fn range_length(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [start, end, step] = call.args else { return Ok(None) };
    if let (Value::Int(start), Value::Int(end)) = (start, end)
        && let Some(known) = step.as_int().filter(|&step| step != 0)
        && (start.as_int().is_none() || end.as_int().is_none())
    {
        let span = if known > 0 { end - start } else { start - end };
        let stride = Expr::int(known.saturating_abs());
        return Ok(Some(Value::Int(Expr::max(&span.ceil_div(&stride), &Expr::ZERO))));
    }
    let length = ev.range(call.args)?.len();
    Ok(Some(Value::int(i64::try_from(length).unwrap_or(i64::MAX))))
}

pub(crate) fn derive_index(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    match call.args {
        [Value::Int(i), Value::Int(start), Value::Int(step)] => {
            Ok(Some(Value::Int(start + i * step)))
        }
        _ => Ok(None),
    }
}

/// The quotient and the rest.
pub(crate) fn divmod(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_, _] = call.args else { return Ok(None) };
    let parts = [ev.on_values("floordiv", call.args)?, ev.on_values("remainder", call.args)?];
    match parts {
        [Some(quotient), Some(rest)] => ev.tuple(vec![quotient, rest], None).map(Some),
        _ => Ok(None),
    }
}
