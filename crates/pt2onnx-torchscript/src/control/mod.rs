//! Control flow that sizes or data decide: branches are joined, loops are widened to a fixpoint.

pub(crate) mod branch;
pub(crate) mod case_split;
pub(crate) mod fork_join;
pub(crate) mod higher_order;
pub(crate) mod join;
#[cfg(test)]
mod join_tests;
pub(crate) mod loop_carried;
pub(crate) mod loop_effects;
pub(crate) mod loop_heap;
pub(crate) mod phi;
pub(crate) mod while_loop;
