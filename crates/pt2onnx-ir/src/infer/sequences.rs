//! Output types of operators that make or take sequences and optional values.
//!
//! The items of a sequence have sizes only if all have the same: a new unknown size would stand for
//! another number in each item.

use super::{control, node::Node};
use crate::{
    schema,
    types::{Shape, TensorType, Type},
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The output types of such an operator; `None` for others.
pub(super) fn types(n: &Node) -> Option<Vec<Option<Type>>> {
    let ty = match n.node.op() {
        "SequenceEmpty" => {
            let dtype = n.int("dtype").map_or(Some(DType::F32), schema::dtype);
            dtype.map(|dtype| sequence(Type::Tensor(TensorType { dtype, shape: None })))
        }
        "SequenceConstruct" => {
            let mut parts = (0..n.node.inputs().len()).map(|i| input_type(n, i));
            let first = parts.next().flatten();
            parts.fold(first, |all, part| join(all?, part?)).map(sequence)
        }
        "SequenceInsert" => {
            item(n).zip(input_type(n, 1)).and_then(|(items, new)| join(items, new)).map(sequence)
        }
        "SequenceErase" => input_type(n, 0),
        "SequenceAt" => item(n),
        "SequenceMap" => {
            let results = control::body(n, "body").into_iter();
            return Some(results.map(|ty| ty.map(|ty| sequence(fixed(ty)))).collect());
        }
        "SplitToSequence" => input_type(n, 0).and_then(|whole| split(n, whole)),
        "ConcatFromSequence" => item(n).and_then(|item| joined(n, item)),
        "Optional" => input_type(n, 0).map(|inner| Type::Optional(Box::new(inner))),
        "OptionalGetElement" => input_type(n, 0).map(|ty| match ty {
            Type::Optional(inner) => *inner,
            other => other,
        }),
        "Identity" if input_type(n, 0).is_some_and(|ty| ty.as_tensor().is_none()) => {
            input_type(n, 0)
        }
        _ => return None,
    };
    Some(vec![ty])
}

fn sequence(item: Type) -> Type {
    Type::Sequence(Box::new(item))
}

/// A type that holds values of both.
fn join(a: Type, b: Type) -> Option<Type> {
    match (&a, &b) {
        _ if a == b => Some(a),
        (Type::Tensor(x), Type::Tensor(y)) if x.dtype == y.dtype => {
            Some(Type::Tensor(TensorType { dtype: x.dtype, shape: None }))
        }
        _ => None,
    }
}

/// The type of a body's result in all iterations: dynamic sizes may differ.
fn fixed(ty: Type) -> Type {
    match ty {
        Type::Tensor(TensorType { dtype, shape: Some(shape) })
            if !shape.iter().all(Expr::is_static) =>
        {
            Type::Tensor(TensorType { dtype, shape: None })
        }
        other => other,
    }
}

fn input_type(n: &Node, input: usize) -> Option<Type> {
    n.model[n.input(input)?].ty.clone()
}

/// The item type of the first input.
fn item(n: &Node) -> Option<Type> {
    match input_type(n, 0)? {
        Type::Sequence(item) => Some(*item),
        _ => None,
    }
}

/// Parts of a tensor along an axis: without it, or of sizes that may differ.
fn split(n: &Node, whole: Type) -> Option<Type> {
    let TensorType { dtype, shape } = whole.as_tensor()?.clone();
    let taken_away = n.input(1).is_none() && n.int("keepdims").unwrap_or(1) == 0;
    let part = |mut shape: Shape| {
        shape.remove(n.axis(0, shape.len())?);
        Some(shape)
    };
    let shape = shape.filter(|_| taken_away).and_then(part);
    Some(sequence(Type::Tensor(TensorType { dtype, shape })))
}

/// All items along an axis, which may be a new one.
fn joined(n: &Node, item: Type) -> Option<Type> {
    let TensorType { dtype, shape } = item.as_tensor()?.clone();
    let stacked = n.int("new_axis").unwrap_or(0) != 0;
    let whole = |mut shape: Shape| {
        let axis = pt2onnx_symbolic::axis(n.int("axis")?, shape.len() + usize::from(stacked))?;
        if stacked {
            shape.insert(axis, Expr::int(0));
        }
        shape[axis] = n.unknown_dim();
        Some(shape)
    };
    Some(Type::Tensor(TensorType { dtype, shape: shape.and_then(whole) }))
}
