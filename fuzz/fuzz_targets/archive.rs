//! Whole archives: the zip, its records, and the program and weights in them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx_fx::{archive, passes, printer::Printer};
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("written");
    if let Ok(mut program) = archive::read(file.path()) {
        for tensor in program.state.values() {
            let _ = tensor.storage().map(|storage| storage.bytes().len());
        }
        let _ = Printer::new(&program).to_string();
        let _ = passes::prepare(&mut program);
    }
});
