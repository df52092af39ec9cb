//! Overloads that write into arguments, and their functional variants, as the schemas declare them.

use crate::{LIST, Schema, Type};
use std::{
    collections::BTreeMap,
    str::Lines,
    sync::{PoisonError, RwLock},
};

/// The arguments that an overload writes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// `add_`: its first argument. There is a variant if that is a tensor, and the only one.
    First(Option<Variant>),
    /// `out=`: its last arguments. There is a variant if they are all that it writes into.
    Out(Option<Variant>),
    /// Others, such as running statistics.
    Other,
}

/// The overload that returns what another one writes: `add.Tensor` for `add_.Tensor` and `add.out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The name of the operator.
    pub name: &'static str,
    /// The overload; empty for the default one.
    pub overload: &'static str,
    /// Whether its result is a view of an argument.
    pub is_view: bool,
}

/// The writes of the overloads that were asked for before.
static WRITES: RwLock<BTreeMap<&str, Option<Writes>>> = RwLock::new(BTreeMap::new());

/// The writes of an overload such as `aten::add_.Tensor`. `None` if there are none, or if PyTorch's
/// list does not have it.
pub fn writes(overload: &str) -> Option<Writes> {
    if let Some(known) = WRITES.read().unwrap_or_else(PoisonError::into_inner).get(overload) {
        return *known;
    }
    let line = find(overload)?;
    let writes = line
        .contains('!')
        .then(|| Schema::parse(line).map_or(Writes::Other, |schema| read(&schema)));
    let name = &line[..overload.len()];
    WRITES.write().unwrap_or_else(PoisonError::into_inner).insert(name, writes);
    writes
}

/// Whether an overload writes nothing, and a result may share memory with an argument.
pub fn returns_alias(overload: &str) -> bool {
    let line = find(overload).filter(|line| !line.contains('!'));
    line.and_then(|line| line.rsplit_once("->")).is_some_and(|(_, to)| to.contains("Tensor("))
}

/// The schema of an overload.
fn find(overload: &str) -> Option<&'static str> {
    let is_it = |line: &&str| line.strip_prefix(overload).is_some_and(|rest| rest.starts_with('('));
    from(overload).next().filter(is_it)
}

/// The schemas that are not before `name`. They are sorted, behind lines that begin with `#`, which
/// is before all names. A parenthesis follows each name, and is before all characters of names.
fn from(name: &str) -> Lines<'static> {
    let bytes = LIST.as_bytes();
    // All lines that begin before `low` are before the name, none that begins from `high` on is.
    let (mut low, mut high) = (0, LIST.len());
    while low < high {
        let middle = low.midpoint(high);
        let start = memchr::memrchr(b'\n', &bytes[low..middle]).map_or(low, |end| low + end + 1);
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(LIST.len(), |end| start + end + 1);
        if LIST[start..end].trim_end() < name {
            low = end;
        } else {
            high = start;
        }
    }
    LIST[low..].lines()
}

fn read(schema: &Schema<'static>) -> Writes {
    let (written, others): (Vec<_>, Vec<_>) =
        schema.params.iter().partition(|param| param.slot.written);
    let all: Vec<_> = schema.params.iter().collect();
    match functional_name(schema.name) {
        Some(name) => {
            let is_one = written.len() == 1 && written[0].slot.ty == Type::Named("Tensor");
            let is_first = is_one && all.first() == written.first();
            Writes::First(is_first.then(|| variant(schema, &name, &all)).flatten())
        }
        None if !written.iter().any(|param| param.keyword) => Writes::Other,
        None => {
            let only_out = written.iter().all(|param| param.keyword);
            Writes::Out(only_out.then(|| variant(schema, schema.name, &others)).flatten())
        }
    }
}

/// The name of an in-place operator without its mark: `add` for `add_`, `__and__` for `__iand__`.
/// `None` for other names.
pub fn functional_name(name: &str) -> Option<String> {
    if name.ends_with("__") {
        let bitwise = ["__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"];
        return bitwise.contains(&name).then(|| name.replacen("__i", "__", 1));
    }
    name.strip_suffix('_').map(str::to_owned)
}

