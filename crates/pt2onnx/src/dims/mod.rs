//! Names and sizes that the user gives to dynamic dimensions.

mod apply;
mod error;
mod fix;
mod lookup;
mod outputs;
mod rename;
mod shapes;
mod symbols;

pub(crate) use apply::apply;
pub use error::DimError;
pub(crate) use outputs::name_outputs;
pub(crate) use symbols::{Scope, substitute, substituted, symbols};
