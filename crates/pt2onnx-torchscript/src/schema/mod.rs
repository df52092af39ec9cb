//! Schemas of PyTorch's operators, with the types of code. Overloads are in PyTorch's order.

use pt2onnx_fx::Name;
pub(crate) use pt2onnx_torchscript_archive::Type;
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, Mutex};

/// The schema of an overload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schema {
    pub(crate) namespace: Name,
    pub(crate) name: Name,
    /// Empty for the default overload.
    pub(crate) overload: Name,
    pub(crate) params: Vec<Param>,
    pub(crate) returns: Vec<Return>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: Name,
    pub(crate) ty: Type,
    /// The length of a list of a fixed length, for which one number may stand: `int[2]`.
    pub(crate) length: Option<usize>,
    pub(crate) has_default: bool,
    /// Whether it is given by name only.
    pub(crate) keyword: bool,
    /// The memory that it stands for, as results name it: `a` of `Tensor(a!)`.
    pub(crate) alias: Option<char>,
    /// Whether the operator writes into it.
    pub(crate) written: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Return {
    pub(crate) ty: Type,
    /// The parameter whose memory it may be.
    pub(crate) alias: Option<char>,
}

impl Schema {
    /// Parses a schema; `None` if the text is not one, or has types that no call of a flattened
    /// program has.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let schema = pt2onnx_schemas::Schema::parse(text).ok()?;
        let params = schema.params.into_iter().map(|param| Param {
            name: param.name.into(),
            ty: param.slot.ty.into(),
            length: param.slot.length,
            has_default: param.default.is_some(),
            keyword: param.keyword,
            alias: param.slot.alias,
            written: param.slot.written,
        });
        let returns = schema.returns.into_iter();
        Some(Self {
            namespace: schema.namespace.into(),
            name: schema.name.into(),
            overload: schema.overload.into(),
            params: params.collect(),
            returns: returns.map(|slot| Return { ty: slot.ty.into(), alias: slot.alias }).collect(),
        })
    }
}

/// Texts of schemas by the name of the operator, in the order in which PyTorch registers the
/// overloads.
static TEXTS: LazyLock<FxHashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut texts: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    let lines = pt2onnx_schemas::LIST.lines().chain(include_str!("quantized.txt").lines());
    for line in lines.filter(|line| !line.starts_with('#')) {
        texts.entry(full_name(line).0).or_default().push(line);
    }
    for line in include_str!("order.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let order: Vec<&str> = words.clone().skip(1).collect();
        if let Some(overloads) = words.next().and_then(|name| texts.get_mut(name)) {
            overloads.sort_by_key(|text| {
                let overload = full_name(text).1;
                let overload = if overload.is_empty() { "-" } else { overload };
                order.iter().position(|&o| o == overload).unwrap_or(usize::MAX)
            });
        }
    }
    texts
});

/// `aten::add` and `Tensor` of `aten::add.Tensor(...`.
fn full_name(text: &str) -> (&str, &str) {
    let name = text.split_once('(').map_or(text, |(name, _)| name);
    name.split_once('.').unwrap_or((name, ""))
}

/// Parsed overloads by the name of the operator.
type Parsed = FxHashMap<&'static str, Arc<[Schema]>>;

static PARSED: LazyLock<Mutex<Parsed>> = LazyLock::new(Mutex::default);

/// The overloads of an operator such as `aten::add`, in the order in which PyTorch tries them; none
/// if it is not known.
pub(crate) fn overloads(name: &str) -> Arc<[Schema]> {
    let Some((&name, texts)) = TEXTS.get_key_value(name) else {
        return [].into();
    };
    let Ok(mut parsed) = PARSED.lock() else {
        return [].into();
    };
    let parse = || texts.iter().filter_map(|text| Schema::parse(text)).collect();
    parsed.entry(name).or_insert_with(parse).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overloads_are_in_the_order_of_registration() {
        let names =
            |op: &str| overloads(op).iter().map(|s| s.overload.to_string()).collect::<Vec<_>>();
        assert_eq!(names("aten::sub")[..2], ["Tensor", "Scalar"]);
        assert_eq!(names("aten::relu"), ["", "out"]);
        assert_eq!(names("aten::nothing"), [""; 0]);
        assert_eq!(names("quantized::linear"), ["", "out"][..1]);
    }

    #[test]
    fn all_schemas_can_be_parsed() {
        let texts = TEXTS.values().flatten();
        let wrong: Vec<_> = texts.filter(|t| Schema::parse(t).is_none()).collect();
        let vararg = |text: &&&&str| text.contains("...");
        assert_eq!(wrong.iter().filter(|t| !vararg(t)).count(), 0, "{wrong:#?}");
    }
}
