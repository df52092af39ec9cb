//! Elements that are computed while they are written: several blocks at the same time, as many as fit into little memory.

use pt2onnx_tensor::Compute;
use rayon::prelude::*;
use std::io::{self, Write};

/// Bytes of a block, or one unit if that is larger.
const BLOCK: usize = 256 << 10;

/// Bytes of all blocks that are in memory, if more than one fits.
const MEMORY: usize = 8 << 20;

/// Writes the `length` bytes that are computed.
pub(crate) fn computed(
    compute: &dyn Compute,
    length: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    compute.prepare()?;
    let unit = compute.unit().max(1);
    let block = ((BLOCK / unit).max(1) * unit).min(length.max(1));
    let blocks = (2 * rayon::current_num_threads()).min(MEMORY / block).max(1);
    let mut buffer = vec![0; (blocks * block).min(length)];
    let step = buffer.len().max(1);
    for start in (0..length).step_by(step) {
        let part = buffer.get_mut(..step.min(length - start)).unwrap_or_default();
        let all = part.par_chunks_mut(block).enumerate();
        all.try_for_each(|(i, bytes)| compute.fill(start + i * block, bytes))?;
        out.write_all(part)?;
    }
    Ok(())
}
