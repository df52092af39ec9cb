//! The table of builtins: operators on plain values, which make no node. To add one, write its
//! function, and a row here.

use super::{Call, conversions as c, dict as d, environment as e, ranges as r};
use crate::{
    eval::{Evaluator, Step},
    value::Value,
};

/// The kind of value that the first argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueKind {
    Any,
    Device,
    Dict,
    List,
    Optional,
    Tensor,
    Tuple,
}

impl ValueKind {
    fn of(value: &Value) -> Self {
        match value {
            Value::Device(_) => Self::Device,
            Value::Dict(_) => Self::Dict,
            Value::List(_) => Self::List,
            Value::Optional(_) => Self::Optional,
            Value::Tensor(_) => Self::Tensor,
            Value::Tuple(_) => Self::Tuple,
            _ => Self::Any,
        }
    }
}

/// The result of a builtin; `None` if it does not take these arguments.
pub(crate) type Run = fn(&mut Evaluator<'_>, Call<'_>) -> Step<Option<Value>>;

/// A builtin.
pub(crate) struct Builtin {
    name: &'static str,
    on: ValueKind,
    run: Run,
}

const fn on(on: ValueKind, name: &'static str, run: Run) -> Builtin {
    Builtin { name, on, run }
}

const fn any(name: &'static str, run: Run) -> Builtin {
    on(ValueKind::Any, name, run)
}

const fn dict(name: &'static str, run: Run) -> Builtin {
    on(ValueKind::Dict, name, run)
}

/// All builtins, sorted by name and kind.
static BUILTINS: &[Builtin] = &[
    any("Bool", c::bool),
    any("Complex", c::complex),
    dict("Delete", d::pop),
    any("Float", c::float),
    any("FloatImplicit", c::float),
    any("Int", c::int),
    any("IntImplicit", c::int),
    any("Print", e::nothing),
    on(ValueKind::Tensor, "ScalarImplicit", c::scalar),
    dict("__contains__", d::contains),
    any("__derive_index", r::derive_index),
    dict("__getitem__", d::get_item),
    any("__range_length", r::range_length),
    any("_is_tracing", e::no),
    any("_set_grad_enabled", e::nothing),
    dict("_set_item", d::set_item),
    any("_unwrap_optional", c::unwrap),
    on(ValueKind::Optional, "_unwrap_optional", c::present),
    any("bin", c::digits),
    any("chr", c::digits),
    dict("clear", d::clear),
    any("complex", c::complex),
    dict("contains", d::contains),
    dict("copy", d::copy),
    any("device", e::device),
    any("dict", c::empty_dict),
    dict("dict", d::copy),
    on(ValueKind::List, "dict", c::dict_of_pairs),
    any("divmod", r::divmod),
    dict("get", d::get),
    any("get_autocast_dtype", e::autocast_dtype),
    any("hex", c::digits),
    on(ValueKind::Device, "index", e::device_index),
    any("is_autocast_cpu_enabled", e::no),
    any("is_autocast_enabled", e::no),
    any("is_grad_enabled", e::no),
    any("is_scripting", e::yes),
    any("is_scripting_unset", e::no),
    any("is_tracing", e::no),
    dict("items", d::items),
    dict("keys", d::keys),
    dict("len", d::len),
    on(ValueKind::Tuple, "len", r::len_of_tuple),
    any("manual_seed", e::nothing),
    any("oct", c::digits),
    dict("pop", d::pop),
    dict("popitem", d::pop_item),
    any("rangelist", r::range_list),
    any("set_grad_enabled", e::nothing),
    dict("setdefault", d::get),
    any("str", c::str),
    on(ValueKind::Device, "type", e::device_type),
    any("unchecked_cast", c::same),
    on(ValueKind::Optional, "unchecked_cast", c::present),
    any("unchecked_unwrap_optional", c::same),
    on(ValueKind::Optional, "unchecked_unwrap_optional", c::present),
    dict("update", d::update),
    dict("values", d::values),
    any("wait", c::same),
    any("warn", e::nothing),
];

/// The row of a name and kind.
fn find(name: &str, kind: ValueKind) -> Option<&'static Builtin> {
    let at = BUILTINS.binary_search_by(|row| (row.name, row.on).cmp(&(name, kind)));
    at.ok().and_then(|at| BUILTINS.get(at))
}

impl Evaluator<'_> {
    /// The result of a builtin: the row for the kind of the first argument, or else that for any.
    pub(crate) fn run_builtin(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        let kind = args.first().map_or(ValueKind::Any, ValueKind::of);
        let row = find(name, kind).or_else(|| find(name, ValueKind::Any));
        row.map_or(Ok(None), |row| (row.run)(self, Call { name, args }))
    }
}

#[cfg(test)]
mod tests {
    use super::BUILTINS;

    #[test]
    fn the_table_is_sorted() {
        assert!(BUILTINS.is_sorted_by(|a, b| (a.name, a.on) < (b.name, b.on)));
    }
}
