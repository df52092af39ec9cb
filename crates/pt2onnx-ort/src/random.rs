//! Draws random inputs for a model.

use crate::{
    error::RunError,
    session::{Dim, InputType},
};
use half::{bf16, f16};
use pt2onnx_tensor::{DType, Tensor};
use std::collections::HashMap;

/// Limit of elements of a random input.
const MOST: usize = 1 << 30;

/// An input for each type. Floats are from -1 to 1, integers 0 or 1, which are also valid as
/// indices. `size` chooses the size of each symbol; dimensions of the same name have the same size.
/// The same seed gives the same numbers.
///
/// # Errors
/// [`RunError::Input`]: an input would be too large.
pub fn random_inputs(
    types: &[InputType],
    seed: u64,
    mut size: impl FnMut(&str) -> usize,
) -> Result<Vec<Tensor>, RunError> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut numbers = Numbers(seed);
    let mut inputs = Vec::with_capacity(types.len());
    for input in types {
        let shape = input.dims.iter().map(|dim| match dim {
            Dim::Size(size) => *size,
            Dim::Symbol(name) if name.is_empty() => size(name),
            Dim::Symbol(name) => *known.entry(name).or_insert_with(|| size(name)),
        });
        let made = numbers.tensor(input.dtype, shape.collect());
        let failed = |reason| RunError::Input { name: input.name.clone(), reason };
        inputs.push(made.map_err(failed)?);
    }
    Ok(inputs)
}

/// Pseudorandom numbers: SplitMix64 (G. Steele, D. Lea and C. Flood, 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From -1 to 1.
    fn float(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn tensor(&mut self, dtype: DType, shape: Vec<usize>) -> Result<Tensor, String> {
        let count = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        let count = count.filter(|&n| n <= MOST).ok_or_else(|| {
            format!("random inputs of sizes {shape:?} would have more than {MOST} elements")
        })?;
        macro_rules! made {
            ($make:expr) => {
                Tensor::from_slice(shape, &(0..count).map(|_| $make).collect::<Vec<_>>())
            };
        }
        let made = match dtype {
            DType::F64 => made!(self.float()),
            DType::F32 => made!(self.float() as f32),
            DType::F16 => made!(f16::from_f64(self.float())),
            DType::BF16 => made!(bf16::from_f64(self.float())),
            DType::Bool => made!(self.next() & 1 == 1),
            DType::U8 => made!((self.next() & 1) as u8),
            DType::I8 => made!((self.next() & 1) as i8),
            DType::U16 => made!((self.next() & 1) as u16),
            DType::I16 => made!((self.next() & 1) as i16),
            DType::U32 => made!((self.next() & 1) as u32),
            DType::I32 => made!((self.next() & 1) as i32),
            DType::U64 => made!(self.next() & 1),
            DType::String => {
                return Err("it takes texts, which are not drawn: give some".to_owned());
            }
            _ => made!((self.next() & 1) as i64),
        };
        made.map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_a_name_have_one_size() {
        let input = |dtype, dims: &[&str]| InputType {
            name: "x".to_owned(),
            dtype,
            dims: dims.iter().map(|d| Dim::Symbol((*d).to_owned())).collect(),
        };
        let types = [input(DType::F32, &["a", "b"]), input(DType::I64, &["b", "", ""])];
        let mut sizes = 1..;
        let made = random_inputs(&types, 7, |_| sizes.next().unwrap_or(0)).expect("tensors");
        assert_eq!(made.iter().map(Tensor::shape).collect::<Vec<_>>(), [&[1, 2][..], &[2, 3, 4]]);
        assert!(made[0].to_vec::<f32>().expect("floats").iter().all(|x| x.abs() <= 1.0));
        assert!(made[1].to_vec::<i64>().expect("integers").iter().all(|x| (0..2).contains(x)));
        let again = random_inputs(&types[..1], 7, |_| 2).expect("tensors");
        assert_eq!(again[0].to_vec::<f32>().map(|x| x[..2].to_vec()), made[0].to_vec());
    }
}
