//! Infers the types of the results of ops on matrices: products, determinants, inverses, ranks.

use crate::stand_ins::{broadcast, fresh, sized, typed, unknown};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{Args, AtenOp, Cx, Lowered, arguments, op};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, promote_types};

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::addmm, addmm),
    op!(aten::addmv, addmv),
    op!(aten::addr, addr),
    op!(aten::baddbmm, baddbmm),
    op!(aten::bilinear, bilinear),
    op!(aten::det, det),
    op!(aten::einsum, einsum),
    op!(aten::ger, outer),
    op!(aten::kron, kron),
    op!(aten::linalg_cholesky_ex, cholesky),
    op!(aten::linalg_cond, condition),
    op!(aten::linalg_det, det),
    op!(aten::linalg_eigh, eigh),
    op!(aten::linalg_eigvalsh, eigvalsh),
    op!(aten::linalg_lstsq, lstsq),
    op!(aten::linalg_matrix_rank, matrix_rank),
    op!(aten::linalg_matrix_rank_atol_rtol_float, matrix_rank),
    op!(aten::linalg_matrix_rank_atol_rtol_tensor, matrix_rank),
    op!(aten::linalg_matrix_rank_tol_tensor, matrix_rank),
    op!(aten::linalg_pinv, pinv),
    op!(aten::linalg_pinv_atol_rtol_float, pinv),
    op!(aten::linalg_pinv_atol_rtol_tensor, pinv),
    op!(aten::linalg_pinv_rcond_tensor, pinv),
    op!(aten::linalg_svd, svd),
    op!(aten::linalg_svdvals, svdvals),
    op!(aten::linalg_vander, vander),
    op!(aten::lu_unpack, lu_unpack),
    op!(aten::outer, outer),
    op!(aten::pdist, pdist),
    op!(aten::pinverse, pinv),
    op!(aten::vander, vander),
];

arguments! {
    struct Bilinear { input1: Value, weight: Value }
    struct Product { mat1: Value, mat2: Value }
    struct LeastSquares { input: Value, b: Value, driver: Option<String> }
    struct MatVec { mat: Value }
    struct Matrix { input: Value }
    struct Rank1 { input: Value, vec1: Value, vec2: Value }
    struct Batched { batch1: Value, batch2: Value }
}

fn sizes(cx: &Cx, x: Value) -> Vec<Expr> {
    cx.shape(x).into_iter().collect()
}

/// The sizes before those of the matrices.
fn batch(cx: &Cx, x: Value) -> Vec<Expr> {
    let mut size = sizes(cx, x);
    size.truncate(size.len().saturating_sub(2));
    size
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

/// Tensors without dimensions get some first, so they count as others for the type.
fn kron(cx: &Cx, a: Value, b: Value) -> Lowered {
    let dtype = promote_types(cx.dtype(a), cx.dtype(b));
    let rank = cx.rank(a).max(cx.rank(b));
    let wide = |v: Value| std::iter::repeat_n(Expr::int(1), rank - cx.rank(v)).chain(sizes(cx, v));
    let size: Vec<Expr> = wide(a).zip(wide(b)).map(|(a, b)| a * b).collect();
    Ok(typed(cx, dtype, &size))
}

/// The powers in a new last dimension, as many as there are elements if no number is given.
fn vander(cx: &Cx, args: &mut Args) -> Lowered {
    let x = args.get(cx, "x")?;
    let mut size = if cx.rank(x) == 0 { vec![Expr::int(1)] } else { sizes(cx, x) };
    let count = args.get::<Option<Expr>>(cx, "N")?;
    size.extend(count.or_else(|| size.last().cloned()));
    let dtype = if cx.dtype(x).is_int() { DType::I64 } else { cx.dtype(x) };
    Ok(typed(cx, dtype, &size))
}

/// A number for each matrix.
fn det(cx: &Cx, args: &mut Args) -> Lowered {
    let x = args.named(cx, "input").or_else(|_| args.get(cx, "A"))?;
    Ok(sized(cx, x, &batch(cx, x)))
}

fn matrix_rank(cx: &Cx, args: Matrix) -> Lowered {
    Ok(typed(cx, DType::I64, &batch(cx, args.input)))
}

/// A number for each pair of rows.
fn pdist(cx: &Cx, args: Matrix) -> Lowered {
    let n = cx.dim(args.input, 0);
    let pairs = (&n * &(&n - 1)).floor_div(&Expr::int(2));
    Ok(sized(cx, args.input, &[cx.constraints().simplify(&pairs)]))
}

/// The factor, and LAPACK's `info`.
fn cholesky(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    Ok([sized(cx, x, &cx.shape(x)), typed(cx, DType::I32, &batch(cx, x))])
}

/// A real number for each matrix.
fn condition(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.dtype(x).to_real(), &batch(cx, x)))
}

