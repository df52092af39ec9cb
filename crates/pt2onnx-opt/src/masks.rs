//! Attention masks: which keys a query sees.

use crate::facts::{known, number_of, tensor_type};
use pt2onnx_ir::{Model, Node, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// The elements of a constant mask, as numbers added to the scores.
fn elements(t: &Tensor) -> Option<Vec<f64>> {
    let added = |b: bool| if b { 0.0 } else { f64::NEG_INFINITY };
    Some(match t.dtype() {
        DType::Bool => t.to_vec::<bool>()?.into_iter().map(added).collect(),
        DType::F64 => t.to_vec::<f64>()?,
        DType::F32 => t.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        DType::F16 => t.to_vec::<half::f16>()?.into_iter().map(f64::from).collect(),
        DType::BF16 => t.to_vec::<half::bf16>()?.into_iter().map(f64::from).collect(),
        _ => return None,
    })
}

/// Whether adding this number hides a key: -inf, or about the lowest number of the type, which runtimes treat alike.
fn hides(added: f64, dtype: DType) -> bool {
    let lowest = if dtype == DType::F16 { -65504.0 } else { f64::from(f32::MIN) };
    added < lowest / 2.0
}

/// Whether a constant mask leaves each query a key.
pub(crate) fn has_keys(model: &Model, mask: Value) -> bool {
    let rows = || {
        let t = model[mask].constant().filter(|t| t.has_data())?;
        let width = t.shape().last().copied().filter(|&w| w > 0)?;
        let all = elements(t)?;
        Some(all.chunks(width).all(|row| row.iter().any(|&e| !hides(e, t.dtype()))))
    };
    rows() == Some(true)
}

/// Whether a float mask hides keys by -inf only: it is a `Where` of two numbers.
pub(crate) fn is_choice(model: &Model, mask: Value) -> bool {
    let producer = |v| model.producer(v).map(|n| &model[n]);
    let mut node = producer(mask);
    while let Some(moved) =
        node.filter(|n| matches!(n.op(), "Unsqueeze" | "Squeeze" | "Expand" | "Reshape"))
    {
        node = moved.input(0).and_then(producer);
    }
    let infinite = |branch: Option<Value>| {
        let number = branch.and_then(|v| number_of(model, v));
        number.is_some_and(|(dtype, n)| n == f64::NEG_INFINITY || !hides(n, dtype))
    };
    node.is_some_and(|n| n.is("Where") && infinite(n.input(1)) && infinite(n.input(2)))
}

/// Whether a mask lets each query see exactly the keys up to its own position.
pub(crate) fn is_causal(model: &Model, mask: Value, rows: &Expr, columns: &Expr) -> bool {
    let constant = || {
        let t = model[mask].constant().filter(|t| t.has_data())?;
        let (rows, columns) = (rows.as_int()? as usize, columns.as_int()? as usize);
        let (leading, sizes) = t.shape().split_at_checked(t.rank().checked_sub(2)?)?;
        let fits = leading.iter().all(|&d| d == 1) && sizes == [rows, columns] && columns > 0;
        let all = elements(t).filter(|_| fits)?;
        let right = |(i, row): (usize, &[f64])| {
            let (seen, hidden) = row.split_at(columns.min(i + 1));
            seen.iter().all(|&e| e == 0.0) && hidden.iter().all(|&e| hides(e, t.dtype()))
        };
        Some(all.chunks(columns).enumerate().all(right))
    };
    let producer = |v: Option<Value>| Some(&model[model.producer(v?)?]);
    let ints = |v: Option<Value>| model[v?].constant()?.to_vec::<i64>();
    let counts = |node: &Node| {
        node.is("Range")
            && ints(node.input(0)) == Some(vec![0])
            && ints(node.input(2)) == Some(vec![1])
    };
    let compared = || {
        let node = producer(Some(mask)).filter(|n| n.is("GreaterOrEqual"))?;
        let column = producer(node.input(0)).filter(|n| n.is("Unsqueeze"))?;
        let (_, shape) = tensor_type(model, mask)?;
        let sizes = shape[..] == [rows.clone(), columns.clone()] && shape.iter().all(known);
        let upright = matches!(ints(column.input(1))?[..], [1 | -1]);
        Some(
            sizes
                && upright
                && counts(producer(column.input(0))?)
                && counts(producer(node.input(1))?),
        )
    };
    constant().or_else(compared) == Some(true)
}
