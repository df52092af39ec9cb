//! ONNX models: those that can be read and written can be read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx_writer::{from_bytes, to_bytes};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = from_bytes(bytes.to_vec())
        && let Ok(written) = to_bytes(&model)
    {
        assert!(from_bytes(written).is_ok());
    }
});
