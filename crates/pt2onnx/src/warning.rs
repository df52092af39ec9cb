//! Warnings: what a model does not have or do as the program does, by kind.

use crate::alike;
use serde::Serialize;
use std::{fmt, hash::Hash};

/// A warning of an export, or of reading a model.
///
/// ```
/// use pt2onnx::{Exporter, WarningKind};
///
/// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
/// let program = Exporter::new().export(archive)?;
/// for warning in program.warnings().iter().filter(|w| w.kind != WarningKind::Training) {
///     eprintln!("{warning}");
/// }
/// # Ok::<(), pt2onnx::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The whole text.
    pub message: String,
    /// The text without what differs from place to place.
    #[serde(skip)]
    about: Option<String>,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// An output of the program is no tensor, and left out.
    Output,
    /// A TorchScript program does for some sizes what the model does not.
    Specialised,
    /// The archive has other programs, too.
    Programs,
    /// The program was exported in training mode.
    Training,
    /// The program writes into tensors, and the new values are lost.
    State,
    /// The archive has no values for weights.
    Weights,
    /// The model draws random numbers.
    Random,
    /// A version is given for a domain that no node uses.
    Domain,
    /// No function was made of a module.
    Functions,
    /// The runtime has no kernel for a node.
    Target,
    /// An option that compresses weights has no effect.
    Compression,
    /// A file has what is not kept.
    NotKept,
    /// A part of a model cannot be optimised.
    Unoptimised,
    /// Weights of a model were inputs as well, and are no inputs any more.
    Inputs,
}

impl Warning {
    /// A warning.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), about: None }
    }

    /// Sets what the message says, without the place or the number that it tells of. Many warnings
    /// of one kind about the same are shown as one ([`grouped`]).
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = Some(about.into());
        self
    }

    /// What is the same in warnings that belong together.
    fn key(&self) -> (WarningKind, &str) {
        (self.kind, self.about.as_deref().unwrap_or(&self.message))
    }

    /// Warnings of one kind, all of which say the same of different parts of the program.
    pub(crate) fn all(
        kind: WarningKind,
        messages: impl IntoIterator<Item = String>,
    ) -> impl Iterator<Item = Self> {
        messages.into_iter().map(move |message| Self::new(kind, message).about(""))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Warnings that are shown as one.
#[derive(Debug)]
pub struct WarningGroup<'a, P> {
    /// Where the first of them is from.
    pub from: &'a P,
    /// The first of them.
    pub example: &'a Warning,
    /// How many there are besides it.
    pub others: usize,
}

/// So many warnings about the same are shown one by one, if their texts differ.
const FEW: usize = 4;

/// Warnings as people read them, each with where it is from: equal ones from one place once, and of
/// more than four about the same the first, in the order of the first of each.
///
/// ```
/// use pt2onnx::{Warning, WarningKind, grouped};
///
/// let warning = |i| Warning::new(WarningKind::Output, format!("output {i} is None")).about("is None");
/// let warnings: Vec<_> = (0..60).map(warning).collect();
/// let groups = grouped(warnings.iter().map(|w| (&(), w)));
/// assert_eq!(groups.len(), 1);
/// assert_eq!(groups[0].to_string(), "output 0 is None, and 59 more warnings like this");
/// ```
pub fn grouped<'a, P: Eq + Hash>(
    warnings: impl IntoIterator<Item = (&'a P, &'a Warning)>,
) -> Vec<WarningGroup<'a, P>> {
    let equal = alike(warnings, 0, |(from, w)| (*from, w.kind, w.message.as_str()));
    let same = alike(equal, FEW, |equal| equal.first().map(|(_, w)| w.key()));
    let shown = same.into_iter().map(|groups| groups.into_iter().flatten());
    shown
        .filter_map(|mut group| {
            let (from, example) = group.next()?;
            Some(WarningGroup { from, example, others: group.count() })
        })
        .collect()
}

impl<P> fmt::Display for WarningGroup<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.example)?;
        match self.others {
            0 => Ok(()),
            1 => f.write_str(", and 1 more warning like this"),
            others => write!(f, ", and {others} more warnings like this"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_become_one_and_few_stay() {
        let one = |text: &str| Warning::new(WarningKind::Specialised, text).about("same");
        let other = Warning::new(WarningKind::Output, "same");
        let shown = |warnings: &[Warning]| -> Vec<String> {
            grouped(warnings.iter().map(|w| (&(), w))).iter().map(ToString::to_string).collect()
        };
        let four = ["a", "b", "c", "d"].map(one);
        assert_eq!(shown(&four), ["a", "b", "c", "d"]);
        assert_eq!(
            shown(&[one("a"), other.clone(), one("a")]),
            ["a, and 1 more warning like this", "same"]
        );
        let five = [&four[..], &[one("e"), other, one("e")]].concat();
        assert_eq!(shown(&five), ["a, and 5 more warnings like this", "same"]);
        assert_eq!(shown(&[]), [] as [&str; 0]);
    }
}
