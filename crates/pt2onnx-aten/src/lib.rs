//! ATen to ONNX: the registry of lowerings and the driver that runs them.
//!
//! Layer 2, and the one place that knows both worlds: [`lower`] takes an FX program (`pt2onnx-fx`) and gives an ONNX model
//! (`pt2onnx-ir`) in the newest operator forms and the standard's types. Lowerings do no IO.
//! Each op is a plain function in a family file under `ops/`, listed in that file's `OPS` table.
//! Alone it serves whoever has programs that no archive holds, or wants to know what becomes of an op:
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
mod complex;
mod cx;
mod driver;
mod error;
mod math;
mod ops;
mod promotion;
mod registry;
mod schema;

pub use args::{ArgError, Args, FromArg, TensorOrScalar};
pub use complex::Complex;
pub use cx::{Cx, Outputs};
pub use driver::{
    Detail, Emitted, Lowering, OpUse, Operators, Options, State, emitted, lower, ops_used,
};
pub use error::{Error, LowerError, Lowered, NodeError, SignatureError};
pub use pt2onnx_tensor::{promote_types, result_type};
pub use registry::{AtenOp, Function, RegisterError, Registry, Translation, Unbound};

/// What [`aten!`] needs.
#[doc(hidden)]
pub mod table {
    pub use crate::registry::{Complexity, LowerFn, call};
}
pub use schema::{Param, ParamType, Schema};
