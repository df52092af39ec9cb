//! Weights in a smaller float, each with a `Cast` after it.

use crate::{
    CastWeights, Edit, Error, Options,
    numbers::{STAND_IN, WeightName, at_once, floats, unit},
    summary::{Compressed, Losses, Sums},
    weight_selection,
};
use half::{bf16, f16, slice::HalfFloatSliceExt};
use pt2onnx_ir::{Model, Value};
use pt2onnx_tensor::{Compute, DType, Tensor};
use rustc_hash::FxHashSet;
use std::{io, sync::Arc};

/// The least number that becomes infinite in bfloat16.
const INFINITE_BF16: f32 = 3.3961775e38;

/// Replaces infinity in float16: half of the largest number.
const STAND_IN_F16: f32 = 32752.0;

#[derive(Debug)]
pub(crate) struct Casting {
    pub name: WeightName,
    pub source: Tensor,
    pub to: DType,
    /// Whether numbers that float16 has not become some that it has.
    pub clamp: bool,
    pub losses: Arc<Losses>,
}

impl Compute for Casting {
    fn operands(&self) -> Vec<Tensor> {
        vec![self.source.clone()]
    }

    fn unit(&self) -> usize {
        2 * unit(&self.source)
    }

    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        let (mut at, mut sums) = (start / 2, Sums::default());
        for part in out.chunks_mut(2 * at_once(&self.source)) {
            let mut numbers = self.name.floats(&self.source, at, part.len() / 2)?;
            if self.clamp {
                numbers.iter_mut().filter(|x| x.is_finite()).for_each(|x| *x = clamped(*x));
            }
            let back = match self.to {
                DType::F16 => to_f16(&numbers, part),
                _ => to_bf16(&numbers, part),
            };
            if numbers.iter().zip(&back).any(|(x, half)| x.is_finite() && half.is_infinite()) {
                return Err(self.overflow());
            }
            sums.add(&numbers, &back);
            at += numbers.len();
        }
        self.losses.note(start, sums);
        Ok(())
    }
}

/// A number that float16 has. The replacement of infinity leaves room for sums.
fn clamped(x: f32) -> f32 {
    if x.abs() >= STAND_IN { STAND_IN_F16.copysign(x) } else { x.clamp(-65504.0, 65504.0) }
}

impl Casting {
    /// The tensor of the results. A transposed weight is read as it is stored: it is transposed
    /// when it is written.
    pub fn tensor(mut self) -> Option<Tensor> {
        let to = self.to;
        let Some((stored, order)) = self.source.as_stored() else {
            return Tensor::computed(to, self.source.shape().to_vec(), Arc::new(self)).ok();
        };
        self.source = stored;
        let whole = Tensor::computed(to, self.source.shape().to_vec(), Arc::new(self)).ok()?;
        whole.permuted(&order)
    }

    /// The error of a number that the type does not have.
    fn overflow(&self) -> io::Error {
        let (largest, or) = match self.to {
            DType::F16 => ("65504", ", or use bfloat16"),
            _ => ("3.39e38", ""),
        };
        let what = format!("has numbers above {largest}, which are infinite in {}", self.to);
        self.name.error(&what, or)
    }
}

fn to_f16(numbers: &[f32], out: &mut [u8]) -> Vec<f32> {
    let mut halves = vec![f16::ZERO; numbers.len()];
    halves.convert_from_f32_slice(numbers);
    for (half, to) in halves.iter().zip(out.as_chunks_mut().0) {
        *to = half.to_le_bytes();
    }
    let mut back = vec![0.0; numbers.len()];
    halves.convert_to_f32_slice(&mut back);
    back
}

fn to_bf16(numbers: &[f32], out: &mut [u8]) -> Vec<f32> {
    let rounded = |x: &f32| bf16::from_f32(*x);
    let pairs = numbers.iter().map(rounded).zip(out.as_chunks_mut().0);
    pairs
        .map(|(half, to)| {
            *to = half.to_le_bytes();
            half.to_f32()
        })
        .collect()
}

/// Elements of a constant, as it is stored, that are looked at for numbers that stand for infinity.
/// A mask has them in its first rows.
const LOOKED_AT: usize = 1 << 18;

/// The largest number of a constant from which float16 has it to a part of 256.
const TINY_F16: f32 = 7.6e-6;

/// Whether the type does not have what a constant is about: numbers that stand for infinity, or
/// numbers that are all tiny, as of an epsilon.
fn is_unfit(constant: &Tensor, to: CastWeights) -> bool {
    let (least, tiny) = match to {
        CastWeights::Float16 => (STAND_IN, TINY_F16),
        CastWeights::Bfloat16 => (INFINITE_BF16, 0.0),
    };
    let stored = constant.as_stored().map_or_else(|| constant.clone(), |(stored, _)| stored);
    let first = floats(&stored, 0, stored.numel().min(LOOKED_AT));
    // Numbers that float32 does not have, either, stand for infinity. Errors of reading appear when
    // the weight is written.
    let first = first.ok().flatten();
    first.is_none_or(|first| {
        let largest = first.iter().filter(|x| x.is_finite()).fold(0f32, |m, x| m.max(x.abs()));
        let vanishes = largest > 0.0 && largest < tiny && first.iter().all(|x| x.is_finite());
        largest >= least || vanishes && first.len() == stored.numel()
    })
}

/// Stores those of the `given` constants that are weights in a smaller type.
pub(crate) fn cast_weights(
    model: &mut Model,
    options: &Options,
    to: CastWeights,
    given: &FxHashSet<Value>,
    done: &mut Compressed,
) -> Result<(), Error> {
    if to == CastWeights::Bfloat16 && model.opset < 13 {
        let what = "weights of bfloat16".to_owned();
        return Err(Error::Opset { what, needs: 13, opset: model.opset });
    }
    let weights = weight_selection::weights(model, options);
    let mut edit = Edit::new(model);
    for weight in weights {
        pt2onnx_cancel::check();
        let wider = matches!(weight.dtype, DType::F32 | DType::F64);
        if !wider || !given.contains(&weight.value) {
            continue;
        }
        weight.has_values()?;
        if is_unfit(&weight.tensor, to) {
            continue;
        }
        let (losses, to) = (Arc::<Losses>::default(), to.dtype());
        let casting = Casting {
            name: weight.name.clone(),
            source: weight.tensor.clone(),
            to,
            clamp: false,
            losses: losses.clone(),
        };
        let Some(tensor) = casting.tensor() else { continue };
        done.note(&weight, to.name().to_owned(), tensor.nbytes(), losses);
        let stored = edit.constant(tensor, &weight.name, to.name());
        let restored = edit.cast(edit.before(&weight.uses), stored, weight.dtype);
        for (node, index) in weight.uses {
            edit.model.replace_input(node, index, Some(restored));
        }
    }
    Ok(())
}
