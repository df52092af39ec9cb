//! Why values cannot have the names asked for.

/// Why values cannot have the names asked for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// More names than there are inputs or outputs.
    #[error("{given} {what} names are given, but these are all {what}s of the program: {names}{}", and_weights(*.weights))]
    #[expect(missing_docs, reason = "the text explains them")]
    Surplus { what: &'static str, given: usize, has: usize, weights: usize, names: String },
    /// A name is given to two values.
    #[error("the name `{0}` is given to two values")]
    Duplicate(
        /// The name.
        String,
    ),
    /// Two names are given to one value.
    #[error("`{old}` is given two names, `{first}` and `{second}`")]
    #[expect(missing_docs, reason = "the text explains them")]
    Twice { old: String, first: String, second: String },
    /// Another input, output or weight has this name.
    #[error("`{old}` cannot be called `{new}`, which is the name of {holder}")]
    #[expect(missing_docs, reason = "the text explains them")]
    Clash { old: String, new: String, holder: &'static str },
    /// No value has this name.
    #[error(
        "there is no value `{0}` to rename: the program has none of that name, or the optimiser removed it"
    )]
    Unknown(
        /// The name.
        String,
    ),
    /// The new name is empty, which stands for a missing value in ONNX.
    #[error("`{0}` is given an empty name")]
    Empty(
        /// The old name.
        String,
    ),
    /// The archive does not have the trees of inputs and outputs.
    #[error("the {0} cannot be named from the tree: the archive does not say how they nest")]
    NoTree(
        /// `inputs` or `outputs`.
        &'static str,
    ),
}

/// The values after the inputs that names may be given for.
fn and_weights(weights: usize) -> String {
    match weights {
        0 => String::new(),
        n => format!("; it has {n} parameters and buffers besides"),
    }
}
