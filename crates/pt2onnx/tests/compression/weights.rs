//! Weights of fewer bits: results stay near, and weights are read back as they were.

use crate::models::*;
use pt2onnx::{OnnxProgram, Options, SaveOptions, Weights, ir, opt::Level, tensor::DType};

/// Model, opset, options, largest error relative to the largest element, and how often some
/// operators are there.
type Case = (&'static str, u32, &'static str, f32, &'static [(&'static str, usize)]);

const CASES: &[Case] = &[
    (PRODUCTS, 20, r#"{"cast-weights": "float16"}"#, 1e-3, &[("Cast", 3)]),
    (PRODUCTS, 20, r#"{"cast-weights": "bfloat16"}"#, 8e-3, &[("Cast", 3)]),
    (PRODUCTS, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("DequantizeLinear", 2), ("Gather", 2)]),
    (PRODUCTS, 11, r#"{"quantize": "int8"}"#, 1e-2, &[("DequantizeLinear", 3)]),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "int8", "zero-points": true}"#,
        1e-2,
        &[("DequantizeLinear", 3)],
    ),
    (PRODUCTS, 21, r#"{"quantize": "int8", "block-size": 16}"#, 1e-2, &[("DequantizeLinear", 3)]),
    (
        PRODUCTS,
        21,
        r#"{"quantize": "int8", "block-size": 32, "zero-points": true}"#,
        1e-2,
        &[("DequantizeLinear", 3)],
    ),
    (PRODUCTS, 21, r#"{"quantize": "int4", "block-size": 32}"#, 0.15, &[("DequantizeLinear", 3)]),
    (
        PRODUCTS,
        21,
        r#"{"quantize": "int4", "block-size": 16, "zero-points": true}"#,
        0.15,
        &[("DequantizeLinear", 3)],
    ),
    (PRODUCTS, 21, r#"{"quantize": "int4"}"#, 0.15, &[("DequantizeLinear", 3)]),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "int4", "target": "ort"}"#,
        0.15,
        &[("MatMulNBits", 2), ("GatherBlockQuantized", 1)],
    ),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "int4", "target": "ort", "zero-points": true, "block-size": 16}"#,
        0.15,
        &[("MatMulNBits", 2)],
    ),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "int4", "target": "ort", "block-size": 32, "accuracy-level": 4}"#,
        0.15,
        &[("MatMulNBits", 2)],
    ),
    (PRODUCTS, 20, r#"{"quantize": "float8"}"#, 0.1, &[("DequantizeLinear", 3)]),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "dynamic-int8"}"#,
        3e-2,
        &[("MatMulInteger", 2), ("DynamicQuantizeLinear", 2)],
    ),
    (PRODUCTS, 20, r#"{"precision": "float16"}"#, 5e-3, &[("Cast", 5)]),
    (
        PRODUCTS,
        21,
        r#"{"precision": "float16", "quantize": "int4", "block-size": 32}"#,
        0.15,
        &[("DequantizeLinear", 3)],
    ),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "int8", "compress-include": ["t", "Gemm"]}"#,
        1e-2,
        &[("DequantizeLinear", 1)],
    ),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "int8", "compress-exclude": ["w"]}"#,
        1e-2,
        &[("DequantizeLinear", 1)],
    ),
    (CONVOLUTIONS, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("DequantizeLinear", 2)]),
    (CONVOLUTIONS, 21, r#"{"quantize": "int4"}"#, 0.15, &[("DequantizeLinear", 2)]),
    (CONVOLUTIONS, 20, r#"{"precision": "float16"}"#, 5e-3, &[]),
    (TIED, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("Gather", 2), ("DequantizeLinear", 1)]),
    (
        TIED,
        20,
        r#"{"quantize": "int8", "target": "tensorrt"}"#,
        1e-2,
        &[("Gather", 1), ("DequantizeLinear", 1)],
    ),
    (TIED, 20, r#"{"quantize": "dynamic-int8"}"#, 3e-2, &[("Gather", 2), ("MatMulInteger", 1)]),
    (TIED, 21, r#"{"quantize": "int4", "block-size": 32}"#, 0.2, &[("DequantizeLinear", 1)]),
    (
        TIED,
        20,
        r#"{"quantize": "int4", "target": "ort"}"#,
        0.2,
        &[("MatMulNBits", 1), ("GatherBlockQuantized", 1)],
    ),
    (TURNED, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("Transpose", 0), ("DequantizeLinear", 1)]),
    (
        TURNED,
        21,
        r#"{"quantize": "int4", "block-size": 16}"#,
        0.15,
        &[("Transpose", 0), ("DequantizeLinear", 1)],
    ),
    (
        TURNED,
        20,
        r#"{"quantize": "int4", "target": "ort"}"#,
        0.15,
        &[("Transpose", 0), ("MatMulNBits", 1)],
    ),
    (
        TURNED,
        20,
        r#"{"quantize": "dynamic-int8"}"#,
        3e-2,
        &[("Transpose", 0), ("MatMulInteger", 1)],
    ),
    (BODY, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("DequantizeLinear", 1)]),
    (BODY, 20, r#"{"quantize": "dynamic-int8"}"#, 3e-2, &[("MatMulInteger", 2)]),
    (BODY, 20, r#"{"quantize": "int4", "target": "ort"}"#, 0.15, &[("MatMulNBits", 2)]),
    (BODY, 20, r#"{"precision": "float16"}"#, 5e-3, &[]),
    (BOTH_WAYS, 20, r#"{"quantize": "dynamic-int8"}"#, 3e-2, &[("MatMulInteger", 0)]),
    (BOTH_WAYS, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("DequantizeLinear", 1)]),
    (TURNED_TOO, 20, r#"{"quantize": "dynamic-int8"}"#, 3e-2, &[("MatMulInteger", 0)]),
    (WEIGHED, 20, r#"{"quantize": "dynamic-int8"}"#, 3e-2, &[("MatMulInteger", 0)]),
    (WEIGHED, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("Gather", 2), ("DequantizeLinear", 1)]),
    (TABLE, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("Gather", 2)]),
    (TABLE, 20, r#"{"quantize": "dynamic-int8"}"#, 1e-2, &[("Gather", 2)]),
    (TABLE, 20, r#"{"quantize": "int4", "target": "ort"}"#, 0.15, &[("GatherBlockQuantized", 1)]),
    (
        QUANTISED,
        20,
        r#"{"quantize": "dynamic-int8"}"#,
        3e-2,
        &[("MatMulInteger", 3), ("DynamicQuantizeLinear", 2)],
    ),
];

#[test]
fn results_stay_near() {
    for (text, opset, json, tolerance, expected) in CASES {
        let precise = json.starts_with(r#"{"precision": "float16"}"#);
        let min = if precise { "{" } else { "{\"min-elements\": 100, " };
        let json = &json.replacen('{', min, 1);
        let model = model(*opset, text);
        let mut before = program(&model);
        let mut after = compressed(&model, json).unwrap_or_else(|e| panic!("{json}: {e}"));
        let found = operators(&after);
        for (op, count) in *expected {
            let there = found.get(*op).copied().unwrap_or(0);
            assert_eq!(there, *count, "{op} in {json}: {found:?}");
        }
        let inputs = inputs(&model);
        let wanted = before.run(&inputs).unwrap();
        let got = after.run(&inputs).unwrap_or_else(|e| panic!("{json}: {e}"));
        for (wanted, got) in wanted.iter().zip(&got) {
            assert_eq!((wanted.dtype(), wanted.shape()), (got.dtype(), got.shape()), "{json}");
            let (wanted, got) = (wanted.to_vec::<f32>().unwrap(), got.to_vec::<f32>().unwrap());
            let largest = wanted.iter().fold(0f32, |m, x| m.max(x.abs()));
            let error = wanted.iter().zip(&got).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
            assert!(error <= tolerance * largest, "{json}: {error} of {largest}");
        }
        // Bytes do not depend on the way to write them.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        let save = SaveOptions { threshold: 1, ..Weights::External.into() };
        after.save_with(&path, save).unwrap();
        let read = OnnxProgram::open(&path).unwrap();
        assert_eq!(constants(read.model()), constants(after.model()), "{json}");
    }
}

#[test]
fn what_is_lost_is_told() {
    let program = compressed(
        &model(21, TURNED),
        r#"{"quantize": "int8", "block-size": 32, "min-elements": 1}"#,
    )
    .unwrap();
    assert!(program.compressed()[0].snr_db.is_none());
    program.to_bytes().unwrap();
    let all = program.compressed();
    let [weight] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((weight.name.as_str(), weight.form.as_str()), ("t", "int8, blocks of 32"));
    assert_eq!((weight.bytes, weight.compressed_bytes), (5120, 1280 + 160));
    assert!(weight.snr_db.is_some_and(|snr| (40.0..50.0).contains(&snr)), "{weight}");
    assert!(weight.max_error.is_some_and(|e| e > 0.0 && e <= 0.5 / 127.0 + 1e-6), "{weight}");
}

/// They are not run: their products saturate on some processors.
#[test]
fn signed_codes_are_the_others_less_128() {
    for text in [PRODUCTS, TIED, TURNED, BODY] {
        let weights = |json: &str| {
            let program = compressed(&model(20, text), json).unwrap();
            // The result is valid.
            program.to_bytes().unwrap();
            let codes = |v: &ir::ValueData| {
                let codes = v.constant().filter(|t| t.dtype().bits() == 8 && t.numel() >= 100)?;
                Some((codes.dtype(), codes.to_bytes().into_owned()))
            };
            program.model().values().filter_map(|(_, v)| codes(v)).collect::<Vec<_>>()
        };
        let unsigned = weights(r#"{"min-elements": 100, "quantize": "dynamic-int8"}"#);
        let signed =
            weights(r#"{"min-elements": 100, "quantize": "dynamic-int8", "signed": true}"#);
        assert!(unsigned.iter().any(|(dtype, _)| *dtype == DType::U8));
        let moved = unsigned.into_iter().map(|(dtype, codes)| match dtype {
            DType::U8 => (DType::I8, codes.into_iter().map(|c| c.wrapping_sub(128)).collect()),
            _ => (dtype, codes),
        });
        assert_eq!(signed, moved.collect::<Vec<_>>());
    }
}

/// Weights that the optimiser computes, here with the factors behind a convolution in them, are
/// compressed as others are.
#[test]
fn computed_weights_are_compressed() {
    let text = "g (float[1,64,8,8] x) => (float[1,128,6,6] y)
        <float[128,64,3,3] w = {128,64,3,3}, float[128,1,1] s = {128,1,1}> { c = Conv (x, w) y = Mul (c, s) }";
    let model = model(20, text);
    let inputs = inputs(&model);
    let optimised = || {
        let mut program = program(&model);
        program.optimize(Level::Fuse);
        let computed = |v: &ir::ValueData| v.constant().is_some_and(|t| t.compute().is_some());
        assert!(program.model().values().any(|(_, v)| computed(v)));
        program
    };
    let before = optimised().to_bytes().unwrap().len();
    let wanted = program(&model).run(&inputs).unwrap()[0].to_vec::<f32>().unwrap();
    for (json, share, tolerance) in [
        (r#"{"cast-weights": "float16"}"#, 0.55, 1e-3),
        (r#"{"cast-weights": "bfloat16"}"#, 0.55, 1e-2),
        (r#"{"quantize": "int8", "cast-weights": "float16"}"#, 0.35, 2e-2),
        (r#"{"precision": "float16"}"#, 0.55, 5e-3),
    ] {
        let mut after = optimised();
        after.compress(&options(json).compression()).unwrap();
        let size = after.to_bytes().unwrap().len();
        assert!((size as f64) < share * before as f64, "{json}: {size} of {before}");
        let got = after.run(&inputs).unwrap()[0].to_vec::<f32>().unwrap();
        let largest = wanted.iter().fold(0f32, |m, x| m.max(x.abs()));
        let error = wanted.iter().zip(&got).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
        assert!(error <= tolerance * largest, "{json}: {error} of {largest}");
    }
    // A warning counts them, too.
    let mut after = optimised();
    let none = options(r#"{"cast-weights": "float16", "min-elements": 1000000}"#);
    after.compress(&none.compression()).unwrap();
    let warning = after.warnings()[0].to_string();
    assert!(warning.contains("1 of fewer than 1000000 elements"), "{warning}");
}

/// Optimising a model again keeps its small weights.
#[test]
fn casts_of_weights_stay() {
    let text = TURNED.replace("40", "80");
    let mut program = compressed(&model(20, &text), r#"{"cast-weights": "float16"}"#).unwrap();
    program.rewrite(&Options::default(), None, None).unwrap();
    let bytes = program.to_bytes().unwrap();
    let mut again = OnnxProgram::from_bytes(bytes.clone(), []).unwrap();
    again.rewrite(&Options::default(), None, None).unwrap();
    assert_eq!(operators(&again).get("Cast"), Some(&1));
    assert!(again.to_bytes().unwrap().len() <= bytes.len());
}
