//! Reads models and functions in ONNX's textual syntax, as `Display` of [`Model`] writes it and `onnx.parser` reads it.
//! Of `onnx.parser` it differs in that expressions may be sizes (`"2*N"`) and in that elements may be left out (`{...}`).

mod error;
mod grammar;
mod literals;
mod reader;

pub use error::ParseError;

use crate::{Builder, InsertPoint, Model, schema};
use grammar::Grammar;
use pt2onnx_symbolic::Constraints;
use reader::Reader;
use std::str::FromStr;

impl FromStr for Model {
    type Err = ParseError;

    /// A model: a graph, with or without a header before it and functions behind it. Without header it is of the canonical
    /// opset. Types that the text leaves out are inferred. The model is not verified.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        read(text, |grammar| grammar.model())
    }
}

impl Model {
    /// A model that has functions and an empty graph, from a text of functions alone. Their nodes are held against the
    /// operators of the opset that each function imports.
    ///
    /// # Errors
    /// The first thing that is wrong.
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
