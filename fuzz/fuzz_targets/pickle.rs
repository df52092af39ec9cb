//! Pickles of state dicts: the fuzzed bytes beside two storages.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx_fx::archive;
use std::io::{Cursor, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

fuzz_target!(|pickle: &[u8]| {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in [("data.pkl", pickle), ("data/0", &[0; 64]), ("data/1", &[])] {
        zip.start_file(format!("archive/{name}"), stored).expect("a record");
        zip.write_all(bytes).expect("written");
    }
    let bytes = zip.finish().expect("a zip").into_inner();
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(&bytes).expect("written");
    if let Ok(tensors) = archive::state_dict(file.path()) {
        for tensor in tensors.values().filter(|tensor| tensor.nbytes() < 1 << 20) {
            let _ = tensor.to_bytes();
        }
    }
});
