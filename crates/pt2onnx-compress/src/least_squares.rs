//! Scales of 4 bits by least squares: the largest numbers of a block may be clipped, where all
//! others come closer to their codes.
//!
//! Errors `e` of weights are added up in products with inputs of some means and variances. The mean
//! of the square of that is the sum of `variance * e * e` and the square of the sum of `mean * e`.
//! Clipped numbers all err towards zero, so that their errors do not cancel out. Unknown inputs may
//! be those of an activation function, with numbers of one sign: if all errors of a block are the
//! same, the square of the means counts half as much as the variances.

use crate::{
    ChannelMoments, Format, Param, Scheme,
    scheme::{BLOCKS, MAGIC},
};
use half::{bf16, f16};
use pt2onnx_tensor::DType;

/// The scale that covers all numbers is divided by these before it is fitted: first by 1. More of
/// them make errors smaller by less than one percent.
const FINER: [f32; 4] = [1.0, 1.0625, 0.9375, 0.875];

/// How many numbers are summed side by side.
const LANES: usize = 8;

/// The variances of unknown inputs of the largest block, and their means before these are scaled.
const ALIKE: [f32; *BLOCKS.end()] = [1.0; *BLOCKS.end()];

/// One number for each lane.
type Lane = [f32; LANES];

/// The inputs that multiply the numbers of a block.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    variances: &'a [f32],
    means: &'a [f32],
    /// The factor of the square of the means.
    penalty: f32,
}

impl<'a> Inputs<'a> {
    /// Those from place `start` on.
    fn new(known: Option<&'a ChannelMoments>, start: usize, count: usize) -> Option<Self> {
        let (variances, means, start, penalty) = match known {
            Some(known) => (known.variances.as_slice(), known.means.as_slice(), start, 1.0),
            None => (ALIKE.as_slice(), ALIKE.as_slice(), 0, 0.5 / count as f32),
        };
        let part = |all: &'a [f32]| all.get(start..start + count);
        Some(Self { variances: part(variances)?, means: part(means)?, penalty })
    }
}

/// Sums over the numbers `x` of columns and their codes `q`, which count from the zero point.
#[derive(Clone, Copy, Default)]
struct Sums<T> {
    /// The sums of `variance * x * q`.
    products: T,
    /// The sums of `variance * q * q`.
    squares: T,
    /// The sums of `mean * q`.
    codes: T,
    /// The sums of `mean * x`.
    numbers: T,
}

impl Sums<Lane> {
    /// Adds numbers that are divided by scales, whose inverse is given, and cut off.
    #[inline(always)]
    fn add(&mut self, x: &Lane, (variance, mean): (&Lane, &Lane), (inverse, low, high): &Codes) {
        for i in 0..LANES {
            let code = code(x[i] * inverse[i], low[i], high[i]);
            let counted = code * variance[i];
            self.products[i] += x[i] * counted;
            self.squares[i] += code * counted;
            self.codes[i] += code * mean[i];
            self.numbers[i] += x[i] * mean[i];
        }
    }

    #[inline(always)]
    fn lane(&self, at: usize) -> Sums<f32> {
        let Self { products, squares, codes, numbers } = self;
        Sums {
            products: products[at],
            squares: squares[at],
            codes: codes[at],
            numbers: numbers[at],
        }
    }

    #[inline(always)]
    fn total(&self) -> Sums<f32> {
        let sum = |all: &Lane| all.iter().sum();
        Sums {
            products: sum(&self.products),
            squares: sum(&self.squares),
            codes: sum(&self.codes),
            numbers: sum(&self.numbers),
        }
    }
}

/// The inverses of scales, and the first and the last codes.
type Codes = (Lane, Lane, Lane);

