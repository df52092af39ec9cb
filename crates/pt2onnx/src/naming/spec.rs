//! Reading the JSON of a `TreeSpec`: the children of a container and their keys.

use serde_json::Value as Json;

/// The children of a container.
pub(super) fn children(spec: &Json) -> Option<&Vec<Json>> {
    spec.get("children_spec")?.as_array()
}

/// Keys of a dict or fields of a dataclass, from the context of a node of the tree; `None` for
/// lists and tuples.
pub(super) fn keys_of(spec: &Json) -> Option<Vec<String>> {
    let context = spec.get("context").and_then(Json::as_str).unwrap_or("null");
    keys(&serde_json::from_str(context).unwrap_or_default(), children(spec)?.len())
}

/// The context is a list of keys (dicts, the outputs of transformers), a pair of that list and the
/// fields that are None (dataclasses), or a table with that list (`defaultdict`).
fn keys(context: &Json, children: usize) -> Option<Vec<String>> {
    if let Some(inner) = context.get("dict_context") {
        return keys(inner, children);
    }
    let list = context.as_array()?;
    let text = |key: &Json| match key {
        Json::String(s) => Some(s.clone()),
        Json::Number(n) => Some(n.to_string()),
        _ => None,
    };
    let direct: Option<Vec<String>> = list.iter().map(text).collect();
    match direct {
        Some(keys) => (keys.len() == children).then_some(keys),
        None => keys(list.first()?, children),
    }
}
