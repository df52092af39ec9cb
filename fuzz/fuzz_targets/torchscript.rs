//! TorchScript: the fuzzed bytes as the code of a module, and as its objects. The first byte says which.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx_fx::{Node, archive::Records};
use pt2onnx_torchscript::{
    Archive, Given, flatten,
    types::{Facts, Outcome, Types},
};
use std::io::{Cursor, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Every operator returns what its first argument is.
struct Same;

impl Types for Same {
    fn results(&mut self, node: &Node, facts: &mut Facts) -> Result<Vec<Outcome>, String> {
        let names = node.input_names();
        let meta = names.first().and_then(|name| facts.values.get(name)).cloned();
        meta.map(|meta| vec![Outcome::One(meta.into())]).ok_or_else(|| "no tensor".to_owned())
    }
}

const CODE: &[u8] = b"class M(Module):\n  def forward(self, x: Tensor) -> Tensor:\n    return x\n";
const OBJECTS: &[u8] = b"\x80\x02c__torch__\nM\n)\x81}b.";

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    let (code, objects, inputs) = match which % 3 {
        0 => (bytes, OBJECTS, OBJECTS),
        1 => (CODE, bytes, OBJECTS),
        _ => (CODE, OBJECTS, bytes),
    };
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in [
        ("data.pkl", objects),
        ("data/0", &[0; 64]),
        ("constants.pkl", b"\x80\x02)."),
        ("traced_inputs.pkl", inputs),
        ("code/__torch__.py", code),
        ("version", b"3"),
    ] {
        zip.start_file(format!("m/{name}"), stored).expect("a record");
        zip.write_all(bytes).expect("written");
    }
    let bytes = zip.finish().expect("a zip").into_inner();
    let Ok(archive) = Records::from_bytes(bytes).map_err(Into::into).and_then(Archive::new) else {
        return;
    };
    let given = vec![("0".to_owned(), Given::parse("float32[n,4]"))];
    let _ = flatten(&archive, "forward", given, &mut Same);
});
