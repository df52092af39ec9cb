//! Why values cannot have the names asked for.

/// Why values cannot be called so.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// More names than there are inputs or outputs.
    #[error("{given} {what} names are given, but the program has {has}: {names}")]
    #[expect(missing_docs, reason = "the text explains them")]
    Surplus { what: &'static str, given: usize, has: usize, names: String },
    /// A name is given to two values.
    #[error("the name `{0}` is given twice")]
    Duplicate(
        /// The name.
        String,
    ),
    /// Two names are given to one value.
    #[error("`{old}` is given two names, `{first}` and `{second}`")]
    #[expect(missing_docs, reason = "the text explains them")]
    Twice { old: String, first: String, second: String },
    /// Something else is called so already.
    #[error("`{old}` cannot be called `{new}`, which is the name of {holder}")]
    #[expect(missing_docs, reason = "the text explains them")]
    Clash { old: String, new: String, holder: &'static str },
    /// No value is called so.
    #[error("there is no value `{0}` to rename: the program has none, or it was optimised away")]
    Unknown(
        /// The name.
        String,
    ),
    /// The empty name means that there is no value.
    #[error("`{0}` is given an empty name")]
    Empty(
        /// Its name until now.
        String,
    ),
    /// The archive does not tell how the outputs nest.
    #[error("the outputs cannot be named from the tree: the archive does not tell how they nest")]
    NoTree,
}
