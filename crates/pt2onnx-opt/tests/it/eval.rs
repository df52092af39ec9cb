//! The evaluator against ONNX Runtime: `cases/eval.txt`, written by `cases/eval.py`.

use crate::parse::{self, items};
use pt2onnx_ir::{conforms, schema};
use pt2onnx_opt::eval::evaluate;
use pt2onnx_tensor::{DType, Narrow, Tensor};

/// Operators whose last bit depends on the math library and the order of summation.
const INEXACT: &str = "
    Exp Log Sin Cos Tan Tanh Sigmoid Pow ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2
    ReduceSumSquare MatMul Range CumSum Softplus Softsign Elu LeakyRelu Sinh Cosh Asin Acos Atan
    Gemm Einsum ConvTranspose Erf Gelu HardSigmoid HardSwish BatchNormalization
    InstanceNormalization LayerNormalization RMSNormalization Resize";

#[test]
fn agrees_with_onnx_runtime() {
    let mut failed = Vec::new();
    let mut count = 0;
    for line in
        include_str!("cases/eval.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        count += 1;
        let outcome = one(line);
        if let Err(what) = outcome {
            failed.push(format!("{line}\n    {what}"));
        }
    }
    assert!(count > 300, "{count} cases");
    assert!(failed.is_empty(), "{} of {count}:\n{}", failed.len(), failed.join("\n"));
}

/// Behind the operator and its attributes.
fn start_of_operands(call: &str) -> usize {
    if call.contains("> (") { call.find("> (").unwrap() + 2 } else { call.find('(').unwrap() }
}

fn one(line: &str) -> Result<(), String> {
    let (op, _) = line.split_once(' ').unwrap();
    let (call, results) = line.rsplit_once(" => ").unwrap();
    let (head, operands) = call.split_at(start_of_operands(call));
    let (operands, _) = items(operands);
    let expected = match results {
        "none" => Vec::new(),
        results => items(results).0,
    };
    // As a graph whose constants they are.
    let (mut constants, mut inputs) = (Vec::new(), Vec::new());
    let named = |item: &str, name: &str| item.replacen('{', &format!("{name} = {{"), 1);
    for (i, operand) in operands.iter().enumerate() {
        inputs.push(match *operand {
            "\"\"" => "\"\"".to_owned(),
            operand => {
                constants.push(named(operand, &format!("i{i}")));
                format!("i{i}")
            }
        });
    }
    let results = expected.iter().enumerate();
    constants.extend(results.map(|(i, item)| named(item, &format!("e{i}"))));
    let formal = schema::lookup(op, schema::CANONICAL_OPSET).unwrap();
    let count = expected.len().max(formal.min_outputs as usize);
    let outputs: Vec<_> = (0..count).map(|i| format!("o{i}")).collect();
    let text = format!(
        "g () => () <{}> {{ {} = {head} ({}) }}",
        constants.join(", "),
        outputs.join(", "),
        inputs.join(", ")
    );
    let model = parse::model(&text);
    let node = model.all_nodes()[0];
    let tensor = |name: String| {
        let mut values = model.values();
        let found = values.find(|(_, d)| d.name.as_deref() == Some(&name));
        found.unwrap().1.constant().unwrap().clone()
    };
    let inputs: Vec<Option<Tensor>> =
        { inputs.into_iter() }.map(|name| (name != "\"\"").then(|| tensor(name))).collect();
    let expected: Vec<Tensor> = (0..expected.len()).map(|i| tensor(format!("e{i}"))).collect();
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
        let units = match op {
            // ONNX Runtime's own are not exact.
            "DFT" => 32.0,
            _ if INEXACT.split_whitespace().any(|inexact| inexact == op) => 2.0,
            _ => 0.0,
        };
        if !(a.to_bytes() == e.to_bytes() || close(a, e, units)) {
            return Err(format!("got {:?}", numbers(a)));
        }
    }
    Ok(())
}

fn numbers(t: &Tensor) -> Vec<f64> {
    match t.dtype() {
        DType::F64 => t.to_vec::<f64>().unwrap(),
        DType::F32 => t.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        DType::F16 => t.to_vec::<half::f16>().unwrap().into_iter().map(f64::from).collect(),
        DType::BF16 => t.to_vec::<half::bf16>().unwrap().into_iter().map(f64::from).collect(),
        dtype => match Narrow::of(dtype) {
            Some(narrow) => t.codes().unwrap().iter().map(|&c| narrow.number(c).into()).collect(),
            None => t.to_bytes().chunks(dtype.bits() / 8).map(|c| f64::from(c[0])).collect(),
        },
    }
}

/// Floats that are equal but for the last bits, or both NaN; other types must be equal bit for bit.
fn close(a: &Tensor, b: &Tensor, units: f64) -> bool {
    let unit = match a.dtype() {
        DType::F64 => 1e-15,
        DType::F32 => 2.0 * f64::from(f32::EPSILON),
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        // All codes of NaN are the same number.
        dtype if dtype.is_float() => 0.0,
        _ => return false,
    };
    let tolerance = units * unit;
    let least = if units > 2.0 { 1.0 } else { 1e-3 };
    let same = |(a, b): (f64, f64)| {
        (a == b && a.is_sign_negative() == b.is_sign_negative())
            || (a.is_nan() && b.is_nan())
            || (a - b).abs() <= tolerance * b.abs().max(least)
    };
    numbers(a).into_iter().zip(numbers(b)).all(same)
}
