//! Translates products of matrices and vectors.

use crate::meta::{self, sized, typed};
use crate::{
    AtenOp, Complex, Cx, LowerError, Lowered, Number, args::Ignored, arguments, checks, op,
};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::promote_types;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_int_mm, int_mm),
    op!(aten::_scaled_mm, scaled_mm),
    op!(aten::_scaled_mm_v2, scaled_mm_v2),
    op!(aten::_weight_int8pack_mm, weight_int8pack_mm),
    op!(aten::addbmm, addbmm),
    op!(aten::addmm, addmm, meta = meta_addmm),
    op!(aten::addmv, addmv, meta = meta_addmv),
    op!(aten::addr, addr, meta = meta_addr),
    op!(aten::baddbmm, baddbmm, meta = meta_baddbmm),
    op!(aten::bmm, matmul),
    op!(aten::bmm_dtype, matmul_dtype),
    op!(aten::chain_matmul, multi_dot),
    op!(aten::cross, cross, meta = meta_cross),
    op!(aten::dot, matmul),
    op!(aten::ger, outer, meta = meta_outer),
    op!(aten::inner, inner),
    op!(aten::kron, kron, meta = meta_kron),
    op!(aten::linalg_cross, linalg_cross, meta = meta_cross),
    op!(aten::linalg_matmul, matmul),
    op!(aten::linalg_multi_dot, multi_dot),
    op!(aten::linalg_vecdot, vecdot),
    op!(aten::linear, linear),
    op!(aten::matmul, matmul),
    op!(aten::mm, matmul),
    op!(aten::mm_dtype, matmul_dtype),
    op!(aten::mv, matmul),
    op!(aten::outer, outer, meta = meta_outer),
    op!(aten::vdot, vdot),
];

fn matmul(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    Ok(a.matmul(cx, b).value(cx))
}

/// The product of matrices of a narrow type, computed in a wide one.
fn matmul_dtype(cx: &Cx, a: Value, b: Value, dtype: DType) -> Lowered {
    Ok(cx.matmul(cx.cast(a, dtype), cx.cast(b, dtype)))
}

/// int8 matrices, their product int32: `MatMulInteger`.
fn int_mm(cx: &Cx, a: Value, b: Value) -> Lowered {
    Ok(cx.matmul_integer(a, b, None, None))
}

/// `(x @ w^T) * scales` for a matrix `w` of int8, whose rows have a scale each.
fn weight_int8pack_mm(cx: &Cx, x: Value, w: Value, scales: Value) -> Lowered {
    let product = cx.matmul(x, cx.transpose(cx.cast(w, cx.dtype(x)), &[1, 0]));
    Ok(cx.mul(product, cx.cast(scales, cx.dtype(x))))
}

arguments! {
    /// Arguments of [`scaled_mm`].
    struct ScaledArgs {
        input: Value,
        mat2: Value,
        scale_a: Value,
        scale_b: Value,
        bias: Option<Value>,
        out_dtype: Option<DType>,
    }
}

/// `(a * scale_a) @ (b * scale_b) + bias` for matrices of float8, computed in float32. Scales are
/// one number, or those of the rows of `a` and the columns of `b`.
fn scaled_mm(cx: &Cx, args: ScaledArgs) -> Lowered {
    for scale in [args.scale_a, args.scale_b] {
        if cx.dtype(scale) != DType::F32 {
            return Err(LowerError::unsupported("scales of blocks are not supported"));
        }
    }
    let float = |x: Value| cx.cast(x, DType::F32);
    let product = cx.matmul(float(args.input), float(args.mat2));
    let scaled = cx.mul(cx.mul(product, args.scale_a), args.scale_b);
    let sum = args.bias.map_or(scaled, |bias| cx.add(scaled, float(bias)));
    Ok(cx.cast(sum, args.out_dtype.unwrap_or_else(|| cx.dtype(args.input))))
}

