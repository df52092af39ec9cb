//! Evaluates `ConvTranspose` of small operands.

use super::{Call, Eval, Row, dim, doubles, floats, matmul::MAX_WORK};
use ndarray::{ArrayD, IxDyn};
use pt2onnx_ir::attrs;
use pt2onnx_tensor::Tensor;

pub(super) static OPS: &[Row] = &[("ConvTranspose", Eval::One(conv_transpose))];

/// `ConvTranspose` of floats with explicit pads. Sums are computed in float64.
fn conv_transpose(call: &Call) -> Option<Tensor> {
    let (x, w) = (call.input(0)?, call.input(1)?);
    let options = attrs::ConvTranspose::read(call.node).ok()?;
    let spatial = x.rank().checked_sub(2).filter(|&n| n > 0 && w.rank() == n + 2)?;
    let whole = |given: Option<Vec<i64>>, default: i64, n: usize| -> Option<Vec<usize>> {
        let given = given.unwrap_or_else(|| vec![default; n]);
        let all = given.iter().map(|&v| usize::try_from(v).ok()).collect::<Option<Vec<_>>>()?;
        (all.len() == n).then_some(all)
    };
    let strides = whole(options.strides, 1, spatial)?;
    let dilations = whole(options.dilations, 1, spatial)?;
    let pads = whole(options.pads, 0, 2 * spatial)?;
    let extra = whole(options.output_padding, 0, spatial)?;
    let groups = usize::try_from(options.group).ok().filter(|&g| g > 0)?;
    let (channels, filters) = (x.shape()[1], w.shape()[1]);
    if options.auto_pad != "NOTSET"
        || options.output_shape.is_some()
        || w.shape()[0] != channels
        || channels % groups != 0
        || x.dtype() != w.dtype()
    {
        return None;
    }
    let mut sizes = vec![x.shape()[0], filters.checked_mul(groups)?];
    for i in 0..spatial {
        let (from, kernel) = (x.shape()[i + 2].checked_sub(1)?, w.shape()[i + 2].checked_sub(1)?);
        let reach = strides[i].checked_mul(from)?.checked_add(dilations[i].checked_mul(kernel)?)?;
        let cut = pads[i].checked_add(pads[i + spatial])?;
        sizes.push(reach.checked_add(1)?.checked_add(extra[i])?.checked_sub(cut)?);
    }
    call.room(x.dtype(), &sizes)?;
    let taps = w.shape()[1..].iter().try_fold(1usize, |n, &s| n.checked_mul(s))?;
    if x.numel().checked_mul(taps)? > MAX_WORK {
        return None;
    }
    let (input, weights) = (doubles(x)?, doubles(w)?);
    let bias = call.input(2).map_or(Some(None), |b| doubles(b).map(Some))?;
    let mut result = ArrayD::<f64>::zeros(dim(&sizes));
    if let Some(bias) = bias {
        for (at, v) in result.indexed_iter_mut() {
            *v = *bias.get(IxDyn(&[at[1]]))?;
        }
    }
    for (at, &v) in input.indexed_iter() {
        let group = at[1] / (channels / groups);
        for tap in ndarray::indices(dim(&w.shape()[1..])) {
            let mut place = vec![at[0], group * filters + tap[0]];
            place.extend((0..spatial).map_while(|i| {
                let reached = strides[i] * at[i + 2] + dilations[i] * tap[i + 1];
                reached.checked_sub(pads[i])
            }));
            let mut weight = vec![at[1]];
            weight.extend((0..=spatial).map(|i| tap[i]));
            // Elements in the pads are cut off.
            if place.len() == spatial + 2
                && let Some(sum) = result.get_mut(IxDyn(&place))
            {
                *sum += v * weights.get(IxDyn(&weight))?;
            }
        }
    }
    floats(x.dtype(), &result)
}
