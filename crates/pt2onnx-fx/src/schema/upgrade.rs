//! Converts programs of PyTorch 2.1 to 2.5 (schema 1 to 7) to schema 8.
//!
//! This works on the JSON, so no other file has to know the older schemas.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A program in the form of schema 8.
pub(crate) struct Upgraded<'a> {
    pub(crate) json: Cow<'a, [u8]>,
    /// Constants that torch 2.1 wrote into the JSON: a name and what `torch.save` wrote, in base
    /// 64.
    pub(crate) constants: Vec<(String, String)>,
}

/// Before 2.7, Python's `json` wrote `NaN`, `Infinity` and `-Infinity`, which JSON does not have:
/// puts them in quotes.
pub(crate) fn quote_floats(json: &[u8]) -> Cow<'_, [u8]> {
    const BARE: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    let (mut quoted, mut copied, mut at, mut in_text) = (Vec::new(), 0, 0, false);
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let bare = match rest {
            [b'\\', ..] if in_text => {
                at += 2;
                continue;
            }
            [b'"', ..] => {
                in_text = !in_text;
                None
            }
            [b'N' | b'I' | b'-', ..] if !in_text => {
                BARE.into_iter().find(|bare| rest.starts_with(bare))
            }
            _ => None,
        };
        let Some(bare) = bare else {
            at += 1;
            continue;
        };
        quoted.extend_from_slice(json.get(copied..at).unwrap_or_default());
        quoted.push(b'"');
        quoted.extend_from_slice(bare);
        quoted.push(b'"');
        at += bare.len();
        copied = at;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    quoted.extend_from_slice(json.get(copied..).unwrap_or_default());
    Cow::Owned(quoted)
}

/// Converts a program of schema `major`. A program of the current schema is returned as it is.
pub(crate) fn upgrade<'a>(json: Cow<'a, [u8]>, major: u32) -> serde_json::Result<Upgraded<'a>> {
    if major >= super::MAJOR {
        let constants = Vec::new();
        return Ok(Upgraded { json, constants });
    }
    let mut program: Value = serde_json::from_slice(&json)?;
    modernise(&mut program);
    let mut constants = Vec::new();
    if let Some(version @ Value::Number(_)) = program.get_mut("schema_version") {
        *version = json!({"major": version.take(), "minor": 0});
    }
    if major == 1 {
        constants = first_schema(&mut program)?;
    }
    Ok(Upgraded { json: Cow::Owned(serde_json::to_vec(&program)?), constants })
}

/// Converts everything whose form has changed since, wherever it stands: its key and type identify
/// it.
fn modernise(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(modernise),
        Value::Object(object) => {
            // Unions had all their keys, all but one null.
            object.retain(|_, value| !value.is_null());
            // Python counts its truth values among the integers.
            if let Some(truth) = object.get_mut("as_int").filter(|value| value.is_boolean()) {
                let truth = truth.take();
                object.clear();
                object.insert("as_bool".to_owned(), truth);
            }
            rename_target(object);
            for (key, value) in object {
                match (key.as_str(), &value) {
                    ("as_tensor", Value::String(_)) => *value = json!({"name": value.take()}),
                    ("as_expr", Value::String(_)) => *value = json!({"expr_str": value.take()}),
                    ("hint" | "storage_offset", Value::Number(_)) => {
                        *value = json!({"as_int": value.take()})
                    }
                    // In 2.1 the values of `tensor_values` had one field, `meta`.
                    ("tensor_values", Value::Object(_)) => unwrap_meta(value),
                    // Since 2.3; before, the state dict held all buffers.
                    ("buffer", Value::Object(buffer)) if !buffer.contains_key("persistent") => {
                        value["persistent"] = true.into();
                    }
                    // Infinite since 2.6: as Python's largest integers before.
                    ("range_constraints", Value::Object(_)) => open_ranges(value),
                    _ => {}
                }
                modernise(value);
            }
        }
        _ => {}
    }
}

/// Torch 2.4 named some higher-order ops by their module.
fn rename_target(node: &mut Map<String, Value>) {
    if let Some(Value::String(target)) = node.get_mut("target")
        && let Some(path) = target.strip_prefix("torch._higher_order_ops.")
        && let Some((_, name)) = path.rsplit_once('.')
    {
        *target = format!("torch.ops.higher_order.{name}");
    }
}

