//! Decides where the weights of a model go: into its file, into data files, or to the files that
//! they come from.

use crate::{
    error::{Error, MAX_MODEL},
    file_identity::{Identity, folder},
    options::{SaveOptions, Weights},
    stream::Stream,
};
use pt2onnx_ir::Model;
use pt2onnx_tensor::FileRange;
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// The model, with weights assigned to files.
pub(crate) fn arranged<'a>(
    model: &'a Model,
    options: &SaveOptions,
    data_path: &Path,
    target: &Path,
) -> Result<Stream<'a>, Error> {
    let mut stream = Stream::new(model, options)?;
    if !matches!(options.weights, Weights::Auto | Weights::None) {
        stream.complete()?;
    }
    if options.weights == Weights::Link {
        stream.link(options, |source| location(source, target, options))?;
    } else if goes_external(options, stream.size())? {
        stream.externalise(options, &utf8(data_path)?);
    } else {
        return Ok(stream);
    }
    match stream.size() {
        0..=MAX_MODEL => Ok(stream),
        size => Err(Error::GraphTooLarge(size)),
    }
}

/// Whether weights are written to data files, for a model of so many bytes including its weights.
///
/// # Errors
/// [`Error::TooLarge`].
pub fn goes_external(options: &SaveOptions, embedded: u64) -> Result<bool, Error> {
    match options.weights {
        Weights::External => Ok(true),
        Weights::Link => Ok(false),
        Weights::Auto | Weights::None => {
            let named = options.data_file.is_some() || options.shard_size.is_some();
            Ok(embedded > MAX_MODEL || named)
        }
        Weights::Embed if embedded > MAX_MODEL => Err(Error::TooLarge(embedded)),
        Weights::Embed => Ok(false),
    }
}

/// The path of the data file.
pub(crate) fn data_path(model: &Path, options: &SaveOptions) -> Result<PathBuf, Error> {
    let Some(name) = &options.data_file else {
        let mut name = model.file_name().unwrap_or_default().to_owned();
        name.push(".data");
        return Ok(model.with_file_name(name));
    };
    let path = model.with_file_name(name);
    let refuse = |what| Err(Error::DataName { name: name.clone(), what });
    if Path::new(name).file_name() != Some(name.as_ref()) {
        return refuse("is not a name without folders");
    }
    if path == model { refuse("is the model file itself") } else { Ok(path) }
}

/// The name of a data file, as it is written in the model file.
fn utf8(path: &Path) -> Result<String, Error> {
    let name = path.file_name().and_then(|n| n.to_str());
    name.map(str::to_owned).ok_or_else(|| Error::Target {
        path: path.to_owned(),
        what: "has a name that is not UTF-8, so that the model file could not refer to it",
    })
}

/// The path from the model's folder to a file, with slashes, as it is written in the model file.
fn location(source: &FileRange, target: &Path, options: &SaveOptions) -> Result<String, Error> {
    let real = |path: &Path| {
        fs::canonicalize(path).map_err(|error| Error::Io {
            path: path.to_owned(),
            doing: "refer to this",
            error,
        })
    };
    let (file, folder) = (real(&source.path)?, real(folder(target))?);
    let shared = file.components().zip(folder.components());
    let shared = shared.take_while(|(a, b)| a == b).count();
    let ups = folder.components().skip(shared).map(|_| "..");
    let refuse = |what| Error::Link { path: file.clone(), what };
    if Identity::of(target) == Identity::of_open(&source.file, &source.path) {
        return Err(refuse("is the one to be written"));
    }
    if folder.components().count() > shared && !options.allow_external_paths {
        return Err(refuse("is not in the folder of the model or below"));
    }
    let downs = file.components().skip(shared).map(|c| match c {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let parts: Option<Vec<&str>> = ups.map(Some).chain(downs).collect();
    let parts =
        parts.ok_or_else(|| refuse("has no relative name in UTF-8 from the model's folder"))?;
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_weights_go() {
        for (weights, small, large) in [
            (Weights::Auto, Some(false), Some(true)),
            (Weights::Embed, Some(false), None),
            (Weights::External, Some(true), Some(true)),
            (Weights::None, Some(false), Some(true)),
        ] {
            let options = SaveOptions::from(weights);
            assert_eq!(goes_external(&options, MAX_MODEL).ok(), small);
            assert_eq!(goes_external(&options, MAX_MODEL + 1).ok(), large);
        }
    }
}
