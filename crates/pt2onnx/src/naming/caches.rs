//! Caches of keys and values in trees: `DynamicCache` and its relatives of transformers, and tuples
//! of pairs.

use super::spec::{children, keys_of};
use serde_json::Value as Json;

/// Names of arguments and results that hold a tuple for each layer.
const HOLDERS: [&str; 6] =
    ["past_key_values", "past_key_value", "past_kv", "past", "present", "present_key_values"];

/// The names of the parts of a layer in the class, and in models.
const PARTS: [(&str, &str); 8] = [
    ("key_cache", "key"),
    ("value_cache", "value"),
    ("keys", "key"),
    ("values", "value"),
    ("self_attention_cache", "decoder"),
    ("cross_attention_cache", "encoder"),
    ("0", "key"),
    ("1", "value"),
];

/// The tuples of an encoder-decoder have four tensors.
const FOUR: [[&str; 2]; 4] =
    [["decoder", "key"], ["decoder", "value"], ["encoder", "key"], ["encoder", "value"]];

/// A tensor of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheTensor {
    layer: Option<String>,
    /// `key`, `value`, `decoder.key`, ...
    part: Vec<String>,
}

impl CacheTensor {
    /// Its name, from a template such as `present.{layer}.{part}`, without the parts that it lacks.
    pub fn named(&self, template: &str) -> String {
        let layer = self.layer.as_deref().unwrap_or_default();
        let name = template.replace("{layer}", layer).replace("{part}", &self.part.join("."));
        let steps: Vec<&str> = name.split('.').filter(|step| !step.is_empty()).collect();
        steps.join(".")
    }

    fn of(path: &[String]) -> Self {
        let mut tensor = Self::default();
        for step in path.iter().filter(|step| *step != "layers") {
            if tensor.layer.is_none() && step.bytes().all(|b| b.is_ascii_digit()) {
                tensor.layer = Some(step.clone());
                continue;
            }
            let known = PARTS.iter().find(|(own, _)| own == step);
            tensor.part.push(known.map_or(step.as_str(), |(_, name)| name).to_owned());
        }
        tensor
    }
}

/// The tensors of a cache in order, if this part of a tree is one. `steps` lead to it.
pub(super) fn tensors(spec: &Json, steps: &[String]) -> Option<Vec<CacheTensor>> {
    let class = spec.get("type")?.as_str()?;
    let class = class.rsplit(['.', ':']).next().unwrap_or(class);
    let mut paths = Vec::new();
    if class.ends_with("Cache") {
        match packed(spec) {
            Some(tree) => in_packed(&tree, &mut Vec::new(), &mut paths),
            None => in_tree(spec, &mut Vec::new(), &mut paths)?,
        }
    } else {
        let held = steps.last().is_some_and(|step| HOLDERS.contains(&step.as_str()));
        let layers = children(spec)?;
        if !held || layers.is_empty() || !layers.iter().all(is_layer) {
            return None;
        }
        for (i, layer) in layers.iter().enumerate() {
            let layer = children(layer)?;
            for j in 0..layer.len() {
                let own = match layer.len() {
                    4 => FOUR.get(j)?.map(str::to_owned).to_vec(),
                    _ => vec![j.to_string()],
                };
                paths.push([i.to_string()].into_iter().chain(own).collect());
            }
        }
    }
    (paths.len() == leaves(spec)).then(|| paths.iter().map(|path| CacheTensor::of(path)).collect())
}

/// Whether this is a tuple of keys and values, or of those of a decoder and an encoder.
fn is_layer(spec: &Json) -> bool {
    let is_leaf = |child: &Json| child.get("type").is_some_and(Json::is_null);
    let tensors = children(spec).filter(|c| matches!(c.len(), 2 | 4) && c.iter().all(is_leaf));
    tensors.is_some() && keys_of(spec).is_none()
}

fn leaves(spec: &Json) -> usize {
    match children(spec) {
        _ if spec.get("type").is_some_and(Json::is_null) => 1,
        Some(children) => children.iter().map(leaves).sum(),
        None => 0,
    }
}

/// Paths inside of a cache that is a tree.
fn in_tree(spec: &Json, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> Option<()> {
    if spec.get("type")?.is_null() {
        paths.push(path.clone());
        return Some(());
    }
    let keys = keys_of(spec);
    for (i, child) in children(spec)?.iter().enumerate() {
        let key = keys.as_ref().and_then(|keys| keys.get(i).cloned());
        path.push(key.unwrap_or_else(|| i.to_string()));
        in_tree(child, path, paths)?;
        path.pop();
    }
    Some(())
}

/// The context of a cache as `pt2onnx.hf` writes it: JSON with the places of its tensors.
fn packed(spec: &Json) -> Option<Json> {
    let context: Json = serde_json::from_str(spec.get("context")?.as_str()?).ok()?;
    let tree: Json = serde_json::from_str(context.as_str()?).ok()?;
    tree.get("items").is_some().then_some(tree)
}

fn in_packed(value: &Json, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let mut step = |name: String, item: &Json| {
        path.push(name);
        in_packed(item, path, paths);
        path.pop();
    };
    if let Json::Array(items) = value {
        items.iter().enumerate().for_each(|(i, item)| step(i.to_string(), item));
    } else if let Some(items) = value.get("items").and_then(Json::as_array) {
        for item in items {
            if let (Some(key), Some(item)) = (item.get(0), item.get(1)) {
                step(key.as_str().map_or_else(|| key.to_string(), str::to_owned), item);
            }
        }
    } else if value.get("tensor").is_some() {
        paths.push(path.clone());
    }
}
