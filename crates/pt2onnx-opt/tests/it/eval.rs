//! The evaluator against ONNX Runtime: `cases/eval.txt`, written by `cases/eval.py`.

use crate::parse::parser;
use pt2onnx_ir::{Builder, InsertPoint, Model, conforms, schema};
use pt2onnx_opt::eval::evaluate;
use pt2onnx_symbolic::Constraints;
use pt2onnx_tensor::{DType, Tensor};

/// Operators whose last bit depends on the math library and the order of summation.
const INEXACT: &[&str] = &[
    "Exp",
    "Log",
    "Sin",
    "Cos",
    "Tan",
    "Tanh",
    "Sigmoid",
    "Pow",
    "ReduceSum",
    "ReduceMean",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "MatMul",
    "Range",
    "CumSum",
];

#[test]
fn agrees_with_onnx_runtime() {
    let mut failed = Vec::new();
    let mut count = 0;
    for line in include_str!("cases/eval.txt")
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        count += 1;
        let outcome = one(line);
        if let Err(what) = outcome {
            failed.push(format!("{line}\n    {what}"));
        }
    }
    assert!(count > 300, "{count} cases");
    assert!(
        failed.is_empty(),
        "{} of {count}:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

fn one(line: &str) -> Result<(), String> {
    let mut model = Model::new(schema::CANONICAL_OPSET);
    let (op, rest) = line.split_once(' ').unwrap();
    let mut p = parser(rest);
    let cx = Builder::new(
        &mut model,
        InsertPoint::End(Model::MAIN),
        Constraints::default(),
    );
    let attributes = p.attributes(&cx);
    drop(cx);
    p.expect("(");
    let mut inputs = Vec::new();
    while !p.eat(")") {
        inputs.push(if p.eat("\"\"") {
            None
        } else {
            Some(p.typed_elements())
        });
        p.eat(",");
    }
    p.expect("=>");
    let mut expected = Vec::new();
    if !p.eat("none") {
        p.expect("(");
        while !p.eat(")") {
            expected.push(p.typed_elements());
            p.eat(",");
        }
    }
    let values: Vec<_> = inputs
        .iter()
        .map(|t| t.as_ref().map(|t| model.add_constant(t.clone())))
        .collect();
    let at = InsertPoint::End(Model::MAIN);
    let node = model.add_node(
        at,
        op.to_owned(),
        &values,
        attributes,
        expected.len().max(1),
    );
    let formal = schema::lookup(op, schema::CANONICAL_OPSET).unwrap();
    conforms(&model, &model[node], formal)?;
    let borrowed: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let actual = evaluate(&model[node], &borrowed, 1 << 16).unwrap_or_default();
    if actual.len() != expected.len() {
        return Err(format!("{} outputs", actual.len()));
    }
    for (a, e) in actual.iter().zip(&expected) {
        if (a.dtype(), a.shape()) != (e.dtype(), e.shape()) {
            return Err(format!("got {}{:?}", a.dtype(), a.shape()));
        }
        if !(a.to_bytes() == e.to_bytes() || close(a, e, INEXACT.contains(&op))) {
            return Err(format!("got {:?}", numbers(a)));
        }
    }
    Ok(())
}

fn numbers(t: &Tensor) -> Vec<f64> {
    match t.dtype() {
        DType::F64 => t.to_vec::<f64>().unwrap(),
        DType::F32 => t
            .to_vec::<f32>()
            .unwrap()
            .into_iter()
            .map(f64::from)
            .collect(),
        DType::F16 => t
            .to_vec::<half::f16>()
            .unwrap()
            .into_iter()
            .map(f64::from)
            .collect(),
        DType::BF16 => t
            .to_vec::<half::bf16>()
            .unwrap()
            .into_iter()
            .map(f64::from)
            .collect(),
        _ => t
            .to_bytes()
            .chunks(t.dtype().bits() / 8)
            .map(|c| f64::from(c[0]))
            .collect(),
    }
}

/// Floats that are equal but for the last bits, or both NaN; other types must be equal bit for bit.
fn close(a: &Tensor, b: &Tensor, inexact: bool) -> bool {
    let unit = match a.dtype() {
        DType::F64 => 1e-15,
        DType::F32 => 2.0 * f64::from(f32::EPSILON),
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => return false,
    };
    let tolerance = if inexact { 2.0 * unit } else { 0.0 };
    let same = |(a, b): (f64, f64)| {
        (a == b && a.is_sign_negative() == b.is_sign_negative())
            || (a.is_nan() && b.is_nan())
            || (a - b).abs() <= tolerance * b.abs().max(1e-3)
    };
    numbers(a).into_iter().zip(numbers(b)).all(same)
}
