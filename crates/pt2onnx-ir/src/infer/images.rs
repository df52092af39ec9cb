//! Shape rules of operators on images: transposed convolution, sampling, regions of interest.

use super::node::Node;
use crate::types::Shape;
use pt2onnx_symbolic::Expr;

/// Size along each dimension: `(size - 1) * stride + (kernel - 1) * dilation + 1 - pads +
/// output_padding`.
pub(super) fn conv_transpose(n: &Node) -> Option<Shape> {
    let (x, w) = (n.shape(0)?, n.shape(1)?);
    let (sizes, kernel) = (x.get(2..)?, w.get(2..)?);
    n.equal(x.get(1)?, w.first()?);
    if n.ints("output_shape").is_some() || n.string("auto_pad").is_some_and(|p| p != "NOTSET") {
        return None;
    }
    let at = |name: &str, i: usize, default: i64| {
        n.ints(name).and_then(|v| v.get(i).copied()).unwrap_or(default)
    };
    let mut result = vec![x.first()?.clone(), w.get(1)? * n.int("group").unwrap_or(1)];
    for (i, (size, k)) in sizes.iter().zip(kernel).enumerate() {
        let pads = Expr::int(at("pads", i, 0)) + at("pads", i + sizes.len(), 0);
        let full = (size - 1) * at("strides", i, 1) + (k - 1) * at("dilations", i, 1) + 1;
        result.push(full + at("output_padding", i, 0) - pads);
    }
    Some(result)
}

/// Batch and channels of the image, spatial sizes of the grid.
pub(super) fn grid_sample(n: &Node) -> Option<Shape> {
    let (x, grid) = (n.shape(0)?, n.shape(1)?);
    let sizes = grid.get(1..grid.len().checked_sub(1)?)?;
    Some([x.get(..2)?, sizes].concat())
}

/// `(regions, channels, output_height, output_width)`.
pub(super) fn roi_align(n: &Node) -> Option<Shape> {
    let (x, rois) = (n.shape(0)?, n.shape(1)?);
    let size = |name| Expr::int(n.int(name).unwrap_or(1));
    Some(vec![
        rois.first()?.clone(),
        x.get(1)?.clone(),
        size("output_height"),
        size("output_width"),
    ])
}

/// As [`roi_align`], with the sizes from `pooled_shape`.
pub(super) fn max_roi_pool(n: &Node) -> Option<Shape> {
    let (x, rois) = (n.shape(0)?, n.shape(1)?);
    let sizes = n.ints("pooled_shape")?;
    let mut result = vec![rois.first()?.clone(), x.get(1)?.clone()];
    result.extend(sizes.iter().map(|&s| Expr::int(s)));
    Some(result)
}

/// `(batch, channels, sizes..)`: the second size of the input divided by the area of the window
/// gives the channels.
pub(super) fn col2im(n: &Node) -> Option<Shape> {
    let (x, image, block) = (n.shape(0)?, n.contents(1)?, n.contents(2)?);
    let channels = x.get(1)?.floor_div(&Expr::product(block));
    let mut result = vec![x.first()?.clone(), channels];
    result.extend(image);
    Some(result)
}

/// `(batch, sizes.., number of sizes)`, where input 1 holds `(batch, channels, sizes..)`.
pub(super) fn affine_grid(n: &Node) -> Option<Shape> {
    let size = n.contents(1)?;
    let mut result = vec![size.first()?.clone()];
    result.extend(size.get(2..)?.iter().cloned());
    result.push(Expr::int(size.len() as i64 - 2));
    Some(result)
}
