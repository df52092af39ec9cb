//! Strides of views.

use super::{Interp, contiguous};
use pt2onnx_fx::{Argument, MemoryFormat, Node, SymArg, TensorMeta};
use pt2onnx_symbolic::Expr;

impl Interp<'_> {
    /// The strides of what may be a view of `base`; `None` if the operator makes no view.
    pub(super) fn view_strides(
        &self,
        node: &Node,
        base: &TensorMeta,
        result: &TensorMeta,
    ) -> Option<Vec<Expr>> {
        let plain = self.is_contiguous(base);
        let unknown = Some(Vec::new());
        let rank = base.sizes.len();
        let number = |name: &str, default: i64| match node.arg(name) {
            None => Some(default),
            Some(Argument::Int(i) | Argument::SymInt(SymArg::Value(i))) => Some(*i),
            _ => None,
        };
        let axis = |name: &str, default: i64, rank: usize| counted(number(name, default)?, rank);
        let place = |dim: i64| counted(dim, rank);
        let order = node.arg("memory_format");
        let mut strides = base.strides.clone();
        if strides.len() != rank {
            return VIEWS.binary_search(&&*node.target.name).is_ok().then(Vec::new);
        }
        match &*node.target.name {
            "alias" | "detach" | "lift_fresh" | "positive" | "split" | "split_with_sizes"
            | "chunk" | "tensor_split" | "narrow" => Some(strides),
            "contiguous"
                if matches!(
                    order,
                    None | Some(Argument::MemoryFormat(MemoryFormat::Contiguous))
                ) =>
            {
                // The stride of a dimension of one element says nothing.
                Some(contiguous(&result.sizes))
            }
            // Another type is a copy, in the order of the operand.
            "to" | "type_as" if order.is_none() => (base.dtype == result.dtype).then_some(strides),
            "contiguous" | "to" | "type_as" => unknown,
            "view" if &*node.target.overload == "dtype" => unknown,
            "view" | "reshape" | "flatten" | "unflatten" | "squeeze" | "view_as" | "reshape_as"
            | "ravel"
                if plain == Some(true) =>
            {
                Some(contiguous(&result.sizes))
            }
            "unsqueeze" => {
                let dim = axis("dim", 0, rank + 1)?;
                let new = match (base.sizes.get(dim), base.strides.get(dim)) {
                    (Some(size), Some(stride)) => stride.clone() * size,
                    _ => Expr::ONE,
                };
                strides.insert(dim, new);
                Some(strides)
            }
            "t" | "numpy_T" => Some(strides.into_iter().rev().collect()),
            "mT" | "mH" | "adjoint" | "matrix_H" => {
                strides.swap(rank.checked_sub(2)?, rank.checked_sub(1)?);
                Some(strides)
            }
            "transpose" | "swapaxes" | "swapdims" => {
                let given = |at: usize| match node.args.get(at).map(|arg| &arg.value) {
                    Some(&Argument::Int(dim)) => place(dim),
                    _ => None,
                };
                let (Some(a), Some(b)) = (given(1), given(2)) else { return unknown };
                strides.swap(a, b);
                Some(strides)
            }
            "movedim" | "moveaxis" => {
                let given = |name: &str| match node.arg(name) {
                    Some(&Argument::Int(dim)) => Some(vec![place(dim)?]),
                    Some(Argument::Ints(dims)) => dims.iter().map(|&dim| place(dim)).collect(),
                    _ => None,
                };
                let (Some(from), Some(to)) = (given("source"), given("destination")) else {
                    return unknown;
                };
                let mut others = (0..rank).filter(|dim| !from.contains(dim));
                let source = |dim| match to.iter().position(|&t| t == dim) {
                    Some(at) => from.get(at).copied(),
                    None => others.next(),
                };
                let order: Option<Vec<usize>> = (0..rank).map(source).collect();
                Some(order?.into_iter().filter_map(|dim| strides.get(dim).cloned()).collect())
            }
            "permute" => {
                let Some(Argument::Ints(dims)) = node.arg("dims") else { return unknown };
                let stride = |&dim: &i64| strides.get(place(dim)?).cloned();
                dims.iter().map(stride).collect::<Option<_>>().or(unknown)
            }
            "squeeze" => {
                let among = match node.arg("dim") {
                    None | Some(Argument::None) => (0..rank).collect(),
                    Some(&Argument::Int(dim)) => vec![place(dim)?],
                    Some(Argument::Ints(dims)) => {
                        dims.iter().map(|&dim| place(dim)).collect::<Option<_>>()?
                    }
                    _ => return unknown,
                };
                let is_one = |dim: usize| {
                    self.constraints().prove_eq(&base.sizes[dim], &Expr::ONE) == Some(true)
                };
                let left = |dim: &usize| !among.contains(dim) || !is_one(*dim);
                Some((0..rank).filter(left).map(|dim| strides[dim].clone()).collect())
            }
            "unflatten" => {
                let dim = axis("dim", 0, rank)?;
                let parts =
                    result.sizes.get(dim..(result.sizes.len() + dim + 1).checked_sub(rank)?)?;
                let stride = strides.remove(dim);
                let parts = contiguous(parts).into_iter().map(|step| step * &stride);
                strides.splice(dim..dim, parts);
                Some(strides)
            }
            "diagonal" => {
                let (a, b) = (axis("dim1", 0, rank)?, axis("dim2", 1, rank)?);
                if a == b {
                    return unknown;
                }
                let both = &strides[a] + &strides[b];
                strides.remove(a.max(b));
                strides.remove(a.min(b));
                strides.push(both);
                Some(strides)
            }
            "unfold" => {
                let (dim, step) = (axis("dimension", 0, rank)?, number("step", 1)?);
                let stride = strides.get(dim)?.clone();
                strides[dim] = &stride * step;
                strides.push(stride);
                Some(strides)
            }
            "select" | "unbind" => {
                strides.remove(axis("dim", 0, rank)?);
                Some(strides)
            }
            "slice" => match (axis("dim", 0, rank), number("step", 1)) {
                (Some(dim), Some(step)) => {
                    if let Some(stride) = strides.get_mut(dim) {
                        *stride = &*stride * step;
                    }
                    Some(strides)
                }
                _ => unknown,
            },
            "expand" | "expand_as" | "broadcast_to" => self.expanded(base, result).or(unknown),
            name => VIEWS.binary_search(&name).is_ok().then(Vec::new),
        }
    }

    /// The strides of the result with the number `at` of an operator on a list, which views the tensor `base` with that number.
    pub(super) fn view_strides_of_list(
        &self,
        node: &Node,
        at: usize,
        base: &TensorMeta,
        result: &TensorMeta,
    ) -> Option<Vec<Expr>> {
        match &*node.target.name {
            "broadcast_tensors" => self.expanded(base, result),
            "meshgrid" => {
                let turned = matches!(node.arg("indexing"), Some(Argument::String(s)) if s == "xy");
                let dim = if turned && at < 2 && result.sizes.len() > 1 { 1 - at } else { at };
                let mut strides = vec![Expr::ZERO; result.sizes.len()];
                *strides.get_mut(dim)? = match (base.sizes.len(), base.strides.first()) {
                    (0, _) => Expr::ONE,
                    (_, stride) => stride?.clone(),
                };
                Some(strides)
            }
            _ => None,
        }
    }

    /// The strides of `base` as large as `result`; `None` if it is not known which dimensions are repeated.
    fn expanded(&self, base: &TensorMeta, result: &TensorMeta) -> Option<Vec<Expr>> {
        let new = result.sizes.len().checked_sub(base.sizes.len())?;
        let kept = result.sizes.iter().skip(new).zip(base.sizes.iter().zip(&base.strides));
        let mut strides = vec![Expr::ZERO; new];
        for (size, (old, stride)) in kept {
            strides.push(match self.constraints().prove_eq(size, old) {
                Some(true) => stride.clone(),
                _ if old.as_int() == Some(1) => Expr::ZERO,
                _ => return None,
            });
        }
        Some(strides)
    }
}

/// The number of a dimension, of which a negative one counts from the last.
fn counted(dim: i64, rank: usize) -> Option<usize> {
    let dim = if dim < 0 { dim + i64::try_from(rank).ok()? } else { dim };
    usize::try_from(dim).ok().filter(|&dim| dim < rank)
}

/// Other operators whose results may be views. Sorted.
pub(super) const VIEWS: &[&str] = &[
    "_reshape_alias",
    "adjoint",
    "alias",
    "as_strided",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_tensors",
    "broadcast_to",
    "chunk",
    "conj",
    "contiguous",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "imag",
    "lift_fresh",
    "mH",
    "mT",
    "matrix_H",
    "moveaxis",
    "movedim",
    "narrow",
    "numpy_T",
    "permute",
    "positive",
    "ravel",
    "real",
    "reshape",
    "reshape_as",
    "resolve_conj",
    "resolve_neg",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
];
