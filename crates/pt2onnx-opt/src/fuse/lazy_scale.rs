//! Weights whose channels are multiplied by factors, computed while they are written.

use pt2onnx_ir::{Node, attrs};
use pt2onnx_tensor::{Compute, DType, Tensor};
use std::{io, sync::Arc};

/// Factors up to this size overflow no weight that is used: larger ones are tried at once.
const USUAL: f64 = 1e9;

/// Weights of fewer bytes are computed at once.
const SMALL: usize = 64 << 10;

/// A weight with factors of its channels; `None` if these do not match or a product is infinite.
pub(super) fn scaled(
    weight: &Tensor,
    linear: &Node,
    op: &str,
    dtype: DType,
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
    if !fits || weight.dtype() != dtype || !factors.iter().all(|f| f.is_finite()) {
        return None;
    }
    let (weight, factors) = (weight.clone(), factors.to_vec());
    let usual = factors.iter().all(|factor| factor.abs() <= USUAL);
    let compute = Scaled { weight, factors, own, inner, rows_of_group };
    let tensor = Tensor::computed(dtype, shape, Arc::new(compute)).ok()?;
    if usual && tensor.nbytes() >= SMALL { Some(tensor) } else { tensor.evaluated().ok() }
}

#[derive(Debug)]
struct Scaled {
    weight: Tensor,
    factors: Vec<f64>,
    /// Channels in the weight.
    own: usize,
    /// Elements that follow each other and are of one channel.
    inner: usize,
    rows_of_group: usize,
}

impl Scaled {
    fn width(&self) -> usize {
        self.weight.dtype().bits() / 8
    }

    /// Multiplies elements in float64. Returns whether all finite ones stayed so.
    fn multiply(&self, run: &mut [u8], factors: impl Iterator<Item = f64>) -> bool {
        match self.weight.dtype() {
            DType::F64 => each(run, factors, |bytes, factor| {
                let before = f64::from_le_bytes(*bytes);
                let product = before * factor;
                *bytes = product.to_le_bytes();
                product.is_finite() || !before.is_finite()
            }),
            _ => each(run, factors, |bytes, factor| {
                let before = f32::from_le_bytes(*bytes);
                let product = (f64::from(before) * factor) as f32;
                *bytes = product.to_le_bytes();
                product.is_finite() || !before.is_finite()
            }),
        }
    }
}

/// Whether `multiply` is true for all elements of so many bytes; it is called for each.
fn each<const BYTES: usize>(
    run: &mut [u8],
    factors: impl Iterator<Item = f64>,
    multiply: impl Fn(&mut [u8; BYTES], f64) -> bool,
) -> bool {
    let elements = run.as_chunks_mut().0.iter_mut().zip(factors);
    elements.fold(true, |all, (bytes, factor)| multiply(bytes, factor) & all)
}

impl Compute for Scaled {
    fn operands(&self) -> Vec<Tensor> {
        vec![self.weight.clone()]
    }

    fn unit(&self) -> usize {
        self.weight.compute().map_or(1, |compute| compute.unit()).max(self.width())
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        self.weight.read(start, out)?;
        let (mut at, mut rest) = (start / self.width(), out);
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
            let bytes = (length * self.width()).min(rest.len());
            let (run, after) = std::mem::take(&mut rest).split_at_mut(bytes);
            finite &= match factors {
                [factor] => self.multiply(run, std::iter::repeat(*factor)),
                [] => false,
                all => self.multiply(run, all.iter().copied()),
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