arguments! {
    /// Arguments of [`scaled_mm_v2`]. Recipes and swizzles are numbers of `ScalingType` and
    /// `SwizzleType` (torch.nn.functional).
    struct ScaledArgsV2 {
        input: Value,
        mat2: Value,
        scale_a: Vec<Value>,
        recipe_a: Vec<i64>,
        swizzle_a: Vec<i64>,
        scale_b: Vec<Value>,
        recipe_b: Vec<i64>,
        swizzle_b: Vec<i64>,
        bias: Option<Value>,
        out_dtype: Option<DType>,
        contraction_dim: Ignored,
    }
}

/// [`scaled_mm`] of matrices that say what their scales are of.
fn scaled_mm_v2(cx: &Cx, args: ScaledArgsV2) -> Lowered {
    const TENSOR_WISE: i64 = 0;
    const ROW_WISE: i64 = 1;
    let recipes = [args.recipe_a, args.recipe_b].concat();
    let swizzles = [args.swizzle_a, args.swizzle_b].concat();
    let (&[scale_a], &[scale_b]) = (&*args.scale_a, &*args.scale_b) else {
        return Err(LowerError::unsupported("several scales of a matrix are not supported"));
    };
    if recipes.iter().any(|r| ![TENSOR_WISE, ROW_WISE].contains(r))
        || swizzles.iter().any(|&s| s != 0)
    {
        return Err(LowerError::unsupported("scales of blocks are not supported"));
    }
    let ScaledArgsV2 { input, mat2, bias, out_dtype, .. } = args;
    scaled_mm(cx, ScaledArgs { input, mat2, scale_a, scale_b, bias, out_dtype })
}

/// `beta * c + alpha * product`. As in PyTorch, `c` is ignored if `beta` is 0, even if it has NaN
/// or infinities.
fn accumulate(cx: &Cx, c: Complex, product: Complex, beta: Number, alpha: Number) -> Lowered {
    let product = product.scale(cx, alpha);
    let sum = match beta {
        _ if beta.is(0.0) => product,
        Number::Known(_) => c.scale(cx, beta).add(cx, product),
        Number::Computed(factor) => {
            let counts = cx.cast(factor, DType::Bool);
            c.keep(cx, counts).scale(cx, beta).add(cx, product)
        }
    };
    Ok(sum.value(cx))
}

/// `beta * c`, of the shape of the result, where `alpha` is 0: NaN and infinities of the product
/// are ignored. For float16 and bfloat16 they are not: PyTorch multiplies them by 0.
fn without_product(cx: &Cx, c: Complex, beta: Number, alpha: Number) -> Lowered<Option<Value>> {
    let shape = cx.out_shape()?;
    if matches!(cx.dtype(c.re), DType::F16 | DType::BF16) && cx.propagates_nan(c.re) {
        return Ok(None);
    }
    Ok(match (alpha.is(0.0), beta.is(0.0)) {
        (false, _) => None,
        (true, true) => Some(c.map(|part| cx.full(&shape, 0, cx.dtype(part))).value(cx)),
        (true, false) => Some(c.scale(cx, beta).map(|part| cx.expand(part, &shape)).value(cx)),
    })
}

/// `beta * c + alpha * (a @ b)`: `Gemm`, where `c` may be broadcast. Its factors are float32, which
/// not every double is.
fn addmm(cx: &Cx, c: Complex, a: Complex, b: Complex, beta: Number, alpha: Number) -> Lowered {
    if let Some(c) = without_product(cx, c, beta, alpha)? {
        return Ok(c);
    }
    let (Number::Known(known_alpha), Number::Known(known_beta)) = (alpha, beta) else {
        return accumulate(cx, c, a.matmul(cx, b), beta, alpha);
    };
    let factors = [known_alpha, known_beta].map(Scalar::to_f64);
    let exact = cx.dtype(a.re) != DType::F64 || factors.iter().all(|&f| f64::from(f as f32) == f);
    let real = c.im.or(a.im).or(b.im).is_none() && cx.dtype(a.re).is_float();
    // ONNX Runtime's `Gemm` ignores beta if the sums are empty.
    let something = cx.dim(b.re, 0).as_int() != Some(0);
    if !real || !exact || !something || alpha.is_complex() || alpha.is(0.0) {
        return accumulate(cx, c, a.matmul(cx, b), beta, alpha);
    }
    let [alpha, beta] = factors.map(|f| f as f32);
    let c = (beta != 0.0).then_some(c.re);
    let options = attrs::Gemm {
        alpha,
        // Without `c`, `beta` has no effect.
        beta: if c.is_some() { beta } else { 1.0 },
        ..Default::default()
    };
    Ok(cx.gemm(a.re, b.re, c, options))
}

