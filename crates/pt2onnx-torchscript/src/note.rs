//! Warnings about a flattened program.

use crate::error::Site;
use std::fmt;

/// Something that holds for some inputs only, such as a branch chosen for all sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it is, if it has a single place.
    pub site: Option<Site>,
    /// The text, without the place.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.site {
            Some(site) => write!(f, "{site}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}