impl Scheme {
    /// Gives columns scales that restore their numbers with a small squared error in products.
    ///
    /// # Arguments
    /// * `rows`: Finite numbers, row by row.
    /// * `known`: The moments of the inputs of the products, if they are known.
    /// * `start`: The place of the first row in the sums of products.
    /// * `params`: For each column, the scale and zero point that clip no number.
    pub fn fit(
        &self,
        rows: &[f32],
        (known, start): (Option<&ChannelMoments>, usize),
        params: &mut [Param],
    ) {
        let width = params.len();
        let count = rows.len() / width.max(1);
        let Some(inputs) = Inputs::new(known, start, count) else { return };
        if self.format != Format::Int4 {
            return;
        }
        if let [param] = params {
            return self.fit_one(rows, inputs, param);
        }
        let (tiles, rest) = params.as_chunks_mut();
        let first = width - rest.len();
        for (tile, params) in tiles.iter_mut().enumerate() {
            let rows =
                rows.chunks_exact(width).filter_map(|row| row.get(tile * LANES..)?.first_chunk());
            self.fit_tile(rows, inputs, params);
        }
        for (at, param) in rest.iter_mut().enumerate() {
            let mut column = ALIKE;
            let numbers = rows.iter().skip(first + at).step_by(width);
            column.iter_mut().zip(numbers).for_each(|(to, x)| *to = *x);
            self.fit_one(column.get(..count).unwrap_or_default(), inputs, param);
        }
    }

    /// The same for columns side by side.
    fn fit_tile<'a>(
        &self,
        rows: impl Iterator<Item = &'a Lane> + Clone,
        inputs: Inputs,
        params: &mut [Param; LANES],
    ) {
        let (first, last) = self.limits();
        let lanes = |f: &dyn Fn(&Param) -> f32| {
            let mut all = [0.0; LANES];
            all.iter_mut().zip(&*params).for_each(|(to, param)| *to = f(param));
            all
        };
        let (low, high) = (lanes(&|p| first - p.zero), lanes(&|p| last - p.zero));
        let mut best = [Best { scale: 0.0, explained: 0.0 }; LANES];
        best.iter_mut().zip(&*params).for_each(|(best, param)| *best = Best::of(param));
        for finer in FINER {
            let mut sums = Sums::default();
            let codes = (lanes(&|p| finer / p.scale), low, high);
            for (x, (variance, mean)) in rows.clone().zip(inputs.variances.iter().zip(inputs.means))
            {
                sums.add(x, (&[*variance; LANES], &[*mean; LANES]), &codes);
            }
            for (at, best) in best.iter_mut().enumerate() {
                best.take(self.scale, inputs.penalty, sums.lane(at));
            }
        }
        params.iter_mut().zip(best).for_each(|(param, best)| best.settle(self, param));
    }

    /// The same for one column.
    fn fit_one(&self, rows: &[f32], inputs: Inputs, param: &mut Param) {
        let (first, last) = self.limits();
        let (low, high) = ([first - param.zero; LANES], [last - param.zero; LANES]);
        let ((x, x_rest), (variances, v_rest), (means, m_rest)) =
            (rows.as_chunks(), inputs.variances.as_chunks(), inputs.means.as_chunks());
        let mut best = Best::of(param);
        for finer in FINER {
            let mut sums = Sums::default();
            let codes = ([finer / param.scale; LANES], low, high);
            for ((x, variance), mean) in x.iter().zip(variances).zip(means) {
                sums.add(x, (variance, mean), &codes);
            }
            if !x_rest.is_empty() {
                sums.add(&padded(x_rest), (&padded(v_rest), &padded(m_rest)), &codes);
            }
            best.take(self.scale, inputs.penalty, sums.total());
        }
        best.settle(self, param);
    }

    /// Whether the sums of squares of a column are finite, and keep their digits.
    fn is_plain(&self, covering: Param) -> bool {
        let largest = 32.0 * covering.scale.abs();
        let squares = f32::MIN_POSITIVE..f32::MAX / 1024.0;
        squares.contains(&(largest * largest)) && largest < self.largest()
    }
}

/// The scale of a column that is the best so far.
#[derive(Clone, Copy)]
struct Best {
    scale: f32,
    /// By how much the error is below the one of zeros; NaN before the first codes.
    explained: f32,
}

impl Best {
    fn of(covering: &Param) -> Self {
        Self { scale: covering.scale, explained: f32::NAN }
    }

    /// Takes the scale that fits codes best if it is better.
    ///
    /// # Arguments
    /// * `dtype`: The type of scales.
    /// * `sums`: Those for the codes; the first are those of the scale that clips no number.
    #[inline(always)]
    fn take(&mut self, dtype: DType, penalty: f32, sums: Sums<f32>) {
        let codes = penalty * sums.codes;
        let (product, square) =
            (sums.products + sums.numbers * codes, sums.squares + sums.codes * codes);
        let explained = |scale: f32| scale * (2.0 * product - scale * square);
        let first = explained(self.scale) * (1.0 + f32::EPSILON * LANES as f32);
        let least = if self.explained.is_nan() { first } else { self.explained };
        let scale = nearest(dtype, product / square);
        let found = explained(scale);
        let is_better = found > least;
        self.explained = if is_better { found } else { least };
        self.scale = if is_better { scale } else { self.scale };
    }