fn addmv(cx: &Cx, c: Complex, a: Complex, b: Complex, beta: Number, alpha: Number) -> Lowered {
    if let Some(c) = without_product(cx, c, beta, alpha)? {
        return Ok(c);
    }
    accumulate(cx, c, a.matmul(cx, b), beta, alpha)
}

fn baddbmm(cx: &Cx, c: Complex, a: Complex, b: Complex, beta: Number, alpha: Number) -> Lowered {
    accumulate(cx, c, a.matmul(cx, b), beta, alpha)
}

/// The products of all batches added up.
fn addbmm(cx: &Cx, c: Complex, a: Complex, b: Complex, beta: Number, alpha: Number) -> Lowered {
    let sum = a.matmul(cx, b).map(|x| cx.reduce(Reduction::Sum, x, &[0], false));
    accumulate(cx, c, sum, beta, alpha)
}

/// `beta * c + alpha * outer(a, b)`; for bools, `or` and `and`.
fn addr(cx: &Cx, c: Complex, a: Complex, b: Complex, beta: Number, alpha: Number) -> Lowered {
    if cx.out_dtype()? == DType::Bool {
        let holds = |x: Value, factor: Number| {
            if factor.known().is_some_and(Scalar::to_bool) {
                x
            } else {
                cx.and(x, factor.tensor(cx, DType::Bool))
            }
        };
        let outer = cx.and(cx.unsqueeze(a.re, &[1]), b.re);
        return Ok(cx.or(holds(c.re, beta), holds(outer, alpha)));
    }
    let dtype = cx.out_dtype()?;
    let [c, a, b] = [c, a, b].map(|x| x.cast(cx, dtype));
    accumulate(cx, c, outer_product(cx, a, b), beta, alpha)
}

fn outer_product(cx: &Cx, a: Complex, b: Complex) -> Complex {
    let column = a.map(|x| cx.unsqueeze(x, &[1]));
    column.bilinear(cx, b, |x, y| times(cx, x, y))
}

/// `x * y`; for bools, `x and y`.
fn times(cx: &Cx, x: Value, y: Value) -> Value {
    match cx.dtype(x) {
        DType::Bool => cx.and(x, y),
        _ => cx.mul(x, y),
    }
}

fn outer(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    Ok(outer_product(cx, a, b).value(cx))
}

/// `sum_i conj(a_i) * b_i`.
fn vdot(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    Ok(a.conj(cx).matmul(cx, b).value(cx))
}

/// Sums of products along the last dimensions of both.
fn inner(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (ranks, last) = ([cx.rank(a.re), cx.rank(b.re)], cx.rank(b.re).saturating_sub(1));
    match ranks {
        [0, _] | [_, 0] => Ok(a.bilinear(cx, b, |x, y| times(cx, x, y)).value(cx)),
        [_, 1] => Ok(a.matmul(cx, b).value(cx)),
        [_, _] => {
            // The other dimensions of b in a row, before its last becomes the rows.
            let rows = Expr::product(cx.shape(b.re)[..last].to_vec());
            let flat = b.map(|x| cx.reshape(x, &[rows.clone(), cx.dim(x, -1)]));
            let product = a.matmul(cx, flat.transpose(cx));
            let others = |x: Value| cx.shape(x).into_iter().take(cx.rank(x) - 1);
            let shape: Vec<Expr> = others(a.re).chain(others(b.re)).collect();
            Ok(product.map(|x| cx.reshape(x, &shape)).value(cx))
        }
    }
}

