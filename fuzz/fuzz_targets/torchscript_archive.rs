//! Whole TorchScript archives: the zip, its records, and what its `forward` becomes with the inputs
//! of the trace.

#![no_main]

mod types;

use libfuzzer_sys::fuzz_target;
use pt2onnx_fx::archive::Records;
use pt2onnx_torchscript::{flatten, parameters};
use pt2onnx_torchscript_archive::Archive;

fuzz_target!(|bytes: &[u8]| {
    let records = Records::from_bytes(bytes.to_vec());
    if let Ok(archive) = records.map_err(Into::into).and_then(Archive::new) {
        let _ = parameters(&archive, "forward");
        let _ = flatten(&archive, "forward", Vec::new(), &mut types::Same, false);
    }
});
