//! Names of axes in the form of `torch.onnx.export`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Dynamic axes in the form of `torch.onnx.export`: for each input or output, names of its axes, or
/// the axes to be named `x_dynamic_axes_1` and so on. The text form is JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "IndexMap<String, Axes>", into = "IndexMap<String, IndexMap<String, String>>")]
pub struct DynamicAxes(Vec<(String, i64, String)>);

/// A text that gives no dynamic axes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the dynamic axes are not understood: {0}; give {{\"x\": {{\"0\": \"batch\"}}}} or {{\"x\": [0]}}"
)]
pub struct DynamicAxesError(
    /// The problem.
    String,
);

/// The axes of one value.
#[derive(Deserialize)]
#[serde(untagged, expecting = "give a table of names by axis, or a list of axes")]
enum Axes {
    Names(IndexMap<String, String>),
    List(Vec<i64>),
}

impl DynamicAxes {
    /// Names an axis of an input or output.
    pub fn name(mut self, value: &str, axis: i64, name: &str) -> Self {
        self.0.push((value.to_owned(), axis, name.to_owned()));
        self
    }

    /// Value, axis and name of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, i64, &str)> {
        self.0.iter().map(|(value, axis, name)| (value.as_str(), *axis, name.as_str()))
    }
}

impl FromStr for DynamicAxes {
    type Err = DynamicAxesError;

    fn from_str(text: &str) -> Result<Self, DynamicAxesError> {
        serde_json::from_str(text).map_err(|e| DynamicAxesError(e.to_string()))
    }
}

impl TryFrom<IndexMap<String, Axes>> for DynamicAxes {
    type Error = String;

    fn try_from(values: IndexMap<String, Axes>) -> Result<Self, String> {
        let mut all = Self::default();
        for (value, axes) in values {
            match axes {
                Axes::Names(names) => {
                    for (axis, name) in names {
                        let number = axis.parse().map_err(|_| {
                            format!("`{axis}` of `{value}` is not the number of an axis")
                        })?;
                        all = all.name(&value, number, &name);
                    }
                }
                Axes::List(list) => {
                    for (i, axis) in list.into_iter().enumerate() {
                        let name = format!("{value}_dynamic_axes_{}", i + 1);
                        all = all.name(&value, axis, &name);
                    }
                }
            }
        }
        Ok(all)
    }
}

impl From<DynamicAxes> for IndexMap<String, IndexMap<String, String>> {
    fn from(axes: DynamicAxes) -> Self {
        let mut values = Self::new();
        for (value, axis, name) in axes.0 {
            values.entry(value).or_default().insert(axis.to_string(), name);
        }
        values
    }
}
