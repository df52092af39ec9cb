//! Compressed models in ONNX Runtime, against the same models before, and weights that are read back.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

use pt2onnx::{
    Error, OnnxProgram, Options, SaveOptions, SessionOptions, Weights, ir::Model, tensor::Tensor,
    writer,
};
use std::collections::BTreeMap;

/// Numbers of a weight, between -1 and 1: `{32,16}` in a text.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A model of a text, in which `{32,16}` stands for a constant's sizes and elements.
fn model(opset: u32, text: &str) -> Model {
    let mut out = format!("<ir_version: 10, opset_import: [\"\" : {opset}]>\n");
    for (i, part) in text.split('{').enumerate() {
        let sizes = part.split_once('}').filter(|(s, _)| {
            i > 0 && s.contains(',') && s.chars().all(|c| c.is_ascii_digit() || c == ',')
        });
        let Some((sizes, rest)) = sizes else {
            out += if i > 0 { "{" } else { "" };
            out += part;
            continue;
        };
        let count = sizes.split(',').map(|s| s.trim().parse::<usize>().unwrap()).product();
        let elements: Vec<String> =
            numbers(count, i as u32).iter().map(|x| format!("{x:?}")).collect();
        out += &format!("{{{}}}{rest}", elements.join(", "));
    }
    out.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn program(model: &Model) -> OnnxProgram {
    OnnxProgram::from_bytes(writer::to_bytes(model).unwrap(), []).unwrap()
}

fn options(json: &str) -> Options {
    serde_json::from_str(json).unwrap()
}

fn compressed(model: &Model, json: &str) -> Result<OnnxProgram, Error> {
    let mut program = program(model);
    program.compress(&options(json).compression())?;
    Ok(program)
}

fn operators(program: &OnnxProgram) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for node in program.model().all_nodes() {
        *all.entry(program.model()[node].op().to_owned()).or_default() += 1;
    }
    all
}

const PRODUCTS: &str = "g (float[2, n, 32] x, float[5, 48] y, int64[3] i) => (float[2, n, 16] a, float[5, 24] b, float[3, 32] c)
  <float[32,16] w = {32,16}, float[24,48] v = {24,48}, float[24] bias = {24,1}, float[40,32] t = {40,32}> {
  a = MatMul (x, w)
  b = Gemm <transB = 1> (y, v, bias)
  c = Gather (t, i)
}";

const CONVOLUTIONS: &str = "g (float[1, 3, 9, 9] x) => (float[1, 6, 11, 11] y)
  <float[8,3,3,3] w = {8,3,3,3}, float[8,6,5,5] v = {8,6,5,5}> {
  a = Conv (x, w)
  y = ConvTranspose (a, v)
}";

/// A table that is also the weight of a product, as in language models.
const TIED: &str = "g (int64[2, 5] i) => (float[2, 5, 40] y) <float[40,32] t = {40,32}> {
  a = Gather (t, i)
  b = Transpose <perm = [1, 0]> (t)
  y = MatMul (a, b)
}";

const TURNED: &str = "g (float[2, 32] x) => (float[2, 40] y) <float[40,32] t = {40,32}> {
  b = Transpose <perm = [1, 0]> (t)
  y = MatMul (x, b)
}";

/// A product in a body.
const BODY: &str = "g (bool c, float[2, 32] x) => (float[2, 16] y) <float[32,16] w = {32,16}> {
  y = If (c) <
    then_branch = a () => (float[2, 16] p) { p = MatMul (x, w) },
    else_branch = b () => (float[2, 16] q) { r = MatMul (x, w) q = Neg (r) }
  >
}";

/// A weight of two products, of which one takes it transposed.
const BOTH_WAYS: &str = "g (float[2, 32] x, float[2, 32] y) => (float[2, 32] a, float[2, 32] b) <float[32,32] w = {32,32}> {
  a = MatMul (x, w)
  b = Gemm <transB = 1> (y, w)
}";

/// The same behind a `Transpose` that is not folded, in the other order.
const TURNED_TOO: &str = "g (float[2, 32] x, float[2, 24] y) => (float[2, 24] a, float[2, 32] b) <float[32,24] w = {32,24}> {
  t = Transpose <perm = [1, 0]> (w)
  b = MatMul (y, t)
  a = MatMul (x, w)
}";

