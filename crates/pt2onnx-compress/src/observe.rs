//! The range of an activation, from the numbers that it has when the model runs on samples.

use crate::{options::Calibration, ranges::Range};

/// Equal parts that a range is counted in.
const BINS: usize = 2048;

/// Levels of one sign that codes of 8 bits have.
const LEVELS: usize = 128;

/// The part of all numbers that [`Calibration::Percentile`] leaves out at each end.
const CUT: f64 = 0.000_05;

/// Watches the numbers of one activation. All samples are shown as often as [`Observer::passes`] says.
#[derive(Clone, Debug)]
pub struct Observer {
    method: Calibration,
    seen: Range,
    bins: Vec<u64>,
}

impl Observer {
    /// One that has seen nothing.
    pub fn new(method: Calibration) -> Self {
        Self { method, seen: Range::EMPTY, bins: Vec::new() }
    }

    /// How often each sample must be shown: the ends of the range are found first, and what lies between them is counted then.
    pub fn passes(method: Calibration) -> usize {
        match method {
            Calibration::MinMax => 1,
            Calibration::Percentile | Calibration::Entropy => 2,
        }
    }

    /// Shows it numbers, in a pass that counts from 0.
    pub fn see(&mut self, pass: usize, numbers: &[f32]) {
        if pass == 0 {
            self.seen = self.seen.and(Range::of(numbers));
            return;
        }
        let Some((first, last)) = self.counted() else { return };
        self.bins.resize(BINS, 0);
        let step = (last - first) / BINS as f64;
        for x in numbers {
            let x = match self.method {
                Calibration::Entropy => f64::from(x.abs()),
                _ => f64::from(*x),
            };
            let bin = if step > 0.0 { ((x - first) / step) as usize } else { 0 };
            if let Some(count) = self.bins.get_mut(bin.min(BINS - 1)) {
                *count += 1;
            }
        }
    }

    /// The range to be coded. `None` if there were no numbers, or some that were not finite.
    pub fn range(&self) -> Option<(f32, f32)> {
        let Range { min, max, .. } = self.seen;
        if !self.seen.is_finite() || min > max {
            return None;
        }
        let clipped = |low: f64, high: f64| (min.max(low as f32), max.min(high as f32));
        Some(match (self.method, self.counted()) {
            (Calibration::Percentile, Some((first, last))) if !self.bins.is_empty() => {
                let step = (last - first) / BINS as f64;
                let total = self.bins.iter().sum::<u64>() as f64;
                let low = left_out(self.bins.iter(), total) as f64;
                let high = left_out(self.bins.iter().rev(), total) as f64;
                clipped(first + low * step, last - high * step)
            }
            (Calibration::Entropy, Some((_, last))) if !self.bins.is_empty() => {
                let most = last * nearest(&self.bins) as f64 / BINS as f64;
                clipped(-most, most)
            }
            _ => (min, max),
        })
    }

    /// The ends of what is counted: magnitudes for [`Calibration::Entropy`].
    fn counted(&self) -> Option<(f64, f64)> {
        let (min, max) = (f64::from(self.seen.min), f64::from(self.seen.max));
        let finite = self.seen.is_finite() && min <= max;
        finite.then(|| match self.method {
            Calibration::Entropy => (0.0, max.abs().max(min.abs())),
            _ => (min, max),
        })
    }
}

/// How many bins from one end hold no more numbers than are left out.
fn left_out<'a>(bins: impl Iterator<Item = &'a u64>, total: f64) -> usize {
    let mut sum = 0.0;
    bins.take_while(|count| {
        sum += **count as f64;
        sum <= total * CUT
    })
    .count()
}

/// How many bins to code, so that the codes tell most about the numbers: those whose distribution is nearest to the whole one, by the
/// divergence of Kullback and Leibler. What lies above becomes the largest code. The many zeros that activation functions make, which
/// every code has, tell nothing.
fn nearest(bins: &[u64]) -> usize {
    let mut bins = bins.to_vec();
    if let [first, second, ..] = bins.as_mut_slice() {
        *first = *second;
    }
    let bins = bins.as_slice();
    let all = (LEVELS..=bins.len()).step_by(LEVELS / 8);
    let best = all.map(|kept| (divergence(bins, kept), kept)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(bins.len(), |(_, kept)| kept)
}

/// How much is lost if only the first bins are coded, in [`LEVELS`] levels.
fn divergence(bins: &[u64], kept: usize) -> f64 {
    let (inside, outside) = bins.split_at(kept.min(bins.len()));
    let above = outside.iter().sum::<u64>() as f64;
    let total = inside.iter().sum::<u64>() as f64;
    if total == 0.0 {
        return f64::INFINITY;
    }
    let mut sum = 0.0;
    for level in 0..LEVELS {
        let (start, end) = (level * kept / LEVELS, (level + 1) * kept / LEVELS);
        let part = inside.get(start..end).unwrap_or_default();
        let is_last = level + 1 == LEVELS;
        let filled = part.iter().filter(|count| **count > 0).count().max(1) as f64;
        let even = part.iter().sum::<u64>() as f64 / filled / total;
        for (i, count) in part.iter().enumerate() {
            let more = if is_last && i + 1 == part.len() { above } else { 0.0 };
            let own = (*count as f64 + more) / (total + above);
            let coded = if *count > 0 { even } else { 0.0 };
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
        for pass in 0..Observer::passes(method) {
            let (a, b) = numbers.split_at(numbers.len() / 3);
            observer.see(pass, a);
            observer.see(pass, b);
        }
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
    fn ranges() {
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
        let (low, high) = range(Entropy, &numbers).unwrap_or_default();
        assert!(low >= -4.0 && (3.0..40.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn what_is_coded_evenly_is_kept() {
        let even: Vec<f32> = (0..100_000).map(|i| i as f32 / 1000.0).collect();
        let (low, high) = range(Calibration::Entropy, &even).unwrap_or_default();
        assert!(low == 0.0 && high > 95.0, "{low} {high}");
    }
}
