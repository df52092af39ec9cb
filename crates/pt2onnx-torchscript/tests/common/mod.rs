//! Helpers of the tests: archives made of code, and the types of operators.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx_aten::{Registry, infer};
use pt2onnx_fx::{Node, archive::Records};
use pt2onnx_torchscript::{
    Attempt, Error, Policy,
    archive::{self, Archive, Given},
    flatten_as,
    types::{Facts, Outcome, Types},
};
use std::io::{Cursor, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// The types of the lowerings of `pt2onnx-aten`.
#[derive(Default)]
struct Lowerings(Registry);

impl Types for Lowerings {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let known = infer::Facts {
            values: &facts.values,
            contents: &facts.contents,
            constraints: &facts.constraints,
            default_dtype: self.default_dtype(),
        };
        let outcomes = self.0.infer(node, &known, &mut |float| facts.symbols.next(float));
        outcomes.map_err(|error| error.to_string())
    }
}

/// The code of one module with these methods.
pub fn module(body: &str) -> String {
    format!("class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n{body}")
}

/// The objects of one module without attributes.
pub const OBJECTS: &[u8] = b"\x80\x02c__torch__\nM\n)\x81}b.";

/// The bytes of an archive of these records.
pub fn zipped(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in records {
        zip.start_file(format!("m/{name}"), stored).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// An archive of this code and these objects, and further records.
pub fn archive_of(code: &str, objects: &[u8], more: &[(&str, &[u8])]) -> Result<Archive, Error> {
    let records: [(&str, &[u8]); 4] = [
        ("data.pkl", objects),
        ("constants.pkl", b"\x80\x02)."),
        ("code/__torch__.py", code.as_bytes()),
        ("version", b"10\n"),
    ];
    let records = Records::from_bytes(zipped(&[&records, more].concat()));
    Ok(records.map_err(archive::Error::from).and_then(Archive::new)?)
}

/// An archive of one module without attributes.
pub fn archive(body: &str) -> Result<Archive, Error> {
    archive_of(&module(body), OBJECTS, &[])
}

/// The program of `forward` for these inputs, which are separated by spaces.
pub fn flat(archive: &Archive, inputs: &str, policy: Policy) -> Result<Attempt, Error> {
    let given = inputs.split_whitespace().filter_map(|input| input.split_once('='));
    let given = given.map(|(name, text)| (name.to_owned(), Given::parse(text)));
    flatten_as(archive, "forward", given.collect(), &mut Lowerings::default(), policy)
}
