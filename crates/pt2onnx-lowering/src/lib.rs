//! The parts of lowerings of ATen ops: their context, their arguments, rows of op tables, and
//! shared formulas and meta functions.
//!
//! Layer 2. `pt2onnx-aten` has PyTorch's ops, their registry, and the driver that runs lowerings
//! over a program.
//!
#![doc = include_str!("../README.md")]

pub mod args;
pub mod cx;
mod default;
mod error;
pub mod math;
pub mod meta;
mod op;
mod param_type;
mod schema;

pub use args::{Args, FromArg, Given, GivenArg};
pub use cx::{Cx, Number, Outputs, TensorOrScalar};
pub use error::{ArgError, Emitted, Error, LowerError, Lowered, NodeError, SignatureError};
pub use math::complex::Complex;
pub use op::{Arguments, AtenOp, ByName, Function, Parameters, Unbound};
pub use param_type::ParamType;
pub use pt2onnx_ir as ir;
pub use schema::{Param, Schema, SchemaError};

/// Items that the macros `op!` and `arguments!` need.
#[doc(hidden)]
pub mod table {
    pub use crate::args::Claims;
    pub use crate::op::{Complexity, Lower, Row};
    pub use pt2onnx_schemas as schemas;
}
