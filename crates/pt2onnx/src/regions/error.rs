//! Models of one program that cannot be one model.

use super::tree::{MAX_DEPTH, MAX_LEAVES};
use pt2onnx_opt::SizeCheckError;

/// Models of one program cannot become one model
/// ([`OnnxProgram::choose`](crate::OnnxProgram::choose)).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// No leaf is a model, or no size leads to one.
    #[error("no model is for any of the sizes")]
    None,
    /// A decision tree with too many leaves.
    #[error("the decision tree has more than {MAX_LEAVES} leaves, or is deeper than {MAX_DEPTH}")]
    TooLarge,
    /// A leaf is a model that is not there.
    #[error("the decision tree has the model {model}, but there are {count}")]
    NoModel {
        /// Its position.
        model: usize,
        /// The number of models.
        count: usize,
    },
    /// A condition is about a size that is not given.
    #[error("the condition `{condition}` is about `{symbol}`, which is not a size of an input{}", listed(.known))]
    Symbol {
        /// The condition.
        condition: String,
        /// The size.
        symbol: String,
        /// The sizes that are given.
        known: Vec<String>,
    },
    /// An axis that no input has.
    #[error("the size `{symbol}` is the axis {axis} of `{input}`, but no input has it")]
    NoAxis {
        /// The size.
        symbol: String,
        /// The input.
        input: String,
        /// The axis.
        axis: usize,
    },
    /// Two models differ in an input or output.
    #[error("the {end} `{name}` is {first} in one model and {second} in another")]
    Differ {
        /// `input` or `output`.
        end: &'static str,
        /// Its name.
        name: String,
        /// Its type in one model.
        first: String,
        /// Its type in another.
        second: String,
    },
    /// Two models have other outputs.
    #[error("the outputs are {} in one model and {} in another", .first.join(", "), .second.join(", "))]
    Outputs {
        /// Those of one model.
        first: Vec<String>,
        /// Those of another.
        second: Vec<String>,
    },
    /// A condition cannot be computed.
    #[error(transparent)]
    Condition(#[from] SizeCheckError),
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(": these are {}", known.join(", ")) }
}
