//! Random graphs compute the same after the passes as before, interpreted node by node with the
//! evaluator.

use crate::measured;
use proptest::{prelude::*, test_runner::RngSeed};
use pt2onnx_ir::{
    Builder, Def, InsertPoint, Model, Output, TensorType, Type, Value, schema, verify,
};
use pt2onnx_opt::{Options, Passes, eval::evaluate, optimize};
use pt2onnx_symbolic::{Constraints, Expr};
use pt2onnx_tensor::{DType, Tensor};
use std::collections::{HashMap, HashSet};

/// The value of the symbol `N`.
const N: i64 = 3;

/// A graph from numbers: each picks an operator, its operands and its attributes.
fn random(choices: &[(u8, u8, u8, u8)]) -> Model {
    let mut model = Model::new(schema::CANONICAL_OPSET);
    let cx = Builder::new(&mut model, InsertPoint::End(Model::MAIN), Constraints::default());
    let (n, two, one) = (Expr::symbol("N"), Expr::int(2), Expr::int(1));
    let mut values: Vec<Value> = [
        Type::tensor(DType::F32, [n.clone(), two.clone()]),
        Type::tensor(DType::F32, [two.clone(), Expr::int(N)]),
        Type::tensor(DType::I64, [n, one, two]),
        Type::Tensor(TensorType { dtype: DType::I32, shape: None }),
    ]
    .into_iter()
    .map(|ty| cx.edit(|m| m.add_input(Model::MAIN, Some(ty))))
    .collect();
    values.push(cx.vector(&[2f32, -1.0]));
    values.push(cx.edit(|m| m.add_constant(Tensor::vector(&[2f32, -1.0]))));
    values.push(cx.vector(&[4i64, 1]));
    for &(op, a, b, c) in choices {
        let (x, y) = (values[a as usize % values.len()], values[b as usize % values.len()]);
        values.extend(node(&cx, op, x, y, c));
    }
    let outputs: Vec<Value> = values.iter().rev().step_by(3).copied().collect();
    // Distinct outputs made by nodes, as the standard wants them; each has a name to keep.
    let outputs: Vec<Value> = outputs.into_iter().map(|v| cx.identity(v)).collect();
    for (i, &v) in outputs.iter().enumerate() {
        cx.edit(|m| m[v].name = Some(format!("out{i}").into()));
    }
    cx.edit(|m| m.set_outputs(Model::MAIN, &outputs));
    let _ = cx.take_diagnostics();
    drop(cx);
    model
}

/// Nothing where the operands do not fit.
fn node(cx: &Builder, op: u8, x: Value, y: Value, c: u8) -> Vec<Value> {
    let dtype = cx.dtype(x);
    let shape = cx.known_shape(x);
    let rank = shape.as_ref().map(Vec::len);
    let emit = |op, inputs: &[Value], attributes: &[(&'static str, i64)]| {
        let inputs: Vec<Option<Value>> = inputs.iter().copied().map(Some).collect();
        let attributes = attributes.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        vec![cx.emit1(op, &inputs, attributes)]
    };
    let c = i64::from(c);
    match op % 16 {
        0 => emit("Identity", &[x], &[]),
        1 => emit("Neg", &[x], &[]),
        2 => emit("Cast", &[x], &[("to", [1, 7, 6, 10, 11][c as usize % 5])]),
        3 => emit("Mul", &[x, cx.scalar(1, dtype)], &[]),
        4 => emit("Add", &[x, cx.scalar(c % 2, dtype)], &[]),
        5 if cx.dtype(y) == dtype && shape.is_some() && shape == cx.known_shape(y) => {
            emit("Sub", &[x, y], &[])
        }
        6 => emit("Shape", &[x], &[]),
        7 => emit("Unsqueeze", &[x, cx.ints(&[if c % 2 == 0 { 0 } else { -1 }])], &[]),
        8 => {
            let ones = shape.iter().flatten().enumerate().filter(|(_, d)| d.as_int() == Some(1));
            let axes: Vec<i64> = ones.map(|(i, _)| i as i64).take(1 + c as usize % 2).collect();
            if axes.is_empty() { Vec::new() } else { emit("Squeeze", &[x, cx.ints(&axes)], &[]) }
        }
        9 => emit(
            "Reshape",
            &[x, cx.ints([&[-1][..], &[2, -1], &[1, -1, 2], &[0, -1]][c as usize % 4])],
            &[],
        ),
        10 | 11 => match rank {
            Some(rank) => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                perm.rotate_left(c as usize % rank.max(1));
                vec![cx.emit1(
                    "Transpose",
                    &[Some(x)],
                    [("perm".into(), perm.into())].into_iter().collect(),
                )]
            }
            None => emit("Transpose", &[x], &[]),
        },
        12 => emit("Expand", &[x, cx.ints([&[1][..], &[1, 1], &[2, 1, 1]][c as usize % 3])], &[]),
        13 => emit("Slice", &[x, cx.ints(&[c % 2]), cx.ints(&[9]), cx.ints(&[0])], &[]),
        14 if cx.dtype(y) == dtype => emit("Concat", &[x, y], &[("axis", 0)]),
        15 => cx
            .emit("Split", &[Some(x)], [("num_outputs".into(), 1.into())].into_iter().collect(), 1)
            .to_vec(),
        _ => Vec::new(),
    }
}

