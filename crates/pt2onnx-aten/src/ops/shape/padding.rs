//! Padding: by constants, mirrored, replicated and circular; sequences padded to one length.

use crate::math::reduce::may_be_empty_along;
use crate::math::shape::{has_no_elements, pad_mode, set_recorded};
use crate::meta::sized;
use crate::{AtenOp, Cx, LowerError, Lowered, TensorOrScalar, arguments, checks, op};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::Scalar;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_pad_circular, pad, parts, meta = meta_pad, mode = "circular"),
    op!(aten::_pad_enum, pad_enum, parts, meta = meta_pad),
    op!(aten::constant_pad_nd, pad, parts, meta = meta_pad, mode = "constant"),
    op!(aten::pad, pad, parts, meta = meta_pad),
    op!(aten::pad_sequence, pad_sequence, parts),
    op!(aten::reflection_pad1d, pad, parts, meta = meta_pad, mode = "reflect"),
    op!(aten::reflection_pad2d, pad, parts, meta = meta_pad, mode = "reflect"),
    op!(aten::reflection_pad3d, pad, parts, meta = meta_pad, mode = "reflect"),
    op!(aten::replication_pad1d, pad, parts, meta = meta_pad, mode = "replicate"),
    op!(aten::replication_pad2d, pad, parts, meta = meta_pad, mode = "replicate"),
    op!(aten::replication_pad3d, pad, parts, meta = meta_pad, mode = "replicate"),
];

arguments! {
    /// Arguments of padding. The pads begin with those of the last dimension.
    struct PadArgs {
        input: Value,
        pad: Option<Vec<Expr>>,
        padding: Option<Vec<Expr>>,
        mode: String,
        value: Option<TensorOrScalar>,
    }
}

/// `x` padded in the mode of that name.
fn pad(cx: &Cx, args: PadArgs) -> Lowered {
    let pads = args.pad.or(args.padding).unwrap_or_default();
    emit(cx, args.input, &pads, pad_mode(&args.mode)?, args.value)
}

/// Sequences of different lengths, padded to the longest one and stacked.
fn pad_sequence(
    cx: &Cx,
    sequences: Vec<Value>,
    batch_first: bool,
    padding_value: TensorOrScalar,
    padding_side: String,
) -> Lowered {
    let axis = usize::from(!batch_first);
    let longest = sequences.iter().map(|&x| cx.dim(x, 0)).reduce(|a, b| Expr::max(&a, &b));
    let longest = longest
        .map(|length| cx.constraints().simplify(&length))
        .ok_or_else(|| LowerError::unsupported("pad_sequence needs at least one sequence"))?;
    let mut padded = Vec::with_capacity(sequences.len());
    for &x in &sequences {
        let missing = &longest - &cx.dim(x, 0);
        let mut size = cx.shape(x);
        if size.is_empty() {
            return Err(LowerError::unsupported(
                "the sequences of pad_sequence must have at least one dimension",
            ));
        }
        size[0] = longest.clone();
        let pads = match padding_side.as_str() {
            "left" => [missing, Expr::ZERO],
            _ => [Expr::ZERO, missing],
        };
        let value = cx.as_tensor(&padding_value, cx.dtype(x));
        let pads = cx.sizes(&pads);
        let long = cx.pad(x, pads, value, cx.ints(&[0]), attrs::Pad::default());
        cx.set_type(long, Type::tensor(cx.dtype(x), size));
        padded.push(cx.unsqueeze(long, &[axis]));
    }
    Ok(cx.concat(&padded, axis))
}

/// `x` padded in the mode of that number (`at::padding_mode`).
fn pad_enum(
    cx: &Cx,
    x: Value,
    pads: Vec<Expr>,
    mode: i64,
    value: Option<TensorOrScalar>,
) -> Lowered {
    let mode = match mode {
        0 => "reflect",
        1 => "edge",
        2 => "wrap",
        3 => "constant",
        other => return Err(LowerError::unknown("padding mode", other)),
    };
    emit(cx, x, &pads, mode, value)
}

/// The pads of one dimension.
struct Ends {
    axis: i64,
    begin: Expr,
    end: Expr,
}

