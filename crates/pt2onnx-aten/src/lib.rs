//! ATen to ONNX: the registry of lowerings and the driver that runs them.
//!
//! [`lower`] translates an FX program (`pt2onnx-fx`) to an ONNX model (`pt2onnx-ir`) of the newest opset. Only this crate knows
//! both PyTorch and ONNX. Each op has a lowering: a plain function in a file of `ops/`, listed in that file's `OPS` table.
//! Lowerings do no IO.
//!
//! ```
//! use pt2onnx_aten::{Options, Registry, lower};
//! use pt2onnx_fx::{archive, passes};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
//! let mut program = archive::read(path)?;
//! passes::prepare(&mut program)?;
//! let lowering = lower(&program, &Registry::default(), Options::default())?;
//! assert_eq!(lowering.model.outputs().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod args;
mod cx;
mod driver;
mod error;
pub mod infer;
mod math;
mod op;
mod ops;
mod registry;
mod schema;
#[cfg(test)]
mod testing;

pub use args::{Args, FromArg, Given, GivenArg};
pub use cx::{Cx, Number, Outputs, TensorOrScalar};
pub use driver::{
    Detail, Lowering, OpUse, Operators, Options, Originals, State, emitted, lower, ops_used,
};
pub use error::{ArgError, Emitted, Error, LowerError, Lowered, NodeError, SignatureError};
pub use math::complex::Complex;
pub use op::{Arguments, AtenOp, ByName, Function, Parameters, Unbound};
pub use pt2onnx_tensor::{promote_types, result_type};
pub use registry::{RegisterError, Registry, Translation};

/// What the macros `op!` and `arguments!` need.
#[doc(hidden)]
pub mod table {
    pub use crate::args::Claims;
    pub use crate::op::{Complexity, Row};
    pub use pt2onnx_schemas as schemas;
}
pub use schema::{Param, ParamType, Schema};
