//! Infers the types of the results of ops that pick elements.

use crate::stand_ins::{broadcast, fresh, sized, typed, unknown, with_size};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, Lowered, arguments, cx::Outputs, op};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::_embedding_bag, embedding_bag),
    op!(aten::_embedding_bag_forward_only, embedding_bag),
    op!(aten::_unique2, unique),
    op!(aten::_unsafe_index_Tensor, index),
    op!(aten::_unsafe_masked_index, index),
    op!(aten::argwhere, nonzero),
    op!(aten::bincount, bincount),
    op!(aten::embedding_bag, embedding_bag),
    op!(aten::embedding_bag_padding_idx, embedding_bag, wraps = true),
    op!(aten::gather, gather),
    op!(aten::index_Tensor, index),
    op!(aten::index_Tensor_hacked_twin, index),
    op!(aten::index_select, index_select),
    op!(aten::masked_select, masked_select),
    op!(aten::nonzero, nonzero),
    op!(aten::nonzero_numpy, nonzero_numpy),
    op!(aten::nonzero_static, nonzero_static),
    op!(aten::one_hot, one_hot),
    op!(aten::repeat_interleave_Tensor, repeated),
    op!(aten::repeat_interleave_self_Tensor, repeat_interleave),
    op!(aten::repeat_interleave_self_int, repeat_each),
    op!(aten::take, as_index),
    op!(aten::take_along_dim, take_along_dim),
    op!(aten::unique_consecutive, unique),
    op!(aten::unique_dim, unique),
    op!(aten::r#where, nonzero_numpy),
    op!(torchvision::nms, nms),
];

arguments! {
    struct Unique { input: Value, dim: Option<i64>, return_inverse: bool, return_counts: bool }
    struct Index { input: Value, indices: Vec<Option<Value>> }
    struct Repeated { input: Value, repeats: Value, dim: Option<i64>, output_size: Option<Expr> }
    struct RepeatEach { input: Value, repeats: Expr, dim: Option<i64> }
    struct Static { input: Value, size: Expr }
    struct Repeats { repeats: Value, output_size: Option<Expr> }
    struct Bags {
        weight: Value, indices: Value, offsets: Value, mode: i64, include_last_offset: bool,
        padding_idx: Option<i64>, wraps: Option<bool>,
    }
    struct Bins { weights: Option<Value> }
}

fn sizes(cx: &Cx, x: Value) -> Vec<Expr> {
    cx.shape(x).into_iter().collect()
}

fn as_index(cx: &Cx, x: Value, index: Value) -> Lowered {
    Ok(sized(cx, x, &cx.shape(index)))
}

fn gather(cx: &Cx, x: Value, _dim: i64, index: Value) -> Lowered {
    as_index(cx, x, index)
}

fn index_select(cx: &Cx, x: Value, dim: i64, index: Value) -> Lowered {
    let axis = cx.axis(x, dim)?;
    Ok(sized(cx, x, &with_size(cx, x, axis, cx.numel(index))))
}

/// Both are broadcast, except for the dimension along which elements are taken.
fn take_along_dim(cx: &Cx, x: Value, index: Value, dim: Option<i64>) -> Lowered {
    let Some(dim) = dim else {
        return Ok(sized(cx, x, &[cx.numel(index)]));
    };
    let axis = cx.axis(x, dim)?;
    let along = cx.dim(index, axis as i64);
    let one = |v: Value| with_size(cx, v, axis, Expr::int(1));
    let mut size = broadcast(cx, &[one(x), one(index)]);
    size[axis] = along;
    Ok(sized(cx, x, &size))
}

/// The indices broadcast. Their dimensions replace the indexed ones if these are adjacent, else
/// they come first. A mask counts as the coordinates of its true elements.
fn index(cx: &Cx, args: Index) -> Lowered {
    let mut from = sizes(cx, args.input).into_iter();
    let (mut before, mut shapes, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let count = fresh(cx);
    let mut masks = 0;
    for (i, given) in args.indices.iter().enumerate() {
        let Some(given) = given else {
            before.extend(from.next());
            continue;
        };
        places.push((i, before.len()));
        if matches!(cx.dtype(*given), DType::Bool | DType::U8) {
            from.by_ref().take(cx.rank(*given)).for_each(drop);
            shapes.push(vec![count.clone()]);
            masks += 1;
        } else {
            from.next();
            shapes.push(sizes(cx, *given));
        }
    }
    if masks > 1 || (masks == 1 && shapes.len() > 1) {
        return unknown("masks beside other indices");
    }
    let picked = broadcast(cx, &shapes);
    let adjacent = places.windows(2).all(|w| w[1].0 == w[0].0 + 1);
    let at = if adjacent { places.first().map_or(0, |p| p.1) } else { 0 };
    before.splice(at..at, picked);
    before.extend(from);
    Ok(sized(cx, args.input, &before))
}

fn masked_select(cx: &Cx, x: Value) -> Lowered {
    Ok(sized(cx, x, &[fresh(cx)]))
}

fn nonzero(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, DType::I64, &[fresh(cx), Expr::int(cx.rank(x) as i64)]))
}

