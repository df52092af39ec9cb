//! Images: sampling at grids, windows as columns, pixels moved between channels and space.

use crate::math::reduce::as_axis;
use crate::math::window::{lattice, per_dim};
use crate::meta::{self, sized};
use crate::{AtenOp, Cx, LowerError, Lowered, arguments, checks, op};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Scalar};

pub(crate) static OPS: &[AtenOp] = &[
    op!(aten::_grid_sampler_2d_cpu_fallback, grid_sampler),
    op!(aten::affine_grid_generator, affine_grid),
    op!(aten::channel_shuffle, channel_shuffle, parts),
    op!(aten::col2im, col2im, parts),
    op!(aten::grid_sampler, grid_sampler),
    op!(aten::grid_sampler_2d, grid_sampler),
    op!(aten::grid_sampler_3d, grid_sampler),
    op!(aten::im2col, im2col, parts, meta = meta_im2col),
    op!(aten::native_channel_shuffle, channel_shuffle, parts),
    op!(aten::pixel_shuffle, pixel_shuffle, parts, meta = meta_pixel_shuffle),
    op!(aten::pixel_unshuffle, pixel_unshuffle, parts, meta = meta_pixel_unshuffle),
];

/// A coordinate outside of any image, which all types of floats hold.
const FAR: f64 = 1e4;

/// `x` sampled at the places that `grid` gives, from -1 to 1 along each dimension: `GridSample`.
/// Runtimes read some pixel at a place that is NaN, infinite or far away. For PyTorch, the first
/// two are NaN if pixels are weighted and those outside count as 0, or by cubic weights; the
/// nearest of such pixels is 0, and any of three dimensions.
fn grid_sampler(
    cx: &Cx,
    x: Value,
    grid: Value,
    mode: i64,
    padding_mode: i64,
    align_corners: bool,
) -> Lowered {
    let options = attrs::GridSample {
        mode: match mode {
            0 => "linear",
            1 => "nearest",
            2 => "cubic",
            n => return Err(LowerError::unknown("interpolation mode", n)),
        },
        padding_mode: match padding_mode {
            0 => "zeros",
            1 => "border",
            2 => "reflection",
            n => return Err(LowerError::unknown("padding mode", n)),
        },
        align_corners,
    };
    let grid = cx.cast(grid, cx.dtype(x));
    let (nearest, zeros) = (mode == 1, padding_mode == 0);
    if !cx.propagates_nan(grid) || !(zeros || mode == 2) {
        return Ok(cx.grid_sample(x, grid, options));
    }
    // PyTorch's kernel of three dimensions leaves out pixels outside, whatever their weights.
    if nearest || cx.rank(grid) == 5 {
        let near = cx.less(cx.abs(grid), FAR);
        return Ok(cx.grid_sample(x, cx.select(near, grid, FAR), options));
    }
    let far = Scalar::Float(FAR);
    let held = if zeros { cx.clamp(grid, Some(Scalar::Float(-FAR)), Some(far)) } else { grid };
    // 0 for each place, or NaN.
    let dims = cx.rank(grid) - 2;
    let none = cx.full(&[Expr::int(dims as i64), Expr::int(1)], 0.0, cx.dtype(grid));
    let last = cx.rank(grid) - 1;
    let perm: Vec<usize> = [0, last].into_iter().chain(1..last).collect();
    let spoiled = cx.transpose(cx.matmul(grid, none), &perm);
    Ok(cx.add(cx.grid_sample(x, held, options), spoiled))
}

/// The grid of an affine map `theta` for images of that size: `AffineGrid`. Where corners are
/// aligned, a dimension of size 1 has its place in the centre, but ONNX does not say where: the
/// grid is then a sum of products.
fn affine_grid(cx: &Cx, theta: Value, size: Vec<Expr>, align_corners: bool) -> Lowered {
    let sides = size.get(2..).unwrap_or_default();
    if !align_corners || sides.iter().all(|n| cx.constraints().prove_ge(n, &Expr::int(2))) {
        return Ok(cx.affine_grid(theta, cx.sizes(&size), attrs::AffineGrid { align_corners }));
    }
    let (rank, dtype) = (sides.len(), cx.dtype(theta));
    let between: Vec<usize> = (1..=rank).collect();
    let column = |i| cx.unsqueeze(cx.gather(theta, cx.scalar(i as i64, DType::I64), 2), &between);
    let products = sides.iter().enumerate().map(|(axis, n)| {
        let places = as_axis(cx, aligned_places(cx, n, dtype), axis + 1, rank + 2);
        // The first column of `theta` is for the last dimension.
        cx.mul(places, column(rank - 1 - axis))
    });
    Ok(products.fold(column(rank), |sum, product| cx.add(sum, product)))
}

