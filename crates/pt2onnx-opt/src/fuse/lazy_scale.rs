//! Weights whose channels are multiplied by factors, computed while they are written.

use pt2onnx_ir::{Node, attrs};
use pt2onnx_tensor::{Compute, Element, Tensor};
use std::{fmt::Debug, io, marker::PhantomData, sync::Arc};

/// Factors up to this size make infinite numbers of no weight that is used: larger ones are tried
/// at once.
const USUAL: f64 = 1e9;

/// Weights of fewer bytes are computed at once.
const SMALL: usize = 64 << 10;

/// Floats that are computed in float64 and rounded once.
pub(super) trait Real: Element + Into<f64> + Debug {
    fn rounded(value: f64) -> Self;
    /// Writes the little-endian bytes.
    fn put(self, to: &mut [u8]);
}
impl Real for f32 {
    fn rounded(value: f64) -> Self {
        value as f32
    }
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_le_bytes());
    }
}
impl Real for f64 {
    fn rounded(value: f64) -> Self {
        value
    }
    fn put(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_le_bytes());
    }
}

/// A weight, each element multiplied by the factor of its channel. `None` if the number of channels
/// does not match, or a product is not finite.
pub(super) fn scaled<T: Real>(
    weight: &Tensor,
    linear: &Node,
    op: &str,
    factors: &[f64],
) -> Option<Tensor> {
    let shape = weight.shape();
    let transposed = op == "ConvTranspose";
    // The dimension of the output channels; for a transposed convolution, those of one group.
    let axis = match op {
        "ConvTranspose" => 1,
        "Gemm" if !attrs::Gemm::read(linear).ok()?.trans_b => 1,
        _ => 0,
    };
    let (own, inner) = (*shape.get(axis)?, shape.get(axis + 1..)?.iter().product::<usize>());
    let groups =
        if transposed { usize::try_from(attrs::Conv::read(linear).ok()?.group).ok()? } else { 1 };
    let rows_of_group = if transposed {
        shape.first()?.checked_div(groups).filter(|&n| n > 0)?
    } else {
        usize::MAX
    };
    let fits = own.checked_mul(groups)? == factors.len() && inner > 0;
    if !fits || weight.dtype() != T::DTYPE || !factors.iter().all(|f| f.is_finite()) {
        return None;
    }
    let compute = Scaled::<T> {
        weight: weight.clone(),
        factors: factors.to_vec(),
        own,
        inner,
        rows_of_group,
        element: PhantomData,
    };
    let tensor = Tensor::computed(T::DTYPE, shape, Arc::new(compute)).ok()?;
    let usual = factors.iter().all(|factor| factor.abs() <= USUAL);
    if usual && tensor.nbytes() >= SMALL { Some(tensor) } else { tensor.evaluated().ok() }
}

/// The elements of such a weight.
#[derive(Debug)]
struct Scaled<T> {
    weight: Tensor,
    factors: Vec<f64>,
    /// Channels in the weight.
    own: usize,
    /// Elements that follow each other and are of one channel.
    inner: usize,
    /// The number of rows of a group; each group has its own channels.
    rows_of_group: usize,
    element: PhantomData<T>,
}

impl<T: Real> Compute for Scaled<T> {
    fn operands(&self) -> Vec<Tensor> {
        vec![self.weight.clone()]
    }

    fn prepare(&self) -> io::Result<()> {
        self.weight.compute().map_or(Ok(()), |compute| compute.prepare())
    }

    fn unit(&self) -> usize {
        self.weight.compute().map_or(1, |compute| compute.unit()).max(size_of::<T>())
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        self.weight.read(start, out)?;
        let (mut at, mut rest) = (start / size_of::<T>(), out);
        let mut finite = true;
        while !rest.is_empty() {
            let channel = at / self.inner % self.own;
            let group = at / (self.inner * self.own) / self.rows_of_group;
            let channel = channel + self.own * group;
            // A run is of one channel, or goes through those of a row.
            let (length, factors) = match self.inner {
                1 => (self.own - at % self.own, self.factors.get(channel..).unwrap_or_default()),
                inner => {
                    (inner - at % inner, self.factors.get(channel..=channel).unwrap_or_default())
                }
            };
            let bytes = (length * size_of::<T>()).min(rest.len());
            let (run, after) = std::mem::take(&mut rest).split_at_mut(bytes);
            finite &= match factors {
                [factor] => multiply::<T>(run, std::iter::repeat(*factor)),
                [] => false,
                all => multiply::<T>(run, all.iter().copied()),
            };
            (rest, at) = (after, at + length);
        }
        if finite {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a weight has no finite numbers after the arithmetic behind its layer was folded into it: set the \
                 option `optimize` to 1, which leaves this out",
            ))
        }
    }
}

/// Multiplies elements. Returns whether all finite ones stayed so.
fn multiply<T: Real>(run: &mut [u8], factors: impl Iterator<Item = f64>) -> bool {
    let mut finite = true;
    for (bytes, factor) in run.chunks_exact_mut(size_of::<T>()).zip(factors) {
        let before: f64 = T::from_le(bytes).into();
        let product = T::rounded(before * factor);
        finite &= product.into().is_finite() || !before.is_finite();
        product.put(bytes);
    }
    finite
}
