//! Compares outputs with expected ones: types, shapes, values.

use half::{bf16, f16};
use pt2onnx_tensor::{DType, Element, Tensor};
use std::fmt;

/// The largest allowed difference from an expected number, `atol + rtol * |expected|`, as in
/// NumPy's `isclose`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Tolerance relative to the expected number.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
}

impl Tolerance {
    /// The tolerance for a type, wide enough for different orders of summation; `None` for types
    /// that are compared exactly.
    pub fn of(dtype: DType) -> Option<Self> {
        let (rtol, atol) = match dtype {
            DType::F64 => (1e-6, 1e-8),
            DType::F32 => (1e-3, 1e-4),
            DType::F16 => (1e-2, 1e-2),
            DType::BF16 => (4e-2, 4e-2),
            _ => return None,
        };
        Some(Self { rtol, atol })
    }
}

/// The results of comparing all outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The outputs, in the model's order.
    pub outputs: Vec<OutputCheck>,
}

/// The result of comparing one output with the expected one.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputCheck {
    /// Its name.
    pub name: String,
    /// Whether it is as expected, or how it differs.
    pub verdict: Verdict,
    /// The largest absolute difference of numbers that are finite on both sides; 0 if nothing was
    /// compared.
    pub max_abs: f64,
    /// The largest difference relative to the expected number, where that is not 0.
    pub max_rel: f64,
}

/// Whether an output is as expected, or how it differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// All numbers are within tolerance. NaN and infinities are where they are expected.
    Close,
    /// Some numbers are not within tolerance.
    Differs {
        /// The number of them.
        count: usize,
        /// The number of elements.
        elements: usize,
        /// The index of the first one, in row-major order.
        first: usize,
        /// How many of them are NaN or infinite on a side.
        not_finite: usize,
    },
    /// The expected tensor and the output hold nothing but NaN, which proves nothing.
    OnlyNan,
    /// The element types differ.
    Type {
        /// The model's.
        got: DType,
        /// The expected one.
        expected: DType,
    },
    /// The shapes differ.
    Shape {
        /// The model's.
        got: Vec<usize>,
        /// The expected one.
        expected: Vec<usize>,
    },
    /// The expected tensor has no values, or an element type that cannot be compared.
    Unreadable,
}

impl Verification {
    /// Compares outputs with the expected ones, one by one. Without a tolerance, that of each
    /// element type is used. Surplus outputs of one side are not compared.
    pub fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
        got: &[Tensor],
        expected: &[Tensor],
        tolerance: Option<Tolerance>,
    ) -> Self {
        let pairs = names.into_iter().zip(got.iter().zip(expected));
        let checks = pairs.map(|(name, (g, e))| OutputCheck::new(name, g, e, tolerance));
        Self { outputs: checks.collect() }
    }

    /// Whether all outputs are as expected, and none is of NaN only, which would prove nothing.
    pub fn passed(&self) -> bool {
        self.outputs.iter().all(|o| o.verdict == Verdict::Close)
    }
}

/// One line for each output: `y: within tolerance, differs by at most 1.2e-7 (relative 3e-6)`.
impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, output) in self.outputs.iter().enumerate() {
            let line = if i == 0 { "" } else { "\n" };
            write!(f, "{line}{output}")?;
        }
        Ok(())
    }
}

impl fmt::Display for OutputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, abs, rel) = (&self.name, self.max_abs, self.max_rel);
        let most = format!("by at most {abs:.2e} (relative {rel:.2e})");
        let (far, others) = (format!("differs {most}"), format!("differ {most}"));
        match &self.verdict {
            Verdict::Close => write!(f, "{name}: within tolerance, {far}"),
            Verdict::Differs { count, elements, first, not_finite } => {
                write!(
                    f,
                    "{name}: {count} of {elements} numbers out of tolerance, the first at {first}; "
                )?;
                match not_finite {
                    0 => write!(f, "{far}"),
                    n => write!(f, "{n} are NaN or infinite on a side, the finite ones {others}"),
                }
            }
            Verdict::OnlyNan => {
                write!(f, "{name}: nothing but NaN is expected, which shows nothing")
            }
            Verdict::Type { got, expected } => {
                write!(f, "{name}: type {got}, expected {expected}")
            }
            Verdict::Shape { got, expected } => {
                write!(f, "{name}: shape {got:?}, expected {expected:?}")
            }
            Verdict::Unreadable => write!(f, "{name}: the values expected cannot be read"),
        }
    }
}

impl OutputCheck {
    /// Whether the output is as expected. It may be of NaN only.
    pub fn is_expected(&self) -> bool {
        matches!(self.verdict, Verdict::Close | Verdict::OnlyNan)
    }

    /// Compares an output with the expected one. Without a tolerance, that of the element type is
    /// used.
    pub fn new(name: &str, got: &Tensor, expected: &Tensor, tolerance: Option<Tolerance>) -> Self {
        let mut check =
            Self { name: name.to_owned(), verdict: Verdict::Close, max_abs: 0.0, max_rel: 0.0 };
        check.verdict = if got.dtype() != expected.dtype() {
            Verdict::Type { got: got.dtype(), expected: expected.dtype() }
        } else if got.shape() != expected.shape() {
            Verdict::Shape { got: got.shape().to_vec(), expected: expected.shape().to_vec() }
        } else {
            check.compare(got, expected, tolerance)
        };
        check
    }