fn nonzero_numpy(cx: &Cx, x: Value) -> Lowered<Vec<Value>> {
    let count = fresh(cx);
    Ok((0..cx.rank(x).max(1))
        .map(|_| typed(cx, DType::I64, std::slice::from_ref(&count)))
        .collect())
}

fn nonzero_static(cx: &Cx, args: Static) -> Lowered {
    Ok(typed(cx, DType::I64, &[args.size, Expr::int(cx.rank(args.input) as i64)]))
}

/// The classes in a new last dimension.
fn one_hot(cx: &Cx, x: Value, classes: i64) -> Lowered {
    let mut size = sizes(cx, x);
    size.push(if classes < 0 { fresh(cx) } else { Expr::int(classes) });
    Ok(typed(cx, DType::I64, &size))
}

fn repeated(cx: &Cx, args: Repeats) -> Lowered {
    let size = args.output_size.unwrap_or_else(|| total(cx, args.repeats));
    Ok(sized(cx, args.repeats, &[size]))
}

/// The size is the sum of the repeats.
fn total(cx: &Cx, repeats: Value) -> Expr {
    cx.contents(repeats).map_or_else(|| fresh(cx), Expr::sum)
}

fn repeat_interleave(cx: &Cx, args: Repeated) -> Lowered {
    let each = cx.numel(args.repeats).as_int() == Some(1);
    let known = cx.contents(args.repeats).and_then(|c| c.first().cloned()).filter(|_| each);
    if let (Some(repeats), None) = (known, &args.output_size) {
        return repeat_each(cx, RepeatEach { input: args.input, repeats, dim: args.dim });
    }
    let size = args.output_size.unwrap_or_else(|| total(cx, args.repeats));
    along(cx, args.input, args.dim, |_| size.clone())
}

fn repeat_each(cx: &Cx, args: RepeatEach) -> Lowered {
    along(cx, args.input, args.dim, |d| d * &args.repeats)
}

/// `x` with a changed dimension, or as a changed vector.
fn along(cx: &Cx, x: Value, dim: Option<i64>, change: impl Fn(Expr) -> Expr) -> Lowered {
    let Some(dim) = dim else {
        return Ok(sized(cx, x, &[change(cx.numel(x))]));
    };
    let axis = cx.axis(x, dim)?;
    if cx.rank(x) == 0 {
        return Ok(sized(cx, x, &[change(Expr::int(1))]));
    }
    Ok(sized(cx, x, &with_size(cx, x, axis, change(cx.dim(x, axis as i64)))))
}

/// Elements or slices, where each element is, and how many there are.
fn unique(cx: &Cx, args: Unique) -> Lowered<Outputs> {
    let count = fresh(cx);
    // With a dimension, all results are there.
    let all = args.dim.is_some();
    let (values, places) = match args.dim {
        None => (vec![count.clone()], sizes(cx, args.input)),
        Some(dim) => {
            let axis = cx.axis(args.input, dim)?;
            let size = cx.dim(args.input, axis as i64);
            (with_size(cx, args.input, axis, count.clone()), vec![size])
        }
    };
    let second =
        |on: bool, size: &[Expr]| typed(cx, DType::I64, if on { size } else { &[Expr::ZERO] });
    Ok([
        sized(cx, args.input, &values),
        second(all || args.return_inverse, &places),
        second(all || args.return_counts, &[count]),
    ]
    .into())
}

/// Counts, or sums of weights.
fn bincount(cx: &Cx, args: Bins) -> Lowered {
    let dtype = match args.weights.map(|w| cx.dtype(w)) {
        None => DType::I64,
        Some(DType::F32) => DType::F32,
        Some(_) => DType::F64,
    };
    Ok(typed(cx, dtype, &[fresh(cx)]))
}

fn nms(cx: &Cx) -> Lowered {
    Ok(typed(cx, DType::I64, &[fresh(cx)]))
}

/// The bags, the bag of each index, the sizes of the bags, and where the largest elements were.
fn embedding_bag(cx: &Cx, args: Bags) -> Lowered<[Value; 4]> {
    if cx.rank(args.indices) != 1 {
        return unknown("its indices are no vector");
    }
    let given = cx.numel(args.offsets);
    let bags = &given - i64::from(args.include_last_offset);
    let size = [bags.clone(), cx.dim(args.weight, 1)];
    let index = |size: &[Expr]| sized(cx, args.indices, size);
    let largest = if args.mode == 2 { &size[..] } else { &size[..1] };
    // Sums without padding do not need the bag of each index.
    let padded = args.padding_idx.is_some_and(|i| i >= 0 || args.wraps == Some(true));
    let quick = args.mode == 0 && !padded && cx.dtype(args.weight) != DType::F64;
    let places = if quick { Expr::ZERO } else { cx.numel(args.indices) };
    Ok([sized(cx, args.weight, &size), index(&[places]), index(&[given]), index(largest)])
}