fn unwrap_meta(values: &mut Value) {
    for value in values.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(meta) = value.get_mut("meta").filter(|meta| meta.is_object()) {
            *value = meta.take();
        }
    }
}

fn open_ranges(ranges: &mut Value) {
    for range in ranges.as_object_mut().into_iter().flat_map(Map::values_mut) {
        for bound in range.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let large = |bound: &Value| {
                bound.as_i64().is_none_or(|i| i.unsigned_abs() >= i64::MAX as u64 - 1)
            };
            if large(bound) {
                *bound = Value::Null;
            }
        }
    }
}

/// Converts schema 1, where the signature is made of dicts, constants are in the graph, and equal
/// sizes have several names. Returns the constants.
fn first_schema(program: &mut Value) -> serde_json::Result<Vec<(String, String)>> {
    let wrong = |what: &str| serde::de::Error::custom(format!("schema 1: {what}"));
    merge_symbols(program);
    let module = program.get_mut("graph_module").and_then(Value::as_object_mut);
    let module = module.ok_or_else(|| wrong("no `graph_module`"))?;
    let signature = module.get("signature").cloned().unwrap_or_default();
    let named = |key: &str, name: &str| {
        let target = signature.get(key)?.get(name)?.as_str()?;
        Some(target.to_owned())
    };
    let graph = module.get_mut("graph").and_then(Value::as_object_mut);
    let graph = graph.ok_or_else(|| wrong("no `graph`"))?;

    // Constants were attributes of the graph; they are inputs, in front of the user's.
    let mut constants = Vec::new();
    if let Some(Value::Object(blobs)) = graph.remove("constants") {
        for (name, blob) in blobs {
            let blob = blob.as_str().ok_or_else(|| wrong("a constant is no text"))?;
            constants.push((name, blob.to_owned()));
        }
    }
    let nested = graph.get("nodes").is_some_and(holds_constants);
    if nested {
        return Err(wrong(
            "a body has constants of its own, which is not read; export again with a newer PyTorch",
        ));
    }
    let inputs = graph.get_mut("inputs").and_then(Value::as_array_mut);
    let inputs = inputs.ok_or_else(|| wrong("no `inputs`"))?;
    let lifted = constants.iter().map(|(name, _)| json!({"as_tensor": {"name": name}}));
    inputs.splice(0..0, lifted);
    let mut input_specs = Vec::new();
    for input in inputs.iter() {
        let arg = input.get("as_tensor").cloned().unwrap_or_default();
        let name = arg.get("name").and_then(Value::as_str).unwrap_or_default();
        input_specs.push(if let Some(target) = named("inputs_to_parameters", name) {
            json!({"parameter": {"arg": arg, "parameter_name": target}})
        } else if let Some(target) = named("inputs_to_buffers", name) {
            json!({"buffer": {"arg": arg, "buffer_name": target, "persistent": true}})
        } else if constants.iter().any(|(constant, _)| constant == name) {
            json!({"tensor_constant": {"arg": arg, "tensor_constant_name": name}})
        } else {
            json!({"user_input": {"arg": input}})
        });
    }
    // The new values of buffers come before the user's outputs.
    let outputs = graph.get("outputs").and_then(Value::as_array).cloned();
    let written = signature.get("buffers_to_mutate").and_then(Value::as_object);
    let written = written.map_or(0, Map::len);
    let mut output_specs = Vec::new();
    for (place, output) in outputs.unwrap_or_default().into_iter().enumerate() {
        let arg = output.get("as_tensor").cloned().unwrap_or_default();
        let name = arg.get("name").and_then(Value::as_str).unwrap_or_default();
        let target = named("buffers_to_mutate", name).filter(|_| place < written);
        output_specs.push(match target {
            Some(target) => json!({"buffer_mutation": {"arg": arg, "buffer_name": target}}),
            None => json!({"user_output": {"arg": output}}),
        });
    }
    let signature = json!({"input_specs": input_specs, "output_specs": output_specs});
    module.insert("signature".to_owned(), signature);
    Ok(constants)
}

/// Whether a graph within has constants.
fn holds_constants(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_constants),
        Value::Object(object) => {
            let constants = object.get("constants").and_then(Value::as_object);
            constants.is_some_and(|c| !c.is_empty() && object.contains_key("tensor_values"))
                || object.values().any(holds_constants)
        }
        _ => false,
    }
}

