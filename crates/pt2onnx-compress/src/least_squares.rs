//! Scales of 4 bits by least squares: the largest numbers of a block may be clipped, where all
//! others come closer to their codes.
//!
//! Clipped numbers all err towards zero, and errors that do not cancel out shift each product with
//! inputs of one sign, as activation functions make them. So the square of the sum of the errors,
//! divided by twice their number, is added to the sum of their squares: it is half as much as that
//! if all errors are the same, and next to nothing if they cancel out.

use crate::{
    Format, Param, Scheme,
    scheme::{BLOCKS, MAGIC},
};
use half::{bf16, f16};
use pt2onnx_tensor::DType;

/// The scale that covers all numbers is divided by these before it is fitted: first by 1. More of
/// them make errors smaller by less than one percent.
const FINER: [f32; 4] = [1.0, 1.0625, 0.9375, 0.875];

/// How many numbers are summed side by side.
const LANES: usize = 8;

/// All numbers of the largest block count alike.
const ALIKE: [f32; *BLOCKS.end()] = [1.0; *BLOCKS.end()];

/// Sums over the numbers `x` of columns and their codes `q`, which count from the zero point.
#[derive(Clone, Copy, Debug)]
struct Sums<T> {
    /// The sums of `x * q`.
    products: T,
    /// The sums of `q * q`.
    squares: T,
    codes: T,
}

impl Sums<Vec<f32>> {
    fn column(&self, at: usize) -> Sums<f32> {
        Sums { products: self.products[at], squares: self.squares[at], codes: self.codes[at] }
    }
}

impl Scheme {
    /// Gives columns scales that restore their numbers with a small squared error.
    ///
    /// # Arguments
    /// * `rows`: Finite numbers, row by row.
    /// * `importance`: How much each row counts, from samples; without, all count alike, and so
    ///   does the sum of their errors.
    /// * `params`: For each column, the scale and zero point that clip no number.
    pub fn fit(&self, rows: &[f32], importance: Option<&[f32]>, params: &mut [Param]) {
        let count = rows.len() / params.len().max(1);
        let penalty = if importance.is_none() { 0.5 / count as f32 } else { 0.0 };
        let Some(importance) = importance.or(ALIKE.get(..count)) else { return };
        if self.format != Format::Int4 {
            return;
        }
        if let [param] = params {
            return self.fit_one(rows, importance, penalty, param);
        }
        let mut best: Vec<Best> = params.iter().map(|param| Best::of(*param, penalty)).collect();
        for row in rows.chunks_exact(params.len()) {
            best.iter_mut().zip(row).for_each(|(best, x)| best.numbers += x);
        }
        for finer in FINER {
            let sums = self.sums(rows, importance, params, finer);
            for (at, best) in best.iter_mut().enumerate() {
                best.take(self.scale, sums.column(at));
            }
        }
        for (param, best) in params.iter_mut().zip(best) {
            best.settle(self, param);
        }
    }

    /// The same for one column, without memory.
    fn fit_one(&self, rows: &[f32], importance: &[f32], penalty: f32, param: &mut Param) {
        let (first, last) = self.limits();
        let ends = (first - param.zero, last - param.zero);
        let mut best = Best::of(*param, penalty);
        best.numbers = sum(rows);
        for finer in FINER {
            let sums = sums_of_one(rows, importance, finer / param.scale, ends);
            best.take(self.scale, sums);
        }
        best.settle(self, param);
    }

    /// Whether the sums of squares of a column are finite, and keep their digits.
    fn is_plain(&self, covering: Param) -> bool {
        let largest = 32.0 * covering.scale.abs();
        let squares = f32::MIN_POSITIVE..f32::MAX / 1024.0;
        squares.contains(&(largest * largest)) && largest < self.largest()
    }

    fn sums(
        &self,
        rows: &[f32],
        importance: &[f32],
        params: &[Param],
        finer: f32,
    ) -> Sums<Vec<f32>> {
        let (first, last) = self.limits();
        let inverse: Vec<f32> = params.iter().map(|param| finer / param.scale).collect();
        let low: Vec<f32> = params.iter().map(|param| first - param.zero).collect();
        let high: Vec<f32> = params.iter().map(|param| last - param.zero).collect();
        let [mut products, mut squares, mut codes] =
            std::array::from_fn(|_| vec![0.0; params.len()]);
        for (row, counts) in rows.chunks_exact(params.len()).zip(importance) {
            let columns = row.iter().zip(&inverse).zip(&low).zip(&high);
            let sums = products.iter_mut().zip(&mut squares).zip(&mut codes);
            for ((((x, inverse), low), high), ((product, square), codes)) in columns.zip(sums) {
                let code = code(x * inverse, *low, *high);
                let counted = code * counts;
                *product += x * counted;
                *square += code * counted;
                *codes += counted;
            }
        }
        Sums { products, squares, codes }
    }
}

