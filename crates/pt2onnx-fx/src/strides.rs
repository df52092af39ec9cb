//! Layouts: whether a tensor is contiguous, whether `reshape` is a view, whether elements overlap.

use crate::graph::TensorMeta;
use pt2onnx_symbolic::{Constraints, Expr};

/// Strides of a contiguous tensor of these sizes, as PyTorch computes them. Symbolic sizes are
/// taken not to be 0: the strides of a tensor without elements say nothing.
pub fn contiguous(sizes: &[Expr]) -> Vec<Expr> {
    let mut next = Expr::ONE;
    let stride = |size: &Expr| {
        let stride = next.clone();
        if size.as_int() != Some(0) {
            next = &next * size;
        }
        stride
    };
    let mut strides: Vec<_> = sizes.iter().rev().map(stride).collect();
    strides.reverse();
    strides
}

/// Whether the strides are known. Programs that were no `ExportedProgram` may lack some.
pub fn has_strides(meta: &TensorMeta) -> bool {
    meta.strides.len() == meta.sizes.len()
}

/// Whether all elements follow each other in order; `None` if unknown.
pub fn is_contiguous(meta: &TensorMeta, known: &Constraints) -> Option<bool> {
    if meta.sizes.iter().any(|s| s.as_int() == Some(0)) {
        return Some(true);
    }
    if !has_strides(meta) {
        return None;
    }
    let mut next = Expr::ONE;
    let mut all = Some(true);
    for (size, stride) in meta.sizes.iter().zip(&meta.strides).rev() {
        // The stride of a dimension of one element says nothing.
        if size.as_int() == Some(1) {
            continue;
        }
        match known.prove_eq(stride, &next) {
            Some(true) => {}
            Some(false) if known.prove_gt(size, &Expr::ONE) => return Some(false),
            _ => all = None,
        }
        next = &next * size;
    }
    all
}

/// Whether two tensors have the same sizes and strides.
pub fn same_layout(a: &TensorMeta, b: &TensorMeta, known: &Constraints) -> bool {
    has_strides(a) && same(&a.sizes, &b.sizes, known) && same(&a.strides, &b.strides, known)
}

/// Whether the lists are equal.
pub fn same(a: &[Expr], b: &[Expr], known: &Constraints) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| known.prove_eq(a, b) == Some(true))
}

/// The result of `reshape`.
#[derive(Clone, Debug, PartialEq)]
pub enum Reshape {
    /// A view with these strides; without any if they are not known.
    View(Vec<Expr>),
    /// A copy.
    Copy,
    /// Not known.
    Unknown,
}

/// The result of `reshape` to `sizes`, as `computeStride` of PyTorch decides.
pub fn reshape(from: &TensorMeta, sizes: &[Expr], known: &Constraints) -> Reshape {
    if is_contiguous(from, known) == Some(true) {
        return Reshape::View(contiguous(sizes));
    }
    if same(&from.sizes, sizes, known) {
        return Reshape::View(from.strides.clone());
    }
    regrouped(from, sizes, known).unwrap_or(Reshape::Unknown)
}

/// [`reshape`] of what is not in order: each group of dimensions that follow each other in memory
/// becomes dimensions separately.
fn regrouped(from: &TensorMeta, sizes: &[Expr], known: &Constraints) -> Option<Reshape> {
    // Where it may be that a dimension has one element, it is taken to have more: that changes no
    // answer that is certain.
    let mut certain = true;
    let equal = |a: &Expr, b: &Expr| known.prove_eq(a, b);
    let mut new = sizes.iter().rev().peekable();
    let mut strides = Vec::with_capacity(sizes.len());
    let (mut chunk, mut viewed) = (Expr::ONE, Expr::ONE);
    let dims: Vec<_> = from.sizes.iter().zip(&from.strides).rev().collect();
    let mut base = dims.first().map(|(_, stride)| (*stride).clone())?;
    for (at, (size, _)) in dims.iter().enumerate() {
        chunk = &chunk * *size;
        let outer = dims.get(at + 1);
        let ends = match outer {
            None => true,
            Some((size, _)) if size.as_int() == Some(1) => false,
            Some((_, stride)) => !equal(stride, &(&chunk * &base))?,
        };
        if !ends {
            continue;
        }
        while let Some(size) = new.peek() {
            let full = equal(&viewed, &chunk);
            if size.as_int() != Some(1) && full == Some(true) {
                break;
            }
            certain &= full.is_some();
            strides.push(&viewed * &base);
            viewed = &viewed * *size;
            new.next();
        }
        if !equal(&viewed, &chunk)? {
            return certain.then_some(Reshape::Copy);
        }
        if let Some((_, stride)) = outer {
            base = (*stride).clone();
            (chunk, viewed) = (Expr::ONE, Expr::ONE);
        }
    }
    if new.peek().is_some() {
        return certain.then_some(Reshape::Copy);
    }
    strides.reverse();
    Some(Reshape::View(strides))
}

