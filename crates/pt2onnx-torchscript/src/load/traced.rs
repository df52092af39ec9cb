//! `traced_inputs.pkl`: the types of the inputs that a trace was made with.

use crate::{
    archive::Archive,
    error::Result,
    load::{
        inputs::{Given, Size},
        saved_tensor,
    },
};
use pt2onnx_fx::archive::pickle::{Id, Pickle, Value as Data};

/// The inputs of a method of a trace, by the position of the parameter and the path within it; none
/// for scripts.
///
/// # Errors
/// The record is damaged.
pub fn traced_inputs(archive: &Archive, method: &str) -> Result<Vec<(String, Given)>> {
    let mut found = Vec::new();
    let Some(pickle) = archive.pickle("traced_inputs.pkl")? else {
        return Ok(found);
    };
    let Data::Dict(entries) = pickle.get(untagged(&pickle, pickle.root_id())) else {
        return Ok(found);
    };
    for &(key, inputs) in entries {
        if let (Data::Text(name), Data::List(items)) =
            (pickle.get(key), pickle.get(untagged(&pickle, inputs)))
            && **name == *method
        {
            for (at, &item) in items.iter().enumerate() {
                walk(&pickle, item, at.to_string(), &mut found, 16);
            }
        }
    }
    Ok(found)
}

/// The value within tags of its type.
fn untagged(pickle: &Pickle, id: Id) -> Id {
    match pickle.get(id) {
        Data::Call { global, arguments } if global.starts_with("torch.jit._pickle.") => {
            match pickle.get(*arguments) {
                Data::Tuple(items) => items.first().copied().unwrap_or(id),
                _ => *arguments,
            }
        }
        _ => id,
    }
}

fn walk(pickle: &Pickle, id: Id, path: String, found: &mut Vec<(String, Given)>, depth: usize) {
    if depth == 0 {
        return;
    }
    let mut within = |parts: Vec<(String, Id)>| {
        for (name, part) in parts {
            walk(pickle, part, format!("{path}.{name}"), found, depth - 1);
        }
    };
    let numbered =
        |items: &[Id]| items.iter().enumerate().map(|(i, &id)| (i.to_string(), id)).collect();
    let given = match pickle.get(untagged(pickle, id)) {
        Data::None => Given::None,
        Data::Bool(value) => Given::Bool(*value),
        Data::Int(value) => Given::Int(*value),
        Data::Float(value) => Given::Float(*value),
        Data::Text(text) => Given::Str(text.to_string()),
        Data::List(items) => return within(numbered(items)),
        Data::Tuple(items) => return within(numbered(items)),
        Data::Dict(entries) => {
            let named = entries.iter().filter_map(|&(key, value)| match pickle.get(key) {
                Data::Text(name) => Some((name.to_string(), value)),
                Data::Int(i) => Some((i.to_string(), value)),
                _ => None,
            });
            return within(named.collect());
        }
        Data::Call { global, arguments } => {
            let Data::Tuple(items) = pickle.get(*arguments) else { return };
            let known = |sizes: Vec<usize>| sizes.into_iter().map(Size::Known).collect();
            let given = match &**global {
                "torch._utils._rebuild_tensor_v2" => saved_tensor::described(pickle, items)
                    .map(|(dtype, _, _, sizes, _)| Given::Tensor(dtype, known(sizes))),
                "torch._utils._rebuild_qtensor" => saved_tensor::described_quantized(pickle, items)
                    .map(|(dtype, sizes)| Given::Quantized(dtype, known(sizes))),
                _ => None,
            };
            match given {
                Some(given) => given,
                None => return,
            }
        }
        _ => return,
    };
    found.push((path, given));
}