/// `n` places from -1 to 1; one is 0.
fn aligned_places(cx: &Cx, n: &Expr, dtype: DType) -> Value {
    let last = n - 1;
    let doubled = cx.sub(cx.mul(cx.iota(n), 2), cx.size(&last));
    cx.div(cx.cast(doubled, dtype), cx.cast(cx.size(&last.max(&Expr::int(1))), dtype))
}

arguments! {
    /// Arguments of [`im2col`] and [`col2im`]: windows, one number for each dimension or for both.
    struct ColumnsArgs {
        input: Value,
        output_size: Option<Vec<Expr>>,
        kernel_size: Vec<i64>,
        dilation: Vec<i64>,
        padding: Vec<i64>,
        stride: Vec<i64>,
    }
}

impl ColumnsArgs {
    /// Kernel, dilation, padding and stride along each dimension.
    fn windows(&self) -> [Vec<i64>; 4] {
        [&self.kernel_size, &self.dilation, &self.padding, &self.stride].map(|v| per_dim(v, 2))
    }
}

/// The windows of an image as columns: a `Gather` of rows and then one of columns, at the places of
/// the windows.
fn im2col(cx: &Cx, args: ColumnsArgs) -> Lowered {
    let (x, [kernel, dilation, padding, stride]) = (args.input, args.windows());
    let rank = cx.rank(x);
    if rank < 3 {
        return Err(LowerError::unsupported("an image needs at least three dimensions"));
    }
    let mut result = x;
    if padding.iter().any(|&p| p != 0) {
        let pads = [&padding[..], &padding[..]].concat();
        // Counted from the front: ONNX Runtime's optimiser fails on others.
        let axes = [rank as i64 - 2, rank as i64 - 1];
        result = cx.pad(result, cx.ints(&pads), None, cx.ints(&axes), attrs::Pad::default());
    }
    let padded = cx.shape(result);
    for i in 0..2 {
        // The columns behind the two dimensions that the rows became.
        let axis = rank - 2 + 2 * i;
        let size = &padded[rank - 2 + i];
        let span = size - (dilation[i] * (kernel[i] - 1) + 1);
        let count = span.floor_div(&Expr::int(stride[i])) + 1;
        if kernel[i] == 1 && stride[i] == 1 {
            result = cx.unsqueeze(result, &[axis]);
            continue;
        }
        let positions = lattice(cx, (&Expr::int(kernel[i]), dilation[i]), (&count, stride[i]));
        result = cx.gather(result, positions, axis);
    }
    // (.., kernel, windows, kernel, windows) to (.., kernel, kernel, windows, windows)
    let lead = rank - 2;
    let perm: Vec<usize> = (0..lead).chain([lead, lead + 2, lead + 1, lead + 3]).collect();
    Ok(cx.reshape(cx.transpose(result, &perm), &cx.out_shape()?))
}

/// The image of that size whose windows are the columns of `input`: `Col2Im`. Elements that fall on
/// one pixel are added up.
fn col2im(cx: &Cx, args: ColumnsArgs) -> Lowered {
    let (x, [kernel, dilation, padding, stride]) = (args.input, args.windows());
    let output_size = args.output_size.unwrap_or_default();
    let options = attrs::Col2Im {
        dilations: Some(dilation),
        pads: Some([&padding[..], &padding[..]].concat()),
        strides: Some(stride),
    };
    let run = |x| cx.col2im(x, cx.sizes(&output_size), cx.ints(&kernel), options.clone());
    Ok(match cx.rank(x) {
        2 => cx.squeeze(run(cx.unsqueeze(x, &[0])), &[0]),
        _ => run(x),
    })
}

