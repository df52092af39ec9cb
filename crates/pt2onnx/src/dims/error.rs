//! Errors about names and sizes of dimensions.

/// The reason why dimensions cannot have the names or sizes asked for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts explain them")]
pub enum DimError {
    /// The target is neither a symbol nor an axis.
    #[error(
        "`{target}` is not a dynamic dimension: give one of {symbols}, or an axis of an input, such as `{example}`"
    )]
    Target { target: String, symbols: String, example: String },
    /// The target has the form of an axis, but no value has that name.
    #[error(
        "`{target}` is an axis of `{value}`, and the model has no such value; its inputs: {inputs}"
    )]
    NoInput { target: String, value: String, inputs: String },
    /// No input or output has this name.
    #[error("the dynamic axes name `{0}`, which is neither an input nor an output of the model")]
    NoValue(String),
    /// The value has no such axis.
    #[error("`{value}` has {rank} axes, so there is no axis {axis}")]
    NoAxis { value: String, axis: i64, rank: usize },
    /// The dimension is static.
    #[error(
        "dimension {axis} of `{value}` is {dim}, fixed at export: export with `dynamic_shapes` to make it dynamic"
    )]
    Static { value: String, axis: i64, dim: String },
    /// The dimension is computed from other dimensions.
    #[error(
        "dimension {axis} of `{value}` is `{dim}`, which is computed from other dimensions: name those"
    )]
    Derived { value: String, axis: i64, dim: String },
    /// The name is empty, or one that models use for unknown sizes.
    #[error(
        "`{0}` cannot be the name of a dimension: give one that is not empty and does not start with `?`"
    )]
    Name(String),
    /// A name is a number, which a dimension has as its size.
    #[error(
        "`{target}` would be called `{name}`, which is a number: make it that size by the option `fix-dim`"
    )]
    Number { target: String, name: String },
    /// A dimension has a size, and so nothing to name.
    #[error("`{target}` is given the name `{name}` and a size, which leaves nothing to name")]
    Fixed { target: String, name: String },
    /// One symbol is given two names.
    #[error("the dimension `{symbol}` is given two names, `{first}` and `{second}`")]
    Twice { symbol: String, first: String, second: String },
    /// Two symbols that are never equal are given one name.
    #[error("`{symbol}` and `{other}` cannot both be called `{name}`: they are never equal")]
    Different { symbol: String, other: String, name: String },
    /// Another symbol has this name.
    #[error(
        "`{symbol}` cannot be called `{name}`, which is the name of another dimension: rename that one too"
    )]
    Taken { symbol: String, name: String },
    /// A shape is given for an input that the model does not have.
    #[error("the model has no input `{name}` to be given a shape; its inputs: {inputs}")]
    NoSuchInput { name: String, inputs: String },
    /// A shape is given for an input that is not a tensor.
    #[error("the input `{0}` is no tensor, and has no shape")]
    NoTensor(String),
    /// A shape has another number of dimensions than the input.
    #[error(
        "the shape {shape} of {given} dimensions is given for the input `{name}`, which has {rank}"
    )]
    Rank { name: String, shape: String, given: usize, rank: usize },
    /// The text is neither a size nor a name.
    #[error("`{target}` cannot be `{text}`: give a size, a name or `?`")]
    NoSize { target: String, text: String },
    /// With the given sizes, a value has too many elements.
    #[error("with these sizes `{0}` has more elements than a tensor can have")]
    TooLarge(String),
    /// The program does not allow this size.
    #[error("`{target}` cannot be {size}: {reason}")]
    Size { target: String, size: i64, reason: String },
}
