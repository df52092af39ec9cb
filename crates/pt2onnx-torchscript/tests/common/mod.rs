//! Helpers of the tests: archives made of code, and a few operators with known types.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx_fx::{Argument, Node, ValueMeta, archive::Records};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;
use pt2onnx_torchscript::{
    Archive, Error,
    types::{Facts, Outcome, Types},
};
use std::{
    io::{Cursor, Write},
    sync::Arc,
};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Types of operators that keep that of their first tensor, and of some others.
pub struct Few;

impl Types for Few {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let first = node.args.iter().find_map(|arg| match &arg.value {
            Argument::Tensor(name) => facts.values.get(name).cloned(),
            _ => None,
        });
        let dtype = match node.arg("dtype") {
            Some(Argument::DType(dtype)) => Some(*dtype),
            _ => None,
        };
        let mut meta = match (&*node.target.name, first) {
            ("scalar_tensor", _) => scalar(dtype.unwrap_or(DType::F32)),
            (
                "relu" | "neg" | "add" | "mul" | "sub" | "div" | "add_" | "lift_fresh_copy"
                | "clone" | "squeeze" | "cov" | "copy_" | "view" | "transpose" | "contiguous",
                Some(meta),
            ) => meta,
            ("gt", Some(mut meta)) => {
                if let ValueMeta::Tensor(meta) = &mut meta {
                    Arc::make_mut(meta).dtype = DType::Bool;
                }
                meta
            }
            ("sum", Some(_)) => scalar(DType::F32),
            ("stack", None) => {
                let Some(Argument::Tensors(names)) = node.arg("tensors") else {
                    return Err("no tensors".to_owned());
                };
                let first = names.first().and_then(|name| facts.values.get(name)).cloned();
                let mut meta = first.ok_or("no tensors")?;
                if let ValueMeta::Tensor(meta) = &mut meta {
                    let count = Expr::int(i64::try_from(names.len()).unwrap());
                    Arc::make_mut(meta).sizes.insert(0, count);
                }
                meta
            }
            ("slice", Some(mut meta)) => {
                if let ValueMeta::Tensor(meta) = &mut meta {
                    Arc::make_mut(meta).sizes[0] = facts.symbols.next(false);
                }
                meta
            }
            _ => return Err("not among the few".to_owned()),
        };
        if let ValueMeta::Tensor(meta) = &mut meta {
            let meta = Arc::make_mut(meta);
            meta.requires_grad = false;
            meta.strides.clear();
        }
        Ok(vec![Outcome::One(meta.into())])
    }
}

fn scalar(dtype: DType) -> ValueMeta {
    let tensor = pt2onnx_tensor::Tensor::absent(dtype, Vec::new()).unwrap();
    pt2onnx_fx::TensorMeta::of(&tensor).into()
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
    Archive::new(Records::from_bytes(zipped(&[&records, more].concat()))?)
}

/// An archive of one module without attributes.
pub fn archive(body: &str) -> Result<Archive, Error> {
    archive_of(&module(body), OBJECTS, &[])
}
