//! A program's JSON, of any schema version.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx_fx::{archive, passes, printer::Printer};

fuzz_target!(|json: &[u8]| {
    if let Ok(mut program) = archive::from_json(json, Default::default(), Default::default()) {
        program.assume_guards();
        let _ = Printer::new(&program).to_string();
        let _ = passes::prepare(&mut program);
    }
});
