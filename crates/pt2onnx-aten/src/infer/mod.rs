//! Types of the results of single nodes, for programs without PyTorch's records: TorchScript.
//!
//! [`Registry::infer`](crate::Registry::infer) returns what `torch.export` would have recorded: the
//! result of the meta function of the op's row, or else the types of what its lowering emits in a
//! scratch model, if it never reads a record. Where neither is known, it is an error.

mod node;
mod scratch;

use pt2onnx_fx::graph::{Name, Values};
pub use pt2onnx_fx::{Contents, Outcome, Typed};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::DType;
use rustc_hash::FxHashMap;

/// Facts about the values that a node reads.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Their types by name.
    pub values: &'a Values,
    /// Their elements by name, where they are known.
    pub contents: &'a FxHashMap<Name, Contents>,
    /// Ranges and relations of the symbols in sizes.
    pub constraints: &'a Constraints,
    /// The type of floats that have no other: `torch.get_default_dtype()` of the process that ran
    /// the program.
    pub default_dtype: DType,
}

/// Gives new symbols: for sizes and integers that depend on data, and for floats if called with
/// `true`.
pub type NewSymbol<'a> = dyn FnMut(bool) -> Expr + 'a;