/// The sizes before those of the matrices, then `more`.
fn beside_batch(cx: &Cx, x: Value, more: &[&Expr]) -> Vec<Expr> {
    batch(cx, x).into_iter().chain(more.iter().copied().cloned()).collect()
}

fn eigvalsh(cx: &Cx, x: Value) -> Lowered {
    Ok(typed(cx, cx.dtype(x).to_real(), &beside_batch(cx, x, &[&cx.dim(x, -1)])))
}

fn eigh(cx: &Cx, x: Value) -> Lowered<[Value; 2]> {
    Ok([eigvalsh(cx, x)?, sized(cx, x, &cx.shape(x))])
}

fn svdvals(cx: &Cx, x: Value) -> Lowered {
    let count = Expr::min(&cx.dim(x, -2), &cx.dim(x, -1));
    let count = cx.constraints().simplify(&count);
    Ok(typed(cx, cx.dtype(x).to_real(), &beside_batch(cx, x, &[&count])))
}

/// The left vectors, the singular values, and the right vectors. Without `full`, as many as there
/// are values.
fn svd(cx: &Cx, x: Value, full: bool) -> Lowered<[Value; 3]> {
    let (m, n, values) = (cx.dim(x, -2), cx.dim(x, -1), svdvals(cx, x)?);
    let count = cx.dim(values, -1);
    let [left, right] = if full { [&m, &n] } else { [&count; 2] };
    let vectors = |sizes: [&Expr; 2]| sized(cx, x, &beside_batch(cx, x, &sizes));
    Ok([vectors([&m, left]), values, vectors([right, &n])])
}

/// Squared residuals of one matrix are none if its rank is not full; of many matrices the
/// translation does not give them.
fn lstsq(cx: &Cx, args: LeastSquares) -> Lowered<[Value; 4]> {
    let LeastSquares { input: a, b, driver } = args;
    let driver = driver.as_deref().unwrap_or("gelsy");
    let (batch, sizes, none) = (batch(cx, a), sizes(cx, a), [Expr::int(0)]);
    let [.., m, n] = sizes.as_slice() else {
        return unknown("its first operand is not a matrix");
    };
    let columns = (cx.rank(b) == sizes.len()).then(|| cx.dim(b, -1));
    let of_each = |last: Option<Expr>| batch.iter().cloned().chain(last).collect::<Vec<_>>();
    let solution = [of_each(Some(n.clone())), Vec::from_iter(columns.clone())].concat();
    let taller = matches!((m.as_int(), n.as_int()), (Some(m), Some(n)) if m > n);
    let real = cx.dtype(a).to_real();
    let residuals = match driver {
        "gelsd" | "gelss" if taller && batch.is_empty() => vec![fresh(cx)],
        "gels" | "gelsd" | "gelss" if taller => of_each(Some(columns.unwrap_or(Expr::int(1)))),
        _ => none.to_vec(),
    };
    let rank = if driver == "gels" { none.to_vec() } else { batch.clone() };
    let values = match driver {
        "gelsd" | "gelss" => of_each(Some(Expr::min(m, n))),
        _ => none.to_vec(),
    };
    Ok([
        sized(cx, a, &solution),
        typed(cx, real, &residuals),
        typed(cx, DType::I64, &rank),
        typed(cx, real, &values),
    ])
}

