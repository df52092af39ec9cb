//! torchvision: regions of interest, suppression of overlapping boxes, deformable convolutions.

use crate::meta::{fresh, sized, typed};
use crate::{AtenOp, Cx, LowerError, Lowered, Number, arguments, checks, cx::Outputs, op};
use pt2onnx_ir::{Type, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static OPS: &[AtenOp] = &[
    op!(torchvision::deform_conv2d, deform_conv),
    op!(torchvision::nms, nms, meta = meta_nms),
    op!(torchvision::ps_roi_align, ps_roi_align, meta = meta_regions_of_channels, aligned = true),
    op!(torchvision::ps_roi_pool, ps_roi_pool, meta = meta_regions_of_channels),
    op!(torchvision::roi_align, roi_align),
    op!(torchvision::roi_pool, roi_pool, meta = meta_regions),
];

arguments! {
    /// Arguments of [`deform_conv`].
    struct DeformConvArgs {
        input: Value,
        weight: Value,
        offset: Value,
        mask: Value,
        bias: Value,
        stride_h: i64,
        stride_w: i64,
        pad_h: i64,
        pad_w: i64,
        dilation_h: i64,
        dilation_w: i64,
        groups: i64,
        offset_groups: i64,
        use_mask: bool,
    }

    /// Arguments of [`roi_align`]: images, and regions `(image, x1, y1, x2, y2)`.
    struct RoiAlignArgs {
        input: Value,
        rois: Value,
        spatial_scale: Number,
        pooled_height: i64,
        pooled_width: i64,
        sampling_ratio: i64,
        aligned: bool,
    }
}

/// A convolution with an offset for each element: `DeformConv`.
fn deform_conv(cx: &Cx, args: DeformConvArgs) -> Lowered {
    let options = attrs::DeformConv {
        strides: Some(vec![args.stride_h, args.stride_w]),
        pads: Some(vec![args.pad_h, args.pad_w, args.pad_h, args.pad_w]),
        dilations: Some(vec![args.dilation_h, args.dilation_w]),
        group: args.groups,
        offset_group: args.offset_groups,
        ..Default::default()
    };
    let mask = args.use_mask.then_some(args.mask);
    Ok(cx.deform_conv(args.input, args.weight, args.offset, args.bias, mask, options))
}

/// The indices of the boxes that are kept, by descending score: `NonMaxSuppression` of one class.
fn nms(cx: &Cx, boxes: Value, scores: Value, threshold: f64) -> Lowered {
    let all = cx.unsqueeze(cx.cast(boxes, DType::F32), &[0]);
    let scores = cx.unsqueeze(cx.cast(scores, DType::F32), &[0, 1]);
    let count = cx.sizes(&[cx.dim(boxes, 0)]);
    let threshold = cx.vector(&[threshold as f32]);
    let options = attrs::NonMaxSuppression::default();
    let kept = cx.non_max_suppression(all, scores, count, threshold, None, options);
    let numbers = cx.take(kept, 1, &Expr::int(2));
    let shape = cx.out_shape()?;
    cx.set_type(numbers, Type::tensor(DType::I64, shape));
    Ok(numbers)
}

/// The corners `(x1, y1, x2, y2)` of each region, and the index of its image.
fn regions(cx: &Cx, rois: Value) -> (Value, Value) {
    let corners = cx.slice(rois, 1, &Expr::int(1), &Expr::int(5), 1);
    let image = cx.cast(cx.take(rois, 1, &Expr::int(0)), DType::I64);
    (corners, image)
}

/// The mean of samples in each bin of each region: `RoiAlign`.
fn roi_align(cx: &Cx, args: RoiAlignArgs) -> Lowered {
    let (corners, image) = regions(cx, args.rois);
    // A scale that is computed is multiplied with the coordinates.
    let (spatial_scale, corners) = match args.spatial_scale.known() {
        Some(scale) => (scale.to_f64() as f32, corners),
        None => (1.0, cx.mul(corners, args.spatial_scale)),
    };
    let half_pixel = if args.aligned { "half_pixel" } else { "output_half_pixel" };
    let options = attrs::RoiAlign {
        output_height: args.pooled_height,
        output_width: args.pooled_width,
        sampling_ratio: args.sampling_ratio.max(0),
        spatial_scale,
        coordinate_transformation_mode: half_pixel,
        mode: "avg",
    };
    Ok(cx.roi_align(args.input, corners, image, options))
}

/// The largest element of each bin of each region: `MaxRoiPool`, which does not give their indices.
fn roi_pool(
    cx: &Cx,
    x: Value,
    rois: Value,
    scale: Number,
    height: i64,
    width: i64,
) -> Lowered<Outputs> {
    let (rois, spatial_scale) = match scale.known() {
        Some(scale) => (rois, scale.to_f64() as f32),
        None => {
            let image = cx.slice(rois, 1, &Expr::int(0), &Expr::int(1), 1);
            (cx.concat(&[image, cx.mul(regions(cx, rois).0, scale)], 1), 1.0)
        }
    };
    let options = attrs::MaxRoiPool { spatial_scale };
    Ok(cx.max_roi_pool(x, rois, &[height, width], options).into())
}

/// [`roi_align`] where each bin has separate channels, which are gathered.
fn ps_roi_align(cx: &Cx, args: RoiAlignArgs) -> Lowered<Outputs> {
    let (x, height, width) = (args.input, args.pooled_height, args.pooled_width);
    let pooled = roi_align(cx, args)?;
    let bins = Expr::int(height * width);
    let regions = cx.dim(pooled, 0);
    let channels = cx.dim(x, 1).floor_div(&bins);
    let apart = [regions.clone(), channels.clone(), bins.clone(), bins.clone()];
    let table = cx.reshape(pooled, &apart);
    // Bin i takes its element from channel i.
    let own = cx.unsqueeze(cx.iota(&bins), &[0, 1, 2]);
    let own = cx.expand(own, &[regions.clone(), channels.clone(), Expr::int(1), bins]);
    let taken = cx.gather_elements(table, own, attrs::GatherElements { axis: 2 });
    let sizes = [regions, channels, Expr::int(height), Expr::int(width)];
    Ok(cx.reshape(taken, &sizes).into())
}

/// The mean of the pixels of each bin of each region, where each bin has separate channels. Sums
/// are products with 0-1 matrices, which are 1 where a row or column is in the bin.
fn ps_roi_pool(
    cx: &Cx,
    x: Value,
    rois: Value,
    scale: Number,
    height: i64,
    width: i64,
) -> Lowered<Outputs> {
    let shape = cx.shape(x);
    let [_, channels, rows, columns] = shape.as_slice() else {
        return Err(LowerError::unsupported("the images of regions must have four dimensions"));
    };
    let (corners, image) = regions(cx, rois);
    // Half away from zero, as C's `round`.
    let near = cx.mul(corners, scale);
    let near = cx.mul(cx.sign(near), cx.floor(cx.add(cx.abs(near), 0.5)));
    let corner = |i: i64| cx.take(near, 1, &Expr::int(i));
    let dtype = cx.dtype(x);
    // (regions, bins, pixels): 1 where the pixel is in the bin.
    let bins = |start: Value, end: Value, n: i64, size: &Expr| {
        let length = cx.maximum(cx.sub(end, start), 0.1);
        let each = cx.unsqueeze(cx.div(length, n as f64), &[1]);
        let i = cx.cast(cx.iota(&Expr::int(n)), dtype);
        let start = cx.unsqueeze(start, &[1]);
        let bound = |v: Value| {
            let last = cx.cast(cx.size(size), dtype);
            cx.unsqueeze(cx.minimum(cx.maximum(cx.add(v, start), 0.0), last), &[2])
        };
        let from = bound(cx.floor(cx.mul(i, each)));
        let to = bound(cx.ceil(cx.mul(cx.add(i, 1.0), each)));
        let pixel = cx.cast(cx.iota(size), dtype);
        let inside = cx.and(cx.greater_or_equal(pixel, from), cx.less(pixel, to));
        cx.cast(inside, dtype)
    };
    let (down, across) =
        (bins(corner(1), corner(3), height, rows), bins(corner(0), corner(2), width, columns));
    let each = channels.floor_div(&Expr::int(height * width));
    let regions = cx.dim(rois, 0);
    let apart = [
        regions.clone(),
        each.clone(),
        Expr::int(height),
        Expr::int(width),
        rows.clone(),
        columns.clone(),
    ];
    let images = cx.reshape(cx.gather(x, image, 0), &apart);
    let sums = cx.einsum(&[images, down, across], "rcijhw,rih,rjw->rcij");
    let area = cx.einsum(&[down, across], "rih,rjw->rij");
    let area = cx.unsqueeze(area, &[1]);
    let mean = cx.div(sums, cx.maximum(area, 1.0));
    cx.set_type(mean, Type::tensor(dtype, [regions, each, Expr::int(height), Expr::int(width)]));
    Ok(mean.into())
}

arguments! {
    struct Regions { input: Value, rois: Value, pooled_height: Expr, pooled_width: Expr }
}

fn meta_nms(cx: &Cx) -> Lowered {
    Ok(typed(cx, DType::I64, &[fresh(cx)]))
}

/// The largest element of each part of a region, and where it was.
fn meta_regions(cx: &Cx, args: Regions) -> Lowered<[Value; 2]> {
    let size = [cx.dim(args.rois, 0), cx.dim(args.input, 1), args.pooled_height, args.pooled_width];
    Ok([sized(cx, args.input, &size), typed(cx, DType::I32, &size)])
}

/// Each part of a region has separate channels.
fn meta_regions_of_channels(cx: &Cx, args: Regions) -> Lowered<[Value; 2]> {
    let parts = &args.pooled_height * &args.pooled_width;
    let channels = cx.constraints().simplify(&cx.dim(args.input, 1).floor_div(&parts));
    let size = [cx.dim(args.rois, 0), channels, args.pooled_height, args.pooled_width];
    Ok([sized(cx, args.input, &size), typed(cx, DType::I32, &size)])
}

checks! {
    // Regions say their image.
    "torchvision.roi_align(x: f32[2, 3, 16, 16], r: f32[s0, 5], 0.5, 7, 7, -1, True) -> f32[s0, 3, 7, 7]" => "
    val_0 = Slice (r, [1], [5], [1])
    val_1 = Gather <axis: int = 1> (r, 0)
    val_2 = Cast <to: int = 7> (val_1)
    roi_align = RoiAlign <output_height: int = 7, output_width: int = 7, spatial_scale: float = 0.5> (x, val_0, val_2)
    ";

    // Boxes by score.
    "torchvision.nms(b: f32[s0, 4], s: f32[s0], 0.5) -> i64[u0]" => "
    val_0 = Unsqueeze (b, [0])
    val_1 = Unsqueeze (s, [0, 1])
    val_2 = Shape <start: int = 0, end: int = 1> (b)
    val_3 = NonMaxSuppression (val_0, val_1, val_2, [0.5])
    nms = Gather <axis: int = 1> (val_3, 2)
    ";
}
