//! How inputs and outputs are named.

use serde::{Deserialize, Serialize};
use std::{convert::Infallible, str::FromStr};

/// The names of the inputs, or of the outputs. As text: `a,b`, or `from-tree`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
#[non_exhaustive]
pub enum IoNames {
    /// In order. Inputs and outputs after the last name keep their own.
    List(Vec<String>),
    /// The parameters, keys and fields that lead to an input in the arguments, or to an output in
    /// the dict or dataclass that the program returns: `hidden_0`. An output that is only in tuples
    /// and lists keeps its name. Tensors of caches have the names of
    /// [`KvNames`](crate::KvNames). The serialised form is `"from-tree"`.
    FromTree,
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "give a list of names, or \"from-tree\"")]
enum Form {
    List(Vec<String>),
    Word(Word),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    FromTree,
}

impl Default for IoNames {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl IoNames {
    /// The listed names; none if they come from the tree.
    pub fn listed(&self) -> &[String] {
        match self {
            Self::List(names) => names,
            Self::FromTree => &[],
        }
    }
}

impl<const N: usize> From<[&str; N]> for IoNames {
    fn from(names: [&str; N]) -> Self {
        Self::List(names.map(str::to_owned).into())
    }
}

impl FromStr for IoNames {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "from-tree" => Self::FromTree,
            names => Self::List(names.split(',').map(|name| name.trim().to_owned()).collect()),
        })
    }
}

impl From<Form> for IoNames {
    fn from(form: Form) -> Self {
        match form {
            Form::List(names) => Self::List(names),
            Form::Word(Word::FromTree) => Self::FromTree,
        }
    }
}

impl From<IoNames> for Form {
    fn from(names: IoNames) -> Self {
        match names {
            IoNames::List(names) => Self::List(names),
            IoNames::FromTree => Self::Word(Word::FromTree),
        }
    }
}
