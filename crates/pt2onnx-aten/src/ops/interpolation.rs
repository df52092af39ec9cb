//! Resampling of images.

use crate::{AtenOp, Cx, Lowered, registry::aten};
use pt2onnx_ir::{Value, attrs};
use pt2onnx_symbolic::Expr;

pub(super) static OPS: &[AtenOp] = &[aten!(
    "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
    upsample_bilinear2d
)];

/// `Resize` in `linear` mode. PyTorch maps coordinates by the given scale factors, else by the ratio of the sizes.
fn upsample_bilinear2d(
    cx: &Cx,
    x: Value,
    output_size: Option<Vec<Expr>>,
    align_corners: bool,
    scale_factors: Option<Vec<f64>>,
) -> Lowered {
    let options = attrs::Resize {
        mode: "linear",
        coordinate_transformation_mode: if align_corners {
            "align_corners"
        } else {
            "half_pixel"
        },
        ..Default::default()
    };
    let shape = cx.out_shape()?;
    match (output_size, scale_factors) {
        (None, Some(factors)) => {
            let scales: Vec<f32> = [1.0, 1.0]
                .into_iter()
                .chain(factors.iter().map(|&f| f as f32))
                .collect();
            Ok(cx.resize(x, None, cx.vector(&scales), None, options))
        }
        _ => Ok(cx.resize(x, None, None, cx.sizes(&shape), options)),
    }
}
