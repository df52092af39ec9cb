//! Views by strides. ONNX has no storage, so places in the storage become indices into the tensor's
//! own elements.

use crate::math::shape::{SPELLED_OUT, broadcast_along, constant, counted, flat, set_recorded};
use crate::meta;
use crate::{AtenOp, Cx, FromArg, LowerError, Lowered, ParamType, args::wanted, checks, op};
use pt2onnx_fx::graph::{Argument, ValueMeta};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::as_strided, as_strided, parts, meta = meta::resized),
    op!(aten::as_strided_copy, as_strided, parts, meta = meta::resized),
    op!(aten::as_strided_scatter, as_strided_scatter, parts, meta = meta::same),
];

/// A tensor, and the strides and offset that its elements have in its storage.
struct Strided {
    x: Value,
    strides: Vec<Expr>,
    offset: Expr,
}

impl FromArg for Strided {
    fn accepts(ty: &ParamType) -> bool {
        Value::accepts(ty)
    }

    fn from_arg(cx: &Cx, arg: &Argument) -> Result<Self, String> {
        let meta = arg.name().and_then(|name| match cx.meta(name)? {
            ValueMeta::Tensor(meta) => Some(meta),
            _ => None,
        });
        let meta = meta.ok_or_else(|| wanted("a tensor", arg))?;
        Ok(Strided {
            x: Value::from_arg(cx, arg)?,
            strides: meta.strides.clone(),
            offset: meta.storage_offset.clone(),
        })
    }
}

/// Size and stride of each dimension of a view.
type Layout = Vec<(Expr, Expr)>;

/// The view of the storage with that size, stride and offset: a `Gather`, or a `Slice` if the view
/// is contiguous.
fn as_strided(
    cx: &Cx,
    this: Strided,
    size: Vec<Expr>,
    stride: Vec<Expr>,
    offset: Option<Expr>,
) -> Lowered {
    let order = storage_order(cx, &this)?;
    let elements = flat(cx, cx.transpose(this.x, &order));
    let (layout, first) = view(cx, &this, size, stride, offset)?;
    if let Some(length) = contiguous(&layout) {
        let run = cx.slice(elements, 0, &first, &(&first + length), 1);
        let shape: Vec<Expr> = layout.into_iter().map(|(size, _)| size).collect();
        return set_recorded(cx, cx.reshape(run, &shape));
    }
    set_recorded(cx, cx.gather(elements, places(cx, &layout, &first), 0))
}

/// The tensor with `source` written to a view of its storage: `ScatterElements`.
fn as_strided_scatter(
    cx: &Cx,
    this: Strided,
    source: Value,
    size: Vec<Expr>,
    stride: Vec<Expr>,
    offset: Option<Expr>,
) -> Lowered {
    let order = storage_order(cx, &this)?;
    let stored = cx.transpose(this.x, &order);
    let (layout, first) = view(cx, &this, size, stride, offset)?;
    let shape: Vec<Expr> = layout.iter().map(|(size, _)| size.clone()).collect();
    let source = flat(cx, cx.expand(cx.cast(source, cx.dtype(this.x)), &shape));
    let written = cx.scatter_elements(
        flat(cx, stored),
        flat(cx, places(cx, &layout, &first)),
        source,
        attrs::ScatterElements::default(),
    );
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
    Ok(cx.transpose(cx.reshape(written, &cx.shape(stored)), &back))
}

/// The dimensions by descending stride: permuted so, the tensor is contiguous. It is an error if
/// its elements do not fill its storage.
fn storage_order(cx: &Cx, this: &Strided) -> Lowered<Vec<usize>> {
    let shape = cx.shape(this.x);
    let gaps =
        || LowerError::unsupported("a strided view needs a tensor whose elements fill its storage");
    if this.strides.len() != shape.len() {
        return Err(gaps());
    }
    let constraints = cx.constraints();
    let mut left: Vec<usize> = (0..shape.len()).collect();
    let mut order = Vec::new();
    let mut expected = Expr::int(1);
    while !left.is_empty() {
        let fits = |&axis: &usize| {
            shape[axis].as_int() == Some(1)
                || constraints.prove_eq(&this.strides[axis], &expected) == Some(true)
        };
        let found = left.iter().rposition(fits).ok_or_else(gaps)?;
        let axis = left.remove(found);
        expected = expected * &shape[axis];
        order.insert(0, axis);
    }
    Ok(order)
}

/// The view's layout, and the index of its first element among the tensor's own. It is an error if
/// the view has elements that the tensor does not have.
fn view(
    cx: &Cx,
    this: &Strided,
    size: Vec<Expr>,
    stride: Vec<Expr>,
    offset: Option<Expr>,
) -> Lowered<(Layout, Expr)> {
    let first = offset.map_or(Expr::int(0), |offset| offset - &this.offset);
    let layout: Layout = size.into_iter().zip(stride).collect();
    let last = layout.iter().fold(first.clone(), |last, (size, stride)| last + (size - 1) * stride);
    let constraints = cx.constraints();
    let (zero, numel) = (Expr::int(0), cx.numel(this.x));
    let empty = layout.iter().any(|(size, _)| size.as_int() == Some(0));
    if !empty && (constraints.prove_gt(&zero, &first) || constraints.prove_ge(&last, &numel)) {
        return Err(LowerError::unsupported(
            "the strided view reads elements of the storage that are outside of its tensor",
        ));
    }
    Ok((layout, first))
}

/// The number of elements, if the layout is contiguous.
fn contiguous(layout: &Layout) -> Option<Expr> {
    layout.iter().rev().try_fold(Expr::int(1), |expected, (size, stride)| {
        (size.as_int() == Some(1) || *stride == expected).then(|| expected * size)
    })
}

/// The indices of a view's elements: `first` plus the sum of index times stride along each
/// dimension.
fn places(cx: &Cx, layout: &Layout, first: &Expr) -> Value {
    let number = |e: &Expr| e.as_int();
    let known: Option<Vec<(i64, i64)>> =
        layout.iter().map(|(size, stride)| Some((number(size)?, number(stride)?))).collect();
    let few = |known: &Vec<(i64, i64)>| {
        let sizes = known.iter().map(|(size, _)| *size);
        sizes.fold(1i64, |all, size| all.saturating_mul(size.max(1))) <= SPELLED_OUT
    };
    if let (Some(known), Some(first)) = (known.filter(few), number(first)) {
        let mut all = vec![first];
        for &(size, stride) in &known {
            let step = |i: i64| i.saturating_mul(stride);
            all = all
                .iter()
                .flat_map(|place| (0..size).map(move |i| place.saturating_add(step(i))))
                .collect();
        }
        let shape: Vec<i64> = known.iter().map(|(size, _)| *size).collect();
        return constant(cx, &shape, &all);
    }
    let rank = layout.len();
    let mut sum = cx.size(first);
    for (axis, (size, stride)) in layout.iter().enumerate() {
        let steps = match stride.as_int() {
            Some(stride) => counted(cx, &Expr::int(0), size, stride),
            None => cx.mul(counted(cx, &Expr::int(0), size, 1), cx.size(stride)),
        };
        sum = cx.add(sum, broadcast_along(cx, steps, axis, rank));
    }
    sum
}

checks! {
    // Overlapping windows.
    "aten.as_strided(x: f32[s0, 4], [2, 3], [4, 1], 1) -> f32[2, 3]" => "
    val_0 = Reshape (x, [-1])
    as_strided = Gather <axis: int = 0> (val_0, int64[2,3] {1, 2, 3, 5, 6, 7})
    ";
}