/// Whether no two elements of such a tensor share memory; `false` if unknown.
pub fn no_overlap(sizes: &[Expr], strides: &[Expr]) -> bool {
    if sizes.len() != strides.len() {
        return false;
    }
    let dims = sizes.iter().zip(strides);
    let dims: Option<Vec<(i64, i64)>> =
        dims.map(|(size, stride)| Some((stride.as_int()?, size.as_int()?))).collect();
    let Some(mut dims) = dims else {
        return strides == contiguous(sizes);
    };
    if dims.iter().any(|&(_, size)| size == 0) {
        return true;
    }
    dims.retain(|&(_, size)| size != 1);
    dims.sort_unstable();
    let mut last = Some(0i64);
    dims.iter().all(|&(stride, size)| {
        let free = last.is_some_and(|last| stride > last);
        let extent = stride.checked_mul(size - 1);
        last = last.zip(extent).and_then(|(last, e)| last.checked_add(e));
        free
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_tensor::DType;

    fn exprs(text: &str) -> Vec<Expr> {
        text.split_whitespace().map(|s| Expr::parse(s).unwrap()).collect()
    }

    fn meta(sizes: &str, strides: &str) -> TensorMeta {
        TensorMeta::strided(DType::F32, exprs(sizes), exprs(strides))
    }

    #[test]
    fn a_reshape_is_a_view_where_pytorch_makes_one() {
        let known = Constraints::new();
        // As torch.empty_strided(sizes, strides).view(to) has it.
        let view = |strides| Reshape::View(exprs(strides));
        for (sizes, strides, to, expected) in [
            ("2 3", "3 1", "6", view("1")),
            ("3 2", "1 3", "6", Reshape::Copy),
            ("3 2", "1 3", "3 2 1", view("1 3 3")),
            ("3 2", "1 3", "3 1 2", view("1 6 3")),
            ("4 6", "12 2", "4 2 3", view("12 6 2")),
            ("4 6", "12 2", "24", view("2")),
            ("4 5", "12 2", "20", Reshape::Copy),
            ("2 3 4", "4 8 1", "2 12", Reshape::Copy),
            ("2 3 4", "4 8 1", "2 3 2 2", view("4 8 2 1")),
            ("1 3 4", "99 4 1", "12", view("1")),
            ("s0 3", "3 1", "3*s0", view("1")),
            ("s0 3 4", "1 4*s0 s0", "s0 12", Reshape::View(exprs("1 s0"))),
            ("3 s0", "1 3", "3*s0", Reshape::Unknown),
        ] {
            let meta = meta(sizes, strides);
            let found = reshape(&meta, &exprs(to), &known);
            assert_eq!(found, expected, "{sizes} / {strides} to {to}");
        }
    }

    #[test]
    fn strides_that_show_an_element_twice_overlap() {
        for (sizes, strides, expected) in [
            ("2 3", "3 1", true),
            ("2 3", "1 2", true),
            ("2 3", "0 1", false),
            ("1 3", "0 1", true),
            ("3 2", "1 1", false),
            ("0 2", "1 1", true),
        ] {
            assert_eq!(no_overlap(&exprs(sizes), &exprs(strides)), expected, "{sizes} / {strides}");
        }
        assert_eq!(contiguous(&exprs("2 0 3")), exprs("3 3 1"));
    }
}
