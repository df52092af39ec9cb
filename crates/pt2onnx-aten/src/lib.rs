//! ATen to ONNX: the registry of lowerings and the driver that runs them.
//!
//! Layer 2, and the one place that knows both worlds: [`lower`] takes an FX program (`pt2onnx-fx`) and gives an ONNX model
//! (`pt2onnx-ir`) in the newest operator forms and the standard's types. Lowerings do no IO.
//! Each op is a plain function in a family file under `ops/`, listed in that file's `OPS` table.

mod args;
mod complex;
mod cx;
mod driver;
mod error;
mod ops;
mod promotion;
mod registry;
mod schema;

pub use args::{ArgError, Args, FromArg, TensorOrScalar};
pub use complex::Complex;
pub use cx::{Cx, Outputs};
pub use driver::{Detail, Lowering, OpUse, Operators, Options, State, lower, ops_used};
pub use error::{Error, LowerError, Lowered, NodeError};
pub use promotion::{promote_types, result_type};
pub use registry::{AtenOp, Function, RegisterError, Registry, Translation, Unbound};

/// What [`aten!`] needs.
#[doc(hidden)]
pub mod table {
    pub use crate::registry::{Complexity, LowerFn, call};
}
pub use schema::{Param, ParamType, Schema};
