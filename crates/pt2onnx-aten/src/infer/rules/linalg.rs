//! Matrix ops.

use super::{broadcast, sized, typed, unknown};
use crate::{AtenOp, Cx, Lowered, arguments, op};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(super) static RULES: &[AtenOp] = &[
    op!(aten::addmm, addmm),
    op!(aten::addmv, addmv),
    op!(aten::addr, addr),
    op!(aten::baddbmm, baddbmm),
    op!(aten::bilinear, bilinear),
    op!(aten::einsum, einsum),
    op!(aten::ger, outer),
    op!(aten::kron, kron),
    op!(aten::linalg_vander, vander),
    op!(aten::outer, outer),
];

arguments! {
    struct Bilinear { input1: Value, input2: Value, weight: Value }
    struct Product { input: Value, mat1: Value, mat2: Value }
    struct MatVec { input: Value, mat: Value, vec: Value }
    struct Rank1 { input: Value, vec1: Value, vec2: Value }
    struct Batched { input: Value, batch1: Value, batch2: Value }
}

fn sizes(cx: &Cx, x: Value) -> Vec<Expr> {
    cx.shape(x).into_iter().collect()
}

fn addmm(cx: &Cx, args: Product) -> Lowered {
    Ok(sized(cx, args.mat1, &[cx.dim(args.mat1, 0), cx.dim(args.mat2, 1)]))
}

fn addmv(cx: &Cx, args: MatVec) -> Lowered {
    Ok(sized(cx, args.mat, &[cx.dim(args.mat, 0)]))
}

fn addr(cx: &Cx, args: Rank1) -> Lowered {
    let dtype = cx.result_type(&[args.input.into(), args.vec1.into(), args.vec2.into()]);
    Ok(typed(cx, dtype, &[cx.numel(args.vec1), cx.numel(args.vec2)]))
}

fn baddbmm(cx: &Cx, args: Batched) -> Lowered {
    let [a, b] = [args.batch1, args.batch2];
    Ok(sized(cx, a, &[cx.dim(a, 0), cx.dim(a, 1), cx.dim(b, 2)]))
}

fn outer(cx: &Cx, a: Value, b: Value) -> Lowered {
    let dtype = cx.result_type(&[a.into(), b.into()]);
    Ok(typed(cx, dtype, &[cx.numel(a), cx.numel(b)]))
}

fn bilinear(cx: &Cx, args: Bilinear) -> Lowered {
    let mut size = sizes(cx, args.input1);
    size.pop();
    size.push(cx.dim(args.weight, 0));
    Ok(sized(cx, args.input1, &size))
}

fn kron(cx: &Cx, a: Value, b: Value) -> Lowered {
    let dtype = cx.result_type(&[a.into(), b.into()]);
    let rank = cx.rank(a).max(cx.rank(b));
    let wide = |v: Value| std::iter::repeat_n(Expr::int(1), rank - cx.rank(v)).chain(sizes(cx, v));
    let size: Vec<Expr> = wide(a).zip(wide(b)).map(|(a, b)| a * b).collect();
    Ok(typed(cx, dtype, &size))
}

fn vander(cx: &Cx, x: Value) -> Lowered {
    let mut size = sizes(cx, x);
    size.extend(size.last().cloned());
    let dtype = match cx.dtype(x) {
        d if d.is_int() => DType::I64,
        d => d,
    };
    Ok(typed(cx, dtype, &size))
}

/// The letters of the result, or in order those that occur once.
fn einsum(cx: &Cx, equation: String, tensors: Vec<Value>) -> Lowered {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    if equation.contains('.') {
        return unknown("an equation with `...`");
    }
    let (terms, result) = match equation.split_once("->") {
        Some((terms, result)) => (terms, result.to_owned()),
        None => {
            let mut letters: Vec<char> = equation.chars().filter(|c| c.is_alphabetic()).collect();
            letters.sort_unstable();
            let once = |c: &&char| letters.iter().filter(|l| l == c).count() == 1;
            (&*equation, letters.iter().filter(once).collect())
        }
    };
    let mut size = Vec::new();
    for letter in result.chars() {
        let mut all = Vec::new();
        for (term, &x) in terms.split(',').zip(&tensors) {
            let dims = term.chars().zip(cx.shape(x));
            all.extend(dims.filter(|(l, _)| *l == letter).map(|(_, d)| vec![d]));
        }
        size.extend(broadcast(cx, &all));
    }
    Ok(typed(cx, super::view::promoted(cx, &tensors)?, &size))
}
