//! Clean-up: nodes that do nothing are removed, chains of nodes that one node can do are merged.

mod broadcast;
mod chain;
mod guards;
mod kept;
mod merged;
mod noop;
mod ones;
mod parts;
mod picks;
mod rest;
mod seen;
mod sequences;
mod states;
mod through;
mod walk;

pub(crate) use walk::run;
