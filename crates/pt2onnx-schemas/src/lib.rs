//! The operator schemas of PyTorch and torchvision as constants, in a module for each namespace.
//!
//! The dots of an overload are underscores. The constants are a crate of their own because there are thousands: `pt2onnx-aten`
//! compiles faster without them.
//!
//! ```
//! use pt2onnx_schemas::aten;
//!
//! assert_eq!(aten::relu, "aten::relu(Tensor self) -> Tensor");
//! assert!(aten::add_Tensor.starts_with("aten::add.Tensor("));
//! ```

#[rustfmt::skip]
mod constants;

pub use constants::*;

/// All schemas, one on a line, in the order of their names. Lines that start with `#` are comments.
pub const LIST: &str = include_str!("schemas.txt");
