//! ONNX models that are moved to another opset and optimised. The first byte is the opset; 0
//! keeps the model's.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx::{OnnxProgram, Options};

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else {
        return;
    };
    let Ok(mut program) = OnnxProgram::from_bytes(bytes.to_vec(), []) else {
        return;
    };
    let opset = match choice % 21 {
        0 => None,
        above => Some(6 + u32::from(above)),
    };
    if opset.is_some_and(|opset| program.convert_opset(opset).is_err()) {
        return;
    }
    let passes = Options::default().passes();
    program.optimize(passes.unwrap_or_default());
    if let Ok(written) = program.to_bytes() {
        assert!(OnnxProgram::from_bytes(written, []).is_ok());
    }
});