/// The overload of `name` that writes nothing and takes these parameters: in this order, or else by
/// their names. Further ones must have defaults. An overload of the same name comes first, and then
/// one with fewer parameters.
fn variant(schema: &Schema, name: &str, params: &[&crate::Param]) -> Option<Variant> {
    let prefix = format!("{}::{name}", schema.namespace);
    let named = from(&prefix).take_while(|line| line.starts_with(&prefix));
    let overloads = named.filter(|line| line[prefix.len()..].starts_with(['(', '.']));
    let pure =
        overloads.filter(|line| !line.contains('!')).filter_map(|line| Schema::parse(line).ok());
    let in_order = |s: &Schema| {
        let same = s.params.iter().zip(params).all(|(a, b)| a.slot.ty == b.slot.ty);
        let rest = s.params.get(params.len()..);
        same && rest.is_some_and(|rest| rest.iter().all(|param| param.default.is_some()))
    };
    let by_name = |s: &Schema| {
        let has = |wanted: &&crate::Param| {
            s.params.iter().any(|p| p.name == wanted.name && p.slot.ty == wanted.slot.ty)
        };
        let optional = |p: &crate::Param| {
            p.default.is_some() || params.iter().any(|wanted| wanted.name == p.name)
        };
        params.iter().all(has) && s.params.iter().all(optional)
    };
    let pure: Vec<Schema> = pure.collect();
    let own = match schema.overload {
        "out" => "",
        overload => overload.strip_suffix("_out").unwrap_or(overload),
    };
    let best = |fits: &dyn Fn(&Schema) -> bool| {
        let fitting = pure.iter().filter(|s| fits(s));
        fitting.min_by_key(|s| (s.overload != own, s.params.len()))
    };
    let found = best(&in_order).or_else(|| best(&by_name))?;
    Some(Variant {
        name: found.name,
        overload: found.overload,
        is_view: found.returns.iter().any(|result| result.alias.is_some()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functional_name_has_no_mark() {
        for (name, expected) in [
            ("add_", Some("add")),
            ("index_put_", Some("index_put")),
            ("__iand__", Some("__and__")),
            ("__and__", None),
            ("__invert__", None),
            ("add", None),
        ] {
            assert_eq!(functional_name(name).as_deref(), expected);
        }
    }

    #[test]
    fn variants_are_found_by_their_parameters() {
        for (overload, expected) in [
            ("aten::add_.Tensor", "first add.Tensor"),
            ("aten::pow_.Scalar", "first pow.Tensor_Scalar"),
            ("aten::floor_divide_.Tensor", "first floor_divide."),
            ("aten::polygamma_", "first polygamma."),
            ("aten::dropout_", "first dropout."),
            ("aten::transpose_", "first view transpose.int"),
            ("aten::squeeze_.dim", "first view squeeze.dim"),
            ("aten::mm.out", "out mm."),
            ("aten::where.self_out", "out where.self"),
            ("aten::max.dim_max", "out max.dim"),
            ("aten::sort.values_stable", "out sort.stable"),
            ("aten::empty.out", "out empty.memory_format"),
            ("aten::arange.start_out", "out arange.start_step"),
            ("aten::gelu_backward.grad_input", "out gelu_backward."),
            ("aten::fill_diagonal_", "first"),
            ("aten::_foreach_add_.Scalar", "first"),
            ("aten::rrelu_with_noise.out", "out"),
            ("aten::rrelu_with_noise", "other"),
            ("aten::add.Tensor", "nothing"),
            ("aten::no_such_op_", "nothing"),
        ] {
            let show = |kind: &str, variant: Option<Variant>| match variant {
                None => kind.to_owned(),
                Some(v) => {
                    let view = if v.is_view { "view " } else { "" };
                    format!("{kind} {view}{}.{}", v.name, v.overload)
                }
            };
            let found = match writes(overload) {
                None => "nothing".to_owned(),
                Some(Writes::First(variant)) => show("first", variant),
                Some(Writes::Out(variant)) => show("out", variant),
                Some(Writes::Other) => "other".to_owned(),
            };
            assert_eq!(found, expected, "{overload}");
        }
    }

    #[test]
    fn results_that_are_views() {
        for (overload, expected) in [
            ("aten::select.int", true),
            ("aten::split.Tensor", true),
            ("aten::to.dtype", true),
            ("aten::add_.Tensor", false),
            ("aten::add.Tensor", false),
            ("aten::no_such_op", false),
        ] {
            assert_eq!(returns_alias(overload), expected, "{overload}");
        }
    }

    #[test]
    fn each_schema_of_the_sorted_list_is_found() {
        let all: Vec<&str> = LIST.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(all.is_sorted() && all.len() > 3000);
        for line in all {
            let (overload, _) = line.split_once('(').unwrap();
            assert_eq!(find(overload), Some(line));
            assert_eq!(find(&format!("{overload}!")), None);
        }
    }
}
