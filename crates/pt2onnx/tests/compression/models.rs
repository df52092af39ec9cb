//! Makes models and inputs of random numbers, and compresses models.

use pt2onnx::{Error, OnnxProgram, Options, ir::Model, tensor::Tensor, writer};
use std::collections::BTreeMap;

/// Numbers of a weight, between -1 and 1: `{32,16}` in a text.
pub fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The text of a model of `models.txt`.
pub fn text(name: &str) -> &'static str {
    let mut models = include_str!("models.txt").split("\n== ").skip(1);
    let texts = models.find_map(|model| {
        let (head, text) = model.split_once('\n')?;
        (head.split(':').next() == Some(name)).then_some(text)
    });
    texts.unwrap_or_else(|| panic!("no model {name}"))
}

/// The lines of a table, in columns.
pub fn rows<const N: usize>(table: &'static str) -> Vec<[&'static str; N]> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let columns = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
    rows.map(|row| columns(row).try_into().unwrap_or_else(|_| panic!("{row}"))).collect()
}

/// A model of a text, in which `{32,16}` stands for a constant's sizes and elements.
pub fn model(opset: u32, text: &str) -> Model {
    let mut out = format!("<ir_version: 10, opset_import: [\"\" : {opset}]>\n");
    for (i, part) in text.split('{').enumerate() {
        let sizes = part.split_once('}').filter(|(s, _)| {
            i > 0 && s.contains(',') && s.chars().all(|c| c.is_ascii_digit() || c == ',')
        });
        let Some((sizes, rest)) = sizes else {
            out += if i > 0 { "{" } else { "" };
            out += part;
            continue;
        };
        let count = sizes.split(',').map(|s| s.trim().parse::<usize>().unwrap()).product();
        let elements: Vec<String> =
            numbers(count, i as u32).iter().map(|x| format!("{x:?}")).collect();
        out += &format!("{{{}}}{rest}", elements.join(", "));
    }
    out.parse().unwrap_or_else(|e| panic!("{e}"))
}

pub fn program(model: &Model) -> OnnxProgram {
    OnnxProgram::from_bytes(writer::to_bytes_unverified(model).unwrap(), []).unwrap()
}

/// Options of words such as `quantize=int8` and `signed`.
pub fn options(words: &str) -> Options {
    let value = |key: &str, text: &str| match text.parse::<i64>() {
        Ok(number) => number.into(),
        _ if key.ends_with("clude") => text.split(',').collect(),
        _ => text.into(),
    };
    let option = |word: &str| match word.split_once('=') {
        Some((key, text)) => (key.to_owned(), value(key, text)),
        None => (word.to_owned(), true.into()),
    };
    let all: serde_json::Map<_, serde_json::Value> = words.split(' ').map(option).collect();
    serde_json::from_value(all.into()).unwrap()
}

pub fn compressed(model: &Model, words: &str) -> Result<OnnxProgram, Error> {
    let mut program = program(model);
    program.compress(&options(words).compression())?;
    Ok(program)
}

/// Compares how often operators are there with a row's counts: `Cast=3`.
pub fn assert_counts(program: &OnnxProgram, counts: &str, what: &str) {
    let found = operators(program);
    for (op, count) in counts.split_whitespace().filter_map(|count| count.split_once('=')) {
        let there = found.get(op).copied().unwrap_or(0).to_string();
        assert_eq!(there, count, "{op} in {what}: {found:?}");
    }
}

/// Compares floats. The tolerance is relative to the largest element.
pub fn assert_near(wanted: &[Tensor], got: &[Tensor], tolerance: f32, what: &str) {
    for (wanted, got) in wanted.iter().zip(got) {
        assert_eq!((wanted.dtype(), wanted.shape()), (got.dtype(), got.shape()), "{what}");
        let (wanted, got) = (wanted.to_vec::<f32>().unwrap(), got.to_vec::<f32>().unwrap());
        let largest = wanted.iter().fold(0f32, |m, x| m.max(x.abs()));
        let error = wanted.iter().zip(&got).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
        assert!(error <= tolerance * largest, "{what}: {error} of {largest}");
    }
}

pub fn operators(program: &OnnxProgram) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for node in program.model().all_nodes() {
        *all.entry(program.model()[node].op().to_owned()).or_default() += 1;
    }
    all
}

pub fn inputs(model: &Model) -> Vec<Tensor> {
    let types = model.inputs().iter().map(|v| model[*v].ty.as_ref().unwrap().as_tensor().unwrap());
    types
        .map(|ty| {
            let sizes = ty.shape.as_ref().unwrap().iter();
            let sizes: Vec<usize> =
                sizes.map(|e| e.as_int().map_or(3, |i| usize::try_from(i).unwrap())).collect();
            let count = sizes.iter().product();
            match ty.dtype.name() {
                "bool" => Tensor::scalar(false),
                "int64" => {
                    let all: Vec<i64> = (0..count as i64).map(|i| i * 7 % 40).collect();
                    Tensor::from_slice(sizes, &all).unwrap()
                }
                _ => Tensor::from_slice(sizes, &numbers(count, 99)).unwrap(),
            }
        })
        .collect()
}

/// The elements of constants, by name.
pub fn constants(model: &Model) -> BTreeMap<String, Vec<u8>> {
    let used = model.values().filter(|(_, data)| data.uses().len() > 0);
    let all =
        used.filter_map(|(_, data)| Some((data.name.as_ref()?.to_string(), data.constant()?)));
    all.map(|(name, tensor)| (name, tensor.to_bytes().into_owned())).collect()
}