    /// Gives the scale to a column whose sums can be trusted.
    fn settle(self, scheme: &Scheme, param: &mut Param) {
        if scheme.is_plain(*param) {
            param.scale = self.scale;
        }
    }
}

/// The code of a finite number, by comparisons that processors have.
#[inline(always)]
fn code(scaled: f32, low: f32, high: f32) -> f32 {
    let above = if scaled > low { scaled } else { low };
    (if above < high { above } else { high }) + MAGIC - MAGIC
}

fn padded(rest: &[f32]) -> Lane {
    let mut all = [0.0; LANES];
    all.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    all
}

/// The nearest number in the type of scales.
#[inline]
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

    /// The scale of one column, which is the same beside others.
    fn fit(scheme: Scheme, numbers: &[f32], covering: Param) -> Param {
        let (mut one, mut nine) = ([covering], [covering; 9]);
        scheme.fit(numbers, (None, 0), &mut one);
        let rows: Vec<f32> = numbers.iter().flat_map(|x| [*x; 9]).collect();
        scheme.fit(&rows, (None, 0), &mut nine);
        let same = |other: &Param| (other.scale - one[0].scale).abs() <= 1e-5 * one[0].scale.abs();
        assert!(nine.iter().all(same), "{one:?} {nine:?}");
        one[0]
    }

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
            let fitted = fit(scheme, &numbers, covering);
            let (before, after) =
                (lost(scheme, &numbers, covering), lost(scheme, &numbers, fitted));
            assert!(after < before, "{scheme:?}: {before} {after}");
            // No error can be smaller, and numbers of any size have a scale.
            for size in [0.0, 1e-44, 1e-30, 0.5, 1e30, 1e37] {
                let exact = [-8.0, 3.0, 0.0, 5.0, 7.0].map(|x| x * size);
                let covering = scheme.param(Range::of(&exact));
                let fitted = fit(scheme, &exact, covering);
                assert!(fitted.scale.is_normal() || fitted == covering, "{scheme:?} {size}");
                assert!(lost(scheme, &exact, fitted) <= lost(scheme, &exact, covering));
            }
        }
    }

    #[test]
    fn errors_of_a_block_cancel_out() {
        let scheme = Scheme {
            format: Format::Int4,
            symmetric: true,
            unsigned: true,
            scale: DType::F32,
            restored: DType::F32,
        };
        let (mut seed, mut bias, mut squares) = (1_u32, 0.0, 0.0);
        // Inputs with a few large means, where errors have to cancel out.
        let means: Vec<f32> = (0..32).map(|i| if i % 8 == 0 { 3.0 } else { 0.1 }).collect();
        let inputs = ChannelMoments { means, variances: vec![0.1; 32] };
        let mut products = [0.0; 2];
        for _ in 0..1000 {
            // The largest numbers, which are clipped, are positive.
            let numbers: [f32; 32] = std::array::from_fn(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((seed >> 8) as f32 / 16_777_216.0).powi(3) - 0.1
            });
            for (known, product) in [None, Some(&inputs)].into_iter().zip(&mut products) {
                let mut params = [scheme.param(Range::of(&numbers))];
                scheme.fit(&numbers, (known, 0), &mut params);
                let (mut codes, mut back) = ([0; 32], [0.0; 32]);
                scheme.encode(&numbers, params[0], &mut codes, &mut back);
                let errors = numbers.iter().zip(back).map(|(x, y)| x - y);
                let (sum, square) =
                    errors.clone().fold((0.0, 0.0), |(sum, s), e| (sum + e, s + e * e));
                let mean = errors.zip(&inputs.means).map(|(e, mean)| e * mean).sum::<f32>();
                *product += mean * mean + 0.1 * square;
                if known.is_none() {
                    bias += sum * sum;
                    squares += square;
                }
            }
        }
        // 1.6 if only the squares of errors counted.
        assert!(bias < 1.4 * squares, "{bias} {squares}");
        assert!(products[1] < 0.9 * products[0], "{products:?}");
    }
}
