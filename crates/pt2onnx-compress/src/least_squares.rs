//! Scales of 4 bits by least squares: the largest numbers of a block may be clipped, where all
//! others come closer to their codes.

use crate::{Format, Param, Scheme, options::BLOCKS, scheme::MAGIC};
use half::{bf16, f16};
use pt2onnx_tensor::DType;

/// The scale that covers all numbers is divided by these before it is fitted. More of them make
/// errors smaller by less than one percent.
const FINER: [f32; 4] = [1.0, 1.0625, 0.9375, 0.875];

/// How many numbers are summed side by side.
const LANES: usize = 8;

/// All numbers of the largest block count alike.
const ALIKE: [f32; *BLOCKS.end()] = [1.0; *BLOCKS.end()];

/// Sums over numbers `x` and their codes `q`, which count from the zero point.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// The sum of `x * q`.
    products: f32,
    /// The sum of `q * q`.
    squares: f32,
}

impl Scheme {
    /// A scale and zero point for the numbers of a block that restore them with a small squared
    /// error.
    ///
    /// # Arguments
    /// * `numbers`: Finite numbers.
    /// * `importance`: How much each of them counts; without, all count alike.
    /// * `covering`: The scale and zero point that clip none of them.
    pub fn fitted(&self, numbers: &[f32], importance: Option<&[f32]>, covering: Param) -> Param {
        let largest = 32.0 * covering.scale.abs();
        // Sums of squares of others may be infinite, or lose their digits.
        let squares = f32::MIN_POSITIVE..f32::MAX / 1024.0;
        let is_plain = squares.contains(&(largest * largest)) && largest < self.largest();
        let Some(importance) = importance.or(ALIKE.get(..numbers.len())) else {
            return covering;
        };
        if self.format != Format::Int4 || !is_plain {
            return covering;
        }
        let (first, last) = self.limits();
        let ends = (first - covering.zero, last - covering.zero);
        let sums = |finer: f32| sums(numbers, importance, finer / covering.scale, ends);
        let given = sums(1.0).explained(covering.scale);
        let mut best = (given * (1.0 + f32::EPSILON * LANES as f32), covering.scale);
        for finer in FINER {
            let sums = sums(finer);
            let scale = nearest(self.scale, sums.products / sums.squares);
            let explained = sums.explained(scale);
            if explained > best.0 {
                best = (explained, scale);
            }
        }
        Param { scale: best.1, ..covering }
    }
}

impl Sums {
    /// By how much the squared error is below the one of zeros.
    fn explained(self, scale: f32) -> f32 {
        scale * (2.0 * self.products - scale * self.squares)
    }
}

fn sums(numbers: &[f32], importance: &[f32], inverse: f32, (first, last): (f32, f32)) -> Sums {
    let add = |(sums, (x, counts)): (&mut Sums, (&f32, &f32))| {
        let code = (x * inverse).max(first).min(last) + MAGIC - MAGIC;
        let counted = code * counts;
        sums.products += x * counted;
        sums.squares += code * counted;
    };
    let mut lanes = [Sums::default(); LANES];
    let (x, x_rest) = numbers.as_chunks::<LANES>();
    let (counts, counts_rest) = importance.as_chunks::<LANES>();
    for (x, counts) in x.iter().zip(counts) {
        lanes.iter_mut().zip(x.iter().zip(counts)).for_each(add);
    }
    lanes.iter_mut().zip(x_rest.iter().zip(counts_rest)).for_each(add);
    lanes.iter().fold(Sums::default(), |all, lane| Sums {
        products: all.products + lane.products,
        squares: all.squares + lane.squares,
    })
}

/// The nearest number in the type of scales.
fn nearest(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        DType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::Range;

    #[test]
    fn fitted_scales_lose_less() {
        let scheme = |symmetric, unsigned, scale| Scheme {
            format: Format::Int4,
            symmetric,
            unsigned,
            scale,
            restored: DType::F32,
        };
        // A few numbers are far larger than the others.
        let numbers: Vec<f32> =
            (0..64_u16).map(|i| (f32::from(i * 37 % 64) / 32.0 - 1.0).powi(5)).collect();
        let lost = |scheme: Scheme, numbers: &[f32], param| {
            let (mut codes, mut back) = (vec![0; numbers.len()], vec![0.0; numbers.len()]);
            scheme.encode(numbers, param, &mut codes, &mut back);
            numbers.iter().zip(back).map(|(x, y)| (x - y).powi(2)).sum::<f32>()
        };
        for scheme in [(true, true), (true, false), (false, true)].into_iter().flat_map(
            |(symmetric, unsigned)| {
                [DType::F32, DType::F16].map(|scale| scheme(symmetric, unsigned, scale))
            },
        ) {
            let covering = scheme.param(Range::of(&numbers));
            let fitted = scheme.fitted(&numbers, None, covering);
            let (before, after) =
                (lost(scheme, &numbers, covering), lost(scheme, &numbers, fitted));
            assert!(after < before, "{scheme:?}: {before} {after}");
            // No error can be smaller, and numbers of any size have a scale.
            for size in [0.0, 1e-44, 1e-30, 0.5, 1e30, 1e37] {
                let exact = [-8.0, 3.0, 0.0, 5.0, 7.0].map(|x| x * size);
                let covering = scheme.param(Range::of(&exact));
                let fitted = scheme.fitted(&exact, None, covering);
                assert!(fitted.scale.is_normal() || fitted == covering, "{scheme:?} {size}");
                assert!(lost(scheme, &exact, fitted) <= lost(scheme, &exact, covering));
            }
        }
    }
}