    fn compare(&mut self, got: &Tensor, expected: &Tensor, given: Option<Tolerance>) -> Verdict {
        let tolerance = Tolerance::of(expected.dtype()).map(|own| given.unwrap_or(own));
        let (Some(g), Some(e)) = (numbers(got), numbers(expected)) else {
            return Verdict::Unreadable;
        };
        let (mut count, mut first, mut not_finite) = (0, None, 0);
        for (i, (&(g, g_bits), &(e, e_bits))) in g.iter().zip(&e).enumerate() {
            let difference = (g - e).abs();
            if difference.is_finite() {
                self.max_abs = self.max_abs.max(difference);
                if e != 0.0 {
                    self.max_rel = self.max_rel.max(difference / e.abs());
                }
            }
            let close = match tolerance {
                None => g_bits == e_bits,
                Some(Tolerance { rtol, atol }) => {
                    g == e
                        || (g.is_nan() && e.is_nan())
                        || (e.is_finite() && difference <= atol + rtol * e.abs())
                }
            };
            if !close {
                count += 1;
                not_finite += usize::from(!difference.is_finite());
                first.get_or_insert(i);
            }
        }
        match first {
            None if !e.is_empty() && e.iter().all(|(x, _)| x.is_nan()) => Verdict::OnlyNan,
            None => Verdict::Close,
            Some(first) => Verdict::Differs { count, elements: e.len(), first, not_finite },
        }
    }
}

/// Each element as the nearest double, in row-major order; `None` if the tensor has no values, or a
/// type that is not numeric.
pub fn as_doubles(tensor: &Tensor) -> Option<Vec<f64>> {
    Some(numbers(tensor)?.into_iter().map(|(number, _)| number).collect())
}

/// Each element as the nearest double, and exactly unless it is a float.
fn numbers(t: &Tensor) -> Option<Vec<(f64, i128)>> {
    fn of<T: Element>(t: &Tensor, f: impl Fn(T) -> (f64, i128)) -> Option<Vec<(f64, i128)>> {
        Some(t.to_vec::<T>()?.into_iter().map(f).collect())
    }
    macro_rules! float {
        ($t:ty) => {
            of::<$t>(t, |x| (f64::from(x), 0))
        };
    }
    macro_rules! int {
        ($t:ty) => {
            of::<$t>(t, |x| (x as f64, i128::from(x)))
        };
    }
    match t.dtype() {
        DType::F64 => float!(f64),
        DType::F32 => float!(f32),
        DType::F16 => float!(f16),
        DType::BF16 => float!(bf16),
        DType::I64 => int!(i64),
        DType::I32 => int!(i32),
        DType::I16 => int!(i16),
        DType::I8 => int!(i8),
        DType::U64 => int!(u64),
        DType::U32 => int!(u32),
        DType::U16 => int!(u16),
        DType::U8 => int!(u8),
        DType::Bool => of::<bool>(t, |x| (f64::from(u8::from(x)), i128::from(x))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        const NAN: f32 = f32::NAN;
        const INF: f32 = f32::INFINITY;
        let floats = |x: &[f32]| Tensor::from_slice(vec![x.len()], x).expect("a tensor");
        let check = |got: &Tensor, expected: &Tensor| {
            OutputCheck::new("y", got, expected, None).to_string()
        };
        let of = |got: &[f32], expected: &[f32]| check(&floats(got), &floats(expected));
        let close = "y: within tolerance, differs by at most ";
        for (got, expected, text) in [
            (&[1.0, 2.0][..], &[1.0, 2.001][..], format!("{close}1.00e-3 (relative 5.00e-4)")),
            (&[1.0, NAN], &[1.0, NAN], format!("{close}0.00e0 (relative 0.00e0)")),
            (&[-INF, 0.0], &[-INF, 0.0], format!("{close}0.00e0 (relative 0.00e0)")),
            (&[], &[], format!("{close}0.00e0 (relative 0.00e0)")),
            (
                &[NAN, NAN],
                &[NAN, NAN],
                "y: nothing but NaN is expected, which shows nothing".to_owned(),
            ),
            (
                &[NAN, INF, 5.0],
                &[1.0, -INF, 4.0],
                "y: 3 of 3 numbers out of tolerance, the first at 0; 2 are NaN or infinite on a side, \
                 the finite ones differ by at most 1.00e0 (relative 2.50e-1)"
                    .to_owned(),
            ),
            (&[1.0], &[1.0, 1.0], "y: shape [1], expected [2]".to_owned()),
        ] {
            assert_eq!(of(got, expected), text);
        }
        let ints = |x: &[i64]| Tensor::from_slice(vec![x.len()], x).expect("a tensor");
        assert_eq!(check(&ints(&[1]), &floats(&[1.0])), "y: type int64, expected float32");
        // One apart, and the same as doubles.
        let (a, b) = (ints(&[i64::MAX]), ints(&[i64::MAX - 1]));
        assert!(matches!(
            OutputCheck::new("y", &a, &b, None).verdict,
            Verdict::Differs { count: 1, .. }
        ));
    }
}