/// A table whose rows a product weighs.
const WEIGHED: &str = "g (int64[3] i, float[2, 40] p) => (float[3, 40] a, float[2, 40] b) <float[40,40] t = {40,40}> {
  a = Gather (t, i)
  b = MatMul (p, t)
}";

/// A table whose axis is counted from the end.
const TABLE: &str = "g (int64[3] i) => (float[3, 32] y) <float[40,32] t = {40,32}> { y = Gather <axis = -2> (t, i) }";

/// What a node quantises already, after the product and in bodies.
const QUANTISED: &str = "g (bool c, float[2, 32] x) => (float[2, 16] a, float[2, 16] y)
  <float[32,16] w = {32,16}, uint8[2,1] k = {1, 2}> {
  a = MatMul (x, w)
  y = If (c) <
    then_branch = a () => (float[2, 16] p) { q, s, z = DynamicQuantizeLinear (x) f = Cast <to = 1> (s) r = MatMul (x, w) p = Mul (r, f) },
    else_branch = b () => (float[2, 16] r) { q, s, z = DynamicQuantizeLinear (x) f = MatMul (x, w) r = Mul (f, s) }
  >
}";

/// Model, opset, options, largest error relative to the largest element, and how often some operators are there.
type Case = (&'static str, u32, &'static str, f32, &'static [(&'static str, usize)]);