/// `Pad`. PyTorch lists the pads from the last dimension on, begin and end side by side. Negative
/// pads crop. `Pad` does that itself in mode `constant`; other modes need a `Slice`: before `Pad`
/// in mode `wrap`, which takes elements of the cropped tensor; after `Pad` in the others, which
/// take elements of the whole one.
fn emit(
    cx: &Cx,
    x: Value,
    pads: &[Expr],
    mode: &'static str,
    value: Option<TensorOrScalar>,
) -> Lowered {
    let rank = cx.rank(x);
    if pads.len() / 2 > rank || !pads.len().is_multiple_of(2) {
        return Err(LowerError::unsupported(format!(
            "{} pads do not fit a tensor of rank {rank}",
            pads.len()
        )));
    }
    let mut ends: Vec<Ends> = pads
        .chunks_exact(2)
        .enumerate()
        .map(|(i, pair)| Ends {
            axis: (rank - 1 - i) as i64,
            begin: pair[0].clone(),
            end: pair[1].clone(),
        })
        .filter(|e| e.begin.as_int() != Some(0) || e.end.as_int() != Some(0))
        .collect();
    ends.reverse();
    if ends.is_empty() {
        return Ok(x);
    }
    let shape = cx.out_shape()?;
    if has_no_elements(&shape) {
        return Ok(cx.full(&shape, 0, cx.dtype(x)));
    }
    if mode == "constant" {
        let value = value.map(|v| cx.as_tensor(&v, cx.dtype(x)));
        return set_recorded(cx, padded(cx, x, &ends, mode, value));
    }
    let zero = Expr::int(0);
    let negative = |e: &Expr| e.as_int().is_some_and(|e| e < 0);
    let positive_part = |e: &Expr| if negative(e) { zero.clone() } else { e.clone() };
    let grown: Vec<Ends> = ends
        .iter()
        .map(|e| Ends { axis: e.axis, begin: positive_part(&e.begin), end: positive_part(&e.end) })
        .filter(|e| e.begin != zero || e.end != zero)
        .collect();
    ends.retain(|e| negative(&e.begin) || negative(&e.end));
    let result = match mode {
        "wrap" => wrapped(cx, cropped(cx, x, &ends), &grown),
        _ => cropped(cx, padded(cx, x, &grown, mode, None), &ends),
    };
    set_recorded(cx, result)
}

/// `Pad` in mode `wrap`. Where `x` may have no elements, which ONNX Runtime's `Pad` refuses in this
/// mode, slices of the other end are joined to `x`. The padded dimensions themselves are never
/// empty: PyTorch refuses that.
fn wrapped(cx: &Cx, x: Value, ends: &[Ends]) -> Value {
    let pads = |e: &Ends| e.begin.as_int().is_some() && e.end.as_int().is_some();
    let kept: Vec<usize> =
        (0..cx.rank(x)).filter(|&a| ends.iter().all(|e| e.axis != a as i64)).collect();
    if !may_be_empty_along(cx, x, &kept) || !ends.iter().all(pads) {
        return padded(cx, x, ends, "wrap", None);
    }
    ends.iter().fold(x, |x, e| {
        let axis = e.axis as usize;
        let size = cx.dim(x, e.axis);
        let mut parts = vec![x];
        if e.begin != Expr::ZERO {
            parts.insert(0, cx.slice(x, axis, &(&size - &e.begin), &size, 1));
        }
        if e.end != Expr::ZERO {
            parts.push(cx.slice(x, axis, &Expr::ZERO, &e.end, 1));
        }
        cx.concat(&parts, axis)
    })
}

/// `Pad`, or `x` if there is nothing to add.
fn padded(cx: &Cx, x: Value, ends: &[Ends], mode: &'static str, value: Option<Value>) -> Value {
    if ends.is_empty() {
        return x;
    }
    let pads: Vec<Expr> = { ends.iter().map(|e| e.begin.clone()) }
        .chain(ends.iter().map(|e| e.end.clone()))
        .collect();
    let axes: Vec<i64> = ends.iter().map(|e| e.axis).collect();
    let value = value.filter(|&v| !is_zero(cx, v));
    cx.pad(x, cx.sizes(&pads), value, cx.ints(&axes), attrs::Pad { mode })
}

