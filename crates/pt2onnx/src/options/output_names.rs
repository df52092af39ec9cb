//! How inputs and outputs are named.

use serde::{Deserialize, Serialize};

/// The names of the inputs.
pub type InputNames = OutputNames;

/// The names of the outputs, or of the inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
#[non_exhaustive]
pub enum OutputNames {
    /// In order. What comes after the last name keeps its own.
    List(Vec<String>),
    /// The parameters, keys and fields that lead to an input in the arguments, or to an output in
    /// the dict or dataclass that the program returns: `hidden_0`. An output that is only in tuples
    /// and lists keeps its name. Tensors of caches have the names that [`KvNames`](crate::KvNames)
    /// says. The serialised form is `"from-tree"`.
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

impl Default for OutputNames {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl OutputNames {
    /// The names that are given; none if they come from the tree.
    pub fn listed(&self) -> &[String] {
        match self {
            Self::List(names) => names,
            Self::FromTree => &[],
        }
    }
}

impl From<Form> for OutputNames {
    fn from(form: Form) -> Self {
        match form {
            Form::List(names) => Self::List(names),
            Form::Word(Word::FromTree) => Self::FromTree,
        }
    }
}

impl From<OutputNames> for Form {
    fn from(names: OutputNames) -> Self {
        match names {
            OutputNames::List(names) => Self::List(names),
            OutputNames::FromTree => Self::Word(Word::FromTree),
        }
    }
}
