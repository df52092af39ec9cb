//! Several models of one program, each right in a region of sizes, as one model: a decision tree of
//! `If`s.
//!
//! Paths of the tree that no sizes take are closed by proof. Each model is a branch; weights are
//! stored once, and what branches begin and end with stands before and behind them. Sizes outside
//! of all regions fail at run time.

mod error;
mod facts;
mod interface;
mod merge;
mod tree;
mod weights;

pub use error::ChooseError;
pub(crate) use interface::Places;
pub(crate) use merge::{Decision, merge, regions};
pub use tree::Tree;

/// Key in the metadata of a model: the conditions on sizes under which it is right, as a JSON list
/// of texts over names of dimensions.
pub(crate) const CONDITIONS: &str = "pkg.pt2onnx.conditions";