const CASES: &[Case] = &[
    (PRODUCTS, 20, r#"{"cast-weights": "float16"}"#, 1e-3, &[("Cast", 3)]),
    (PRODUCTS, 20, r#"{"cast-weights": "bfloat16"}"#, 8e-3, &[("Cast", 3)]),
    (PRODUCTS, 20, r#"{"quantize": "int8"}"#, 1e-2, &[("DequantizeLinear", 2), ("Gather", 2)]),
    (PRODUCTS, 11, r#"{"quantize": "int8"}"#, 1e-2, &[("DequantizeLinear", 3)]),
    (PRODUCTS, 20, r#"{"quantize": "int8", "asymmetric": true}"#, 1e-2, &[("DequantizeLinear", 3)]),
    (PRODUCTS, 21, r#"{"quantize": "int8", "block": 16}"#, 1e-2, &[("DequantizeLinear", 3)]),
    (
        PRODUCTS,
        21,
        r#"{"quantize": "int8", "block": 32, "asymmetric": true}"#,
        1e-2,
        &[("DequantizeLinear", 3)],
    ),
    (PRODUCTS, 21, r#"{"quantize": "int4", "block": 32}"#, 0.15, &[("DequantizeLinear", 3)]),
    (
        PRODUCTS,
        21,
        r#"{"quantize": "int4", "block": 16, "asymmetric": true}"#,
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
        r#"{"quantize": "int4", "target": "ort", "asymmetric": true, "block": 16}"#,
        0.15,
        &[("MatMulNBits", 2)],
    ),
    (
        PRODUCTS,
        20,
        r#"{"quantize": "int4", "target": "ort", "block": 32, "accuracy-level": 4}"#,
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
        r#"{"precision": "float16", "quantize": "int4", "block": 32}"#,
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
    (TIED, 20, r#"{"quantize": "dynamic-int8"}"#, 3e-2, &[("Gather", 2), ("MatMulInteger", 1)]),
    (TIED, 21, r#"{"quantize": "int4", "block": 32}"#, 0.2, &[("DequantizeLinear", 1)]),
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
        r#"{"quantize": "int4", "block": 16}"#,
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

fn inputs(model: &Model) -> Vec<Tensor> {
    let types = model.inputs().iter().map(|v| model[*v].ty.as_ref().unwrap().as_tensor().unwrap());
    types
        .map(|ty| {
            let sizes = ty.shape.as_ref().unwrap().iter();
            let sizes: Vec<usize> =
                sizes.map(|e| e.as_int().map_or(3, |i| usize::try_from(i).unwrap())).collect();
            let count = sizes.iter().product();
            match ty.dtype.name() {
                "bool" => Tensor::scalar(false),
                "int64" => {
                    let all: Vec<i64> = (0..count as i64).map(|i| i * 7 % 40).collect();
                    Tensor::from_slice(sizes, &all).unwrap()
                }
                _ => Tensor::from_slice(sizes, &numbers(count, 99)).unwrap(),
            }
        })
        .collect()
}

#[test]
fn results_stay_near() {
    for (text, opset, json, tolerance, expected) in CASES {
        let precise = json.starts_with(r#"{"precision": "float16"}"#);
        let min = if precise { "{" } else { "{\"compress-min\": 100, " };
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

/// The elements of constants, by name.
fn constants(model: &Model) -> BTreeMap<String, Vec<u8>> {
    let used = model.values().filter(|(_, data)| data.uses().len() > 0);
    let all =
        used.filter_map(|(_, data)| Some((data.name.as_ref()?.to_string(), data.constant()?)));
    all.map(|(name, tensor)| (name, tensor.to_bytes().into_owned())).collect()
}

#[test]
fn what_is_lost_is_told() {
    let program =
        compressed(&model(21, TURNED), r#"{"quantize": "int8", "block": 32, "compress-min": 1}"#)
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

/// What cannot be compressed as asked.
#[test]
fn errors() {
    let plain = model(20, &TURNED.replace("y = MatMul (x, b)", "a = MatMul (x, b) y = Relu (a)"));
    for (opset, json, said) in [
        (20, r#"{"quantize": "int4"}"#, "weights of int4 need opset 21 or newer"),
        (20, r#"{"quantize": "int8", "block": 32}"#, "blocks of 32 need opset 21 or newer"),
        (18, r#"{"quantize": "float8"}"#, "weights of float8 need opset 19 or newer"),
        (12, r#"{"cast-weights": "bfloat16"}"#, "weights of bfloat16 need opset 13 or newer"),
        (5, r#"{"precision": "float16", "quantize": "int8"}"#, "casts need opset 6 or newer"),
        (5, r#"{"cast-weights": "float16"}"#, "casts need opset 6 or newer"),
        (5, r#"{"cast-weights": "bfloat16"}"#, "weights of bfloat16 need opset 13 or newer"),
        (12, r#"{"quantize": "dynamic-int8"}"#, "need opset 13 or newer"),
        (20, r#"{"block": 32}"#, "the option `block` has a meaning only with `quantize`"),
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
        (20, r#"{"calibration": "min-max"}"#, "the option `compress-min` has a meaning only"),
        (20, r#"{"quantize": "int8", "compress-include": ["u"]}"#, "is called `u`"),
        (20, r#"{"quantize": "int8", "compress-include": ["Relu"]}"#, "no node `Relu` takes"),
        (20, r#"{"cast-weights": "float16", "compress-exclude": ["Relu"]}"#, "no node `Relu`"),
        (
            20,
            r#"{"quantize": "int8", "compress-include": ["t"], "compress-exclude": ["MatMul"]}"#,
            "the option `compress-exclude` leaves nothing",
        ),
    ] {
        let json = json.replacen('{', "{\"compress-min\": 1, ", 1);
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
        ("1, 2, nan, 3", r#"{"quantize": "int4", "block": 32}"#, "the weight `w` has NaN"),
        ("1, 2, nan, 3", r#"{"quantize": "int4", "target": "ort"}"#, "the weight `w` has NaN"),
        (
            "1, 2, 3, 70000",
            r#"{"cast-weights": "float16"}"#,
            "the weight `w` has numbers above 65504",
        ),
    ] {
        let json = json.replacen('{', "{\"compress-min\": 1, ", 1);
        let program = compressed(&text(numbers), &json).unwrap();
        let error = program.to_bytes().unwrap_err().to_string();
        assert!(error.contains(said), "{json}: {error}");
    }
    let json = r#"{"quantize": "int8", "compress-min": 1}"#;
    let error = compressed(&double("1, 2, 3, 1e39"), json).unwrap().to_bytes().unwrap_err();
    assert!(error.to_string().contains("the weight `w` has numbers above 3.4e38"), "{error}");
    // A mask stays what it is.
    for (mask, to) in [
        (text("0, -3e38, 1, 2"), "float16"),
        (text("0, -3.4028235e38, 1, 2"), "bfloat16"),
        (double("0, -1.7e308, 1, 2"), "float16"),
        (double("0, -1.7e308, 1, 2"), "bfloat16"),
    ] {
        let cast = format!(r#"{{"cast-weights": "{to}", "compress-min": 1}}"#);
        let program = compressed(&mask, &cast).unwrap();
        assert_eq!(constants(program.model()), constants(&mask));
        assert!(program.compressed().is_empty() && program.to_bytes().is_ok());
    }
    for json in [
        r#"{"quantize": "int8"}"#,
        r#"{"quantize": "int8", "asymmetric": true}"#,
        r#"{"quantize": "int4", "block": 16}"#,
        r#"{"quantize": "int4", "target": "ort", "asymmetric": true}"#,
        r#"{"quantize": "float8"}"#,
        r#"{"cast-weights": "float16"}"#,
    ] {
        let json = json.replacen('{', "{\"compress-min\": 1, ", 1);
        let mut program = compressed(&text("0, 2, 0, 4"), &json).unwrap();
        let x = Tensor::from_slice(vec![1, 2], &[1f32, 1.0]).unwrap();
        let y = program.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap();
        assert!(y[0] == 0.0 && (y[1] - 6.0).abs() < 0.5, "{json}: {y:?}");
    }
}

/// An option that compresses no weight is a warning that says why, and a weight that would get larger stays as it is.
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
            r#"{"quantize": "int8", "compress-min": 1400}"#,
            "`quantize` `int8` compresses no weight: 4 of fewer than 1400 elements",
        ),
        (PRODUCTS, r#"{"cast-weights": "float16", "compress-min": 1400}"#, "`cast-weights` comp"),
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
        (&flat(4), r#"{"quantize": "int4", "target": "ort", "block": 256}"#, used),
        (&flat(4), r#"{"quantize": "int8", "cast-weights": "float16"}"#, "`cast-weights` compr"),
    ] {
        let min = if json.contains("min") { "{" } else { "{\"compress-min\": 2, " };
        let program = compressed(&model(20, text), &json.replacen('{', min, 1)).unwrap();
        let [warning] = program.warnings() else { panic!("{json}: {:?}", program.warnings()) };
        assert!(warning.message.contains(said), "{json}: {warning}");
    }
    for (text, json) in [
        (TIED, r#"{"quantize": "int8", "compress-include": ["MatMul"]}"#),
        (&*flat(4), r#"{"quantize": "int8", "compress-min": 1}"#),
    ] {
        let program = compressed(&model(20, text), json).unwrap();
        assert!(program.warnings().is_empty() && program.compressed().len() == 1, "{json}");
    }
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

/// What becomes of weights that are all one number is never infinite, and near it.
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
            r#"{"quantize": "int8", "asymmetric": true}"#,
            r#"{"quantize": "int8", "block": 16}"#,
            r#"{"quantize": "int4"}"#,
            r#"{"quantize": "int4", "block": 16, "asymmetric": true}"#,
            r#"{"quantize": "int4", "target": "ort"}"#,
            r#"{"quantize": "float8"}"#,
            r#"{"quantize": "dynamic-int8"}"#,
        ] {
            let json = json.replacen('{', "{\"compress-min\": 1, ", 1);
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
    let json = r#"{"quantize": "int8", "compress-min": 1}"#;
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

/// Layers with activation functions, sums, pools, moves and a bias that is too large for integers.
const NETWORK: &str = "g (float[2, 3, 8, 8] x) => (float[2, 10] y)
  <float[8,3,3,3] w = {8,3,3,3}, float[8] b = {8,1}, float[8,8,3,3] v = {8,8,3,3}, float[128,10] u = {128,10}> {
  a = Conv <pads = [1, 1, 1, 1]> (x, w, b)
  r = Relu (a)
  c = Conv <pads = [1, 1, 1, 1]> (r, v)
  s = Add (c, r)
  t = Relu (s)
  p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (t)
  f = Flatten (p)
  y = MatMul (f, u)
}";

/// Products of activations, and a normalisation between layers.
const ATTENTION: &str = "g (float[2, 5, 16] x) => (float[2, 5, 16] y)
  <float[16,16] q = {16,16}, float[16,16] k = {16,16}, float[16,16] v = {16,16}, float[16] one = {16,1}> {
  a = MatMul (x, q)
  b = MatMul (x, k)
  c = MatMul (x, v)
  bt = Transpose <perm = [0, 2, 1]> (b)
  s = MatMul (a, bt)
  p = Softmax (s)
  o = MatMul (p, c)
  y = LayerNormalization (o, one)
}";

/// The model after calibration on these inputs, as its file.
fn calibrated(model: &Model, json: &str, samples: &[Tensor]) -> Result<OnnxProgram, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.npz");
    let names = model.inputs().iter().map(|v| model[*v].name.as_ref().unwrap().to_string());
    let arrays: Vec<(String, Tensor)> = names.zip(samples.iter().cloned()).collect();
    let bytes = pt2onnx::to_npz(arrays.iter().map(|(n, t)| (n, t))).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let mut program = program(model);
    let options = options(json);
    let mut compression = options.compression();
    compression.ranges = program.calibrate(&compression, options.calibration, &[path])?;
    program.compress(&compression)?;
    Ok(program)
}

/// Model, opset, more options, how ranges are found, largest error, and how often some operators are there.
type Activations =
    (&'static str, u32, &'static str, &'static str, f32, &'static [(&'static str, usize)]);

#[test]
fn activations_of_8_bits() {
    let cases: &[Activations] = &[
        (NETWORK, 20, "", "min-max", 0.05, &[("QuantizeLinear", 6), ("DequantizeLinear", 10)]),
        (NETWORK, 20, "", "percentile", 0.05, &[("QuantizeLinear", 6)]),
        (NETWORK, 20, "", "entropy", 0.2, &[("QuantizeLinear", 6)]),
        (NETWORK, 11, "", "min-max", 0.05, &[("QuantizeLinear", 6)]),
        (
            NETWORK,
            20,
            r#", "target": "tensorrt", "opset": 20"#,
            "min-max",
            0.05,
            &[("DequantizeLinear", 9)],
        ),
        (
            NETWORK,
            20,
            r#", "compress-exclude": ["MatMul"]"#,
            "min-max",
            0.05,
            &[("QuantizeLinear", 3)],
        ),
        (
            NETWORK,
            20,
            r#", "compress-include": ["MatMul"]"#,
            "min-max",
            0.05,
            &[("QuantizeLinear", 1)],
        ),
        (ATTENTION, 20, "", "min-max", 0.1, &[("DequantizeLinear", 8)]),
        (ATTENTION, 13, "", "percentile", 0.1, &[]),
        (TIED, 20, "", "min-max", 0.05, &[("QuantizeLinear", 1), ("Gather", 2)]),
        (TURNED, 20, "", "min-max", 0.05, &[("QuantizeLinear", 1), ("Transpose", 0)]),
        (BODY, 20, "", "min-max", 0.05, &[("QuantizeLinear", 0), ("DequantizeLinear", 1)]),
        (PRODUCTS, 20, "", "min-max", 0.05, &[("QuantizeLinear", 2)]),
    ];
    for (text, opset, more, method, tolerance, expected) in cases {
        let json = format!(
            r#"{{"compress-min": 100, "quantize": "static-int8", "calibration": "{method}"{more}}}"#
        );
        let text = if *opset < 17 {
            text.replace("LayerNormalization (o, one)", "Mul (o, one)")
        } else {
            (*text).to_owned()
        };
        let model = model(*opset, &text);
        let inputs = inputs(&model);
        let mut after =
            calibrated(&model, &json, &inputs).unwrap_or_else(|e| panic!("{json}: {e}"));
        let found = operators(&after);
        for (op, count) in *expected {
            assert_eq!(found.get(*op).copied().unwrap_or(0), *count, "{op} in {json}: {found:?}");
        }
        let wanted = program(&model).run(&inputs).unwrap();
        if json.contains("tensorrt") {
            // As it is: ONNX Runtime's products of int8 saturate on some processors.
            after.session(&SessionOptions::new().optimize(false), &[]).unwrap();
        }
        let got = after.run(&inputs).unwrap_or_else(|e| panic!("{json}: {e}"));
        for (wanted, got) in wanted.iter().zip(&got) {
            assert_eq!((wanted.dtype(), wanted.shape()), (got.dtype(), got.shape()), "{json}");
            let (wanted, got) = (wanted.to_vec::<f32>().unwrap(), got.to_vec::<f32>().unwrap());
            let largest = wanted.iter().fold(0f32, |m, x| m.max(x.abs()));
            let error = wanted.iter().zip(&got).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
            assert!(error <= tolerance * largest, "{json}: {error} of {largest}");
        }
    }
}

/// A channel of zeros keeps its bias, also where the scale of the input makes the steps of other channels coarse.
#[test]
fn bias_of_zeros() {
    let rows = (0..32).map(|i| format!("{}, 0, {}", (i % 5) - 2, i % 3)).collect::<Vec<_>>();
    for opset in [20, 11] {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : {opset}]> g (float[1, 32] x) => (float[1, 3] y)
             <float[32, 3] w = {{{}}}, float[3] b = {{1, 0.75, -0.5}}> {{ y = Gemm (x, w, b) }}",
            rows.join(", ")
        );
        let x: Vec<f32> = numbers(32, 3).iter().map(|x| x * 5000.0).collect();
        let x = Tensor::from_slice(vec![1, 32], &x).unwrap();
        let json = r#"{"compress-min": 1, "quantize": "static-int8"}"#;
        let mut after = calibrated(&text.parse().unwrap(), json, std::slice::from_ref(&x)).unwrap();
        let y = after.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap();
        assert!((y[1] - 0.75).abs() < 0.05, "{opset}: {y:?}");
    }
}

/// Arrays of several samples, and samples that are not finite or do not fit.
#[test]
fn samples() {
    let json = r#"{"compress-min": 1, "quantize": "static-int8"}"#;
    let scale = |model: &Model, sizes: &[usize], all: &[f32]| {
        let sample = Tensor::from_slice(sizes, all).unwrap();
        let made = calibrated(model, json, &[sample]).map_err(|e| e.to_string())?;
        let found = made.model().values().find(|(_, d)| d.name.as_deref() == Some("x_scale"));
        Ok(found.map(|(_, data)| data.constant().unwrap().to_vec::<f32>().unwrap()[0] * 255.0))
    };
    let of = |x: &str| -> Model {
        let text = format!(
            "<ir_version: 10, opset_import: [\"\" : 20]> g (float[{x}] x) => (float[n, 1] y)
             <float[2, 1] w = {{1, 2}}> {{ y = MatMul (x, w) }}"
        );
        text.parse().unwrap()
    };
    for (x, sizes, all) in [
        ("1, 2", &[1, 2][..], &[0.0, 6.0][..]),
        ("1, 2", &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0]),
        ("1, 2", &[2, 1, 2], &[0.0, 1.0, 2.0, 6.0]),
        ("n, 2", &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0]),
        ("n, 2", &[2, 1, 2], &[0.0, 6.0, 2.0, 3.0]),
    ] {
        let found: Result<_, String> = scale(&of(x), sizes, all);
        assert!((found.clone().unwrap().unwrap() - 6.0).abs() < 1e-5, "{x} {sizes:?}: {found:?}");
    }
    let none = scale(&of("n, 2"), &[0, 1, 2], &[]).unwrap_err();
    assert!(none.contains("it has no samples"), "{none}");
    // Nothing is known of a range with infinities: the input stays as it is.
    assert_eq!(scale(&of("1, 2"), &[1, 2], &[0.0, f32::INFINITY]), Ok(None));
    for (x, sizes, all) in
        [("1, 2", &[1, 3][..], &[1.0, 2.0, 3.0][..]), ("2, 2", &[3, 2], &[0.0; 6])]
    {
        let error = scale(&of(x), sizes, all).unwrap_err();
        assert!(error.contains(&format!("the input x takes float32[{x}], but float32")), "{error}");
    }
}
