//! `traced_inputs.pkl`: the types of the inputs that a trace was made with.

use crate::{
    archive::Archive,
    error::Result,
    given::{Given, Size},
    quantized::Kind,
    source_ranges::untagged,
};
use pt2onnx_fx::archive::{
    StoredTensor,
    pickle::{Id, Pickle, Value as Data},
    storage_type,
};

impl Archive {
    /// The inputs of a method of a trace, by the position of the parameter and the path within it;
    /// none for scripts.
    ///
    /// # Errors
    /// The record is damaged.
    pub fn traced_inputs(&self, method: &str) -> Result<Vec<(String, Given)>> {
        let mut found = Vec::new();
        let Some(pickle) = self.pickle("traced_inputs.pkl")? else {
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
            let stored = pickle.tuple(*arguments).and_then(|items| StoredTensor::of(pickle, items));
            let Some(StoredTensor { class, sizes, .. }) = stored else { return };
            let sizes = sizes.into_iter().map(Size::Known).collect();
            match (&**global, storage_type(&class).flatten(), Kind::of_storage(&class)) {
                ("torch._utils._rebuild_tensor_v2", Some(dtype), _) => Given::Tensor(dtype, sizes),
                ("torch._utils._rebuild_qtensor", _, Some(kind)) => {
                    Given::Quantized(kind.ints(), sizes)
                }
                _ => return,
            }
        }
        _ => return,
    };
    found.push((path, given));
}