/// Every element of `a` times all of `b`, block by block.
fn kron(cx: &Cx, a: Complex, b: Complex) -> Lowered {
    let (a, b) = Complex::promote(cx, a, b)?;
    let rank = cx.rank(a.re).max(cx.rank(b.re));
    // Dimension i of a becomes 2i, of b 2i + 1; what either lacks in front is 1.
    let spread = |x: Complex, odd: usize| {
        let lead = rank - cx.rank(x.re);
        let ones = (0..2 * rank).filter(|i| i % 2 != odd || i / 2 < lead);
        let ones: Vec<usize> = ones.collect();
        x.map(|x| cx.unsqueeze(x, &ones))
    };
    let blocks = spread(a, 0).bilinear(cx, spread(b, 1), |x, y| times(cx, x, y));
    let shape = cx.out_shape()?;
    Ok(blocks.map(|x| cx.reshape(x, &shape)).value(cx))
}

/// `sum conj(a) * b` along `dim`, both broadcast.
fn vecdot(cx: &Cx, a: Complex, b: Complex, dim: i64) -> Lowered {
    let rank = cx.rank(a.re).max(cx.rank(b.re));
    let product = a.conj(cx).mul(cx, b);
    let axis = crate::cx::axis_of(rank, dim)?;
    let sum = product.map(|x| cx.reduce(Reduction::Sum, x, &[axis], false));
    Ok(sum.value(cx))
}

fn linalg_cross(cx: &Cx, a: Complex, b: Complex, dim: i64) -> Lowered {
    let rank = cx.rank(a.re).max(cx.rank(b.re));
    // Dimensions broadcast, the one of the vectors counts from the end.
    let behind = rank - crate::cx::axis_of(rank, dim)?;
    let turned = |x: Complex, order: [i64; 3]| -> Lowered<Complex> {
        let axis = cx.rank(x.re).checked_sub(behind);
        let axis = axis.ok_or_else(|| {
            LowerError::unsupported("a cross product needs vectors, but the tensor is 0-d")
        })?;
        Ok(x.map(|x| cx.gather(x, cx.ints(&order), axis)))
    };
    // a_{i+1} b_{i+2} - a_{i+2} b_{i+1}
    let (next, after) = ([1, 2, 0], [2, 0, 1]);
    let plus = turned(a, next)?.mul(cx, turned(b, after)?);
    let minus = turned(a, after)?.mul(cx, turned(b, next)?);
    Ok(plus.sub(cx, minus).value(cx))
}

/// Without `dim`, along the first dimension of size 3.
fn cross(cx: &Cx, a: Complex, b: Complex, dim: Option<i64>) -> Lowered {
    let shape = cx.out_shape()?;
    let three = || shape.iter().position(|d| d.as_int() == Some(3));
    let dim = dim.or_else(|| three().map(|i| i as i64));
    let dim = dim.ok_or_else(|| {
        LowerError::unsupported("no dimension is known to have size 3: give `dim`")
    })?;
    linalg_cross(cx, a, b, dim)
}

/// The product of all matrices, where sizes are known in the order that takes the least
/// multiplications.
fn multi_dot(cx: &Cx, matrices: Vec<Complex>) -> Lowered {
    let sizes: Option<Vec<i64>> = matrices
        .iter()
        .map(|m| cx.dim(m.re, 0).as_int())
        .chain(matrices.last().map(|m| cx.dim(m.re, -1).as_int()))
        .collect();
    // A vector in front has one row only.
    let first_is_vector = matrices.first().is_some_and(|m| cx.rank(m.re) == 1);
    let sizes = sizes.map(|mut sizes| {
        if first_is_vector {
            sizes[0] = 1;
        }
        sizes
    });
    Ok(chain(cx, &matrices, sizes.as_deref())?.value(cx))
}

