//! `.pt2` archives. The one module that touches files: records are found through the zip's central directory and
//! mapped, never read; tensors are views of the mapping. Nothing is executed, and of pickles only plain data are read.

mod open;
mod payload;
mod pickle;
mod program;
mod records;
mod torch_save;
mod torch_types;

pub use open::Archive;
pub use program::{from_json, read};
pub use torch_save::state_dict;