/// Gives dimensions that `equality_constraints` say are equal one symbol. Each had its own.
fn merge_symbols(program: &mut Value) {
    let pairs = program.get("equality_constraints").and_then(Value::as_array);
    let values = program.pointer("/graph_module/graph/tensor_values");
    let symbol = |pair: &Value, side: usize| {
        let (name, dim) = (pair.get(side)?.get(0)?.as_str()?, pair.get(side)?.get(1)?.as_u64()?);
        let size = values?.get(name)?.get("sizes")?.get(usize::try_from(dim).ok()?)?;
        let text = size.pointer("/as_expr/expr_str")?.as_str()?;
        text.chars().all(is_word).then(|| text.to_owned())
    };
    // For each symbol that goes, one that it is equal to.
    let mut equal: FxHashMap<String, String> = FxHashMap::default();
    for pair in pairs.into_iter().flatten() {
        if let (Some(first), Some(second)) = (symbol(pair, 0), symbol(pair, 1)) {
            let (first, second) =
                (kept(&equal, &first).to_owned(), kept(&equal, &second).to_owned());
            if first != second {
                equal.insert(first, second);
            }
        }
    }
    if equal.is_empty() {
        return;
    }
    rename(program, &equal);
    if let Some(Value::Object(ranges)) = program.get_mut("range_constraints") {
        for gone in equal.keys() {
            if let Some(range) = ranges.remove(gone) {
                ranges.entry(kept(&equal, gone)).or_insert(range);
            }
        }
    }
}

/// The symbol that stands for a symbol and for all that are equal to it.
fn kept<'a>(equal: &'a FxHashMap<String, String>, mut symbol: &'a str) -> &'a str {
    while let Some(other) = equal.get(symbol) {
        symbol = other;
    }
    symbol
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Renames symbols in all expressions.
fn rename(value: &mut Value, equal: &FxHashMap<String, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, equal)),
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "expr_str" => {
                        let words = text.split_inclusive(|c| !is_word(c));
                        let renamed = words.map(|part| {
                            let end = part.trim_end_matches(|c| !is_word(c)).len();
                            let (word, rest) = part.split_at(end);
                            [kept(equal, word), rest]
                        });
                        *text = renamed.flatten().collect();
                    }
                    value => rename(value, equal),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_quoted_outside_of_text() {
        for (json, expected) in [
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            (r#"[NaN, -Infinity,Infinity, -1]"#, r#"["NaN", "-Infinity","Infinity", -1]"#),
            (r#"["NaN \" Infinity", NaN]"#, r#"["NaN \" Infinity", "NaN"]"#),
            (r#"["\\", NaN]"#, r#"["\\", "NaN"]"#),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(String::from_utf8_lossy(&quote_floats(json.as_bytes())), expected);
        }
    }

    #[test]
    fn symbols_of_equal_sizes_are_one() {
        let sizes = |symbols: [&str; 2]| {
            let size = |s| json!({"as_expr": {"expr_str": s}});
            json!({"sizes": symbols.map(size)})
        };
        let values = json!({"x": sizes(["s0", "s1"]), "y": sizes(["s2", "2*s0"])});
        let mut program = json!({
            "graph_module": {"graph": {"tensor_values": values}},
            "equality_constraints": [[["x", 0], ["x", 1]], [["x", 1], ["y", 0]], [["y", 0], ["x", 0]]],
            "range_constraints": {"s0": 1, "s1": 2},
        });
        merge_symbols(&mut program);
        let values = json!({"x": sizes(["s2", "s2"]), "y": sizes(["s2", "2*s2"])});
        assert_eq!(program["graph_module"]["graph"]["tensor_values"], values);
        assert_eq!(
            program["range_constraints"].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["s2"]
        );
    }

    #[test]
    fn symbols_are_renamed_as_words() {
        let mut value = json!([{"expr_str": "s1 + 2*s10 - s1"}, {"name": "s1"}]);
        rename(&mut value, &FxHashMap::from_iter([("s1".to_owned(), "s0".to_owned())]));
        assert_eq!(value, json!([{"expr_str": "s0 + 2*s10 - s0"}, {"name": "s1"}]));
    }
}