/// Whether `value` is what `Pad` fills with if no value is given.
fn is_zero(cx: &Cx, value: Value) -> bool {
    let zero = Scalar::Int(0).to_tensor(cx.dtype(value));
    let tensor = cx.constant_of(value);
    tensor.zip(zero).is_some_and(|(value, zero)| value.to_bytes() == zero.to_bytes())
}

/// `x` without the elements that negative pads remove.
fn cropped(cx: &Cx, x: Value, ends: &[Ends]) -> Value {
    let known = |e: &Expr| e.as_int().unwrap_or(0);
    let negative: Vec<(i64, i64, i64)> = ends
        .iter()
        .map(|e| (e.axis, known(&e.begin).saturating_neg().max(0), known(&e.end).min(0)))
        .collect();
    if negative.is_empty() {
        return x;
    }
    let starts: Vec<i64> = negative.iter().map(|(_, begin, _)| *begin).collect();
    let stops: Vec<i64> =
        { negative.iter() }.map(|&(.., end)| if end == 0 { i64::MAX } else { end }).collect();
    let axes: Vec<i64> = negative.iter().map(|(axis, ..)| *axis).collect();
    cx.slice_op(x, cx.ints(&starts), cx.ints(&stops), cx.ints(&axes), None)
}

arguments! {
    struct MetaPad { input: Value, pad: Option<Vec<Expr>>, padding: Option<Vec<Expr>> }
}

/// Sizes from the front and the back of each dimension, from the last one on.
fn meta_pad(cx: &Cx, args: MetaPad) -> Lowered {
    let mut size = cx.shape(args.input);
    let ends = args.pad.or(args.padding).unwrap_or_default();
    for (d, ends) in size.iter_mut().rev().zip(ends.chunks(2)) {
        *d = &*d + Expr::sum(ends.iter().cloned());
    }
    Ok(sized(cx, args.input, &size))
}

checks! {
    // Sequences are padded to the longest.
    "aten.pad_sequence([a: f32[s0, 2], b: f32[3, 2]], False, 1.5) -> f32[Max(3, s0), 2, 2]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (a)
    val_1 = Max ([3], val_0)
    val_2 = Sub (val_1, val_0)
    val_3 = Concat <axis: int = 0> ([0], val_2)
    val_4 = Concat <axis: int = 0> ([0, 0], val_2, [0])
    val_5 = Pad (a, val_4, 1.5)
    val_6 = Unsqueeze (val_5, [1])
    val_7 = Sub (val_1, [3])
    val_8 = Concat <axis: int = 0> ([0], val_7)
    val_9 = Concat <axis: int = 0> ([0, 0], val_7, [0])
    val_10 = Pad (b, val_9, 1.5)
    val_11 = Unsqueeze (val_10, [1])
    pad_sequence = Concat <axis: int = 1> (val_6, val_11)
    ";

    // Negative pads crop after mirroring.
    "aten.pad(x: f32[2, s0], [2, -1], 'reflect') -> f32[2, s0 + 1]" => r#"
    val_0 = Pad <mode: string = "reflect"> (x, [0, 2, 0, 0])
    pad = Slice (val_0, [0], [-1], [1])
    "#;

    // Dimensions that may be empty wrap by slices.
    "aten._pad_circular(x: f32[s0, 3], [1, 2]) -> f32[s0, 6]" => "
    val_0 = Slice (x, [2], [3], [1])
    val_1 = Slice (x, [0], [2], [1])
    _pad_circular = Concat <axis: int = 1> (val_0, x, val_1)
    ";
    "{s0: VR[1, 9]} aten._pad_circular(x: f32[s0, 3], [1, 2]) -> f32[s0, 6]" => r#"
    _pad_circular = Pad <mode: string = "wrap"> (x, [0, 1, 0, 2])
    "#;

    // Zero needs no value.
    "aten.constant_pad_nd(x: f32[s0], [1, 2]) -> f32[s0 + 3]" => "
    constant_pad_nd = Pad (x, [1, 2])
    ";
}
