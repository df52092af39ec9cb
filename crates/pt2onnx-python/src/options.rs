//! Options as Python gives them: JSON with the keys of the command's flags.

use pt2onnx::{Options, SaveOptions, Spelling, in_words};
use pyo3::{exceptions::PyValueError, prelude::*};

/// The key of attributes of modules, which files of options have not.
const MODULE_ATTRIBUTES: &str = "module-attributes";

/// Reads options. Missing ones have their defaults.
pub fn read(json: &str) -> PyResult<Options> {
    let invalid = |e: serde_json::Error| PyValueError::new_err(e.to_string());
    let mut given: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).map_err(invalid)?;
    let attributes = given.remove(MODULE_ATTRIBUTES).map(serde_json::from_value);
    let mut options: Options = serde_json::from_value(given.clone().into())
        .map_err(|e| PyValueError::new_err(wrong(given).unwrap_or(e.to_string())))?;
    options.spelling = Spelling::Snake;
    options.module_attributes = attributes.transpose().map_err(invalid)?;
    Ok(options)
}

/// The opset, if options name one.
pub fn opset(json: &str) -> Option<u32> {
    let given: serde_json::Value = serde_json::from_str(json).ok()?;
    given.get("opset")?.as_u64()?.try_into().ok()
}

/// Which option cannot be, and why.
fn wrong(given: serde_json::Map<String, serde_json::Value>) -> Option<String> {
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