/// Rows and columns change places.
fn pinv(cx: &Cx, args: Matrix) -> Lowered {
    let mut size = sizes(cx, args.input);
    let rank = size.len();
    if rank >= 2 {
        size.swap(rank - 2, rank - 1);
    }
    Ok(sized(cx, args.input, &size))
}

/// The letters of the result: those given, else those that occur once, in alphabetical order.
fn einsum(cx: &Cx, equation: String, tensors: Vec<Value>) -> Lowered {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let integers = tensors.iter().any(|&v| !cx.dtype(v).is_float() && !cx.dtype(v).is_complex());
    let (terms, result) = match equation.split_once("->") {
        Some((terms, result)) => (terms, result.to_owned()),
        None => {
            let mut letters: Vec<char> = equation.chars().filter(|c| c.is_alphabetic()).collect();
            letters.sort_unstable();
            let once = |c: &&char| letters.iter().filter(|l| l == c).count() == 1;
            let dots = if equation.contains('.') { "..." } else { "" };
            (&*equation, format!("{dots}{}", letters.iter().filter(once).collect::<String>()))
        }
    };
    // The dimensions of a term, and those of `...` in it.
    let mut size = Vec::new();
    for letter in result.replace("...", ".").chars() {
        let mut all = Vec::new();
        for (term, &x) in terms.split(',').zip(&tensors) {
            let term = term.replace("...", ".");
            let mut dims = cx.shape(x).into_iter();
            let more = (dims.len() + 1).saturating_sub(term.chars().count());
            for l in term.chars() {
                let here: Vec<Expr> = dims.by_ref().take(if l == '.' { more } else { 1 }).collect();
                all.extend((l == letter).then_some(here));
            }
        }
        size.extend(broadcast(cx, &all));
    }
    let dtype = crate::view::promoted(cx, &tensors)?;
    let summed = terms.chars().any(|l| l.is_alphabetic() && !result.contains(l));
    let of_products = sums_products(cx, terms, &result, &tensors);
    match &tensors[..] {
        // Sums of integers are int64, products of matrices are not.
        [_] if integers && summed => Ok(typed(cx, DType::I64, &size)),
        [_, _, ..] if integers && summed && dtype != DType::I64 && !of_products => {
            unknown("sums of narrow integers that are not of products of two tensors")
        }
        _ => Ok(typed(cx, dtype, &size)),
    }
}

/// Whether two tensors are multiplied as matrices along all letters that are summed: each has them
/// once, in the same size. What only one of them has, or has in another size than 1, is summed
/// before.
fn sums_products(cx: &Cx, terms: &str, result: &str, tensors: &[Value]) -> bool {
    let (Some((left, right)), [x, y]) = (terms.split_once(','), tensors) else { return false };
    if cx.dtype(*x) != cx.dtype(*y) || terms.contains('.') {
        return false;
    }
    let summed = terms.chars().filter(|l| l.is_alphabetic() && !result.contains(*l));
    let along = |term: &str, x: Value, letter: char| {
        let mut places = term.chars().enumerate().filter(|(_, l)| *l == letter);
        match (places.next(), places.next()) {
            (Some((at, _)), None) => cx.shape(x).get(at).cloned(),
            _ => None,
        }
    };
    { summed }.all(|l| along(left, *x, l).is_some_and(|n| Some(n) == along(right, *y, l)))
}

/// The permutation, the lower and the upper factor.
fn lu_unpack(cx: &Cx, lu: Value) -> Lowered<[Value; 3]> {
    let (mut size, m, n) = (sizes(cx, lu), cx.dim(lu, -2), cx.dim(lu, -1));
    size.truncate(size.len().saturating_sub(2));
    let k = cx.constraints().simplify(&Expr::min(&m, &n));
    let factor = |a: &Expr, b: &Expr| sized(cx, lu, &[&size[..], &[a.clone(), b.clone()]].concat());
    Ok([factor(&m, &m), factor(&m, &k), factor(&k, &n)])
}
