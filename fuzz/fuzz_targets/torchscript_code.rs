//! The code of TorchScript archives: the parser, and types of inputs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pt2onnx_torchscript_archive::{Given, syntax};

fuzz_target!(|text: &str| {
    let _ = syntax::parse(text);
    let given = Given::parse(text);
    let _ = Given::parse(&given.to_string());
});
