//! All schemas: the generated list, what it lacks, and the order of overloads.

use crate::schema::parse::Schema;
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, Mutex};

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
pub fn overloads(name: &str) -> Arc<[Schema]> {
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
