//! Maps a file of little-endian float32 numbers, and prints their mean. Pages are read when they
//! are needed. `cargo run -p pt2onnx-tensor --example mean NUMBERS.bin`

use pt2onnx_tensor::{DType, Storage, Tensor, open};
use std::{io::Write, path::PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("no NUMBERS.bin")?);
    let storage = Storage::map(open(&path)?, path)?;
    let elements = storage.bytes().len() / 4;
    let tensor = Tensor::strided(DType::F32, vec![elements], vec![1], 0, storage)?;
    let numbers = tensor.to_vec::<f32>().ok_or("no numbers")?;
    let sum: f64 = numbers.iter().map(|&number| f64::from(number)).sum();
    writeln!(std::io::stdout(), "{elements} numbers, mean {}", sum / elements as f64)?;
    Ok(())
}
