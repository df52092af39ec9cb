//! Runs a model in rten: `pt2onnx-rten MODEL FOLDER`.
//!
//! `FOLDER/inputs` has a line for each input: its name, element type, sizes separated by commas,
//! and the file of its bytes. Outputs become `FOLDER/output-I`, and lines of `FOLDER/outputs`.
//! rten has 32 bits for integers: int64 and bool become int32.

use anyhow::{Context, Result, bail};
use rten::{Model, Value};
use rten_tensor::prelude::*;
use std::{env, fs, path::Path};

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [model, folder] = &args[..] else { bail!("usage: pt2onnx-rten MODEL FOLDER") };
    let (model, folder) = (Model::load_file(model)?, Path::new(folder));
    let mut inputs = Vec::new();
    for line in fs::read_to_string(folder.join("inputs"))?.lines() {
        let [name, dtype, sizes, file] = line.split(' ').collect::<Vec<_>>()[..] else {
            bail!("{line}: not four words");
        };
        let sizes = sizes.split(',').filter(|s| !s.is_empty()).map(str::parse);
        let sizes: Vec<usize> = sizes.collect::<Result<_, _>>()?;
        let value = read(dtype, &sizes, &fs::read(folder.join(file))?)?;
        inputs.push((model.node_id(name)?, value.into()));
    }
    let outputs = model.run(inputs, model.output_ids(), None)?;
    let mut lines = String::new();
    for (i, output) in outputs.into_iter().enumerate() {
        let (dtype, sizes, bytes) = written(output)?;
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        lines.push_str(&format!("{dtype} {}\n", sizes.join(",")));
        fs::write(folder.join(format!("output-{i}")), bytes)?;
    }
    Ok(fs::write(folder.join("outputs"), lines)?)
}

fn read(dtype: &str, sizes: &[usize], bytes: &[u8]) -> Result<Value> {
    let wide = |b: &[u8; 8]| i32::try_from(i64::from_le_bytes(*b)).context("beyond 32 bits");
    Ok(match dtype {
        "float32" => {
            let all = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            Value::from_shape(sizes, all)?
        }
        "int64" => {
            let all = bytes.as_chunks().0.iter().map(wide).collect::<Result<_>>()?;
            Value::from_shape::<i32>(sizes, all)?
        }
        "int32" => {
            let all = bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
            Value::from_shape::<i32>(sizes, all)?
        }
        "bool" => {
            Value::from_shape::<i32>(sizes, bytes.iter().map(|b| i32::from(*b)).collect())?
        }
        "uint8" => Value::from_shape(sizes, bytes.to_vec())?,
        other => bail!("rten has no {other}"),
    })
}

fn written(value: Value) -> Result<(&'static str, Vec<usize>, Vec<u8>)> {
    let sizes = value.shape().to_vec();
    let (dtype, bytes): (_, Vec<u8>) = match &value {
        Value::FloatTensor(t) => ("float32", t.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Value::Int32Tensor(t) => ("int32", t.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Value::Int8Tensor(t) => ("int8", t.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Value::UInt8Tensor(t) => ("uint8", t.iter().copied().collect()),
        other => bail!("an output is {other:?}"),
    };
    Ok((dtype, sizes, bytes))
}
