//! Tensors that share memory, and writes that all of them see.

pub(crate) mod conditional;
pub(crate) mod graph;
pub(crate) mod identity_results;
pub(crate) mod inplace_view;
pub(crate) mod may_alias;
pub(crate) mod writes;
