//! Rows that are gathered element by element are gathered whole.

use super::{Because, Fusion, NoFusion, Pass, Patterns, Run};
use crate::{Target, analysis::known};
use pt2onnx_ir::attrs;
use pt2onnx_symbolic::axis;
use pt2onnx_tensor::DType;

pub(crate) static GATHER_ROWS: Pass = Pass {
    name: "gather-rows",
    since: 12,
    description: "Replaces GatherElements, whose indices are those of whole rows, by GatherND, for \
                  the targets `ort` and `ort-genai` only.",
    precondition: "The axis is the last but one, and the sizes before it are those of the indices.",
    targets: Target::CONTRIB,
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

fn fusions() -> Patterns {
    Ok(vec![Fusion::new("g:GatherElements(x, Expand(rows, sizes))", |cx, found| {
        let (node, x, rows) = (found.get_node(cx, "g")?, found.get("x")?, found.get("rows")?);
        let given = attrs::GatherElements::read(&node).map_err(|_| NoFusion::NoMatch)?;
        let ints = cx.model().dtype(rows) == Some(DType::I64);
        ints.because("the indices are not int64")?;
        let shapes = cx.known_shape(x).zip(cx.known_shape(rows));
        let (sizes, indices) = shapes.because("the sizes are not known")?;
        let result = node.outputs().first().and_then(|&y| cx.known_shape(y));
        let batch = axis(given.axis, sizes.len()).filter(|&at| at + 2 == sizes.len());
        let batch = batch.because("the axis is not the last but one")?;
        let alike = indices.len() == sizes.len()
            && indices[..batch] == sizes[..batch]
            && sizes[..batch].iter().all(known)
            && indices[batch + 1].as_int() == Some(1)
            && result
                .is_some_and(|r| r[batch] == indices[batch] && r[batch + 1] == sizes[batch + 1]);
        alike.because("the indices are not those of whole rows")?;
        Ok(cx.gather_nd(x, rows, attrs::GatherND { batch_dims: batch as i64 }))
    })?])
}
