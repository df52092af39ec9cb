//! torchao's quantisation: one scale and zero point for each block of a tensor.

use crate::math::shape::as_recorded;
use crate::{AtenOp, Cx, LowerError, Lowered, args::Ignored, arguments, checks, op};
use pt2onnx_ir::{Reduction, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(
        "torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
        choose_qparams
    ),
    op!(
        "torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor",
        dequantize
    ),
    op!(
        "torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor",
        quantize
    ),
];

arguments! {
    /// Arguments of [`choose_qparams`].
    struct ChooseArgs {
        input: Option<Value>,
        mapping_type: String,
        block_size: Vec<Expr>,
        target_dtype: DType,
        quant_min: Option<Scalar>,
        quant_max: Option<Scalar>,
        eps: Option<f64>,
        scale_dtype: Ignored,
        zero_point_dtype: Ignored,
        keepdim: Ignored,
    }

    /// Arguments of [`quantize`] and [`dequantize`].
    struct BlocksArgs {
        input: Value,
        block_size: Vec<Expr>,
        scale: Value,
        zero_point: Option<Value>,
        input_dtype: Ignored,
        output_dtype: Ignored,
        quant_min: Option<Scalar>,
        quant_max: Option<Scalar>,
    }
}

/// A tensor's sizes with the dimensions of blocks apart from those that count blocks.
struct Blocks {
    sizes: Vec<Expr>,
    /// The dimensions inside of blocks.
    inner: Vec<usize>,
}

impl Blocks {
    fn new(cx: &Cx, x: Value, block_size: &[Expr]) -> Lowered<Self> {
        let shape = cx.shape(x);
        if shape.len() != block_size.len() {
            return Err(LowerError::unsupported(format!(
                "`block_size` has {} numbers for a tensor of {} dimensions",
                block_size.len(),
                shape.len()
            )));
        }
        let (mut sizes, mut inner) = (Vec::new(), Vec::new());
        for (size, block) in shape.into_iter().zip(block_size) {
            let single = block.as_int() == Some(1);
            let whole = *block == size;
            if !whole && !single {
                sizes.push(size.floor_div(block));
            }
            if !single {
                inner.push(sizes.len());
            }
            sizes.push(if whole || single { size } else { block.clone() });
        }
        Ok(Self { sizes, inner })
    }

    /// The sizes with 1 for those inside of blocks.
    fn counts(&self) -> Vec<Expr> {
        let counted = |(i, size): (usize, &Expr)| {
            if self.inner.contains(&i) { Expr::int(1) } else { size.clone() }
        };
        self.sizes.iter().enumerate().map(counted).collect()
    }

    /// The one dimension that counts blocks, if no other does and none was split: the axis of
    /// `DequantizeLinear`.
    fn axis(&self, rank: usize) -> Option<usize> {
        let mut outer = (0..self.sizes.len()).filter(|i| !self.inner.contains(i));
        let axis = outer.next()?;
        (outer.next().is_none() && self.sizes.len() == rank).then_some(axis)
    }

    /// The size of a block, if blocks are parts of rows.
    fn row(&self) -> Option<&Expr> {
        let last = self.sizes.len().checked_sub(1)?;
        (self.inner == [last]).then(|| &self.sizes[last])
    }
}

/// The smallest and the largest number of quantised tensors: as given, or those of the type.
fn range(dtype: DType, min: Option<Scalar>, max: Option<Scalar>) -> Lowered<(f64, f64)> {
    let whole = match dtype {
        DType::I4 => Some((-8.0, 7.0)),
        DType::I8 => Some((-128.0, 127.0)),
        DType::I16 => Some((-32768.0, 32767.0)),
        DType::I32 => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
        DType::U4 => Some((0.0, 15.0)),
        DType::U8 => Some((0.0, 255.0)),
        DType::U16 => Some((0.0, 65535.0)),
        _ => None,
    };
    let whole = whole.ok_or_else(|| {
        LowerError::unsupported(format!("blocks are quantised to integers, not to {dtype}"))
    })?;
    Ok((min.map_or(whole.0, Scalar::to_f64), max.map_or(whole.1, Scalar::to_f64)))
}

