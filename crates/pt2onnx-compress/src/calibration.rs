//! The range of an activation, from the numbers that it has when the model runs on samples.

use crate::{
    Calibration,
    histogram::{Bin, Histogram},
    ranges::Range,
};

/// Equal parts that magnitudes are counted in for [`Calibration::Entropy`].
const BINS: usize = 2048;

/// Levels of one sign that codes of 8 bits have.
const LEVELS: usize = 128;

/// The part of all numbers but 0 that [`Calibration::Percentile`] leaves out at each end.
const CUT: f64 = 0.000_05;

/// [`Calibration::Entropy`] looks at magnitudes up to so many times the one that all but a
/// thousandth of the numbers do not exceed.
const REACH: f64 = 8.0;

/// Watches the numbers of one activation.
#[derive(Clone, Debug)]
pub struct Observer {
    method: Calibration,
    seen: Range,
    counts: Histogram,
}

impl Observer {
    /// One that has seen nothing.
    pub fn new(method: Calibration) -> Self {
        Self { method, seen: Range::EMPTY, counts: Histogram::default() }
    }

    /// Shows it numbers.
    pub fn see(&mut self, numbers: &[f32]) {
        self.seen = self.seen.and(Range::of(numbers));
        if self.method != Calibration::MinMax {
            self.counts.add(numbers);
        }
    }

    /// The range to be coded. `None` if there were no numbers, or some that were not finite.
    pub fn range(&self) -> Option<(f32, f32)> {
        let Range { min, max, .. } = self.seen;
        if !self.seen.is_finite() || min > max {
            return None;
        }
        let (low, high) = match self.method {
            Calibration::MinMax => (min, max),
            Calibration::Percentile => {
                let most = self.counts.bins().map(|bin| bin.count as f64).sum::<f64>() * CUT;
                let low = first(self.counts.bins(), most).map_or(min, |bin| bin.low);
                let high = first(self.counts.bins().rev(), most).map_or(max, |bin| bin.high);
                (low, high)
            }
            Calibration::Entropy => {
                let reach = self.reach().min(f64::from(max.max(-min)));
                let most = (reach * nearest(&self.parts(reach)) as f64 / BINS as f64) as f32;
                (-most, most)
            }
        };
        Some((min.max(low), max.min(high)))
    }

    /// The largest magnitude that [`Calibration::Entropy`] looks at. A few large outliers do not
    /// make its parts coarse.
    fn reach(&self) -> f64 {
        let mut bins: Vec<Bin> = self.counts.bins().collect();
        bins.sort_by(|a, b| b.magnitudes().1.total_cmp(&a.magnitudes().1));
        let total = bins.iter().map(|bin| bin.count as f64).sum::<f64>();
        REACH * first(bins.into_iter(), total / 1000.0).map_or(0.0, |bin| bin.magnitudes().1)
    }

    /// How many numbers have a magnitude in each of the equal parts up to the largest.
    fn parts(&self, largest: f64) -> Vec<f64> {
        let mut parts = vec![0.0; BINS];
        let part = |x: f64| (x / largest * BINS as f64).min(BINS as f64 - 1.0);
        for bin in self.counts.bins() {
            let (low, high) = bin.magnitudes();
            let (low, high) = (part(low) as usize, part(high) as usize);
            for count in parts.iter_mut().take(high + 1).skip(low) {
                *count += bin.count as f64 / (high + 1 - low) as f64;
            }
        }
        parts
    }
}

/// The first bin that, with those before it, holds more than so many numbers.
fn first(mut bins: impl Iterator<Item = Bin>, most: f64) -> Option<Bin> {
    let mut sum = 0.0;
    bins.find(|bin| {
        sum += bin.count as f64;
        sum > most
    })
}

