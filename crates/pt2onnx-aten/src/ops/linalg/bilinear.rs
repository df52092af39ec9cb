//! Translates products of three tensors.

use crate::meta::{sized, with_size};
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};
use pt2onnx_ir::{Reduction, Type, Value};

pub(crate) static OPS: &[AtenOp] =
    &[op!(aten::_trilinear, trilinear), op!(aten::bilinear, bilinear, meta = meta_bilinear)];

/// `y[o] = a @ weight[o] @ b + bias[o]`, by `Einsum`.
fn bilinear(cx: &Cx, a: Value, b: Value, weight: Value, bias: Option<Value>) -> Lowered {
    let shape = cx.out_shape()?;
    if cx.numel(a).as_int() == Some(0) || cx.numel(b).as_int() == Some(0) {
        return Ok(cx.full(&shape, 0, cx.dtype(a)));
    }
    let lead = shape.len().saturating_sub(1);
    let letters = "abcdefgh"
        .get(..lead)
        .ok_or_else(|| LowerError::unsupported("bilinear layers support at most 9 dimensions"))?;
    let equation = format!("{letters}x,oxy,{letters}y->{letters}o");
    let product = cx.einsum(&[a, weight, b], &equation);
    cx.set_type(product, Type::tensor(cx.dtype(a), shape));
    Ok(bias.map_or(product, |bias| cx.add(product, bias)))
}

arguments! {
    /// Arguments of `_trilinear`.
    struct TrilinearArgs {
        i1: Value,
        i2: Value,
        i3: Value,
        expand1: Vec<i64>,
        expand2: Vec<i64>,
        expand3: Vec<i64>,
        sumdim: Vec<i64>,
    }
}

/// `sum(i1 * i2 * i3)` over `sumdim`, after each factor got new dimensions of size 1 at its
/// `expand`.
fn trilinear(cx: &Cx, args: TrilinearArgs) -> Lowered {
    let axes = |dims: &[i64]| -> Vec<usize> {
        dims.iter().filter_map(|&d| usize::try_from(d).ok()).collect()
    };
    let expand = |x, dims: &[i64]| cx.unsqueeze(x, &axes(dims));
    let first = cx.mul(expand(args.i1, &args.expand1), expand(args.i2, &args.expand2));
    let product = cx.mul(first, expand(args.i3, &args.expand3));
    Ok(match axes(&args.sumdim).as_slice() {
        [] => product,
        axes => cx.reduce(Reduction::Sum, product, axes, false),
    })
}

fn meta_bilinear(cx: &Cx, a: Value, _: Ignored, weight: Value) -> Lowered {
    let last = cx.rank(a).saturating_sub(1);
    Ok(sized(cx, a, &with_size(cx, a, last, cx.dim(weight, 0))))
}

checks! {
    // A bilinear layer is an `Einsum`.
    "aten.bilinear(a: f32[s0, 3], b: f32[s0, 4], weight: f32[5, 3, 4], bias: f32[5]) -> f32[s0, 5]" => r#"
    val_0 = Einsum <equation: string = "ax,oxy,ay->ao"> (a, weight, b)
    bilinear = Add (val_0, bias)
    "#;
}