/// `clamp(round(x * (1 / scale)) + zero_point)` of each block.
fn quantize(cx: &Cx, args: BlocksArgs) -> Lowered {
    let BlocksArgs { input, block_size, scale, zero_point, quant_min, quant_max, .. } = args;
    let dtype = cx.out_dtype()?;
    let (min, max) = range(dtype, quant_min, quant_max)?;
    let blocks = Blocks::new(cx, input, &block_size)?;
    let counts = blocks.counts();
    let given = cx.dtype(input);
    let wide = if given == cx.dtype(scale) { given } else { DType::F32 };
    let x = cx.cast(cx.reshape(input, &blocks.sizes), wide);
    let inverse = cx.cast(cx.reciprocal(cx.reshape(scale, &counts)), wide);
    let level = cx.round(cx.mul(x, inverse));
    let level =
        zero_point.map_or(level, |zero| cx.add(level, cx.cast(cx.reshape(zero, &counts), wide)));
    let held = cx.clamp(level, Some(Scalar::Float(min)), Some(Scalar::Float(max)));
    Ok(cx.cast(cx.reshape(held, &cx.shape(input)), dtype))
}

/// `(q - zero_point) * scale` of each block: `DequantizeLinear` for bytes whose blocks are slices
/// along an axis or parts of rows, else the formula.
fn dequantize(cx: &Cx, args: BlocksArgs) -> Lowered {
    let BlocksArgs { input, block_size, scale, zero_point, .. } = args;
    let (q, given, dtype) = (input, cx.dtype(input), cx.out_dtype()?);
    let blocks = Blocks::new(cx, q, &block_size)?;
    let bytes = matches!(given, DType::I8 | DType::U8);
    let fits = bytes && zero_point.is_none_or(|zero| cx.dtype(zero) == given);
    let whole = blocks.inner.len() == blocks.sizes.len();
    let linear = |q: Value, count: &[Expr], axis: usize| {
        let scale = cx.reshape(cx.cast(scale, DType::F32), count);
        let zero_point = zero_point.map(|zero| cx.reshape(zero, count));
        let options = attrs::DequantizeLinear { axis: axis as i64, ..Default::default() };
        cx.dequantize_linear(q, scale, zero_point, options)
    };
    if fits && whole {
        return Ok(cx.cast(linear(q, &[], 1), dtype));
    }
    if let (true, Some(axis)) = (fits, blocks.axis(block_size.len())) {
        return Ok(cx.cast(linear(q, &[blocks.sizes[axis].clone()], axis), dtype));
    }
    if let (true, Some(row)) = (fits, blocks.row()) {
        let rows = cx.numel(q).floor_div(row);
        let numbers = linear(cx.reshape(q, &[rows.clone(), row.clone()]), &[rows], 0);
        return Ok(cx.cast(cx.reshape(numbers, &cx.shape(q)), dtype));
    }
    let counts = blocks.counts();
    let mut centred = cx.cast(cx.reshape(q, &blocks.sizes), dtype);
    if let Some(zero) = zero_point {
        centred = cx.sub(centred, cx.cast(cx.reshape(zero, &counts), dtype));
    }
    let wide = if dtype == cx.dtype(scale) { dtype } else { DType::F32 };
    let scale = cx.cast(cx.reshape(scale, &counts), wide);
    let numbers = cx.mul(cx.cast(centred, wide), scale);
    Ok(cx.cast(cx.reshape(numbers, &cx.shape(q)), dtype))
}

