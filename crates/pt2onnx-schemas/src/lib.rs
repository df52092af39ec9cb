//! The operator schemas of PyTorch and torchvision as constants, in a module for each namespace,
//! and a parser of schemas.
//!
//! The dots of an overload are underscores. The constants are a separate crate because there are
//! thousands: `pt2onnx-aten` compiles faster without them.
//!
//! ```
//! use pt2onnx_schemas::{Schema, aten};
//!
//! assert_eq!(aten::relu, "aten::relu(Tensor self) -> Tensor");
//! let schema = Schema::parse(aten::add_Tensor).unwrap();
//! assert_eq!((schema.name, schema.overload), ("add", "Tensor"));
//! assert_eq!((schema.params[2].name, schema.params[2].default), ("alpha", Some("1")));
//! ```

#[path = "generated/constants.rs"]
#[rustfmt::skip]
mod constants;
mod parse;
mod writers;

pub use constants::*;
pub use parse::{Param, Schema, SchemaError, Slot, Type, items};
pub use writers::{Variant, Writes, functional_name, returns_alias, writes};

/// All schemas, one on a line, in the order of their names. Lines that start with `#` are comments.
pub const LIST: &str = include_str!("schemas.txt");

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
