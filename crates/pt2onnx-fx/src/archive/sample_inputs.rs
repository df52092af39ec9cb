//! The inputs that a program was exported with: `data/sample_inputs/NAME.pt`.

use super::{open::Archive, pickle::Value, torch_save::Saved};
use crate::error::Result;
use pt2onnx_tensor::Tensor;

/// The record of PyTorch before 2.7.
const FLAT: &str = "serialized_example_inputs.pt";

/// How many values, lists and dicts are read.
const LIMIT: usize = 1 << 16;

/// One value among the arguments of an export.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum SampleInput {
    Tensor(Tensor),
    /// An `int` or a `bool`.
    Int(i64),
    Float(f64),
    /// `None`, a string, or an object.
    Other,
}

impl Archive {
    /// The arguments of the export, as PyTorch flattens them: args first, then kwargs, each tuple,
    /// list and dict in its order. None if the archive does not have them.
    ///
    /// # Errors
    /// The record is damaged, or has objects of classes that are not PyTorch's own. Nothing is
    /// executed.
    pub fn sample_inputs(&self, model: Option<&str>) -> Result<Option<Vec<SampleInput>>> {
        let only = self.models().next().filter(|_| self.models().count() == 1);
        let model = model.or(only).unwrap_or("model");
        let records = [format!("data/sample_inputs/{model}.pt"), FLAT.to_owned()];
        let Some(record) = records.iter().find(|r| self.records.has(r)) else {
            return Ok(None);
        };
        let (bytes, place) = self.records.required(record)?;
        if bytes.bytes().is_empty() {
            return Ok(None);
        }
        let saved = Saved::new(place, bytes)?;
        let mut leaves = Vec::new();
        saved.leaves(&mut leaves)?;
        Ok(Some(leaves))
    }
}

impl Saved {
    /// Adds all values in PyTorch's order. Hostile pickles nest deep, and hold the same list many
    /// times: there is a limit, and no recursion.
    fn leaves(&self, leaves: &mut Vec<SampleInput>) -> Result<()> {
        let mut open = vec![self.pickle.root_id()];
        for _ in 0..LIMIT {
            let Some(id) = open.pop() else { break };
            let leaf = match self.pickle.get(id) {
                Value::Tuple(items) => {
                    open.extend(items.iter().rev());
                    continue;
                }
                Value::List(items) => {
                    open.extend(items.iter().rev());
                    continue;
                }
                Value::Dict(entries) => {
                    open.extend(entries.iter().rev().map(|&(_, value)| value));
                    continue;
                }
                Value::Int(i) => SampleInput::Int(*i),
                Value::Bool(b) => SampleInput::Int(i64::from(*b)),
                Value::Float(f) => SampleInput::Float(*f),
                Value::Call { .. } => SampleInput::Tensor(self.tensor("sample input", id)?),
                _ => SampleInput::Other,
            };
            leaves.push(leaf);
        }
        Ok(())
    }
}