fn chain(cx: &Cx, matrices: &[Complex], sizes: Option<&[i64]>) -> Lowered<Complex> {
    match matrices {
        [] => Err(LowerError::unsupported("a product needs at least one matrix")),
        [one] => Ok(*one),
        [_, rest @ ..] => {
            let split = match sizes {
                Some(sizes) if matrices.len() < 32 => best_split(sizes).1,
                _ => rest.len(),
            };
            let left = chain(cx, &matrices[..split], sizes.map(|s| &s[..=split]))?;
            let right = chain(cx, &matrices[split..], sizes.map(|s| &s[split..]))?;
            Ok(left.matmul(cx, right))
        }
    }
}

/// Multiplications that a chain of matrices of these sizes takes at least, and where its last
/// product splits it.
fn best_split(sizes: &[i64]) -> (f64, usize) {
    let n = sizes.len() - 1;
    // costs[i][j]: of matrices i to j.
    let mut costs = vec![vec![(0.0, 0); n]; n];
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            let at = |k: usize| {
                let product = sizes[i] as f64 * sizes[k] as f64 * sizes[j + 1] as f64;
                (costs[i][k - 1].0 + costs[k][j].0 + product, k)
            };
            let best = (i + 1..=j).map(at).min_by(|a: &(f64, usize), b| a.0.total_cmp(&b.0));
            costs[i][j] = best.unwrap_or((0.0, i + 1));
        }
    }
    costs[0][n - 1]
}

/// `x @ weight^T + bias`: of real matrices by `Gemm`, else by `MatMul` and `Add`.
fn linear(cx: &Cx, x: Complex, weight: Complex, bias: Option<Complex>) -> Lowered {
    let (rank, weight_rank) = (cx.rank(x.re), cx.rank(weight.re));
    let real = x.im.or(weight.im).or(bias.and_then(|b| b.im)).is_none();
    if real
        && (rank, weight_rank) == (2, 2)
        && bias.is_none_or(|b| cx.rank(b.re) == 1)
        && cx.dtype(x.re).is_float()
    {
        let options = attrs::Gemm { trans_b: true, ..Default::default() };
        return Ok(cx.gemm(x.re, weight.re, bias.map(|b| b.re), options));
    }
    if cx.dim(weight.re, -1).as_int() == Some(0) {
        // ONNX Runtime's fusions fail on products over nothing.
        let mut shape = cx.shape(x.re);
        shape.pop();
        shape.extend((weight_rank == 2).then(|| cx.dim(weight.re, 0)));
        let nothing = x.map(|part| cx.full(&shape, 0, cx.dtype(part)));
        let sum = bias.map_or(nothing, |b| b.expand(cx, &shape));
        return Ok(sum.value(cx));
    }
    let transposed = match cx.rank(weight.re) {
        2 => weight.transpose(cx),
        _ => weight,
    };
    let product = x.matmul(cx, transposed);
    Ok(bias.map_or(product, |bias| product.add(cx, bias)).value(cx))
}

fn meta_addmm(cx: &Cx, _: Ignored, a: Value, b: Value) -> Lowered {
    Ok(sized(cx, a, &[cx.dim(a, 0), cx.dim(b, 1)]))
}

fn meta_addmv(cx: &Cx, _: Ignored, matrix: Value) -> Lowered {
    Ok(sized(cx, matrix, &[cx.dim(matrix, 0)]))
}

fn meta_addr(cx: &Cx, x: Value, a: Value, b: Value) -> Lowered {
    let dtype = cx.result_type(&[x.into(), a.into(), b.into()]);
    Ok(typed(cx, dtype, &[cx.numel(a), cx.numel(b)]))
}

fn meta_baddbmm(cx: &Cx, _: Ignored, a: Value, b: Value) -> Lowered {
    Ok(sized(cx, a, &[cx.dim(a, 0), cx.dim(a, 1), cx.dim(b, 2)]))
}

