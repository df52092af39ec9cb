//! Parses models and functions in ONNX's textual syntax, which `Display` of [`Model`] prints.
//!
//! Unlike `onnx.parser`, it takes expressions as sizes (`"2*N"`), and constants without elements
//! (`{...}`).

mod grammar;
mod literals;
mod tokens;

pub use pt2onnx_symbolic::text::SyntaxError as ParseError;

use crate::{Builder, InsertPoint, Model, schema};
use grammar::Grammar;
use pt2onnx_symbolic::{Constraints, text::Reader};
use std::str::FromStr;

impl FromStr for Model {
    type Err = ParseError;

    /// Parses a model: an optional header, a graph, then any number of functions. Without a header,
    /// the opset is [`schema::CANONICAL_OPSET`]. Types that the text does not give are inferred.
    /// The model is not verified.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(text, |grammar| grammar.model())
    }
}

impl Model {
    /// Parses functions without a graph; the model has an empty graph. Each function must have a
    /// domain, and its nodes must fit the schemas of the opsets that it imports.
    ///
    /// # Errors
    /// Returns the first error.
    pub fn parse_functions(text: &str) -> Result<Self, ParseError> {
        read(text, |grammar| grammar.functions())
    }
}

fn read(
    text: &str,
    rule: impl FnOnce(&mut Grammar) -> Result<(), ParseError>,
) -> Result<Model, ParseError> {
    let mut model = Model::new(schema::CANONICAL_OPSET);
    let at = InsertPoint::End(Model::MAIN);
    let builder = Builder::new(&mut model, at, Constraints::default());
    rule(&mut Grammar::new(Reader::new(text), builder))?;
    Ok(model)
}
