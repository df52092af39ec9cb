//! Options as Python gives them: JSON with the keys of the command's flags.

use pt2onnx::{Options, SaveOptions};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Reads options. What they do not hold has its default.
pub fn read(json: &str) -> PyResult<Options> {
    serde_json::from_str(json)
        .map_err(|e| PyValueError::new_err(wrong(json).unwrap_or(e.to_string())))
}

/// The opset, if options name one.
pub fn opset(json: &str) -> Option<u32> {
    let given: serde_json::Value = serde_json::from_str(json).ok()?;
    given.get("opset")?.as_u64()?.try_into().ok()
}

/// Which option cannot be, and why.
fn wrong(json: &str) -> Option<String> {
    let given: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).ok()?;
    given.into_iter().find_map(|(key, value)| {
        let why = serde_json::from_value::<Options>(serde_json::json!({ &key: value })).err()?;
        Some(keywords(&format!("the option `{key}` cannot have this value: {why}")))
    })
}

/// A message in which options have the names that Python's parameters have: `cast_io` for `cast-io`. Messages of the library put the key
/// of an option in backquotes, as they do with a name of the model: one that is spelt like such a key is changed as well.
pub fn keywords(message: &str) -> String {
    let keys = serde_json::to_value(Options::default()).unwrap_or_default();
    let keys = keys.as_object().into_iter().flat_map(|keys| keys.keys());
    keys.filter(|key| key.contains('-')).fold(message.to_owned(), |message, key| {
        message.replace(&format!("`{key}`"), &format!("`{}`", key.replace('-', "_")))
    })
}

/// How to save a model.
pub fn saving(json: &str) -> PyResult<SaveOptions> {
    let options = read(json)?;
    let keep = options.keep_initializers_as_inputs;
    Ok(SaveOptions { keep_initializers_as_inputs: keep, ..options.saving() })
}
