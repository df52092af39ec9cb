//! Warnings, by kind: differences between a program and its model.

use crate::group::group;
use serde::Serialize;
use std::{fmt, hash::Hash};

/// A warning of an export, or of reading a model.
///
/// ```
/// use pt2onnx_report::{Warning, WarningKind};
///
/// let warning = Warning::new(WarningKind::Output, "output 1 is None, and left out");
/// assert_eq!(warning.to_string(), "output 1 is None, and left out");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// Its subject.
    pub kind: WarningKind,
    /// The whole text.
    pub message: String,
    /// The subject: the text without places and numbers.
    #[serde(skip)]
    about: Option<String>,
}

/// The subject of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// An output of the program is not a tensor, and left out.
    Output,
    /// The model of a TorchScript program is specialised for some sizes.
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
    /// A file has parts that are not kept.
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

    /// Sets the subject of the message: the text without places and numbers. Many warnings of one
    /// kind about one subject are shown as one ([`grouped`]).
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = Some(about.into());
        self
    }

    /// The key of warnings that belong together.
    fn key(&self) -> (WarningKind, &str) {
        (self.kind, self.about.as_deref().unwrap_or(&self.message))
    }

    /// Warnings of one kind about one subject, in different parts of the program.
    pub fn all(
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

/// Warnings about one subject are listed one by one if there are fewer, and grouped otherwise.
const GROUPED: usize = 5;

/// Groups warnings, each given with its origin: equal warnings of one origin, and five or more
/// warnings about one subject. Groups are in the order of their first warnings.
///
/// ```
/// use pt2onnx_report::{Warning, WarningKind, grouped};
///
/// let warning = |i| {
///     Warning::new(WarningKind::Output, format!("output {i} is None")).about("is None")
/// };
/// let warnings: Vec<_> = (0..60).map(warning).collect();
/// let groups = grouped(warnings.iter().map(|w| (&(), w)));
/// assert_eq!(groups.len(), 1);
/// assert_eq!(groups[0].to_string(), "output 0 is None, and 59 more warnings like this");
/// ```
pub fn grouped<'a, P: Eq + Hash>(
    warnings: impl IntoIterator<Item = (&'a P, &'a Warning)>,
) -> Vec<WarningGroup<'a, P>> {
    let equal = group(warnings, 1, |(from, w)| (*from, w.kind, w.message.as_str()));
    let same = group(equal, GROUPED, |equal| equal.first().map(|(_, w)| w.key()));
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
