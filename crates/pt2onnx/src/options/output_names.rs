//! How outputs are named.

use serde::{Deserialize, Serialize};

/// The names of the outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
#[non_exhaustive]
pub enum OutputNames {
    /// In order. Outputs after the last name keep theirs.
    List(Vec<String>),
    /// The keys and fields that lead to an output in the dict or dataclass that the program returns: `hidden_0`. An output that
    /// is only in tuples and lists keeps its name. The serialised form is `"from-tree"`.
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
