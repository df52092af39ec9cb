//! Parsing the values of flags.

use crate::files::is_folder;
use pt2onnx::{IR_VERSIONS, OPSETS, OutputNames, parse_bytes, writer::is_alignment};
use std::{fmt::Display, num::NonZeroUsize, ops::RangeInclusive, path::PathBuf};

pub(super) fn alignment(text: &str) -> Result<u64, String> {
    let aligned = parse_bytes(text)?;
    if is_alignment(aligned) {
        Ok(aligned)
    } else {
        Err("an alignment must be a power of two of at most 1GiB".to_owned())
    }
}

pub(super) fn seed(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| no_seed(u32::MAX))
}

/// The seed of random inputs.
pub(super) fn input_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| no_seed(u64::MAX))
}

fn no_seed(last: impl Display) -> String {
    format!("a seed is a number from 0 to {last}")
}

pub(super) fn model_version(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "a version is a whole number".to_owned())
}

pub(super) fn level(text: &str) -> Result<u8, String> {
    let level = text.parse().ok().filter(|level| *level <= 2);
    level.ok_or_else(|| "there is no such level; give 0, 1 or 2".to_owned())
}

/// How many elements, or how many share something.
pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "give a number of 0 or more".to_owned())
}

pub(super) fn accuracy(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "give a number from 0 to 4".to_owned())
}

pub(super) fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a number of 1 or more".to_owned())
}

pub(super) fn report(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|e| e.to_str()) {
        _ if is_folder(&path) => Ok(path),
        Some("md" | "json" | "html") => Ok(path),
        _ => {
            Err("the name of a report must end in .md, .json, .html, or in / for a folder"
                .to_owned())
        }
    }
}

pub(super) fn page(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|e| e.to_str()) {
        Some("html") => Ok(path),
        _ => Err("the name of a page must end in .html".to_owned()),
    }
}

pub(super) fn arrays(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|e| e.to_str()) {
        Some("npz" | "safetensors") => Ok(path),
        _ => Err("the name must end in .npz or .safetensors".to_owned()),
    }
}

pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| *n >= 0.0);
    number.ok_or_else(|| "a tolerance is a number of 0 or more".to_owned())
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it must have the form KEY=VALUE".to_owned()),
    }
}

/// The names of the values that a part of a model begins and ends with.
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

pub(super) fn names(text: &str) -> Result<OutputNames, String> {
    Ok(match text {
        "from-tree" => OutputNames::FromTree,
        names => OutputNames::List(names.split(',').map(|name| name.trim().to_owned()).collect()),
    })
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.rsplit_once('=').map(|(a, b)| (a.trim(), b.trim()));
    let pair = pair.filter(|(a, b)| !a.is_empty() && !b.is_empty());
    let (a, b) = pair.ok_or("there must be text on both sides of `=`")?;
    Ok((a.to_owned(), b.to_owned()))
}

pub(super) fn version(text: &str) -> Result<(String, u32), String> {
    let (domain, version) = pair(text)?;
    let number = version.parse().ok().filter(|n| *n > 0);
    let number = number.ok_or_else(|| format!("`{version}` is not a version number"))?;
    Ok((domain, number))
}

pub(super) fn size(text: &str) -> Result<(String, i64), String> {
    let (dim, size) = pair(text)?;
    let size = size.parse().map_err(|_| format!("`{size}` is not a number"))?;
    Ok((dim, size))
}

/// The shape of an input. That of a scalar is empty; names may hold `=`.
pub(super) fn shape(text: &str) -> Result<(String, String), String> {
    let pair = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let (name, sizes) = pair.ok_or("it must have the form INPUT=SIZE,..")?;
    Ok((name.trim().to_owned(), sizes.trim().to_owned()))
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

pub(super) fn opset(text: &str) -> Result<u32, String> {
    among("opsets", &OPSETS, text)
}

pub(super) fn ir_version(text: &str) -> Result<u32, String> {
    among("IR versions", &IR_VERSIONS, text)
}

fn among(what: &str, supported: &RangeInclusive<u32>, text: &str) -> Result<u32, String> {
    let (first, last) = (supported.start(), supported.end());
    let number = text.parse().ok().filter(|n| supported.contains(n));
    number.ok_or_else(|| format!("{what} {first} to {last} can be written"))
}