/// The sizes of `x`: those before the last three (channels, height, width), and these.
fn image(cx: &Cx, x: Value) -> Lowered<(Vec<Expr>, [Expr; 3])> {
    let mut lead = cx.shape(x);
    let image = lead.split_off(lead.len().saturating_sub(3));
    let image = <[Expr; 3]>::try_from(image)
        .map_err(|_| LowerError::unsupported("an image needs at least three dimensions"))?;
    Ok((lead, image))
}

/// Each block of `factor^2` channels as a block of pixels: `DepthToSpace`. Tensors of other ranks
/// than 4, and integers of 64 bits (a runtime may compute `DepthToSpace` in floats), are reshaped
/// and permuted instead.
fn pixel_shuffle(cx: &Cx, x: Value, factor: i64) -> Lowered {
    let (lead, [channels, height, width]) = image(cx, x)?;
    if lead.len() == 1 && !matches!(cx.dtype(x), DType::I64 | DType::U64) {
        return Ok(cx.depth_to_space(x, factor, attrs::DepthToSpace { mode: "CRD" }));
    }
    let r = Expr::int(factor);
    let channels = channels.floor_div(&(&r * &r));
    let apart = [channels, r.clone(), r, height, width];
    let split = cx.reshape(x, &[&lead[..], &apart].concat());
    let n = lead.len();
    let perm: Vec<usize> = (0..n).chain([n, n + 3, n + 1, n + 4, n + 2]).collect();
    Ok(cx.reshape(cx.transpose(split, &perm), &cx.out_shape()?))
}

/// Each block of pixels as channels, the reverse of [`pixel_shuffle`]. (`SpaceToDepth` has another
/// order of channels.)
fn pixel_unshuffle(cx: &Cx, x: Value, factor: i64) -> Lowered {
    let (lead, [channels, height, width]) = image(cx, x)?;
    let r = Expr::int(factor);
    let apart = [channels, height.floor_div(&r), r.clone(), width.floor_div(&r), r];
    let split = cx.reshape(x, &[&lead[..], &apart].concat());
    let n = lead.len();
    let perm: Vec<usize> = (0..n).chain([n, n + 2, n + 4, n + 1, n + 3]).collect();
    Ok(cx.reshape(cx.transpose(split, &perm), &cx.out_shape()?))
}

/// The first channel of each group, then the second of each, and so on.
fn channel_shuffle(cx: &Cx, x: Value, groups: Expr) -> Lowered {
    let shape = cx.shape(x);
    let [batch, channels, rest @ ..] = shape.as_slice() else {
        return Err(LowerError::unsupported("the tensor has no dimension of channels"));
    };
    let per_group = channels.floor_div(&groups);
    let split = cx.reshape(x, &[&[batch.clone(), groups, per_group], rest].concat());
    let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..cx.rank(split)).collect();
    Ok(cx.reshape(cx.transpose(split, &perm), &shape))
}

/// The elements of each window as a column.
fn meta_im2col(cx: &Cx, args: ColumnsArgs) -> Lowered {
    let mut size = cx.shape(args.input);
    let n = meta::spatial(cx, args.input, 2)?;
    let spatial = size.split_off(size.len() - n);
    let [kernel, dilation, padding, stride] = args.windows();
    let mut count = Expr::ONE;
    for (i, d) in spatial.iter().enumerate() {
        let window = [kernel[i], stride[i], padding[i], dilation[i]];
        count = count * meta::windows(d, window, false)?;
    }
    let channels = size.pop().unwrap_or(Expr::ONE);
    size.extend([channels * kernel.iter().product::<i64>(), count]);
    Ok(sized(cx, args.input, &size))
}

fn meta_pixel_shuffle(cx: &Cx, x: Value, factor: i64) -> Lowered {
    let (lead, [channels, height, width]) = image(cx, x)?;
    let channels = cx.constraints().simplify(&channels.floor_div(&Expr::int(factor * factor)));
    Ok(sized(cx, x, &[&lead[..], &[channels, height * factor, width * factor]].concat()))
}

fn meta_pixel_unshuffle(cx: &Cx, x: Value, factor: i64) -> Lowered {
    let (lead, [channels, height, width]) = image(cx, x)?;
    let part = |d: Expr| cx.constraints().simplify(&d.floor_div(&Expr::int(factor)));
    let image = [channels * (factor * factor), part(height), part(width)];
    Ok(sized(cx, x, &[&lead[..], &image].concat()))
}