/// Scale and zero point of each block, so that its numbers and 0 fit the range.
fn choose_qparams(cx: &Cx, args: ChooseArgs) -> Lowered<[Value; 2]> {
    let input = args.input.ok_or_else(|| LowerError::unsupported("there is no input"))?;
    let (min, max) = range(args.target_dtype, args.quant_min, args.quant_max)?;
    let blocks = Blocks::new(cx, input, &args.block_size)?;
    if blocks.inner.is_empty() {
        return Err(LowerError::unsupported("blocks of single elements"));
    }
    let x = cx.reshape(input, &blocks.sizes);
    let low = cx.minimum(cx.reduce(Reduction::Min, x, &blocks.inner, false), 0.0);
    let high = cx.maximum(cx.reduce(Reduction::Max, x, &blocks.inner, false), 0.0);
    let eps = args.eps.unwrap_or(match cx.dtype(input) {
        DType::F16 => 2f64.powi(-14),
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    });
    let scale = match &*args.mapping_type {
        "SYMMETRIC" => cx.div(cx.maximum(cx.neg(low), high), (max - min) / 2.0),
        "SYMMETRIC_NO_CLIPPING_ERR" => cx.maximum(cx.div(low, min), cx.div(high, max)),
        "ASYMMETRIC" => cx.div(cx.sub(high, low), max - min),
        other => return Err(LowerError::unknown("mapping of quantisation", other)),
    };
    let scale = cx.maximum(scale, eps);
    let zero_point = match &*args.mapping_type {
        "ASYMMETRIC" => {
            let zero = cx.sub(min, cx.round(cx.div(low, scale)));
            cx.clamp(zero, Some(Scalar::Float(min)), Some(Scalar::Float(max)))
        }
        _ => cx.full(&cx.shape(scale), ((max + min + 1.0) / 2.0).trunc(), cx.dtype(scale)),
    };
    Ok([as_recorded(cx, 0, scale), as_recorded(cx, 1, zero_point)])
}

checks! {
    // Parts of rows.
    "torchao.dequantize_affine(q: i8[4, 64], [1, 32], s: f32[4, 2], z: i8[4, 2], torch.int8, -8, 7) -> f32[4, 64]" => "
    val_0 = Reshape (q, [8, 32])
    val_1 = Reshape (s, [8])
    val_2 = Reshape (z, [8])
    val_3 = DequantizeLinear <axis: int = 0> (val_0, val_1, val_2)
    dequantize_affine = Reshape (val_3, [4, 64])
    ";

    // Rows.
    "torchao.dequantize_affine(q: i8[s0, 64], [1, 64], s: f32[s0, 1], None, torch.int8, -8, 7) -> f32[s0, 64]" => "
    val_0 = Reshape (s, [0])
    dequantize_affine = DequantizeLinear <axis: int = 0> (q, val_0)
    ";

    // Squares by the formula.
    "torchao.quantize_affine(x: f32[4, 6], [2, 3], s: f32[2, 2], z: i32[2, 2], torch.int8, -8, 7) -> i8[4, 6]" => "
    val_0 = Reshape (x, [2, 2, 2, 3])
    val_1 = Reshape (s, [2, 1, 2, 1])
    val_2 = Reciprocal (val_1)
    val_3 = Mul (val_0, val_2)
    val_4 = Round (val_3)
    val_5 = Reshape (z, [2, 1, 2, 1])
    val_6 = Cast <to: int = 1> (val_5)
    val_7 = Add (val_4, val_6)
    val_8 = Clip (val_7, -8.0, 7.0)
    val_9 = Reshape (val_8, [4, 6])
    quantize_affine = Cast <to: int = 3> (val_9)
    ";
    "torchao.dequantize_affine(q: i8[4, 6], [2, 3], s: f32[2, 2], z: i32[2, 2], torch.int8, -8, 7) -> f32[4, 6]" => "
    val_0 = Reshape (q, [2, 2, 2, 3])
    val_1 = Cast <to: int = 1> (val_0)
    val_2 = Reshape (z, [2, 1, 2, 1])
    val_3 = Cast <to: int = 1> (val_2)
    val_4 = Sub (val_1, val_3)
    val_5 = Reshape (s, [2, 1, 2, 1])
    val_6 = Mul (val_4, val_5)
    dequantize_affine = Reshape (val_6, [4, 6])
    ";
}
