//! TorchScript: the fuzzed bytes as the code of a module, as its objects, as the inputs of its
//! trace, or as its source ranges.
//!
//! The first byte says which.

#![no_main]

mod types;

use libfuzzer_sys::fuzz_target;
use pt2onnx_fx::archive::Records;
use pt2onnx_torchscript::flatten;
use pt2onnx_torchscript_archive::{Archive, Given};
use std::io::{Cursor, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

const CODE: &[u8] =
    b"class M(Module):\n  def forward(self, x: Tensor) -> Tensor:\n    return torch.relu(x)\n";
const OBJECTS: &[u8] = b"\x80\x02c__torch__\nM\n)\x81}b.";

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    let (mut code, mut objects, mut inputs, mut ranges) = (CODE, OBJECTS, OBJECTS, OBJECTS);
    match which % 4 {
        0 => code = bytes,
        1 => objects = bytes,
        2 => inputs = bytes,
        _ => ranges = bytes,
    }
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in [
        ("data.pkl", objects),
        ("data/0", &[0; 64]),
        ("constants.pkl", b"\x80\x02)."),
        ("traced_inputs.pkl", inputs),
        ("code/__torch__.py", code),
        ("code/__torch__.py.debug_pkl", ranges),
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
    let _ = flatten(&archive, "forward", given, &mut types::Same, false);
});
