//! The tensors of a quantised weight: codes, scales, zero points.

use crate::blocks::{Quantised, is_half_byte, pack, scale_bytes};
use pt2onnx_tensor::{Compute, DType, Tensor, TensorError};
use std::{io, sync::Arc};

/// What a tensor holds.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Codes, packed without gaps.
    Codes,
    /// Codes in whole blocks.
    Padded,
    Scales,
    /// Zero points, packed without gaps.
    Zeros,
    /// Zero points in rows of whole bytes.
    ZeroRows,
}

#[derive(Debug)]
struct Piece {
    weight: Arc<Quantised>,
    part: Part,
}

impl Compute for Piece {
    fn operands(&self) -> Vec<Tensor> {
        vec![self.weight.source.clone()]
    }

    fn prepare(&self) -> io::Result<()> {
        self.weight.prepare()
    }

    fn unit(&self) -> usize {
        let weight = &self.weight;
        match self.part {
            Part::Codes if is_half_byte(&weight.scheme) => match weight.unit() {
                odd if odd % 2 == 1 => odd,
                even => even / 2,
            },
            Part::Codes => weight.unit(),
            Part::Padded => weight.block.unwrap_or(2) / 2,
            Part::Scales => weight.inner.min(weight.scales()) * weight.scheme.scale.bits() / 8,
            Part::Zeros => weight.inner.min(weight.scales()),
            Part::ZeroRows => weight.blocks().div_ceil(2),
        }
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        let weight = &self.weight;
        let halves = is_half_byte(&weight.scheme);
        match self.part {
            Part::Codes if halves => {
                let from = start * 2;
                let count = (out.len() * 2).min(weight.source.numel() - from);
                let mut codes = vec![0; count];
                weight.codes(from, &mut codes)?;
                pack(&codes, out);
            }
            Part::Codes => weight.codes(start, out)?,
            Part::Padded => weight.padded(start / self.unit(), out)?,
            Part::Scales => {
                let width = weight.scheme.scale.bits() / 8;
                let params = weight.params(start / width, out.len() / width)?;
                for (param, to) in params.iter().zip(out.chunks_exact_mut(width)) {
                    scale_bytes(param.scale, weight.scheme.scale, to);
                }
            }
            Part::Zeros => {
                let each = if halves { 2 } else { 1 };
                let count = (out.len() * each).min(weight.scales() - start * each);
                let zeros = zeros(weight, start * each, count)?;
                match halves {
                    true => pack(&zeros, out),
                    false => out.copy_from_slice(&zeros),
                }
            }
            Part::ZeroRows => {
                let (row, blocks) = (self.unit(), weight.blocks());
                for (i, out) in out.chunks_exact_mut(row).enumerate() {
                    pack(&zeros(weight, (start / row + i) * blocks, blocks)?, out);
                }
            }
        }
        Ok(())
    }
}

fn zeros(weight: &Quantised, start: usize, count: usize) -> io::Result<Vec<u8>> {
    let params = weight.params(start, count)?;
    Ok(params.iter().map(|p| p.zero as i32 as u8).collect())
}

/// The tensors of a weight.
#[derive(Debug)]
pub(crate) struct Tensors {
    pub codes: Tensor,
    pub scales: Tensor,
    pub zeros: Option<Tensor>,
}

impl Tensors {
    /// Those that `DequantizeLinear` takes. `scales` are the sizes of the tensor of scales.
    pub fn plain(weight: Arc<Quantised>, scales: Vec<usize>) -> Result<Self, TensorError> {
        let shape = weight.source.shape().to_vec();
        let make = |part, dtype, shape| tensor(&weight, part, dtype, shape);
        let dtype = weight.scheme.dtype();
        let codes = make(Part::Codes, dtype, shape)?;
        Ok(Self {
            codes: match &weight.order {
                Some(order) => codes.permuted(order).ok_or(TensorError::NoLayout(dtype))?,
                None => codes,
            },
            scales: make(Part::Scales, weight.scheme.scale, scales.clone())?,
            zeros: match weight.scheme.symmetric && !weight.scheme.unsigned {
                true => None,
                false => Some(make(Part::Zeros, dtype, scales)?),
            },
        })
    }

    /// Those that `MatMulNBits` takes, of a weight with a row for each output; with `matrix`, those of `GatherBlockQuantized`.
    pub fn bits(weight: Arc<Quantised>, matrix: bool) -> Result<Self, TensorError> {
        let (rows, blocks) = (weight.outer, weight.blocks());
        let bytes = weight.block.unwrap_or(2) / 2;
        let sizes = if matrix { vec![rows, blocks * bytes] } else { vec![rows, blocks, bytes] };
        let make = |part, dtype, shape| tensor(&weight, part, dtype, shape);
        Ok(Self {
            codes: make(Part::Padded, DType::U8, sizes)?,
            scales: make(Part::Scales, weight.scheme.scale, vec![rows, blocks])?,
            zeros: match weight.scheme.symmetric {
                true => None,
                false => Some(make(Part::ZeroRows, DType::U8, vec![rows, blocks.div_ceil(2)])?),
            },
        })
    }

    /// Bytes of all.
    pub fn nbytes(&self) -> usize {
        let zeros = self.zeros.as_ref().map_or(0, Tensor::nbytes);
        self.codes.nbytes() + self.scales.nbytes() + zeros
    }
}

fn tensor(
    weight: &Arc<Quantised>,
    part: Part,
    dtype: DType,
    shape: Vec<usize>,
) -> Result<Tensor, TensorError> {
    Tensor::computed(dtype, shape, Arc::new(Piece { weight: weight.clone(), part }))
}
