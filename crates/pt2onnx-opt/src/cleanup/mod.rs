//! Clean-up: nodes that do nothing are removed, chains of nodes that one node can do are merged.

mod broadcast;
mod chain;
mod noop;
mod parts;
mod seen;
mod walk;

pub(crate) use walk::run;
