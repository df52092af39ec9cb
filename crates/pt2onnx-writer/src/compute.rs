//! Elements that are computed while they are written: several blocks at the same time, as many as
//! fit into little memory.

use crate::{
    scratch::{Scratch, of_length},
    sink::Sink,
};
use pt2onnx_tensor::Compute;
use rayon::prelude::*;
use std::{io, mem};

/// Bytes that are computed by one thread at a time, or one unit if that is larger.
const SHARE: usize = 256 << 10;

/// Bytes that are computed at a time, while as many are written: one share if that is larger.
const BLOCK: usize = 4 << 20;

/// Writes the `length` bytes that are computed.
pub(crate) fn computed(
    compute: &dyn Compute,
    length: usize,
    out: &mut impl Sink,
    scratch: &mut Scratch,
) -> io::Result<()> {
    compute.prepare()?;
    let unit = compute.unit().max(1);
    let share = ((SHARE / unit).max(1) * unit).min(length.max(1));
    let together = (2 * rayon::current_num_threads()).min(BLOCK / share).max(1);
    let Scratch { block, .. } = scratch;
    for start in (0..length).step_by(together * share) {
        pt2onnx_cancel::check();
        let bytes = (together * share).min(length - start);
        let shares = of_length(block, bytes).par_chunks_mut(share).enumerate();
        shares.try_for_each(|(i, share_of)| compute.fill(start + i * share, share_of))?;
        *block = out.block(mem::take(block), bytes)?;
    }
    Ok(())
}
