//! Limits of compression: errors, warnings, numbers that a type does not have, and sums that
//! are too long.

use crate::models::*;
use pt2onnx::{ir::Model, tensor::Tensor};

/// Requests that cannot be met.
#[test]
fn what_cannot_be_compressed_as_asked_is_an_error() {
    let plain = model(20, &TURNED.replace("y = MatMul (x, b)", "a = MatMul (x, b) y = Relu (a)"));
    for (opset, json, said) in [
        (20, r#"{"quantize": "int4"}"#, "weights of int4 need opset 21 or newer"),
        (20, r#"{"quantize": "int8", "block-size": 32}"#, "blocks of 32 need opset 21 or newer"),
        (18, r#"{"quantize": "float8"}"#, "weights of float8 need opset 19 or newer"),
        (12, r#"{"cast-weights": "bfloat16"}"#, "weights of bfloat16 need opset 13 or newer"),
        (5, r#"{"precision": "float16", "quantize": "int8"}"#, "casts need opset 6 or newer"),
        (5, r#"{"cast-weights": "float16"}"#, "casts need opset 6 or newer"),
        (5, r#"{"cast-weights": "bfloat16"}"#, "weights of bfloat16 need opset 13 or newer"),
        (12, r#"{"quantize": "dynamic-int8"}"#, "need opset 13 or newer"),
        (20, r#"{"block-size": 32}"#, "the option `block-size` has a meaning only with `quantize`"),
        (
            20,
            r#"{"signed": true, "quantize": "int8"}"#,
            "the option `signed` has a meaning only with `quantize` `dynamic-int8`",
        ),
        (20, r#"{"cast-io": true}"#, "the option `cast-io` has a meaning only with `precision`"),
        (20, r#"{"quantize": "int8", "accuracy-level": 1}"#, "the option `accuracy-level`"),
        (9, r#"{"quantize": "static-int8"}"#, "activations of int8 need opset 10 or newer"),
        (
            20,
            r#"{"quantize": "static-int8", "precision": "float16"}"#,
            "only with `precision` `keep`",
        ),
        (
            20,
            r#"{"quantize": "dynamic-int8", "precision": "float16"}"#,
            "only with `precision` `keep`",
        ),
        (
            20,
            r#"{"calibration-method": "min-max"}"#,
            "the option `min-elements` has a meaning only",
        ),
        (20, r#"{"quantize": "int8", "compress-include": ["u"]}"#, "is called `u`"),
        (20, r#"{"quantize": "int8", "compress-include": ["Relu"]}"#, "no node `Relu` takes"),
        (20, r#"{"cast-weights": "float16", "compress-exclude": ["Relu"]}"#, "no node `Relu`"),
        (
            20,
            r#"{"quantize": "int8", "compress-include": ["t"], "compress-exclude": ["MatMul"]}"#,
            "the option `compress-exclude` leaves nothing",
        ),
    ] {
        let json = json.replacen('{', "{\"min-elements\": 1, ", 1);
        let mut model = plain.clone();
        model.opset = opset;
        let error = compressed(&model, &json).map(drop).unwrap_err().to_string();
        assert!(error.contains(said), "{json}: {error}");
    }
}

/// Numbers that a format does not have are errors when they are written, and zeros stay zeros.
#[test]
fn special_numbers() {
    let of = |ty: &str, numbers: &str| {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : 21]> g ({ty}[1, 2] x) => ({ty}[1, 2] y)
             <{ty}[2, 2] w = {{{numbers}}}> {{ y = MatMul (x, w) }}"
        );
        text.parse::<Model>().unwrap()
    };
    let (text, double) = (|numbers| of("float", numbers), |numbers| of("double", numbers));
    for (numbers, json, said) in [
        ("1, 2, inf, 3", r#"{"quantize": "int8"}"#, "the weight `w` has NaN or infinite values"),
        ("1, 2, nan, 3", r#"{"quantize": "int4", "block-size": 32}"#, "the weight `w` has NaN"),
        ("1, 2, nan, 3", r#"{"quantize": "int4", "target": "ort"}"#, "the weight `w` has NaN"),
        (
            "1, 2, 3, 70000",
            r#"{"cast-weights": "float16"}"#,
            "the weight `w` has numbers above 65504",
        ),
    ] {
        let json = json.replacen('{', "{\"min-elements\": 1, ", 1);
        let program = compressed(&text(numbers), &json).unwrap();
        let error = program.to_bytes().unwrap_err().to_string();
        assert!(error.contains(said), "{json}: {error}");
    }
    let json = r#"{"quantize": "int8", "min-elements": 1}"#;
    let error = compressed(&double("1, 2, 3, 1e39"), json).unwrap().to_bytes().unwrap_err();
    assert!(error.to_string().contains("the weight `w` has numbers above 3.4e38"), "{error}");
    // A mask stays what it is, and so does what is tiny.
    for (mask, to) in [
        (text("0, -3e38, 1, 2"), "float16"),
        (text("0, -3.4028235e38, 1, 2"), "bfloat16"),
        (double("0, -1.7e308, 1, 2"), "float16"),
        (double("0, -1.7e308, 1, 2"), "bfloat16"),
        (text("0, -1e-8, 1e-7, 0"), "float16"),
    ] {
        let cast = format!(r#"{{"cast-weights": "{to}", "min-elements": 1}}"#);
        let program = compressed(&mask, &cast).unwrap();
        assert_eq!(constants(program.model()), constants(&mask));
        assert!(program.compressed().is_empty() && program.to_bytes().is_ok());
    }
    for json in [
        r#"{"quantize": "int8"}"#,
        r#"{"quantize": "int8", "zero-points": true}"#,
        r#"{"quantize": "int4", "block-size": 16}"#,
        r#"{"quantize": "int4", "target": "ort", "zero-points": true}"#,
        r#"{"quantize": "float8"}"#,
        r#"{"cast-weights": "float16"}"#,
    ] {
        let json = json.replacen('{', "{\"min-elements\": 1, ", 1);
        let mut program = compressed(&text("0, 2, 0, 4"), &json).unwrap();
        let x = Tensor::from_slice(vec![1, 2], &[1f32, 1.0]).unwrap();
        let y = program.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap();
        assert!(y[0] == 0.0 && (y[1] - 6.0).abs() < 0.5, "{json}: {y:?}");
    }
}

/// An option that compresses no weight is a warning that says why, and a weight that would get
/// larger stays as it is.
#[test]
fn no_weight_is_fit() {
    let flat = |k: usize| -> String {
        format!(
            "g (float[2, {k}] x) => (float[2, 64] y) <float[{k},64] w = {{{k},64}}> {{ y = MatMul (x, w) }}"
        )
    };
    let none = "g (float[2] x) => (float[2] y) { y = Relu (x) }";
    let used =
        "weight: 1 of a type or use that it does not take, or no larger than what would become";
    for (text, json, said) in [
        (
            PRODUCTS,
            r#"{"quantize": "int8", "min-elements": 1400}"#,
            "`quantize` `int8` compresses no weight: 4 of fewer than 1400 elements",
        ),
        (PRODUCTS, r#"{"cast-weights": "float16", "min-elements": 1400}"#, "`cast-weights` comp"),
        (
            PRODUCTS,
            r#"{"quantize": "int8", "compress-exclude": ["MatMul", "Gemm", "t"]}"#,
            "compresses no weight: 4 left out by options or by other uses",
        ),
        (CONVOLUTIONS, r#"{"quantize": "dynamic-int8"}"#, "2 of a type or use"),
        (BOTH_WAYS, r#"{"quantize": "dynamic-int8"}"#, used),
        (none, r#"{"quantize": "int8"}"#, "compresses no weight: there is none for it"),
        (&flat(1), r#"{"quantize": "int8"}"#, used),
        (&flat(1), r#"{"quantize": "dynamic-int8"}"#, used),
        (&flat(4), r#"{"quantize": "int4", "target": "ort", "block-size": 256}"#, used),
        (&flat(4), r#"{"quantize": "int8", "cast-weights": "float16"}"#, "`cast-weights` compr"),
    ] {
        let min = if json.contains("min") { "{" } else { "{\"min-elements\": 2, " };
        let program = compressed(&model(20, text), &json.replacen('{', min, 1)).unwrap();
        let [warning] = program.warnings() else { panic!("{json}: {:?}", program.warnings()) };
        assert!(warning.message.contains(said), "{json}: {warning}");
    }
    for (text, json) in [
        (TIED, r#"{"quantize": "int8", "compress-include": ["MatMul"]}"#),
        (&*flat(4), r#"{"quantize": "int8", "min-elements": 1}"#),
    ] {
        let program = compressed(&model(20, text), json).unwrap();
        assert!(program.warnings().is_empty() && program.compressed().len() == 1, "{json}");
    }
}

/// Constant weights stay finite, and near their number.
#[test]
fn stand_ins() {
    for (ty, number, opset) in [
        ("float", "-3.4028235e38", 21),
        ("float", "3.4e38", 21),
        ("float16", "-65504", 21),
        ("float16", "65504", 13),
    ] {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : {opset}]> g (int64[1] i) => (float[1, 32] y)
             <{ty}[3, 32] w = {{{}}}> {{ g = Gather (w, i) y = Cast <to = 1> (g) }}",
            [number; 96].join(", ")
        );
        let wanted: f32 = number.parse().unwrap();
        for json in [
            r#"{"quantize": "int8"}"#,
            r#"{"quantize": "int8", "zero-points": true}"#,
            r#"{"quantize": "int8", "block-size": 16}"#,
            r#"{"quantize": "int4"}"#,
            r#"{"quantize": "int4", "block-size": 16, "zero-points": true}"#,
            r#"{"quantize": "int4", "target": "ort"}"#,
            r#"{"quantize": "float8"}"#,
            r#"{"quantize": "dynamic-int8"}"#,
        ] {
            let json = json.replacen('{', "{\"min-elements\": 1, ", 1);
            let Ok(mut program) = compressed(&text.parse().unwrap(), &json) else {
                assert!(opset < 21, "{json}");
                continue;
            };
            let y = program.run(&[Tensor::vector(&[0i64])]).unwrap()[0].to_vec::<f32>().unwrap();
            let near = |y: &f32| (y / wanted - 1.0).abs() < 0.01;
            assert!(y.iter().all(near), "{ty} {number} {json}: {y:?}");
        }
    }
}

/// A sum of more products than int32 has room for stays one of floats.
#[test]
fn long_sums() {
    for (long, integers) in [(66_311, 1), (66_312, 0)] {
        let model: Model = format!(
            "<ir_version: 10, opset_import: [\"\" : 20]> g (float[1, {long}] x) => (float[1, 1] y)
             <float[{long}, 1] w = {{{}}}> {{ y = MatMul (x, w) }}",
            vec!["1"; long].join(", ")
        )
        .parse()
        .unwrap();
        let mut program = compressed(&model, r#"{"quantize": "dynamic-int8"}"#).unwrap();
        let found = operators(&program).get("MatMulInteger").copied().unwrap_or(0);
        assert_eq!(found, integers, "{long}");
        let x = Tensor::from_slice(vec![1, long], &vec![1f32; long]).unwrap();
        let y = program.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap()[0];
        assert!((y / long as f32 - 1.0).abs() < 0.01, "{long}: {y}");
    }
}

/// A weight that is an output keeps its values, and one without values is an error.
#[test]
fn outputs_and_hollow_weights() {
    let text = "<ir_version: 10, opset_import: [\"\" : 20]> g (float[1, 2] x) => (float[1, 2] y, float[2, 2] w)
        <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul (x, w) }";
    let json = r#"{"quantize": "int8", "min-elements": 1}"#;
    let kept = compressed(&text.parse().unwrap(), json).unwrap();
    assert!(kept.compressed().is_empty());
    let mut hollow = model(20, TURNED);
    let (value, tensor) = hollow
        .values()
        .find_map(|(v, data)| {
            Some((v, data.constant().filter(|t| t.numel() > 100)?.without_data()))
        })
        .unwrap();
    assert!(hollow.set_constant(value, tensor));
    let options = options(json).compression();
    let error = pt2onnx::compress::compress(&mut hollow, &options).unwrap_err();
    assert!(error.to_string().contains("the weights have no values"), "{error}");
}
