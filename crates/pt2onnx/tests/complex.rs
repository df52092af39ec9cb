//! Functions of complex numbers, run by ONNX Runtime where a formula that is not scaled overflows
//! or vanishes.
//!
//! The expected results are NumPy's.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx::{
    Exporter,
    fx::text,
    tensor::{DType, Tensor},
};

/// A complex number, or a real one with an imaginary part of 0.
type Number = (f64, f64);

const INF: f64 = f64::INFINITY;
const QUARTER: f64 = std::f64::consts::FRAC_PI_4;

/// Calls of x: complex64[1] and y: complex64[1], or complex128; x, y, and the result.
const CASES: &[(&str, Number, Number, Number)] = &[
    ("abs(x: c64[1]) -> f32[1]", (3e30, 4e30), (0.0, 0.0), (5e30, 0.0)),
    ("abs(x: c64[1]) -> f32[1]", (3e-30, 4e-30), (0.0, 0.0), (5e-30, 0.0)),
    ("abs(x: c64[1]) -> f32[1]", (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
    ("abs(x: c64[1]) -> f32[1]", (-INF, 1.0), (0.0, 0.0), (INF, 0.0)),
    ("abs(x: c128[1]) -> f64[1]", (3e200, 4e200), (0.0, 0.0), (5e200, 0.0)),
    ("abs(x: c128[1]) -> f64[1]", (3e-200, 4e-200), (0.0, 0.0), (5e-200, 0.0)),
    ("abs(x: c128[1]) -> f64[1]", (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
    ("abs(x: c128[1]) -> f64[1]", (1.0, INF), (0.0, 0.0), (INF, 0.0)),
    ("linalg_vector_norm(x: c64[1]) -> f32[]", (3e30, 4e30), (0.0, 0.0), (5e30, 0.0)),
    ("linalg_vector_norm(x: c64[1]) -> f32[]", (3e-30, 4e-30), (0.0, 0.0), (5e-30, 0.0)),
    ("linalg_vector_norm(x: c64[1], inf) -> f32[]", (3e30, 4e30), (0.0, 0.0), (5e30, 0.0)),
    ("sgn(x: c64[1]) -> c64[1]", (3e30, 4e30), (0.0, 0.0), (0.6, 0.8)),
    ("sgn(x: c64[1]) -> c64[1]", (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
    ("div.Tensor(x: c64[1], y: c64[1]) -> c64[1]", (3e30, 4e30), (3e30, 4e30), (1.0, 0.0)),
    ("div.Tensor(x: c64[1], y: c64[1]) -> c64[1]", (3e-30, 4e-30), (3e-30, 4e-30), (1.0, 0.0)),
    ("div.Tensor(x: c64[1], y: c64[1]) -> c64[1]", (1.0, 2.0), (3.0, -4.0), (-0.2, 0.4)),
    ("div.Tensor(x: c64[1], y: c64[1]) -> c64[1]", (1.0, -2.0), (0.0, 0.0), (INF, -INF)),
    ("div.Tensor(x: c128[1], y: c128[1]) -> c128[1]", (3e200, 4e200), (3e200, 4e200), (1.0, 0.0)),
    ("div.Tensor(x: c64[1], y: f32[1]) -> c64[1]", (3e30, 4e30), (2e30, 0.0), (1.5, 2.0)),
    ("div.Tensor(x: f32[1], y: c64[1]) -> c64[1]", (5e30, 0.0), (3e30, 4e30), (0.6, -0.8)),
    ("reciprocal(x: c64[1]) -> c64[1]", (3e30, 4e30), (0.0, 0.0), (1.2e-31, -1.6e-31)),
    ("reciprocal(x: c64[1]) -> c64[1]", (3e-30, 4e-30), (0.0, 0.0), (1.2e29, -1.6e29)),
    ("sqrt(x: c64[1]) -> c64[1]", (3e-30, 4e-30), (0.0, 0.0), (2e-15, 1e-15)),
    ("sqrt(x: c64[1]) -> c64[1]", (-3e38, 0.0), (0.0, 0.0), (0.0, 1.732_050_807_568_877_3e19)),
    (
        "sqrt(x: c64[1]) -> c64[1]",
        (3e38, 3e38),
        (0.0, 0.0),
        (1.902_976_705_995_016_6e19, 7.882_387_605_032_136e18),
    ),
    ("log(x: c64[1]) -> c64[1]", (3e38, 3e38), (0.0, 0.0), (88.943_419_412_721_82, QUARTER)),
    ("log(x: c64[1]) -> c64[1]", (3e-30, 3e-30), (0.0, 0.0), (-67.632_366_910_873_29, QUARTER)),
    ("rsqrt(x: c64[1]) -> c64[1]", (3e-30, 4e-30), (0.0, 0.0), (4e14, -2e14)),
    ("pow.Tensor_Scalar(x: c64[1], -1) -> c64[1]", (3e30, 4e30), (0.0, 0.0), (1.2e-31, -1.6e-31)),
    ("atanh(x: c64[1]) -> c64[1]", (1e30, 1e30), (0.0, 0.0), (0.0, 2.0 * QUARTER)),
    ("atanh(x: c64[1]) -> c64[1]", (1e-10, 0.0), (0.0, 0.0), (1e-10, 0.0)),
    ("mul.Tensor(x: c128[1], 0.1) -> c128[1]", (1.0, 2.0), (0.0, 0.0), (0.1, 0.2)),
    ("mul.Tensor(x: c128[1], (0.1+0.3j)) -> c128[1]", (1.0, 2.0), (0.0, 0.0), (-0.5, 0.5)),
    ("add.Tensor(x: c128[1], 0.1) -> c128[1]", (1.0, 2.0), (0.0, 0.0), (1.1, 2.0)),
    ("add.Tensor(x: f32[1], y: c64[1]) -> c64[1]", (1.0, 0.0), (3.0, 4.0), (4.0, 4.0)),
    ("sub.Tensor(x: f32[1], y: c64[1]) -> c64[1]", (1.0, 0.0), (3.0, 4.0), (-2.0, -4.0)),
    ("hypot(x: f64[1], y: f64[1]) -> f64[1]", (3e200, 0.0), (4e200, 0.0), (5e200, 0.0)),
];

/// The type of the argument of that name in a call.
fn dtype_of(call: &str, name: &str) -> Option<DType> {
    let ty = call.split_once(&format!("{name}: "))?.1;
    Some(match ty.split('[').next()? {
        "c64" => DType::C64,
        "c128" => DType::C128,
        "f64" => DType::F64,
        _ => DType::F32,
    })
}

/// A tensor of one number, complex ones as real/imaginary pairs.
fn tensor(dtype: DType, (re, im): Number) -> Tensor {
    let parts = if dtype.is_complex() { vec![re, im] } else { vec![re] };
    let shape = if dtype.is_complex() { vec![1, 2] } else { vec![1] };
    let narrow: Vec<f32> = parts.iter().map(|&p| p as f32).collect();
    match dtype.to_real() {
        DType::F64 => Tensor::from_slice(shape, &parts).unwrap(),
        _ => Tensor::from_slice(shape, &narrow).unwrap(),
    }
}

/// The real and imaginary part that come out, and the precision of their type.
fn run(call: &str, x: Number, y: Number) -> (Number, f64) {
    let program = text::parse_call(&format!("aten.{call}")).unwrap();
    let mut model = Exporter::new().export(program).unwrap();
    let given = [("x", x), ("y", y)].into_iter();
    let inputs: Vec<Tensor> =
        given.filter_map(|(name, v)| Some(tensor(dtype_of(call, name)?, v))).collect();
    let output = model.run(&inputs).unwrap().remove(0);
    let narrow = || output.to_vec::<f32>().map(|v| v.into_iter().map(f64::from).collect());
    let parts: Vec<f64> = output.to_vec::<f64>().or_else(narrow).unwrap();
    let precision = if output.dtype() == DType::F64 { 1e-15 } else { 4e-7 };
    ((parts[0], parts.get(1).copied().unwrap_or(0.0)), precision)
}

#[test]
fn neither_overflow_nor_vanish() {
    let mut wrong = Vec::new();
    for &(call, x, y, expected) in CASES {
        let (got, precision) = run(call, x, y);
        let error = (got.0 - expected.0).hypot(got.1 - expected.1);
        let close = error <= precision * expected.0.hypot(expected.1);
        if got != expected && !close {
            wrong.push(format!("{call} of {x:?}, {y:?}: {got:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
