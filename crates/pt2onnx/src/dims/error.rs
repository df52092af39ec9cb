//! Why dimensions cannot have the names or sizes asked for.

/// Why dimensions cannot be called so, or cannot have that size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts explain them")]
pub enum DimError {
    /// Neither a symbol nor an axis.
    #[error(
        "`{target}` is no dynamic dimension: give one of {symbols}, or VALUE.AXIS such as `x.0`"
    )]
    Target { target: String, symbols: String },
    /// No value of this name is there.
    #[error("the dynamic axes name `{0}`, which is neither input nor output of the model")]
    NoValue(String),
    /// The value has fewer axes.
    #[error("`{value}` has {rank} axes, there is no axis {axis}")]
    NoAxis { value: String, axis: i64, rank: usize },
    /// The dimension is no symbol.
    #[error(
        "dimension {axis} of `{value}` is {dim}, fixed at export: export with `dynamic_shapes` to make it dynamic"
    )]
    Static { value: String, axis: i64, dim: String },
    /// The dimension follows from others.
    #[error(
        "dimension {axis} of `{value}` is `{dim}`, which follows from others: name those in it"
    )]
    Derived { value: String, axis: i64, dim: String },
    /// Expressions could not be read any more.
    #[error("`{0}` cannot name a dimension: letters, digits and underscores can, no digit first")]
    Name(String),
    /// One symbol, two names.
    #[error("the dimension `{symbol}` is given two names, `{first}` and `{second}`")]
    Twice { symbol: String, first: String, second: String },
    /// Two symbols that are never equal, one name.
    #[error("`{symbol}` and `{other}` cannot both be called `{name}`: they are never equal")]
    Different { symbol: String, other: String, name: String },
    /// Another symbol is called so.
    #[error("`{symbol}` cannot be called `{name}`, which is another dimension: name that one too")]
    Taken { symbol: String, name: String },
    /// The program does not work for that size.
    #[error("`{target}` cannot be {size}: {reason}")]
    Size { target: String, size: i64, reason: String },
}
