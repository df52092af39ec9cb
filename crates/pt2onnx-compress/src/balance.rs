//! Codes whose errors cancel: elements that meet about the same inputs, as those of the window of a
//! convolution, keep their sum.

use crate::{Format, Param, Scheme};

impl Scheme {
    /// Moves the codes of numbers that share a scale by a step where that costs least, until the
    /// sum of what they stand for is that of the numbers, but for half a step. `back` has the
    /// numbers of the codes.
    pub fn balance(&self, numbers: &[f32], param: Param, codes: &mut [u8], back: &mut [f32]) {
        if self.format != Format::Int8 {
            return;
        }
        let steps = |(x, y): (&f32, &f32)| (x - y) / param.scale;
        let missing: f32 = numbers.iter().zip(&*back).map(steps).sum::<f32>().round();
        let count = missing.abs() as usize;
        if count == 0 {
            return;
        }
        let (one, (first, last)) = (missing.signum(), self.limits());
        // Those that were rounded the other way the most.
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        let gain = |&i: &usize| one * (numbers[i] - back[i]);
        order.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        for i in order.into_iter().take(count) {
            let moved = back[i] / param.scale + one;
            if (first..=last).contains(&(moved + param.zero)) {
                codes[i] = codes[i].wrapping_add(one as i32 as u8);
                back[i] = moved * param.scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::Range;
    use pt2onnx_tensor::DType;

    #[test]
    fn sums() {
        let (scale, restored) = (DType::F32, DType::F32);
        for (unsigned, zero) in [(false, 0), (true, 128)] {
            let scheme =
                Scheme { format: Format::Int8, symmetric: true, unsigned, scale, restored };
            for (numbers, expected) in [
                ([127.0, 0.4, 0.3, 0.45, 0.4], [127, 1, 0, 1, 0]),
                ([127.0, -0.4, -0.3, -0.45, -0.4], [127, -1, 0, -1, 0]),
                ([-127.0, 0.5, 1.5, -0.6, 0.0], [-127, 0, 2, -1, 0]),
                ([127.0, 0.1, 0.1, 0.1, 0.1], [127, 0, 0, 0, 0]),
            ] {
                let param = scheme.param(Range::of(&numbers));
                let (mut codes, mut back) = ([0; 5], [0.0; 5]);
                scheme.encode(&numbers, param, &mut codes, &mut back);
                scheme.balance(&numbers, param, &mut codes, &mut back);
                assert_eq!(codes.map(|code| code.wrapping_sub(zero) as i8), expected);
                assert_eq!(back, expected.map(f32::from));
            }
        }
    }
}
