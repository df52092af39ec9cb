//! Graphs as pages draw them: nodes in a tree of groups, joined by values.

mod model;
mod program;

use serde::Serialize;
use std::collections::HashMap;

pub(crate) use model::of_model;
pub(crate) use program::of_program;

/// A graph. Numbers are positions in its lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Drawing {
    /// Modules, bodies and functions. A group comes after its parent.
    pub groups: Vec<Group>,
    /// In the order of the graph.
    pub nodes: Vec<DrawnNode>,
    pub values: Vec<DrawnValue>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    /// Texts of metadata, each once.
    pub texts: Vec<String>,
}

/// Nodes that are folded together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Group {
    pub parent: Option<usize>,
    pub name: String,
    /// The class of a module.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub class: String,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct DrawnNode {
    pub op: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    /// The values that it reads; none for an input that is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, String)>,
    /// The node of the program that it was made from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The user's source line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Keys and values, by their positions in the texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<(usize, usize)>,
    /// In a comparison: `added`, `removed` or `changed`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub mark: &'static str,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DrawnValue {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub r#type: String,
    /// The size of a weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
}

/// Deduplicated texts.
#[derive(Default)]
struct Texts {
    places: HashMap<String, usize>,
    all: Vec<String>,
}

impl Texts {
    fn place(&mut self, text: &str) -> usize {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        let place = self.all.len();
        self.places.insert(text.to_owned(), place);
        self.all.push(text.to_owned());
        place
    }
}

/// A text of an attribute, cut with a note if it is long.
fn shortened(text: String) -> String {
    const LONGEST: usize = 400;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} … ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

impl Drawing {
    /// Adds a group.
    fn group(&mut self, parent: Option<usize>, name: &str, class: &str) -> usize {
        self.groups.push(Group { parent, name: name.to_owned(), class: class.to_owned() });
        self.groups.len() - 1
    }
}