/// The scale of a column that is the best so far.
struct Best {
    scale: f32,
    /// By how much the error is below the one of zeros; unknown for the first scale.
    explained: Option<f32>,
    /// How much the square of the sum of the errors counts.
    penalty: f32,
    /// The sum of the numbers, which all count alike if there is a penalty.
    numbers: f32,
}

impl Best {
    fn of(covering: Param, penalty: f32) -> Self {
        Self { scale: covering.scale, explained: None, penalty, numbers: 0.0 }
    }

    /// Takes the scale that fits codes best if it is better.
    ///
    /// # Arguments
    /// * `dtype`: The type of scales.
    /// * `sums`: Those for the codes; the first are those of the scale that clips no number.
    fn take(&mut self, dtype: DType, sums: Sums<f32>) {
        let codes = self.penalty * sums.codes;
        let (product, square) =
            (sums.products + self.numbers * codes, sums.squares + sums.codes * codes);
        let explained = |scale: f32| scale * (2.0 * product - scale * square);
        let least = { self.explained }
            .unwrap_or_else(|| explained(self.scale) * (1.0 + f32::EPSILON * LANES as f32));
        let scale = nearest(dtype, product / square);
        let found = explained(scale);
        let is_better = found > least;
        self.explained = Some(if is_better { found } else { least });
        self.scale = if is_better { scale } else { self.scale };
    }

    /// Gives the scale to a column whose sums can be trusted.
    fn settle(self, scheme: &Scheme, param: &mut Param) {
        if scheme.is_plain(*param) {
            param.scale = self.scale;
        }
    }
}

fn code(scaled: f32, low: f32, high: f32) -> f32 {
    scaled.max(low).min(high) + MAGIC - MAGIC
}

/// The sum of numbers, which the processor adds side by side.
fn sum(numbers: &[f32]) -> f32 {
    let (lanes, rest) = numbers.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    lanes.iter().for_each(|lane| sums.iter_mut().zip(lane).for_each(|(sum, x)| *sum += x));
    sums.iter().chain(rest).sum()
}

/// The sums of one column, which the processor adds side by side.
fn sums_of_one(
    rows: &[f32],
    importance: &[f32],
    inverse: f32,
    (low, high): (f32, f32),
) -> Sums<f32> {
    let [mut products, mut squares, mut codes] = [[0.0; LANES]; 3];
    let mut add = |x: &[f32; LANES], counts: &[f32; LANES]| {
        for i in 0..LANES {
            let code = code(x[i] * inverse, low, high);
            let counted = code * counts[i];
            products[i] += x[i] * counted;
            squares[i] += code * counted;
            codes[i] += counted;
        }
    };
    let (x, x_rest) = rows.as_chunks::<LANES>();
    let (counts, counts_rest) = importance.as_chunks::<LANES>();
    x.iter().zip(counts).for_each(|(x, counts)| add(x, counts));
    if !x_rest.is_empty() {
        let pad = |rest: &[f32]| {
            let mut all = [0.0; LANES];
            all.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            all
        };
        add(&pad(x_rest), &pad(counts_rest));
    }
    Sums {
        products: products.iter().sum(),
        squares: squares.iter().sum(),
        codes: codes.iter().sum(),
    }
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

    /// The scale of one column, which is the same beside another one.
    fn fit(scheme: Scheme, numbers: &[f32], covering: Param) -> Param {
        let (mut one, mut two) = ([covering], [covering; 2]);
        scheme.fit(numbers, None, &mut one);
        let pairs: Vec<f32> = numbers.iter().flat_map(|x| [*x; 2]).collect();
        scheme.fit(&pairs, None, &mut two);
        let same = |other: &Param| (other.scale - one[0].scale).abs() <= 1e-5 * one[0].scale.abs();
        assert!(two.iter().all(same), "{one:?} {two:?}");
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
        for _ in 0..1000 {
            // The largest numbers, which are clipped, are positive.
            let numbers: [f32; 32] = std::array::from_fn(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((seed >> 8) as f32 / 16_777_216.0).powi(3) - 0.1
            });
            let mut params = [scheme.param(Range::of(&numbers))];
            scheme.fit(&numbers, None, &mut params);
            let (mut codes, mut back) = ([0; 32], [0.0; 32]);
            scheme.encode(&numbers, params[0], &mut codes, &mut back);
            let errors = numbers.iter().zip(back).map(|(x, y)| x - y);
            let (sum, square) = errors.fold((0.0, 0.0), |(sum, s), e| (sum + e, s + e * e));
            bias += sum * sum;
            squares += square;
        }
        // 1.6 if only the squares of errors counted.
        assert!(bias < 1.4 * squares, "{bias} {squares}");
    }
}
