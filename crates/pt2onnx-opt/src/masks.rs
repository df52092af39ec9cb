//! Attention masks: which keys a query sees.

use crate::analysis::{counted, known, number_of};
use pt2onnx_ir::{Builder, Model, Traits, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// The elements of a constant mask, as numbers added to the scores.
fn elements(t: &Tensor) -> Option<Vec<f64>> {
    match t.dtype() {
        DType::Bool => {
            let added = |b: bool| if b { 0.0 } else { f64::NEG_INFINITY };
            Some(t.to_vec::<bool>()?.into_iter().map(added).collect())
        }
        dtype => dtype.is_float().then(|| t.to_doubles())?,
    }
}

/// Whether adding this number hides a key: -inf, or about the lowest number of the type.
pub(crate) fn hides(added: f64, dtype: DType) -> bool {
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
        node.filter(|n| n.is("Expand") || n.traits().contains(Traits::SHAPE_ONLY))
    {
        node = moved.input(0).and_then(producer);
    }
    let infinite = |branch: Option<Value>| {
        let number = branch.and_then(|v| number_of(model, v));
        number.is_some_and(|(dtype, n)| n == f64::NEG_INFINITY || !hides(n, dtype))
    };
    node.is_some_and(|n| n.is("Where") && infinite(n.input(1)) && infinite(n.input(2)))
}

/// The mask of bools from which a formula makes numbers: `bias`, which is added to the scores,
/// hides the keys where the mask is false, and `kept`, by which the softmax is multiplied, is 0
/// there and 1 elsewhere. A query without keys must not have infinities, as these give NaN.
pub(crate) fn bools_of(cx: &Builder, bias: Value, kept: Value) -> Option<Value> {
    let computed = || {
        let model = cx.model();
        let producer = |v| model.producer(v).map(|n| &model[n]);
        let mask = producer(kept).filter(|n| n.is("Cast"))?.input(0)?;
        let choice = producer(bias).filter(|n| n.is("Where") && n.input(0) == Some(mask))?;
        let (_, seen) = number_of(&model, choice.input(1)?)?;
        let (dtype, added) = number_of(&model, choice.input(2)?)?;
        let of_bools = model.tensor_type(mask)?.0 == DType::Bool;
        (of_bools && seen == 0.0 && added.is_finite() && hides(2.0 * added, dtype)).then_some(mask)
    };
    let constant = || {
        let of = |v: Value| cx.constant_of(v).filter(Tensor::has_data);
        let (bias, kept) = (of(bias)?, of(kept)?);
        let (added, factors) = (elements(&bias)?, elements(&kept)?);
        let same = |(&a, &f): (&f64, &f64)| match f {
            1.0 => a == 0.0,
            _ => f == 0.0 && hides(2.0 * a, bias.dtype()),
        };
        let width = kept.shape().last().copied().filter(|&w| w > 0)?;
        let has_key = |row: &[f64]| row.contains(&1.0);
        let finite = added.iter().all(|a| a.is_finite()) || factors.chunks(width).all(has_key);
        let fits = finite && bias.shape() == kept.shape() && added.iter().zip(&factors).all(same);
        let bools: Vec<bool> = factors.iter().map(|&f| f == 1.0).collect();
        fits.then(|| Tensor::from_slice(kept.shape().to_vec(), &bools).ok())?
    };
    computed().or_else(|| Some(cx.constant(constant()?)))
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
    let counts = |v: Option<Value>| v.and_then(|v| counted(model, v)).is_some();
    let compared = || {
        let node = producer(Some(mask)).filter(|n| n.is("GreaterOrEqual"))?;
        let column = producer(node.input(0)).filter(|n| n.is("Unsqueeze"))?;
        let (_, shape) = model.tensor_type(mask)?;
        let sizes = shape[..] == [rows.clone(), columns.clone()] && shape.iter().all(known);
        let upright = matches!(model.const_int(column.input(1)?)?, 1 | -1);
        Some(sizes && upright && counts(column.input(0)) && counts(node.input(1)))
    };
    constant().or_else(compared) == Some(true)
}
