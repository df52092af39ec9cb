//! Translates views of tensors as another element type.

use crate::meta::{typed, unknown};
use crate::{AtenOp, Cx, LowerError, Lowered, checks, op};
use pt2onnx_ir::{Value, attrs, schema::data_type};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::view_dtype, view_dtype, complex = view_complex_dtype, meta = meta_view_dtype),
    op!(aten::view_copy_dtype, view_dtype, complex = view_complex_dtype),
];

/// The same bits as another type.
fn view_dtype(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    bits_as(cx, x, dtype, &cx.out_shape()?)
}

/// The same bits as elements of `dtype` in the shape `sizes`. Elements of another width are parts
/// of one element, the low bits first, or made of several.
fn bits_as(cx: &Cx, x: Value, dtype: DType, sizes: &[Expr]) -> Lowered {
    let from = cx.dtype(x);
    let (wide, narrow) = (from.bits().max(dtype.bits()), from.bits().min(dtype.bits()));
    if wide == narrow {
        return Ok(of_same_width(cx, x, dtype));
    }
    let x = cx.cast(of_same_width(cx, x, unsigned(from)?), DType::I64);
    let powers: Vec<i64> = (0..wide / narrow).map(|i| 1 << (i * narrow)).collect();
    let each = cx.constant(Tensor::vector(&powers));
    let bits = if from.bits() == wide {
        let x = cx.unsqueeze(x, &[cx.rank(x)]);
        let modulo = |a, b| cx.mod_(a, b, attrs::Mod::default());
        let shifted = cx.div(cx.sub(x, modulo(x, each)), each);
        let parts = modulo(shifted, cx.scalar(1i64 << narrow, DType::I64));
        cx.reshape(parts, sizes)
    } else {
        let groups = [sizes, &[Expr::int(powers.len() as i64)]].concat();
        let parts = cx.mul(cx.reshape(x, &groups), each);
        let part = |i: usize| cx.take(parts, sizes.len(), &Expr::int(i as i64));
        (1..powers.len()).fold(part(0), |sum, i| cx.add(sum, part(i)))
    };
    Ok(of_same_width(cx, cx.cast(bits, unsigned(dtype)?), dtype))
}

/// A `Cast` between integers, else `BitCast`.
fn of_same_width(cx: &Cx, x: Value, dtype: DType) -> Value {
    let from = cx.dtype(x);
    let whole = |d: DType| d.is_int() || d == DType::Bool;
    if from == dtype || whole(from) && whole(dtype) {
        cx.cast(x, dtype)
    } else {
        cx.bit_cast(x, data_type(dtype))
    }
}

/// The unsigned integer type of the same width.
fn unsigned(dtype: DType) -> Lowered<DType> {
    dtype.to_unsigned().ok_or_else(|| {
        LowerError::unsupported(format!("elements of {dtype} cannot be viewed as another type"))
    })
}

/// The same bits, if any are complex numbers: pairs of real ones, side by side in the last
/// dimension.
fn view_complex_dtype(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    let (mut sizes, mut given) = (cx.out_shape()?, cx.shape(x));
    let mut flat = sizes.clone();
    if dtype.is_complex() {
        sizes.push(Expr::int(2));
        double_last(&mut flat);
    }
    if cx.dtype(x) == dtype.to_real() {
        return Ok(cx.reshape(x, &sizes));
    }
    if given.len() > flat.len() {
        given.pop();
        double_last(&mut given);
    }
    let bits = bits_as(cx, cx.reshape(x, &given), dtype.to_real(), &flat)?;
    Ok(cx.reshape(bits, &sizes))
}

fn double_last(sizes: &mut [Expr]) {
    if let Some(last) = sizes.last_mut() {
        *last = &*last * 2;
    }
}

/// The last size changes as the width of the elements does.
fn meta_view_dtype(cx: &Cx, x: Value, dtype: DType) -> Lowered {
    let (from, to) = (cx.dtype(x).bits() as i64, dtype.bits() as i64);
    let mut size = cx.shape(x);
    match size.last_mut() {
        Some(last) => *last = cx.constraints().simplify(&(&*last * from).floor_div(&Expr::int(to))),
        None if from != to => return unknown("a 0-d tensor has no size that could change"),
        None => {}
    }
    Ok(typed(cx, dtype, &size))
}

checks! {
    // Bits of another type.
    "aten.view.dtype(x: f32[2], torch.int32) -> i32[2]" => "view = BitCast <to: int = 6> (x)";

    // Bytes of a float.
    "aten.view.dtype(x: f32[2], torch.uint8) -> u8[8]" => "
    val_0 = BitCast <to: int = 12> (x)
    val_1 = Cast <to: int = 7> (val_0)
    val_2 = Unsqueeze (val_1, [1])
    val_3 = Mod (val_2, [1, 256, 65536, 16777216])
    val_4 = Sub (val_2, val_3)
    val_5 = Div (val_4, [1, 256, 65536, 16777216])
    val_6 = Mod (val_5, 256)
    val_7 = Reshape (val_6, [8])
    view = Cast <to: int = 2> (val_7)
    ";

    // A float of bytes.
    "aten.view.dtype(x: u8[s0, 4], torch.float32) -> f32[s0, 1]" => "
    val_0 = Cast <to: int = 7> (x)
    val_1 = Reshape (val_0, [0, 1, 4])
    val_2 = Mul (val_1, [1, 256, 65536, 16777216])
    val_3 = Gather <axis: int = 2> (val_2, 0)
    val_4 = Gather <axis: int = 2> (val_2, 1)
    val_5 = Add (val_3, val_4)
    val_6 = Gather <axis: int = 2> (val_2, 2)
    val_7 = Add (val_5, val_6)
    val_8 = Gather <axis: int = 2> (val_2, 3)
    val_9 = Add (val_7, val_8)
    val_10 = Cast <to: int = 12> (val_9)
    view = BitCast <to: int = 1> (val_10)
    ";
}
