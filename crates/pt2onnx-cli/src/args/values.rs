//! Parsing the values of flags.

use crate::files::is_folder;
use pt2onnx::{OptionValue, Pairs};
use std::{num::NonZeroUsize, path::PathBuf};

/// The seed of random inputs.
pub(super) fn input_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a number from 0 to {}", u64::MAX))
}

pub(super) fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a number of 1 or more".to_owned())
}

pub(super) fn report(text: &str) -> Result<PathBuf, String> {
    let error = "the name of a report must end in .md, .json, .html, or in / for a folder";
    if is_folder(text.as_ref()) {
        Ok(text.into())
    } else {
        file(text, &["md", "json", "html"], error)
    }
}

pub(super) fn page(text: &str) -> Result<PathBuf, String> {
    file(text, &["html"], "the name of a page must end in .html")
}

pub(super) fn arrays(text: &str) -> Result<PathBuf, String> {
    file(text, &["npz", "safetensors"], "the name must end in .npz or .safetensors")
}

/// A file whose name has one of these endings.
fn file(text: &str, endings: &[&str], error: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| endings.contains(&ending)) {
        Ok(path)
    } else {
        Err(error.to_owned())
    }
}

pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| *n >= 0.0);
    number.ok_or_else(|| "a tolerance is a number of 0 or more".to_owned())
}

/// `KEY=VALUE`, as options read it.
pub(super) fn pair<T>(text: &str) -> Result<(String, T), String>
where
    Pairs<T>: OptionValue,
{
    let entry = <Pairs<T>>::parse(&[text])?.pop();
    entry.ok_or_else(|| "it must have the form KEY=VALUE".to_owned())
}

/// The names of the values at the ends of a part of a model.
#[derive(Clone, Debug)]
pub struct Cut {
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
}

/// A `:` may be part of names: then it is the one with which both sides are lists of names.
pub(super) fn cut(text: &str) -> Result<Cut, String> {
    let names = |list: &str| list.split(',').map(str::to_owned).collect::<Vec<_>>();
    match text.split_once(':') {
        Some((inputs, outputs)) if !inputs.is_empty() && !outputs.is_empty() => {
            Ok(Cut { inputs: names(inputs), outputs: names(outputs) })
        }
        _ => Err("it must have the form INPUT,..:OUTPUT,..".to_owned()),
    }
}

/// Two models: `A.onnx:B.onnx`. A `:` may be part of paths: then it is the one after `.onnx`.
pub(super) fn models(text: &str) -> Result<(PathBuf, PathBuf), String> {
    let split = match text.find(".onnx:") {
        Some(at) => text.split_at_checked(at + ".onnx".len()).map(|(a, b)| (a, &b[1..])),
        None => text.split_once(':'),
    };
    match split.filter(|(a, b)| !a.is_empty() && !b.is_empty()) {
        Some((a, b)) => Ok((a.into(), b.into())),
        None => Err("it must have the form A.onnx:B.onnx".to_owned()),
    }
}
