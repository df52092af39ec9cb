//! Makes models and inputs of random numbers, and compresses models.

use pt2onnx::{Error, OnnxProgram, Options, ir::Model, tensor::Tensor, writer};
use std::collections::BTreeMap;

/// Numbers of a weight, between -1 and 1: `{32,16}` in a text.
pub fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A model of a text, in which `{32,16}` stands for a constant's sizes and elements.
pub fn model(opset: u32, text: &str) -> Model {
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

pub fn program(model: &Model) -> OnnxProgram {
    OnnxProgram::from_bytes(writer::to_bytes(model).unwrap(), []).unwrap()
}

pub fn options(json: &str) -> Options {
    serde_json::from_str(json).unwrap()
}

pub fn compressed(model: &Model, json: &str) -> Result<OnnxProgram, Error> {
    let mut program = program(model);
    program.compress(&options(json).compression())?;
    Ok(program)
}

pub fn operators(program: &OnnxProgram) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for node in program.model().all_nodes() {
        *all.entry(program.model()[node].op().to_owned()).or_default() += 1;
    }
    all
}

pub fn inputs(model: &Model) -> Vec<Tensor> {
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

/// The elements of constants, by name.
pub fn constants(model: &Model) -> BTreeMap<String, Vec<u8>> {
    let used = model.values().filter(|(_, data)| data.uses().len() > 0);
    let all =
        used.filter_map(|(_, data)| Some((data.name.as_ref()?.to_string(), data.constant()?)));
    all.map(|(name, tensor)| (name, tensor.to_bytes().into_owned())).collect()
}

pub const PRODUCTS: &str = "g (float[2, n, 32] x, float[5, 48] y, int64[3] i) => (float[2, n, 16] a, float[5, 24] b, float[3, 32] c)
  <float[32,16] w = {32,16}, float[24,48] v = {24,48}, float[24] bias = {24,1}, float[40,32] t = {40,32}> {
  a = MatMul (x, w)
  b = Gemm <transB = 1> (y, v, bias)
  c = Gather (t, i)
}";

pub const CONVOLUTIONS: &str = "g (float[1, 3, 9, 9] x) => (float[1, 6, 11, 11] y)
  <float[8,3,3,3] w = {8,3,3,3}, float[8,6,5,5] v = {8,6,5,5}> {
  a = Conv (x, w)
  y = ConvTranspose (a, v)
}";

/// A table that is also the weight of a product, as in language models.
pub const TIED: &str = "g (int64[2, 5] i) => (float[2, 5, 40] y) <float[40,32] t = {40,32}> {
  a = Gather (t, i)
  b = Transpose <perm = [1, 0]> (t)
  y = MatMul (a, b)
}";

pub const TURNED: &str = "g (float[2, 32] x) => (float[2, 40] y) <float[40,32] t = {40,32}> {
  b = Transpose <perm = [1, 0]> (t)
  y = MatMul (x, b)
}";

/// A product in a body.
pub const BODY: &str = "g (bool c, float[2, 32] x) => (float[2, 16] y) <float[32,16] w = {32,16}> {
  y = If (c) <
    then_branch = a () => (float[2, 16] p) { p = MatMul (x, w) },
    else_branch = b () => (float[2, 16] q) { r = MatMul (x, w) q = Neg (r) }
  >
}";

/// A weight of two products. One takes it transposed.
pub const BOTH_WAYS: &str = "g (float[2, 32] x, float[2, 32] y) => (float[2, 32] a, float[2, 32] b) <float[32,32] w = {32,32}> {
  a = MatMul (x, w)
  b = Gemm <transB = 1> (y, w)
}";

/// The same behind a `Transpose` that is not folded, in the other order.
pub const TURNED_TOO: &str = "g (float[2, 32] x, float[2, 24] y) => (float[2, 24] a, float[2, 32] b) <float[32,24] w = {32,24}> {
  t = Transpose <perm = [1, 0]> (w)
  b = MatMul (y, t)
  a = MatMul (x, w)
}";

/// A table whose rows a product weighs.
pub const WEIGHED: &str = "g (int64[3] i, float[2, 40] p) => (float[3, 40] a, float[2, 40] b) <float[40,40] t = {40,40}> {
  a = Gather (t, i)
  b = MatMul (p, t)
}";

/// A table whose axis is counted from the end.
pub const TABLE: &str = "g (int64[3] i) => (float[3, 32] y) <float[40,32] t = {40,32}> { y = Gather <axis = -2> (t, i) }";

/// Results that a node quantises already, after the product and in bodies.
pub const QUANTISED: &str = "g (bool c, float[2, 32] x) => (float[2, 16] a, float[2, 16] y)
  <float[32,16] w = {32,16}, uint8[2,1] k = {1, 2}> {
  a = MatMul (x, w)
  y = If (c) <
    then_branch = a () => (float[2, 16] p) { q, s, z = DynamicQuantizeLinear (x) f = Cast <to = 1> (s) r = MatMul (x, w) p = Mul (r, f) },
    else_branch = b () => (float[2, 16] r) { q, s, z = DynamicQuantizeLinear (x) f = MatMul (x, w) r = Mul (f, s) }
  >
}";
