//! Reads `.pt2` archives. This is the only module that opens files.
//!
//! Files are mapped into memory, and tensors are views of the mapping, so no weight is read until
//! it is used. Nothing in a file is executed: pickles are read as plain data.

mod headers;
mod open;
mod payload;
pub mod pickle;
mod program;
mod records;
mod sample_inputs;
mod sniff;
mod stored_tensor;
mod torch_save;

pub use crate::element_types::{c10_number, dtype_of_c10, element_type, storage_type};
pub use open::Archive;
pub use program::{from_json, read, read_bytes};
pub use records::Records;
pub use sample_inputs::SampleInput;
pub use sniff::{START, other_file};
pub use stored_tensor::StoredTensor;
pub use torch_save::state_dict;