/// How many bins to code, so that the codes carry most information about the numbers: those whose
/// distribution is nearest to the whole one, by the divergence of Kullback and Leibler. Numbers
/// above become the largest code. Numbers near 0, as activation functions make many, carry none:
/// every code has them.
fn nearest(bins: &[f64]) -> usize {
    let mut bins = bins.to_vec();
    if let [first, second, ..] = bins.as_mut_slice() {
        *first = first.min(*second);
    }
    let bins = bins.as_slice();
    let all = (LEVELS..=bins.len()).step_by(LEVELS / 8);
    let best = all.map(|kept| (divergence(bins, kept), kept)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(bins.len(), |(_, kept)| kept)
}

/// How much is lost if only the first bins are coded, in [`LEVELS`] levels.
fn divergence(bins: &[f64], kept: usize) -> f64 {
    let (inside, outside) = bins.split_at(kept.min(bins.len()));
    let above = outside.iter().sum::<f64>();
    let total = inside.iter().sum::<f64>();
    if total == 0.0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    for level in 0..LEVELS {
        let (start, end) = (level * kept / LEVELS, (level + 1) * kept / LEVELS);
        let part = inside.get(start..end).unwrap_or_default();
        let is_last = level + 1 == LEVELS;
        let filled = part.iter().filter(|count| **count > 0.0).count().max(1) as f64;
        let even = part.iter().sum::<f64>() / filled / total;
        for (i, count) in part.iter().enumerate() {
            let more = if is_last && i + 1 == part.len() { above } else { 0.0 };
            let own = (count + more) / (total + above);
            let coded = if *count > 0.0 { even } else { 0.0 };
            if own > 0.0 {
                sum += own * (own / coded.max(1e-9)).ln();
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The range of numbers that are shown in two parts.
    fn range(method: Calibration, numbers: &[f32]) -> Option<(f32, f32)> {
        let mut observer = Observer::new(method);
        let (a, b) = numbers.split_at(numbers.len() / 3);
        observer.see(a);
        observer.see(b);
        observer.range()
    }

    /// Numbers that lie like those of a normal distribution, from -4 to 4.
    fn normal() -> Vec<f32> {
        (-400..=400i32)
            .flat_map(|i| {
                let x = i as f32 / 100.0;
                let count = (1000.0 * (-x * x / 2.0).exp()) as usize;
                std::iter::repeat_n(x, count.max(1))
            })
            .collect()
    }

    #[test]
    fn a_range_is_of_finite_numbers_in_each_method() {
        use Calibration::{Entropy, MinMax, Percentile};
        for method in [MinMax, Percentile, Entropy] {
            assert_eq!(range(method, &[]), None);
            assert_eq!(range(method, &[1.0, f32::NAN]), None);
            assert_eq!(range(method, &[f32::NEG_INFINITY, 1.0]), None);
            assert_eq!(range(method, &[0.0, 0.0, 0.0]), Some((0.0, 0.0)));
            assert_eq!(range(method, &[2.5]), Some((2.5, 2.5)));
            assert_eq!(range(method, &[f32::MIN, f32::MAX]), Some((f32::MIN, f32::MAX)));
        }
        let mut numbers = normal();
        assert_eq!(range(MinMax, &numbers), Some((-4.0, 4.0)));
        numbers.push(400.0);
        assert_eq!(range(MinMax, &numbers), Some((-4.0, 400.0)));
        // One outlier among 250,000 numbers is left out.
        let (low, high) = range(Percentile, &numbers).unwrap_or_default();
        assert!((-4.0..-3.5).contains(&low) && (3.5..5.0).contains(&high), "{low} {high}");
        let entropy = range(Entropy, &numbers).unwrap_or_default();
        assert!(entropy.0 >= -4.0 && (2.0..4.5).contains(&entropy.1), "{entropy:?}");
        // However large it is, and beside many zeros.
        for outlier in [1e6, 1e30, f32::MAX] {
            numbers.pop();
            numbers.push(outlier);
            assert_eq!(range(Percentile, &numbers), Some((low, high)));
            assert_eq!(range(Entropy, &numbers), Some(entropy));
        }
        numbers.extend(vec![0.0; 1_000_000]);
        assert_eq!(range(Percentile, &numbers), Some((low, high)));
        assert_eq!(range(Entropy, &numbers), Some(entropy));
        // One number is not cut off to nothing.
        for method in [Percentile, Entropy] {
            let sparse = [vec![0.0; 100_000], vec![5.0]].concat();
            assert_eq!(range(method, &sparse).map(|(_, high)| high), Some(5.0));
        }
        // Small numbers are cut as those around 1 are.
        let small: Vec<f32> = normal().iter().map(|x| x * 2f32.powi(-60)).collect();
        let same = |(low, high): (f32, f32)| (low * 2f32.powi(-60), high * 2f32.powi(-60));
        for method in [Percentile, Entropy] {
            assert_eq!(range(method, &small), range(method, &normal()).map(same));
        }
    }

    #[test]
    fn what_is_coded_evenly_is_kept() {
        let even: Vec<f32> = (0..100_000).map(|i| i as f32 / 1000.0).collect();
        let (low, high) = range(Calibration::Entropy, &even).unwrap_or_default();
        assert!(low == 0.0 && high > 95.0, "{low} {high}");
    }
}
