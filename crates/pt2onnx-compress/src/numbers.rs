//! Elements of weights as float32, whatever their type.

use crate::Spelling;
use half::{bf16, f16, slice::HalfFloatSliceExt};
use pt2onnx_tensor::{DType, Tensor};
use std::{io, ops::Deref};

/// Numbers of at least this magnitude stand for infinity, as in masks.
pub(crate) const STAND_IN: f32 = 1e30;

pub(crate) fn is_readable(dtype: DType) -> bool {
    matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
}

/// Elements that are read together: few, so that they stay in the cache, and that memory is not
/// asked of the system. Each column of a transposed matrix is a separate read.
pub(crate) fn at_once(tensor: &Tensor) -> usize {
    if tensor.is_contiguous() { 1 << 14 } else { 1 << 20 }
}

/// Elements to compute together: whole rows of a transposed matrix, for long reads of columns.
pub(crate) fn unit(tensor: &Tensor) -> usize {
    match tensor.shape().last() {
        Some(&row) if !tensor.is_contiguous() && row > 0 => {
            (at_once(tensor) / row).max(1).saturating_mul(row)
        }
        _ => 1,
    }
}

/// A float64 as float32. One that float32 does not have is cut off, and its last bit is set: what
/// rounds it again then rounds as it would have rounded the float64.
fn narrowed(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) == x || x.is_nan() {
        return nearest;
    }
    let above = u32::from(f64::from(nearest).abs() > x.abs());
    f32::from_bits((nearest.to_bits() - above) | 1)
}

/// Elements `start..start + count` of a weight as float32. Those of float64 are [narrowed]; `None`
/// if one is too large.
pub(crate) fn floats(tensor: &Tensor, start: usize, count: usize) -> io::Result<Option<Vec<f32>>> {
    let width = tensor.dtype().bits() / 8;
    let mut raw = vec![0; count * width];
    tensor.read(start * width, &mut raw)?;
    Ok(Some(match tensor.dtype() {
        DType::F64 => {
            let fits = |b: &[u8; 8]| {
                let x = f64::from_le_bytes(*b);
                (x.is_infinite() == (x as f32).is_infinite()).then(|| narrowed(x))
            };
            return Ok(raw.as_chunks().0.iter().map(fits).collect());
        }
        DType::F32 => raw.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        DType::F16 => {
            let halves: Vec<f16> =
                raw.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b)).collect();
            let mut all = vec![0.0; count];
            halves.convert_to_f32_slice(&mut all);
            all
        }
        DType::BF16 => raw.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        other => return Err(io::Error::other(format!("elements of {other} are no floats"))),
    }))
}

#[derive(Clone, Debug)]
pub(crate) struct WeightName {
    name: String,
    spelling: Spelling,
}

impl WeightName {
    pub fn new(name: String, spelling: Spelling) -> Self {
        Self { name, spelling }
    }

    /// [`floats`] of the weight; it is an error if one is too large.
    pub fn floats(&self, tensor: &Tensor, start: usize, count: usize) -> io::Result<Vec<f32>> {
        floats(tensor, start, count)?.ok_or_else(|| {
            self.error("has numbers above 3.4e38, which are infinite in float32", "")
        })
    }

    /// The weight cannot be compressed. `or` is what helps besides leaving it out.
    pub fn error(&self, what: &str, or: &str) -> io::Error {
        let (name, exclude) = (&self.name, self.spelling.text("{compress-exclude}"));
        let text = format!("the weight `{name}` {what}: leave it out by the option {exclude}{or}");
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

impl Deref for WeightName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float64_is_rounded_once() {
        let half = |x: f64| f16::from_f32(narrowed(x)).to_f64();
        let (step, little) = (2f64.powi(-10), 2f64.powi(-40));
        for (x, expected) in [
            (1.0 + step / 2.0, 1.0),
            (1.0 + step / 2.0 + little, 1.0 + step),
            (1.0 + step * 1.5 - little, 1.0 + step),
            (-1.0 - step / 2.0 - little, -1.0 - step),
            (1e-300, 0.0),
        ] {
            assert_eq!(half(x), expected, "{x}");
        }
        assert!(narrowed(f64::NAN).is_nan());
        assert_eq!(narrowed(f64::NEG_INFINITY), f32::NEG_INFINITY);
        assert_eq!(narrowed(-0.0).to_bits(), (-0f32).to_bits());
        assert!(narrowed(-1e-300) < 0.0);
    }
}
