//! Sizes as values, and tensors with the same elements and other sizes.

use super::{Binary, Call, Eval, Number, Row, array, axes, axis, by_number, by_width, dim, tensor};
use ndarray::ArrayD;
use pt2onnx_ir::attrs;
use pt2onnx_tensor::{DType, Tensor};

pub(super) static OPS: &[Row] = &[
    ("Shape", Eval::One(shape)),
    ("Size", Eval::One(|c| Some(Tensor::scalar(c.input(0)?.numel() as i64)))),
    ("Reshape", Eval::One(reshape)),
    ("Flatten", Eval::One(flatten)),
    ("Squeeze", Eval::One(squeeze)),
    ("Unsqueeze", Eval::One(unsqueeze)),
    ("Transpose", Eval::One(transpose)),
    ("ConstantOfShape", Eval::One(constant_of_shape)),
    ("Range", Eval::One(range)),
];

/// The result of `Shape` with `start` and `end` for these sizes.
pub(crate) fn shape_range<T>(sizes: &[T], start: i64, end: Option<i64>) -> &[T] {
    let rank = sizes.len() as i64;
    let held =
        |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let (start, end) = (held(start), held(end.unwrap_or(rank)));
    sizes.get(start..end).unwrap_or_default()
}

fn shape(call: &Call) -> Option<Tensor> {
    let sizes: Vec<i64> = call.input(0)?.shape().iter().map(|&s| s as i64).collect();
    let range = attrs::Shape::read(call.node).ok()?;
    Some(Tensor::vector(shape_range(&sizes, range.start, range.end)))
}

/// The same elements; they are not copied if they are contiguous.
fn viewed(call: &Call, x: &Tensor, shape: Vec<usize>) -> Option<Tensor> {
    call.room(x.dtype(), &shape)?;
    if x.is_contiguous() {
        return x.reshaped(shape);
    }
    Tensor::new(x.dtype(), x.shape(), x.to_bytes().into_owned()).ok()?.reshaped(shape)
}

fn reshape(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let copies = !attrs::Reshape::read(call.node).ok()?.allowzero;
    let (mut sizes, mut rest) = (Vec::new(), None);
    for (i, size) in call.ints(1)?.into_iter().enumerate() {
        sizes.push(match size {
            0 if copies => *x.shape().get(i)?,
            -1 if rest.is_none() => {
                rest = Some(i);
                1
            }
            other => usize::try_from(other).ok()?,
        });
    }
    if let Some(rest) = rest {
        let others = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s))?;
        sizes[rest] = x.numel().checked_div(others)?;
    }
    viewed(call, x, sizes)
}

fn flatten(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let at = match attrs::Flatten::read(call.node).ok()?.axis {
        end if end == x.rank() as i64 => x.rank(),
        other => axis(other, x.rank())?,
    };
    let (front, back) = x.shape().split_at(at);
    viewed(call, x, vec![front.iter().product(), back.iter().product()])
}

fn squeeze(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let ones: Vec<usize> = match call.input(1) {
        Some(_) => axes(&call.ints(1)?, x.rank())?,
        None => (0..x.rank()).filter(|&i| x.shape()[i] == 1).collect(),
    };
    let sizes =
        x.shape().iter().enumerate().filter(|(i, _)| !ones.contains(i)).map(|(_, &s)| s).collect();
    viewed(call, x, sizes)
}

fn unsqueeze(call: &Call) -> Option<Tensor> {
    let x = call.input(0)?;
    let given = call.ints(1)?;
    let mut sizes = x.shape().to_vec();
    for at in axes(&given, x.rank() + given.len())? {
        if at > sizes.len() {
            return None;
        }
        sizes.insert(at, 1);
    }
    viewed(call, x, sizes)
}

/// Large results are views of the operand's bytes; those of a file are read on writing.
fn transpose(call: &Call) -> Option<Tensor> {
    const COPIED: usize = 64 << 10;
    const COPIED_OF_FILE: usize = 1 << 10;
    let x = call.input(0)?;
    let perm: Vec<usize> = match attrs::Transpose::read(call.node).ok()?.perm {
        None => (0..x.rank()).rev().collect(),
        Some(perm) => perm.iter().map(|&p| axis(p, x.rank())).collect::<Option<_>>()?,
    };
    let mut seen = perm.clone();
    seen.sort_unstable();
    if !seen.into_iter().eq(0..x.rank()) {
        return None;
    }
    let sizes: Vec<usize> = perm.iter().map(|&p| x.shape()[p]).collect();
    call.room(x.dtype(), &sizes)?;
    if x.dtype().bits() < 8 {
        // Elements smaller than a byte have no views.
        return tensor(x.dtype(), &array::<u8>(x)?.permuted_axes(perm));
    }
    let strides: Vec<usize> = perm.iter().map(|&p| x.strides()[p]).collect();
    let view = Tensor::strided(x.dtype(), sizes.clone(), strides, x.offset(), x.storage()?.clone())
        .ok()?;
    let copied = if x.storage()?.source().is_some() { COPIED_OF_FILE } else { COPIED };
    if view.nbytes() <= copied {
        Tensor::new(x.dtype(), sizes, view.to_bytes().into_owned()).ok()
    } else {
        Some(view)
    }
}

fn constant_of_shape(call: &Call) -> Option<Tensor> {
    let sizes = call.sizes(0)?;
    let given = attrs::ConstantOfShape::read(call.node).ok()?.value;
    let value = given.unwrap_or_else(|| Tensor::scalar(0f32));
    if !value.has_data() {
        return None;
    }
    call.room(value.dtype(), &sizes)?;
    by_width!(value.dtype(), T => {
        let fill = *array::<T>(&value)?.first()?;
        tensor(value.dtype(), &ArrayD::from_elem(dim(&sizes), fill))
    })
}

/// `start + i * step`, for `ceil((end - start) / step)` values of `i`.
fn range(call: &Call) -> Option<Tensor> {
    let dtype = call.input(0)?.dtype();
    by_number!(dtype, T => {
        let one = |i: usize| call.input(i)?.to_vec::<T>().filter(|v| v.len() == 1).map(|v| v[0]);
        let (start, end, step) = (one(0)?, one(1)?, one(2)?);
        let count = match (start.whole(), end.whole(), step.whole()) {
            (Some(start), Some(end), Some(step)) => {
                let (span, step) = if step < 0 { (start - end, -step) } else { (end - start, step) };
                usize::try_from((span.max(0) + step - 1).checked_div(step)?).ok()?
            }
            _ => {
                let count = (T::binary(Binary::Sub, end, start)?.double() / step.double()).ceil();
                (count < 2f64.powi(40)).then_some(count.max(0.0) as usize)?
            }
        };
        call.room(dtype, &[count])?;
        let mut elements: Vec<T> = Vec::with_capacity(count);
        for i in 0..count {
            let offset = match step.whole() {
                Some(step) => T::wrapped(step * i as i128)?,
                None => T::binary(Binary::Mul, T::rounded(i as f64)?, step)?,
            };
            elements.push(T::binary(Binary::Add, start, offset)?);
        }
        Some(Tensor::vector(&elements))
    })
}
