//! Names and sizes that the user gives to dynamic dimensions.

mod apply;
mod error;
mod fix;
mod lookup;
mod rename;
mod shapes;
mod symbols;

pub(crate) use apply::apply;
pub use error::DimError;
pub(crate) use symbols::{Scope, substitute, substituted, symbols};
