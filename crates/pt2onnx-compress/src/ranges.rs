//! The smallest and the largest of numbers that share a scale.

/// The ends of some numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub min: f32,
    pub max: f32,
    /// 0 if all are finite, NaN otherwise.
    pub check: f32,
}

impl Range {
    /// The range of no numbers.
    pub const EMPTY: Self = Self { min: f32::INFINITY, max: f32::NEG_INFINITY, check: 0.0 };

    /// The range of the numbers.
    pub fn of(numbers: &[f32]) -> Self {
        let (mut min, mut max) = ([f32::INFINITY; 8], [f32::NEG_INFINITY; 8]);
        let mut check = [0.0; 8];
        let (chunks, rest) = numbers.as_chunks::<8>();
        for chunk in chunks {
            for i in 0..8 {
                let x = chunk[i];
                min[i] = if x < min[i] { x } else { min[i] };
                max[i] = if x > max[i] { x } else { max[i] };
                check[i] += x * 0.0;
            }
        }
        let mut all = Self::EMPTY;
        for ((min, max), check) in min.into_iter().zip(max).zip(check) {
            all = all.and(Self { min, max, check });
        }
        rest.iter().for_each(|x| all.add(*x));
        all
    }

    /// Adds a number.
    pub fn add(&mut self, x: f32) {
        self.min = if x < self.min { x } else { self.min };
        self.max = if x > self.max { x } else { self.max };
        self.check += x * 0.0;
    }

    /// The range of the numbers of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            check: self.check + other.check,
        }
    }

    /// Whether all are finite.
    pub fn is_finite(self) -> bool {
        self.check == 0.0
    }
}