fn meta_outer(cx: &Cx, a: Value, b: Value) -> Lowered {
    let dtype = cx.result_type(&[a.into(), b.into()]);
    Ok(typed(cx, dtype, &[cx.numel(a), cx.numel(b)]))
}

/// Tensors without dimensions get some first, so they count as others for the type.
fn meta_kron(cx: &Cx, a: Value, b: Value) -> Lowered {
    let dtype = promote_types(cx.dtype(a), cx.dtype(b));
    let rank = cx.rank(a).max(cx.rank(b));
    let wide = |v: Value| std::iter::repeat_n(Expr::ONE, rank - cx.rank(v)).chain(cx.shape(v));
    let size: Vec<Expr> = wide(a).zip(wide(b)).map(|(a, b)| a * b).collect();
    Ok(typed(cx, dtype, &size))
}

fn meta_cross(cx: &Cx, a: Value, b: Value) -> Lowered {
    meta::promoted(cx, a.into(), b.into())
}

checks! {
    // A `beta` of 0 forgets what is added.
    "aten.addmm(c: f32[3], a: f32[s0, 2], b: f32[2, 3], beta = 0, alpha = 2) -> f32[s0, 3]" => "
    addmm = Gemm <alpha: float = 2.0> (a, b)
    ";

    // A layer of matrices is a `Gemm`, others are products.
    "aten.linear(x: f32[s0, 2], weight: f32[3, 2], bias: f32[3]) -> f32[s0, 3]" => "
    linear = Gemm <transB: int = 1> (x, weight, bias)
    ";
    "aten.linear(x: f32[s0, 4, 2], weight: f32[3, 2], bias: f32[3]) -> f32[s0, 4, 3]" => "
    val_0 = Transpose <perm: ints = [1, 0]> (weight)
    val_1 = MatMul (x, val_0)
    linear = Add (val_1, bias)
    ";

    // A chain of products takes the cheapest order.
    "aten.linalg_multi_dot([a: f32[10, 1], b: f32[1, 10], c: f32[10, 1]]) -> f32[10, 1]" => "
    val_0 = MatMul (b, c)
    linalg_multi_dot = MatMul (a, val_0)
    ";

    // Factors may be computed.
    "aten.baddbmm(c: f32[2, 3, 4], a: f32[2, 3, s0], b: f32[2, s0, 4], beta = n: Sym(s0)) -> f32[2, 3, 4]" => "
    val_0 = Shape <start: int = 2, end: int = 3> (a)
    val_1 = Reshape (val_0, [])
    val_2 = Pad (a, [0, 0, 0, 0, 0, 1])
    val_3 = Pad (b, [0, 0, 0, 0, 1, 0])
    val_4 = MatMul (val_2, val_3)
    val_5 = Cast <to: int = 9> (val_1)
    val_6 = Where (val_5, c, 0.0)
    val_7 = Cast <to: int = 1> (val_1)
    val_8 = Mul (val_6, val_7)
    baddbmm = Add (val_8, val_4)
    ";

    // Sums of nothing.
    "aten.baddbmm(c: f32[4], a: f32[s0, 3, 0], b: f32[s0, 0, 4]) -> f32[s0, 3, 4]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (a)
    val_1 = Concat <axis: int = 0> (val_0, [3, 4])
    val_2 = Expand (0.0, val_1)
    baddbmm = Add (c, val_2)
    ";
    "aten.mv(a: f32[s0, 0], b: f32[0]) -> f32[s0]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (a)
    mv = Expand (0.0, val_0)
    ";

    // A product that does not count.
    "aten.addmm(c: f32[3], a: f32[s0, 2], b: f32[2, 3], alpha = 0) -> f32[s0, 3]" => "
    val_0 = Shape <start: int = 0, end: int = 1> (a)
    val_1 = Concat <axis: int = 0> (val_0, [1])
    addmm = Expand (c, val_1)
    ";
    "aten.mv(a: f32[s0, 2], b: f32[2]) -> f32[s0]" => "mv = MatMul (a, b)";
}
