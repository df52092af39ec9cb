//! The tensors of a quantised weight: codes, scales, zero points.

use crate::blocks::{Quantised, is_half_byte, scale_bytes};
use pt2onnx_tensor::{Compute, DType, Tensor, TensorError, pack_halves};
use std::{io, sync::Arc};

#[derive(Clone, Copy, Debug)]
enum Part {
    /// Codes, one in a byte.
    Codes,
    /// Codes in whole blocks, those of four bits two in a byte.
    Padded,
    Scales,
    /// Zero points, one in a byte.
    Zeros,
    /// Zero points in rows of whole bytes, those of four bits two in a byte.
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
        let scales = in_rows(weight).unwrap_or(weight.inner).min(weight.scales());
        match self.part {
            Part::Codes => weight.unit(),
            Part::Padded => padded_block(weight) * in_rows(weight).unwrap_or(1),
            Part::Scales => scales * weight.scheme.scale.bits() / 8,
            Part::Zeros => scales,
            Part::ZeroRows => zero_row(weight) * weight.rows().unwrap_or(1),
        }
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        let weight = &self.weight;
        match self.part {
            Part::Codes => weight.codes(start, out)?,
            Part::Padded => weight.padded(start / padded_block(weight), out)?,
            Part::Scales => {
                let width = weight.scheme.scale.bits() / 8;
                let params = weight.params(start / width, out.len() / width)?;
                for (param, to) in params.iter().zip(out.chunks_exact_mut(width)) {
                    scale_bytes(param.scale, weight.scheme.scale, to);
                }
            }
            Part::Zeros => out.copy_from_slice(&zeros(weight, start, out.len())?),
            Part::ZeroRows => {
                let blocks = weight.blocks();
                let row = zero_row(weight);
                let zeros = zeros(weight, start / row * blocks, out.len() / row * blocks)?;
                for (zeros, out) in zeros.chunks(blocks).zip(out.chunks_exact_mut(row)) {
                    weight.scheme.pack(zeros, out);
                }
            }
        }
        Ok(())
    }
}

/// Bytes of the codes of a block.
fn padded_block(weight: &Quantised) -> usize {
    weight.block.unwrap_or(weight.axis) * weight.scheme.bits() / 8
}

/// Bytes of a row of zero points.
fn zero_row(weight: &Quantised) -> usize {
    (weight.blocks() * weight.scheme.bits()).div_ceil(8)
}

/// The blocks of the rows that are read together.
fn in_rows(weight: &Quantised) -> Option<usize> {
    weight.block.and_then(|_| Some(weight.rows()? * weight.blocks()))
}

/// Elements of four bits, from a tensor with one in each byte.
#[derive(Debug)]
struct Packed(Tensor);

impl Compute for Packed {
    fn operands(&self) -> Vec<Tensor> {
        self.0.compute().map_or_else(Vec::new, |compute| compute.operands())
    }

    fn prepare(&self) -> io::Result<()> {
        self.0.compute().map_or(Ok(()), |compute| compute.prepare())
    }

    fn unit(&self) -> usize {
        let one = self.0.compute().map_or(1, |compute| compute.unit());
        if one.is_multiple_of(2) { one / 2 } else { one }
    }

    fn unpacked(&self) -> Option<&Tensor> {
        Some(&self.0)
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        let mut codes = vec![0; (2 * out.len()).min(self.0.numel().saturating_sub(2 * start))];
        self.0.read(2 * start, &mut codes)?;
        pack_halves(&codes, out);
        Ok(())
    }
}

fn zeros(weight: &Quantised, start: usize, count: usize) -> io::Result<Vec<u8>> {
    let params = weight.params(start, count)?;
    Ok(params.iter().map(|p| p.zero as i32 as u8).collect())
}

#[derive(Debug)]
pub(crate) struct Tensors {
    pub codes: Tensor,
    pub scales: Tensor,
    pub zeros: Option<Tensor>,
}

impl Tensors {
    /// Those that `DequantizeLinear` takes.
    pub fn plain(weight: &Arc<Quantised>) -> Result<Self, TensorError> {
        let (scheme, order) = (weight.scheme, weight.order.as_deref());
        // A list of scales has no order of dimensions.
        let (scales, lies) = (weight.scale_shape(), order.filter(|_| weight.block.is_some()));
        let dtype = scheme.dtype();
        Ok(Self {
            codes: reordered(weight, Part::Codes, dtype, weight.source.shape(), order)?,
            scales: reordered(weight, Part::Scales, scheme.scale, &scales, lies)?,
            zeros: if scheme.symmetric && !scheme.unsigned {
                None
            } else {
                Some(reordered(weight, Part::Zeros, dtype, &scales, lies)?)
            },
        })
    }

    /// Those that `MatMulNBits` takes, of a weight with a row for each output; with `matrix`, those
    /// of `GatherBlockQuantized`.
    pub fn bits(weight: Arc<Quantised>, matrix: bool) -> Result<Self, TensorError> {
        let (rows, blocks) = (weight.outer, weight.blocks());
        let bytes = padded_block(&weight);
        let sizes = if matrix { vec![rows, blocks * bytes] } else { vec![rows, blocks, bytes] };
        let make = |part, dtype, shape| tensor(&weight, part, dtype, shape);
        Ok(Self {
            codes: make(Part::Padded, DType::U8, sizes)?,
            scales: make(Part::Scales, weight.scheme.scale, vec![rows, blocks])?,
            zeros: if weight.scheme.symmetric {
                None
            } else {
                Some(make(Part::ZeroRows, DType::U8, vec![rows, zero_row(&weight)])?)
            },
        })
    }

    /// Bytes of all.
    pub fn nbytes(&self) -> usize {
        let zeros = self.zeros.as_ref().map_or(0, Tensor::nbytes);
        self.codes.nbytes() + self.scales.nbytes() + zeros
    }
}

/// A tensor with dimensions in the order of the weight. `shape` is that of the source.
fn reordered(
    weight: &Arc<Quantised>,
    part: Part,
    dtype: DType,
    shape: &[usize],
    order: Option<&[usize]>,
) -> Result<Tensor, TensorError> {
    let halves = is_half_byte(&weight.scheme) && !matches!(part, Part::Scales);
    let own = if halves { DType::U8 } else { dtype };
    let mut made = tensor(weight, part, own, shape.to_vec())?;
    if let Some(order) = order {
        made = made.permuted(order).ok_or(TensorError::NoLayout(own))?;
    }
    if halves {
        Tensor::computed(dtype, made.shape().to_vec(), Arc::new(Packed(made)))
    } else {
        Ok(made)
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
