//! Options as Python gives them: JSON with the keys of the command's flags.

use pt2onnx::{Options, SaveOptions, Spelling, in_words};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Reads options. Missing ones have their defaults.
pub fn read(json: &str) -> PyResult<Options> {
    let mut options: Options = serde_json::from_str(json)
        .map_err(|e| PyValueError::new_err(wrong(json).unwrap_or(e.to_string())))?;
    options.spelling = Spelling::Snake;
    Ok(options)
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
        let parameter = key.replace('-', "_");
        let why = in_words(&why.to_string());
        Some(format!("the option `{parameter}` cannot have this value: {why}"))
    })
}

/// How to save a model.
pub fn saving(json: &str) -> PyResult<SaveOptions> {
    let options = read(json)?;
    let keep = options.keep_initializers_as_inputs;
    Ok(SaveOptions { keep_initializers_as_inputs: keep, ..options.saving() })
}
