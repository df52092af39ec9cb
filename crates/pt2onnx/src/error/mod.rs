//! Errors: one enum for all stages, and the parts of a program that cannot be translated.

mod export;
mod failure;
mod reported;

pub use export::Error;
pub use failure::{Failure, Reason};
pub(crate) use failure::{of_lowering, of_passes};
pub use reported::Failed;
