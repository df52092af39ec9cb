//! ATen to ONNX: the lowerings, their registry, and the driver that runs them.
//!
//! [`lower`] translates an FX program (`pt2onnx-fx`) to an ONNX model (`pt2onnx-ir`) of the newest
//! opset. Each op has a lowering: a plain function in a file of `ops/`, listed in that file's `OPS`
//! table, and written with the items of `pt2onnx-lowering`. Lowerings do no IO.
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

mod checks;
mod driver;
pub mod infer;
mod ops;
mod registry;

use checks::checks;
pub use driver::{
    Lowering, Mutations, OpUse, Options, Originals, Provenance, UnsupportedOps, emitted, lower,
    ops_used,
};
pub use ops::tables;
pub use pt2onnx_lowering::{
    ArgError, Args, Arguments, AtenOp, ByName, Complex, Cx, Emitted, Error, FromArg, Function,
    Given, GivenArg, LowerError, Lowered, NodeError, Number, Outputs, Param, ParamType, Parameters,
    Schema, SchemaError, SignatureError, TensorOrScalar, Unbound, arguments, op, table,
};
use pt2onnx_lowering::{args, cx, math, meta};
pub use pt2onnx_tensor::{promote_types, result_type};
pub use registry::{RegisterError, Registry, Translation};
pub use {pt2onnx_fx as fx, pt2onnx_ir as ir};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
