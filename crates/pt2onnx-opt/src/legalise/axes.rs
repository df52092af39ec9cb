//! Axes and indices that count from the end.

use super::{
    forms::{ints, rank_of, set},
    replace::Done,
};
use pt2onnx_ir::{Model, NodeId};

/// The attribute `axis` counted from the front.
pub(super) fn axis(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let Some(given) = model[id].int("axis").filter(|a| *a < 0) else {
        return Ok(Done::Kept);
    };
    let rank = rank_of(model, id, 0)?;
    set(model, id, "axis", (given + rank as i64).into());
    Ok(Done::Kept)
}

/// The attribute `axes` counted from the front, in order.
pub(super) fn axes(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let rank = || rank_of(model, id, 0);
    let counted = counted(model, id, "axes", rank)?;
    if let Some(counted) = counted {
        set(model, id, "axes", counted.into());
    }
    Ok(Done::Kept)
}

/// The attribute `axes` counted from the front of the output, in order.
pub(super) fn axes_of_output(model: &mut Model, id: NodeId) -> Result<Done, String> {
    let rank = || {
        let new = ints(&model[id], "axes").map_or(0, <[i64]>::len);
        Ok(rank_of(model, id, 0)? + new)
    };
    let counted = counted(model, id, "axes", rank)?;
    if let Some(counted) = counted {
        set(model, id, "axes", counted.into());
    }
    Ok(Done::Kept)
}

fn counted(
    model: &Model,
    id: NodeId,
    name: &str,
    rank: impl FnOnce() -> Result<usize, String>,
) -> Result<Option<Vec<i64>>, String> {
    let plain = |a: &[i64]| a.iter().all(|&a| a >= 0) && a.is_sorted();
    let Some(given) = ints(&model[id], name).filter(|a| !plain(a)) else {
        return Ok(None);
    };
    let rank = rank()? as i64;
    let front = |&a: &i64| if a < 0 { a + rank } else { a };
    let mut counted: Vec<i64> = given.iter().map(front).collect();
    counted.sort_unstable();
    Ok(Some(counted))
}

/// An axis of an explicit default, and counted from the front: where the default was another one.
pub(super) fn explicit_axis(model: &mut Model, id: NodeId) -> Result<usize, String> {
    let rank = rank_of(model, id, 0)? as i64;
    let given = model[id].int("axis").unwrap_or(-1);
    let front = if given < 0 { given + rank } else { given };
    set(model, id, "axis", front.into());
    usize::try_from(front).map_err(|_| "its axis is out of range".to_owned())
}

/// Scan's axes. The inputs that are scanned are the last ones.
pub(super) fn scan_axes(model: &mut Model, id: NodeId) -> Result<Done, String> {
    for name in ["scan_input_axes", "scan_output_axes"] {
        let negative = |a: &[i64]| a.iter().any(|&a| a < 0);
        if ints(&model[id], name).is_some_and(negative) {
            return Err(format!("{name} that count from the end are newer"));
        }
    }
    Ok(Done::Kept)
}
