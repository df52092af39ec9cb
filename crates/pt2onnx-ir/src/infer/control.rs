//! Output types of `If`, `Loop` and `Scan`, from the types of their bodies' outputs.

use super::node::Node;
use crate::{
    attribute::Attribute,
    types::{Shape, TensorType, Type},
};
use pt2onnx_symbolic::Expr;

/// The output types of an `If`, `Loop` or `Scan`; `None` for other operators.
pub(super) fn types(n: &Node) -> Option<Vec<Option<Type>>> {
    match n.node.op() {
        "If" => {
            let (yes, no) = (body(n, "then_branch"), body(n, "else_branch"));
            Some(yes.into_iter().zip(no).map(|(a, b)| merge(n, a?, b?)).collect())
        }
        "Loop" => {
            let carried = n.node.inputs().len().saturating_sub(2);
            let results = body(n, "body").into_iter().skip(1);
            Some(after_carried(results, carried, || n.unknown_dim()))
        }
        "Scan" => {
            let scanned = usize::try_from(n.int("num_scan_inputs")?).ok()?;
            let carried = n.node.inputs().len().saturating_sub(scanned);
            let length = n.shape(carried).and_then(|s| s.first().cloned());
            let length = || length.clone().unwrap_or_else(|| n.unknown_dim());
            Some(after_carried(body(n, "body").into_iter(), carried, length))
        }
        _ => None,
    }
}

/// The types of the outputs of a body, which is the attribute `name`.
pub(super) fn body(n: &Node, name: &str) -> Vec<Option<Type>> {
    let Some(Attribute::Region(region)) = n.node.attribute(name) else {
        return Vec::new();
    };
    n.model[*region].output_values().map(|v| n.model[v].ty.clone()).collect()
}

/// A type that holds both: sizes that differ become unknown, and so does a rank that differs.
/// `None` if the element types differ.
pub(super) fn merge(n: &Node, a: Type, b: Type) -> Option<Type> {
    let (a, b) = match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) => (a, b),
        (Type::Sequence(a), Type::Sequence(b)) => {
            return Some(Type::Sequence(Box::new(merge(n, *a, *b)?)));
        }
        (Type::Optional(a), Type::Optional(b)) => {
            return Some(Type::Optional(Box::new(merge(n, *a, *b)?)));
        }
        (a, b) => return (a == b).then_some(a),
    };
    let shape = match (&a.shape, &b.shape) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            let dim = |(a, b): (&Expr, &Expr)| {
                if a == b { a.clone() } else { n.unknown_dim() }
            };
            Some(a.iter().zip(b).map(dim).collect::<Shape>())
        }
        _ => None,
    };
    (a.dtype == b.dtype).then_some(Type::Tensor(TensorType { dtype: a.dtype, shape }))
}

/// The types of a loop's results: after the carried ones, all iterations are stacked.
fn after_carried(
    results: impl Iterator<Item = Option<Type>>,
    carried: usize,
    length: impl Fn() -> Expr,
) -> Vec<Option<Type>> {
    let one = |(i, ty)| if i < carried { ty } else { stacked(ty?, length()) };
    results.enumerate().map(one).collect()
}

/// The type of `length` values stacked along a new first dimension.
fn stacked(ty: Type, length: Expr) -> Option<Type> {
    let element = ty.as_tensor()?.clone();
    let shape = element.shape.map(|s| [length].into_iter().chain(s).collect());
    Some(Type::Tensor(TensorType { dtype: element.dtype, shape }))
}
