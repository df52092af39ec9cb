//! TorchScript archives: what `torch.jit.save` writes, flattened into programs of ATen calls.
//!
//! Above `fx`, and without knowledge of ONNX. Nothing in a file is executed: the interpreter runs over types, with budgets.

pub mod schema;
pub mod syntax;
pub mod types;
