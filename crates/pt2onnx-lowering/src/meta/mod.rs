//! Meta functions: element types and sizes of results, from those of the operands.
//!
//! A row's column `meta =` names the function that stands for PyTorch's record where a program has
//! none (TorchScript). Its parameters are bound like those of a lowering, but it need not take all
//! arguments. Its values have PyTorch's types: complex tensors are not real/imaginary pairs. It
//! returns values that only have a type.
//!
//! Functions of one family stand beside its lowerings; these are shared by several.

mod like;
mod pointwise;
mod reduce;
mod shape;
mod types;

pub use like::*;
pub use pointwise::*;
pub use reduce::*;
pub use shape::*;
pub use types::*;
