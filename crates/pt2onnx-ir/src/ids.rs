//! Ids of the values, nodes, regions, origins and calls of modules of a model.

use std::num::NonZeroU32;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// Position in the arena. Positions count up from 0 in the order of creation.
            pub fn index(self) -> usize {
                self.0.get() as usize - 1
            }

            pub(crate) fn new(index: usize) -> Self {
                // An arena of 2^32 entries would take hundreds of gigabytes before this could
                // saturate.
                let number = u32::try_from(index).ok().and_then(|i| NonZeroU32::MIN.checked_add(i));
                Self(number.unwrap_or(NonZeroU32::MAX))
            }
        }
    )*};
}
ids! {
    /// A value: a graph input, a constant or a node's output.
    Value
    /// A node.
    NodeId
    /// A region: the main graph, a body of `If`, `Loop` or `Scan`, or a function's body.
    RegionId
    /// An origin: a node of the source program.
    OriginId
    /// A call of a module in the source program.
    ModuleId
}

impl RegionId {
    /// The main graph of every model.
    pub(crate) const MAIN: Self = Self(NonZeroU32::MIN);
}
