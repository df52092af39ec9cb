//! Ranges and moments of activations: the model runs on samples in ONNX Runtime.

use crate::{
    error::RunError,
    session::{Dim, InputType, Session, SessionOptions},
};
use indexmap::IndexMap;
use pt2onnx_compress::{
    Calibrated, Calibration, Observer, Options, Quantize, activations, moments,
};
use pt2onnx_ir::{Model, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashMap;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Runs the model on the samples of files, and looks at the activations that `compression`
/// quantises, or whose products it does ([`Calibrated`]). Activations that are not finite on the
/// samples are left out: those of 8 bits stay floats. `read` reads a file: an array for each input,
/// by its name, or `input.0`, `input.1`, or `arr_0`, `arr_1`. An array with one dimension more than
/// the input, in front, has several samples, and so has one with several times the sizes of a
/// static first dimension.
///
/// # Errors
/// [`RunError::Samples`], and those of [`Session::new`] and [`Session::run`].
pub fn calibrate<E: fmt::Display>(
    model: &Model,
    compression: &Options,
    method: Calibration,
    files: &[PathBuf],
    read: impl Fn(&Path) -> Result<IndexMap<String, Tensor>, E>,
) -> Result<Calibrated, RunError> {
    let mut model = model.clone();
    // As before compression, so that both find the same activations.
    pt2onnx_opt::infer_types(&mut model);
    let mut moments = match compression.quantize {
        Some(Quantize::Int4) => moments(&model, compression),
        _ => FxHashMap::default(),
    };
    let mut observers: IndexMap<Value, Observer> = IndexMap::new();
    watch(model, compression, files, read, |value, tensor| {
        let numbers = tensor.to_vec::<f32>().unwrap_or_default();
        match moments.get_mut(&value) {
            Some(moments) => moments.see(&numbers),
            None => observers.entry(value).or_insert_with(|| Observer::new(method)).see(&numbers),
        }
    })?;
    let ranges = observers.iter().filter_map(|(value, seen)| Some((*value, seen.range()?)));
    Ok(Calibrated { ranges: ranges.collect(), moments, ..Calibrated::default() })
}

/// Calls `see` with the activations on each sample.
fn watch<E: fmt::Display>(
    mut model: Model,
    compression: &Options,
    files: &[PathBuf],
    read: impl Fn(&Path) -> Result<IndexMap<String, Tensor>, E>,
    mut see: impl FnMut(Value, &Tensor),
) -> Result<(), RunError> {
    let wanted = activations(&model, compression).map_err(RunError::Compress)?;
    let inputs = model.inputs().to_vec();
    // Inputs are known without running the model.
    let (given, made): (Vec<Value>, Vec<Value>) =
        wanted.into_iter().partition(|value| inputs.contains(value));
    let types = Session::new(&model, &SessionOptions::default(), &[])?.inputs()?;
    if !made.is_empty() {
        model.set_outputs(Model::MAIN, &made);
        model.assign_names();
    }
    let mut session = Session::new(&model, &SessionOptions::default(), &[])?;
    for file in files {
        let samples = Samples::new(file, read(file), &types)?;
        for number in 0..samples.count {
            let sample = samples.sample(number);
            let results = if made.is_empty() { Vec::new() } else { session.run(&sample)? };
            let own = given.iter().filter_map(|value| {
                let at = inputs.iter().position(|input| input == value)?;
                Some((*value, sample.get(at)?.clone()))
            });
            for (value, tensor) in made.iter().copied().zip(results).chain(own) {
                see(value, &tensor);
            }
        }
    }
    Ok(())
}

/// The samples of a file.
struct Samples {
    /// For each input, its samples in one array.
    arrays: Vec<Tensor>,
    types: Vec<InputType>,
    count: usize,
}

impl Samples {
    fn new(
        file: &Path,
        arrays: Result<IndexMap<String, Tensor>, impl fmt::Display>,
        types: &[InputType],
    ) -> Result<Self, RunError> {
        let wrong = |reason: String| RunError::Samples { path: file.to_owned(), reason };
        // The error of a file may begin with its path, which is shown already.
        let at = format!("{}: ", file.display());
        let unread = |error: String| wrong(error.strip_prefix(&at).unwrap_or(&error).to_owned());
        let mut arrays = arrays.map_err(|e| unread(e.to_string()))?;
        let all = |start: Option<&str>| {
            let names = types.iter().enumerate().map(|(i, input)| match start {
                Some(start) => format!("{start}{i}"),
                None => input.name.clone(),
            });
            let names: Vec<String> = names.collect();
            names.iter().all(|name| arrays.contains_key(name)).then_some(names)
        };
        let Some(names) = [None, Some("input."), Some("arr_")].into_iter().find_map(all) else {
            let inputs: Vec<&str> = types.iter().map(|input| input.name.as_str()).collect();
            let has: Vec<&str> = arrays.keys().map(String::as_str).collect();
            return Err(wrong(format!(
                "it has the arrays {}, but the model takes {}: name the arrays as the inputs",
                has.join(", "),
                inputs.join(", ")
            )));
        };
        let arrays: Vec<Tensor> =
            names.iter().filter_map(|name| arrays.shift_remove(name)).collect();
        let mut count = None;
        for (array, input) in arrays.iter().zip(types) {
            let own = samples_in(array, input).ok_or_else(|| {
                let (dtype, shape) = (array.dtype(), array.shape());
                let takes = input.dims.iter().map(|dim| match dim {
                    Dim::Size(size) => size.to_string(),
                    Dim::Symbol(name) if name.is_empty() => "?".to_owned(),
                    Dim::Symbol(name) => name.clone(),
                });
                let takes = takes.collect::<Vec<_>>().join(", ");
                wrong(format!(
                    "the input {} takes {}[{takes}], but {dtype}{shape:?} is given",
                    input.name, input.dtype
                ))
            })?;
            if count.is_some_and(|count| count != own) {
                return Err(wrong("its arrays have different numbers of samples".to_owned()));
            }
            count = Some(own);
        }
        match count.unwrap_or(1) {
            0 => Err(wrong("it has no samples: a first dimension of 0".to_owned())),
            count => Ok(Self { arrays, types: types.to_vec(), count }),
        }
    }

    /// The inputs of one sample.
    fn sample(&self, number: usize) -> Vec<Tensor> {
        let arrays = self.arrays.iter().zip(&self.types);
        arrays.map(|(array, input)| part(array, input, number, self.count)).collect()
    }
}

/// How many samples an array has for an input; `None` if it does not fit.
fn samples_in(array: &Tensor, input: &InputType) -> Option<usize> {
    let fits = |sizes: &[usize], dims: &[Dim]| {
        let pairs = dims.iter().zip(sizes);
        sizes.len() == dims.len()
            && pairs.into_iter().all(|(dim, size)| !matches!(dim, Dim::Size(s) if s != size))
    };
    let (shape, dims) = (array.shape(), input.dims.as_slice());
    if array.dtype() != input.dtype {
        return None;
    }
    if fits(shape, dims) {
        return Some(1);
    }
    let (&first, rest) = shape.split_first()?;
    if fits(rest, dims) {
        return Some(first);
    }
    match dims.split_first()? {
        (Dim::Size(one), others)
            if fits(rest, others) && *one > 0 && first.is_multiple_of(*one) =>
        {
            Some(first / one)
        }
        _ => None,
    }
}

/// One sample of an array.
fn part(array: &Tensor, input: &InputType, number: usize, count: usize) -> Tensor {
    let cut = || {
        let (&first, rest) = array.shape().split_first()?;
        let more = array.rank() > input.dims.len();
        let shape = if more { rest.to_vec() } else { [&[first / count], rest].concat() };
        if let Some(texts) = array.as_strings() {
            let each = texts.len() / count;
            let own = texts.get(number * each..(number + 1) * each)?;
            return Tensor::strings(shape, own).ok();
        }
        let strides = array.strides();
        let (&step, steps) = strides.split_first()?;
        let offset = array.offset() + number * (first / count) * step;
        let storage = array.storage()?.clone();
        let strides = if more { steps } else { &strides };
        Tensor::strided(array.dtype(), shape, strides.to_vec(), offset, storage).ok()
    };
    let whole = count == 1 && array.rank() == input.dims.len();
    if whole { array.clone() } else { cut().unwrap_or_else(|| array.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_tensor::DType;

    #[test]
    fn samples_of_texts_may_be_empty() {
        let dims = vec![Dim::Size(1), Dim::Symbol("n".to_owned())];
        let input = InputType { name: "x".to_owned(), dtype: DType::String, dims };
        let sample = |sizes: [usize; 2], texts: &[&'static str]| {
            let texts: Vec<_> = texts.iter().map(|text| (*text).into()).collect();
            part(&Tensor::strings(sizes, texts).unwrap(), &input, 1, 2)
        };
        assert_eq!(sample([2, 0], &[]).shape(), [1, 0]);
        assert_eq!(sample([2, 1], &["a", "b"]).as_strings().unwrap(), ["b"]);
    }
}
