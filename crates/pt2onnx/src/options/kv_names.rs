//! How the tensors of caches of keys and values are called.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Names of the tensors of caches, as templates: `{layer}` stands for the number of the layer,
/// `{part}` for `key` or `value`, or for `decoder.key` and so on in models with an encoder. The
/// serialised form is that of [`FromStr`].
///
/// ```
/// let names: pt2onnx::KvNames = "past.{layer}.{part},now.{layer}.{part}".parse()?;
/// assert_eq!((&*names.input, &*names.output), ("past.{layer}.{part}", "now.{layer}.{part}"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub struct KvNames {
    /// Those of inputs: `past_key_values.{layer}.{part}`.
    pub input: String,
    /// Those of outputs: `present.{layer}.{part}`.
    pub output: String,
}

impl Default for KvNames {
    fn default() -> Self {
        Self {
            input: "past_key_values.{layer}.{part}".to_owned(),
            output: "present.{layer}.{part}".to_owned(),
        }
    }
}

impl FromStr for KvNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (input, output) = text
            .split_once(',')
            .ok_or("give two names, of inputs and of outputs: `past.{layer}.{part},present.{layer}.{part}`")?;
        let names = Self { input: input.trim().to_owned(), output: output.trim().to_owned() };
        for name in [&names.input, &names.output] {
            let other = name.replace("{layer}", "").replace("{part}", "");
            if other.contains(['{', '}', ','])
                || ["{layer}", "{part}"].iter().any(|part| name.matches(part).count() != 1)
            {
                return Err(format!(
                    "`{name}` must have `{{layer}}` and `{{part}}` in it, each once, and nothing else in braces"
                ));
            }
        }
        if names.input == names.output {
            Err("inputs and outputs must have different names".to_owned())
        } else {
            Ok(names)
        }
    }
}

impl TryFrom<String> for KvNames {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<KvNames> for String {
    fn from(names: KvNames) -> Self {
        format!("{},{}", names.input, names.output)
    }
}
