//! The reasons why fusions do not apply.

/// Why a fusion did not replace nodes that its pattern found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NoFusion {
    /// The nodes are not those that the fusion is for.
    NoMatch,
    /// The replacement would be the same nodes again.
    NoEffect,
    /// A condition does not hold: a clause such as "the sizes are not known".
    Because(&'static str),
}

/// Gives a reason where a condition of a fusion does not hold.
pub trait Because {
    /// The value if it holds.
    type Output;

    /// The value.
    ///
    /// # Errors
    /// [`NoFusion::Because`] of the reason, if there is none, or the condition is false.
    fn because(self, reason: &'static str) -> Result<Self::Output, NoFusion>;
}

impl<T> Because for Option<T> {
    type Output = T;

    fn because(self, reason: &'static str) -> Result<T, NoFusion> {
        self.ok_or(NoFusion::Because(reason))
    }
}

impl Because for bool {
    type Output = ();

    fn because(self, reason: &'static str) -> Result<(), NoFusion> {
        if self { Ok(()) } else { Err(NoFusion::Because(reason)) }
    }
}
