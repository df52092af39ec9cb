//! Elements that are computed when they are needed, block by block: a weight in a smaller type, of a file that is larger than memory.

use crate::Tensor;
use std::{fmt, io};

/// What computes the elements of a tensor ([`Tensor::computed`]). The same range always gives the same bytes, and several threads
/// may ask for ranges at the same time.
pub trait Compute: fmt::Debug + Send + Sync {
    /// The tensors that it computes from.
    fn operands(&self) -> Vec<Tensor>;

    /// Computes what all ranges need, on all cores, before the first range is asked for. Without this call, the first range does it.
    ///
    /// # Errors
    /// Those of [`fill`](Self::fill).
    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }

    /// Bytes that are computed together. Ranges begin at multiples of it, and end there or at the end of the tensor.
    fn unit(&self) -> usize;

    /// Writes the bytes from byte `start` on, in row-major order.
    ///
    /// # Errors
    /// Values cannot be read, or the element type cannot hold them.
    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()>;
}
