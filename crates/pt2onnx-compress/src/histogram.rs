//! Counts of numbers in bins that are narrow for the numbers in them: a bin is 1/256 of a power of
//! two wide. Zeros do not count.

/// Bits of a number's mantissa that select its bin.
const BITS: u32 = 8;

/// Bins of the numbers that share a sign and an exponent.
const OCTAVE: usize = 1 << BITS;

/// How many numbers of each size there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Those with numbers, in the order of the numbers; others are empty.
    octaves: Vec<Vec<u64>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bin {
    pub low: f32,
    pub high: f32,
    pub count: u64,
}

impl Bin {
    /// The smallest and the largest magnitude. No bin has numbers of both signs.
    pub fn magnitudes(&self) -> (f64, f64) {
        let (a, b) = (f64::from(self.low.abs()), f64::from(self.high.abs()));
        (a.min(b), a.max(b))
    }
}

impl Histogram {
    pub fn add(&mut self, numbers: &[f32]) {
        self.octaves.resize(1 << 9, Vec::new());
        for x in numbers.iter().filter(|x| **x != 0.0) {
            let bin = (place(*x) >> (23 - BITS)) as usize;
            let Some(octave) = self.octaves.get_mut(bin / OCTAVE) else { continue };
            octave.resize(OCTAVE, 0);
            if let Some(count) = octave.get_mut(bin % OCTAVE) {
                *count += 1;
            }
        }
    }

    /// The bins with numbers, in the order of these.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = Bin> {
        self.octaves.iter().enumerate().flat_map(|(i, octave)| {
            let counted = octave.iter().enumerate().filter(|(_, count)| **count > 0);
            counted.map(move |(j, count)| {
                let first = ((i * OCTAVE + j) as u32) << (23 - BITS);
                let last = first | ((1 << (23 - BITS)) - 1);
                Bin { low: number(first), high: number(last), count: *count }
            })
        })
    }
}

const SIGN: u32 = 1 << 31;

/// An integer for each number, in the same order.
fn place(x: f32) -> u32 {
    match x.to_bits() {
        bits if bits & SIGN == 0 => bits | SIGN,
        bits => !bits,
    }
}

fn number(place: u32) -> f32 {
    f32::from_bits(if place & SIGN == 0 { !place } else { place ^ SIGN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_in_order_and_hold_their_numbers() {
        let numbers = [-3e38, -1.0, -1e-41, -0.0, 0.0, 1e-41, 0.999, 1.0, 1.001, 3e38];
        let mut all = Histogram::default();
        all.add(&numbers);
        let bins: Vec<Bin> = all.bins().collect();
        assert!(bins.is_sorted_by(|a, b| a.high <= b.low), "{bins:?}");
        for x in numbers.into_iter().filter(|x| *x != 0.0) {
            let held = bins.iter().any(|bin| bin.low <= x && x <= bin.high);
            assert!(held, "{x} {bins:?}");
        }
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 8);
        for bin in bins.iter().filter(|bin| bin.magnitudes().0 > 1e-37) {
            let (low, high) = bin.magnitudes();
            assert!(high / low < 1.0 + 1.0 / 256.0, "{bin:?}");
        }
    }
}
