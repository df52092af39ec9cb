//! The result and error of each weight.

use crate::Weight;
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// The result of [`compress`](crate::compress).
#[derive(Clone, Debug, Default)]
pub struct Compressed {
    pub(crate) weights: Vec<(CompressedWeight, Arc<Losses>)>,
    pub(crate) warnings: Vec<String>,
}

impl Compressed {
    /// Notes that a weight became `bytes`.
    pub(crate) fn note(&mut self, of: &Weight, form: String, bytes: usize, losses: Arc<Losses>) {
        let weight = CompressedWeight {
            name: of.name.to_string(),
            form,
            bytes: of.tensor.nbytes(),
            compressed_bytes: bytes,
            snr_db: None,
            max_error: None,
        };
        self.weights.push((weight, losses));
    }

    /// Options without effect.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The compressed weights, in the order of the model. Losses are known of those that were
    /// written.
    pub fn weights(&self) -> Vec<CompressedWeight> {
        let all = self.weights.iter();
        all.map(|(weight, losses)| {
            let sums = losses.sums();
            let snr_db =
                sums.map(|s| 10.0 * (s.signal / s.noise).log10()).filter(|d| d.is_finite());
            let max_error = sums.map(|s| s.largest);
            CompressedWeight { snr_db, max_error, ..weight.clone() }
        })
        .collect()
    }
}

/// A weight that was compressed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CompressedWeight {
    /// Its name.
    pub name: String,
    /// Its storage: `int4, blocks of 32`.
    pub form: String,
    /// Bytes before.
    pub bytes: usize,
    /// Bytes of all that is stored now.
    pub compressed_bytes: usize,
    /// The ratio of the squares of its elements to those of the errors, in decibels. None if there
    /// are no errors, or it was not written yet.
    pub snr_db: Option<f64>,
    /// The largest error of an element; none if the weight was not written yet.
    pub max_error: Option<f32>,
}

impl fmt::Display for CompressedWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, form, bytes, compressed_bytes, snr_db, max_error } = self;
        write!(f, "{name}: {form}, {bytes} bytes became {compressed_bytes}")?;
        if let Some(snr) = snr_db {
            write!(f, ", SNR {snr:.1} dB")?;
        }
        max_error.map_or(Ok(()), |error| write!(f, ", largest error {error:.3e}"))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub signal: f64,
    pub noise: f64,
    pub largest: f32,
}

impl Sums {
    /// Adds some elements and what became of them. Elements that are not finite, and stay so, lose
    /// nothing.
    pub fn add(&mut self, before: &[f32], after: &[f32]) {
        let ((x, x_rest), (y, y_rest)) = (before.as_chunks::<8>(), after.as_chunks::<8>());
        let mut lanes = Lanes::default();
        for (x, y) in x.iter().zip(y) {
            lanes.add(x, y);
        }
        let pad = |rest: &[f32]| {
            let mut all = [0.0; 8];
            all.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            all
        };
        lanes.add(&pad(x_rest), &pad(y_rest));
        self.signal += lanes.signal.iter().sum::<f64>();
        self.noise += lanes.noise.iter().sum::<f64>();
        self.largest = lanes.largest.into_iter().fold(self.largest, f32::max);
    }
}

/// Sums that the processor can add at once. Squares of float32 have no room in float32.
#[derive(Default)]
struct Lanes {
    signal: [f64; 8],
    noise: [f64; 8],
    largest: [f32; 8],
}

impl Lanes {
    #[inline]
    fn add(&mut self, before: &[f32; 8], after: &[f32; 8]) {
        for i in 0..8 {
            let finite = before[i].abs() < f32::INFINITY;
            let (x, y) = if finite { (before[i], after[i]) } else { (0.0, 0.0) };
            let error = (x - y).abs();
            self.signal[i] += f64::from(x) * f64::from(x);
            self.noise[i] += f64::from(error) * f64::from(error);
            self.largest[i] = if error > self.largest[i] { error } else { self.largest[i] };
        }
    }
}

/// The losses of a weight, by block: one that is written twice counts once.
#[derive(Debug, Default)]
pub(crate) struct Losses(Mutex<BTreeMap<usize, Sums>>);

impl Losses {
    pub fn note(&self, block: usize, sums: Sums) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(block, sums);
    }

    /// The sums in the order of the blocks, so that they are always the same.
    pub fn sums(&self) -> Option<Sums> {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = blocks.values().copied();
        all.reduce(|a, b| Sums {
            signal: a.signal + b.signal,
            noise: a.noise + b.noise,
            largest: a.largest.max(b.largest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ratio in decibels and the largest error of some numbers.
    fn lost(before: &[f32], after: &[f32]) -> (Option<f64>, f32) {
        let (mut sums, losses) = (Sums::default(), Arc::<Losses>::default());
        sums.add(before, after);
        losses.note(0, sums);
        let weight = CompressedWeight {
            name: String::new(),
            form: String::new(),
            bytes: 0,
            compressed_bytes: 0,
            snr_db: None,
            max_error: None,
        };
        let done = Compressed { weights: vec![(weight, losses)], warnings: Vec::new() };
        let [weight] = done.weights().try_into().unwrap_or_else(|_| unreachable!());
        (weight.snr_db, weight.max_error.unwrap_or(f32::NAN))
    }

    #[test]
    fn any_numbers() {
        for size in [1.0, 1e-30, 1e-38, 1e30, 3e38] {
            let (before, after) = ([size; 20], [size * 0.9; 20]);
            let (snr, largest) = lost(&before, &after);
            assert!(snr.is_some_and(|snr| (snr - 20.0).abs() < 0.1), "{size}: {snr:?}");
            assert!((largest / size - 0.1).abs() < 1e-3, "{size}: {largest}");
        }
        let special = [f32::INFINITY, f32::NAN, 1.0];
        let (snr, largest) = lost(&special, &[f32::INFINITY, f32::NAN, 1.1]);
        assert!(snr.is_some_and(|snr| (snr - 20.0).abs() < 0.1) && largest > 0.0, "{snr:?}");
        assert_eq!(lost(&special, &special), (None, 0.0));
    }
}
