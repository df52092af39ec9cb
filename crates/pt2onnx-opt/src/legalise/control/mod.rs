//! Replaces operators with bodies, and operators by bodies: `If`, `Loop`, `Scan`, `SequenceMap`,
//! and cumulative sums.

pub(super) mod bodies;
pub(super) mod running;