checks! {
    // Pixels of images without a batch.
    "aten.pixel_shuffle(x: f32[8, s0, 5], 2) -> f32[2, 2*s0, 10]" => "
    val_0 = Reshape (x, [2, 2, 2, -1, 5])
    val_1 = Transpose <perm: ints = [0, 3, 1, 4, 2]> (val_0)
    pixel_shuffle = Reshape (val_1, [2, -1, 10])
    ";

    // Places that are no numbers.
    "aten.grid_sampler(x: f32[1, 2, 5, 4], g: f32[1, 3, 3, 2], 0, 0, False) -> f32[1, 2, 3, 3]" => "
    val_0 = Clip (g, -10000.0, 10000.0)
    val_1 = Expand (0.0, [2, 1])
    val_2 = MatMul (g, val_1)
    val_3 = Transpose <perm: ints = [0, 3, 1, 2]> (val_2)
    val_4 = GridSample (x, val_0)
    grid_sampler = Add (val_4, val_3)
    ";
    "aten.grid_sampler(x: f32[1, 2, 5, 4], g: f32[1, 3, 3, 2], 1, 0, False) -> f32[1, 2, 3, 3]" => r#"
    val_0 = Abs (g)
    val_1 = Less (val_0, 10000.0)
    val_2 = Where (val_1, g, 10000.0)
    grid_sampler = GridSample <mode: string = "nearest"> (x, val_2)
    "#;
    "aten.grid_sampler(x: f32[1, 2, 5, 4], g: f32[1, 3, 3, 2], 0, 0, False) -> f32[1, 2, 3, 3]", assume_finite => "
    grid_sampler = GridSample (x, g)
    ";

    // One place between aligned corners is the centre.
    "aten.affine_grid_generator(t: f32[2, 2, 3], [2, 3, 4, 1], True) -> f32[2, 4, 1, 2]" => "
    val_0 = Gather <axis: int = 2> (t, 2)
    val_1 = Unsqueeze (val_0, [1, 2])
    val_2 = Mul ([0, 1, 2, 3], 2)
    val_3 = Sub (val_2, 3)
    val_4 = Cast <to: int = 1> (val_3)
    val_5 = Cast <to: int = 1> (3)
    val_6 = Div (val_4, val_5)
    val_7 = Unsqueeze (val_6, [0, 2, 3])
    val_8 = Gather <axis: int = 2> (t, 1)
    val_9 = Unsqueeze (val_8, [1, 2])
    val_10 = Mul (val_7, val_9)
    val_11 = Add (val_1, val_10)
    val_12 = Mul ([0], 2)
    val_13 = Sub (val_12, 0)
    val_14 = Cast <to: int = 1> (val_13)
    val_15 = Cast <to: int = 1> (1)
    val_16 = Div (val_14, val_15)
    val_17 = Unsqueeze (val_16, [0, 1, 3])
    val_18 = Gather <axis: int = 2> (t, 0)
    val_19 = Unsqueeze (val_18, [1, 2])
    val_20 = Mul (val_17, val_19)
    affine_grid_generator = Add (val_11, val_20)
    ";
    "aten.affine_grid_generator(t: f32[2, 2, 3], [2, 3, 4, 1], False) -> f32[2, 4, 1, 2]" => "
    affine_grid_generator = AffineGrid (t, [2, 3, 4, 1])
    ";

    // Windows as columns.
    "aten.im2col(x: f32[1, 2, 4, 5], [2, 2], [1, 1], [1, 0], [2, 1]) -> f32[1, 8, 12]" => "
    val_0 = Pad (x, [0, 0, 1, 0, 0, 0, 1, 0])
    val_1 = Gather <axis: int = 2> (val_0, int64[2,3] {0, 2, 4, 1, 3, 5})
    val_2 = Gather <axis: int = 4> (val_1, int64[2,4] {0, 1, 2, 3, 1, 2, 3, 4})
    val_3 = Transpose <perm: ints = [0, 1, 2, 4, 3, 5]> (val_2)
    im2col = Reshape (val_3, [1, 8, 12])
    ";
}
