//! Errors: one enum for all stages, its kinds, and the parts of a program that cannot be
//! translated.

mod export;
mod failure;
mod kind;

pub use export::Error;
pub use failure::{Failure, Reason};
pub(crate) use failure::{of_lowering, of_passes};
pub use kind::ErrorKind;