fn inputs() -> Vec<Tensor> {
    let floats: Vec<f32> = vec![1.0, -2.5, 0.0, -0.0, 3.25, 4.0];
    vec![
        Tensor::from_slice([3, 2], &floats).unwrap(),
        Tensor::from_slice([2, 3], &floats).unwrap(),
        Tensor::from_slice([3, 1, 2], &[1i64, -2, 3, 0, 5, 6]).unwrap(),
        Tensor::from_slice([2, 2], &[1i32, 2, -3, 4]).unwrap(),
    ]
}

/// The outputs, each by name; `None` where a node has no defined result.
fn interpret(model: &Model) -> Option<Vec<(String, Tensor)>> {
    let mut known: HashMap<Value, Tensor> = model.inputs().iter().copied().zip(inputs()).collect();
    known.extend(model.values().filter_map(|(v, d)| Some((v, d.constant()?.clone()))));
    for id in model.nodes(Model::MAIN) {
        let node = &model[id];
        let operands: Vec<Option<&Tensor>> =
            node.inputs().iter().map(|v| v.map(|v| &known[&v])).collect();
        let results = evaluate(node, &operands, 1 << 16)?;
        known.extend(node.outputs().iter().copied().zip(results));
    }
    let named = |o: &Output| (model.output_name(o).unwrap().to_string(), known[&o.value()].clone());
    Some(model.outputs().iter().map(named).collect())
}

/// The bytes, with 0.0 for -0.0: passes remove zeros that are added.
fn bytes(t: &Tensor) -> Vec<u8> {
    let width = t.dtype().bits() / 8;
    let mut bytes = t.to_bytes().into_owned();
    for element in bytes.chunks_exact_mut(width).filter(|_| t.dtype().is_float()) {
        if let Some((0x80, rest)) = element.split_last()
            && rest.iter().all(|&b| b == 0)
        {
            element.fill(0);
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: RngSeed::Fixed(0), ..ProptestConfig::default() })]

    #[test]
    fn passes_keep_outputs(choices in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..25)) {
        let mut model = random(&choices);
        let Some(before) = interpret(&model) else { return Ok(()) };
        prop_assert!(verify(&model).is_ok());
        let text = model.to_string();
        for pass in Passes::standard().iter() {
            measured(pass, &model, &Options::default());
        }
        optimize(&mut model, &Options::default());
        model.finish_outputs(Model::MAIN);
        let inputs = model.output_values().filter(|v| matches!(model[*v].def(), Def::Input(..)));
        prop_assert_eq!(inputs.count(), 0);
        let distinct: HashSet<Value> = model.output_values().collect();
        prop_assert_eq!(distinct.len(), before.len());
        let after = interpret(&model);
        prop_assert!(after.is_some(), "{text}\n{model}");
        let after = after.unwrap_or_default();
        for ((name, a), (other, b)) in before.iter().zip(&after) {
            prop_assert_eq!(name, other);
            let same = (a.dtype(), a.shape(), bytes(a)) == (b.dtype(), b.shape(), bytes(b));
            prop_assert!(same, "{name}\n{text}\n{model}");
        }
    }
}
