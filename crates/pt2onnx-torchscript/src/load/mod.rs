//! From the records of an archive to values: objects, inputs, and attributes that calls change.

pub(crate) mod inputs;
pub(crate) mod module_state;
pub(crate) mod pickle;
pub(crate) mod trace;
pub(crate) mod value_numbering;
