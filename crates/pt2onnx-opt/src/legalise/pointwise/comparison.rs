//! Comparisons, minimum and maximum of types that older forms do not take.

use crate::legalise::{
    Emitted, Outcome, Rewritten, constant_numbers, input, insert_casts, keep_inputs, replace, set,
};
use pt2onnx_ir::{Builder, Model, Node, NodeId, Value, attrs};
use pt2onnx_tensor::{DType, Scalar};

const WIDE_INTEGERS: &[DType] = &[DType::I32, DType::I64, DType::U32, DType::U64];

/// Floats are equal if neither is less and none is NaN. Integers are kept if `Equal` takes them.
pub(crate) fn equal(model: &mut Model, id: NodeId) -> Outcome {
    let ordered = [DType::F16, DType::F32, DType::F64, DType::U32, DType::U64];
    if !insert_casts::is_of(model, id, &ordered) {
        return Ok(Rewritten::InPlace);
    }
    replace(model, id, |cx, node| {
        let (a, b) = (input(node, 0)?, input(node, 1)?);
        let mut differs = cx.or(cx.less(a, b), cx.greater(a, b));
        if cx.dtype(a).is_float() {
            differs = cx.or(differs, cx.or(cx.is_nan(a), cx.is_nan(b)));
        }
        Ok(vec![cx.not(differs)])
    })
}

/// `GreaterOrEqual` and `LessOrEqual`: the strict comparison, or `Equal`.
pub(crate) fn or_equal(cx: &Builder, node: &Node) -> Emitted {
    let (a, b) = (input(node, 0)?, input(node, 1)?);
    let strictly = match node.op() {
        "GreaterOrEqual" => cx.greater(a, b),
        _ => cx.less(a, b),
    };
    Ok(vec![cx.or(strictly, cx.equal(a, b))])
}

/// `Max` and `Min` of integers that no float type holds.
pub(crate) fn extremum(model: &mut Model, id: NodeId) -> Outcome {
    if !insert_casts::is_of(model, id, WIDE_INTEGERS) {
        return Ok(Rewritten::InPlace);
    }
    replace(model, id, |cx, node| {
        let mut chosen = input(node, 0)?;
        for other in node.inputs().iter().flatten().skip(1) {
            let smaller = cx.less(chosen, *other);
            chosen = match node.op() {
                "Max" => cx.select(smaller, *other, chosen),
                _ => cx.select(smaller, chosen, *other),
            };
        }
        Ok(vec![chosen])
    })
}

/// `Clip` of integers by `Max` and `Min`, and of float64, which old runtimes do not take.
pub(crate) fn clip_of_others(model: &mut Model, id: NodeId) -> Outcome {
    match input(&model[id], 0).map(|x| model.dtype(x))? {
        Some(t) if t.is_float() && t != DType::F64 => Ok(Rewritten::InPlace),
        _ => by_extrema(model, id),
    }
}

/// The bounds become attributes if they are numbers of float32; otherwise `Max` and `Min` are used.
/// An absent bound is the limit of the element type, and an absent attribute that of float32.
pub(crate) fn clip_bounds(model: &mut Model, id: NodeId) -> Outcome {
    let bound = |i: usize| match model[id].input(i) {
        None => Some(None),
        Some(value) => {
            let known = constant_numbers(model, value)?;
            let &[number] = known.as_slice() else { return None };
            let held = f64::from(number as f32) == number;
            held.then_some(Some(number as f32))
        }
    };
    let (Some(min), Some(max)) = (bound(1), bound(2)) else {
        return by_extrema(model, id);
    };
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        return by_extrema(model, id);
    }
    let half = model[id].input(0).and_then(|x| model.dtype(x)) == Some(DType::F16);
    let most = half.then(|| f32::from(half::f16::MAX));
    keep_inputs(model, id, 1);
    for (name, bound) in [("min", min.or(most.map(|m| -m))), ("max", max.or(most))] {
        if let Some(bound) = bound {
            set(model, id, name, bound);
        }
    }
    Ok(Rewritten::InPlace)
}

fn by_extrema(model: &mut Model, id: NodeId) -> Outcome {
    replace(model, id, |cx, node| {
        let mut x = input(node, 0)?;
        let kind = cx.dtype(x);
        let most = match kind {
            DType::F16 => Some(f64::from(half::f16::MAX)),
            DType::BF16 => Some(f64::from(half::bf16::MAX)),
            DType::F32 => Some(f64::from(f32::MAX)),
            DType::F64 => Some(f64::MAX),
            // No integer is beyond the limits of its type.
            _ => None,
        };
        let bound = |given: Option<Value>, limit: Option<f64>| {
            given.or_else(|| limit.map(|limit| cx.scalar(limit, kind)))
        };
        if let Some(min) = bound(node.input(1), most.map(|most| -most)) {
            x = cx.maximum(x, min);
        }
        if let Some(max) = bound(node.input(2), most) {
            x = cx.minimum(x, max);
        }
        if x == input(node, 0)? {
            x = cx.identity(x);
        }
        Ok(vec![x])
    })
}

/// `Relu` of integers: the maximum with 0.
pub(crate) fn relu_of_integers(cx: &Builder, node: &Node) -> Emitted {
    Ok(vec![cx.maximum(input(node, 0)?, 0)])
}

/// `IsInf`: whether the absolute value is above the largest number of the type.
pub(crate) fn is_inf(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let largest = match cx.dtype(x) {
        DType::F64 => f64::MAX,
        DType::F32 => f64::from(f32::MAX),
        other => return Err(format!("IsInf of {other} needs a newer opset").into()),
    };
    let asked = attrs::IsInf::read(node)?;
    let found = match (asked.detect_positive, asked.detect_negative) {
        (true, true) => cx.greater(cx.abs(x), largest),
        (true, false) => cx.greater(x, largest),
        (false, true) => cx.less(x, -largest),
        (false, false) => never(cx, x),
    };
    Ok(vec![found])
}

fn never(cx: &Builder, x: Value) -> Value {
    cx.less(cx.abs(x), Scalar::Float(0.0))
}

/// `ThresholdedRelu`: elements above `alpha`, else 0.
pub(crate) fn thresholded_relu(cx: &Builder, node: &Node) -> Emitted {
    let x = input(node, 0)?;
    let alpha = f64::from(attrs::ThresholdedRelu::read(node)?.alpha);
    Ok(vec![cx.select(cx.greater(x, alpha), x, 0.0)])
}
