//! Axes counted from the end, which older forms do not have.

use crate::legalise::{Outcome, Reason, Rewritten, front, rank_of, set};
use pt2onnx_ir::{Model, NodeId, attrs};

/// The attribute `axis` counted from the front.
pub(crate) fn axis(model: &mut Model, id: NodeId) -> Outcome {
    let Some(given) = model[id].read::<i64>("axis")?.filter(|a| *a < 0) else {
        return Ok(Rewritten::InPlace);
    };
    let rank = rank_of(model, id, 0)?;
    set(model, id, "axis", given + rank as i64);
    Ok(Rewritten::InPlace)
}

/// The attribute `axes` counted from the front, in order.
pub(crate) fn axes(model: &mut Model, id: NodeId) -> Outcome {
    counted(model, id, |_| 0)
}

/// The same, of so many more dimensions than the input has.
pub(crate) fn counted(model: &mut Model, id: NodeId, more: fn(&[i64]) -> usize) -> Outcome {
    let plain = |a: &[i64]| a.iter().all(|&a| a >= 0) && a.is_sorted();
    if let Some(given) = model[id].read::<&[i64]>("axes")?.filter(|a| !plain(a)) {
        let rank = rank_of(model, id, 0)? + more(given);
        let front = |&axis: &i64| Ok::<_, Reason>(front(axis, rank)? as i64);
        let mut counted: Vec<i64> = given.iter().map(front).collect::<Result<_, _>>()?;
        counted.sort_unstable();
        set(model, id, "axes", counted);
    }
    Ok(Rewritten::InPlace)
}

/// Makes the axis explicit and counts it from the front. The older form has another default.
pub(crate) fn explicit_axis(model: &mut Model, id: NodeId) -> Result<usize, Reason> {
    let axis = front(attrs::Softmax::read(&model[id])?.axis, rank_of(model, id, 0)?)?;
    set(model, id, "axis", axis as i64);
    Ok(axis)
}

/// Axes of `Scan`: of its inputs, and of what it stacks of its body's results.
pub(crate) fn scan_axes(model: &mut Model, id: NodeId) -> Outcome {
    let node = &model[id];
    let scanned = usize::try_from(attrs::Scan::num_scan_inputs(node)?).unwrap_or_default();
    let states = node.inputs().len().saturating_sub(scanned);
    let inputs: Vec<_> = node.inputs().iter().skip(states).map(|v| model.rank((*v)?)).collect();
    let body = node.regions().next().ok_or("its body is missing")?;
    let results = model[body].output_values().skip(states);
    let results: Vec<_> = results.map(|v| Some(model.rank(v)? + 1)).collect();
    for (name, ranks) in [("scan_input_axes", inputs), ("scan_output_axes", results)] {
        let Some(given) = model[id].read::<&[i64]>(name)?.filter(|a| a.iter().any(|&a| a < 0))
        else {
            continue;
        };
        let front = |(&axis, rank): (&i64, &Option<usize>)| match axis {
            0.. => Some(axis),
            _ => Some(axis + rank.as_ref().copied()? as i64),
        };
        let front: Option<Vec<i64>> = given.iter().zip(&ranks).map(front).collect();
        let front = front.ok_or("the rank of what it scans is not known")?;
        set(model, id, name, front);
    }
    Ok(Rewritten::InPlace)
}
