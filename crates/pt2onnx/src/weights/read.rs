//! Reading weights: safetensors in one file or several, archives, state dicts of `torch.save`.

use crate::torchscript_program;
use indexmap::IndexMap;
use pt2onnx_fx::{
    archive::{self, Records},
    graph::Constant,
};
use pt2onnx_tensor::{DType, Storage, Tensor, TensorError};
use pt2onnx_torchscript_archive::Archive;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The reason why weights cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The operating system refused.
    #[error("{}: the weights cannot be read: {error}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its reason.
        error: io::Error,
    },
    /// An archive, or what `torch.save` wrote, could not be read.
    #[error(transparent)]
    Archive(#[from] pt2onnx_fx::Error),
    /// A TorchScript archive could not be read.
    #[error(transparent)]
    TorchScript(Box<pt2onnx_torchscript::Error>),
    /// The file is not in the format of safetensors.
    #[error("{}: neither safetensors nor an archive: {error}", .path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: SafeTensorError,
    },
    /// A tensor does not fit its bytes.
    #[error("{}: weight {name}: {error}", .path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The reason.
        error: TensorError,
    },
    /// The element type is known neither to PyTorch nor to ONNX.
    #[error("{}: weight {name}: elements of type {dtype} are not supported", .path.display())]
    Type {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its element type.
        dtype: String,
    },
    /// The index cannot be parsed.
    #[error("{}: the index is not understood: {error}", .path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// The reason.
        error: serde_json::Error,
    },
    /// The index refers to files in other folders.
    #[error("{}: the index refers to `{file}`, which is not the name of a file beside it", .path.display())]
    Outside {
        /// The index.
        path: PathBuf,
        /// The other file.
        file: String,
    },
    /// A tensor is not in the file that the index names.
    #[error("{}: `{name}` is not in {file}, where the index says it is", .path.display())]
    NotThere {
        /// The index.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The file.
        file: String,
    },
    /// Two files have a tensor of the same name.
    #[error("{}: several files have a weight {name}", .folder.display())]
    Twice {
        /// The folder.
        folder: PathBuf,
        /// The tensor.
        name: String,
    },
    /// The folder has no weights.
    #[error("{}: no file in this folder ends in .safetensors", .0.display())]
    NoFile(
        /// The folder.
        PathBuf,
    ),
}

impl From<pt2onnx_torchscript::Error> for WeightsError {
    fn from(error: pt2onnx_torchscript::Error) -> Self {
        Self::TorchScript(Box::new(error))
    }
}

/// Reads weights by name. `path` is a `.safetensors` file, a folder of such files, an index of
/// several files (`model.safetensors.index.json`), a `.pt2` or TorchScript archive, or a file that
/// `torch.save(model.state_dict(), path)` wrote. Files are mapped, not read: they must not change
/// while the tensors live.
///
/// # Errors
/// See [`WeightsError`].
pub fn read_weights(path: impl AsRef<Path>) -> Result<IndexMap<String, Tensor>, WeightsError> {
    let path = path.as_ref();
    if fs::metadata(path).map_err(io_error(path))?.is_dir() {
        return folder(path);
    }
    if path.extension().is_some_and(|e| e == "json") { index(path) } else { file(path) }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> WeightsError {
    let path = path.to_owned();
    move |error| {
        let path = path.clone();
        WeightsError::Io { path, error }
    }
}

/// All files of a folder, or those that its index names.
fn folder(folder: &Path) -> Result<IndexMap<String, Tensor>, WeightsError> {
    let entries = fs::read_dir(folder).map_err(io_error(folder))?;
    let entries = entries.map(|entry| entry.map(|e| e.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>().map_err(io_error(folder))?;
    paths.sort();
    let ends = |path: &&PathBuf, end: &str| {
        let name = path.file_name().and_then(|n| n.to_str());
        name.is_some_and(|name| name.ends_with(end))
    };
    if let Some(path) = paths.iter().find(|p| ends(p, ".safetensors.index.json")) {
        return index(path);
    }
    let mut all = IndexMap::new();
    for path in paths.iter().filter(|p| ends(p, ".safetensors")) {
        for (name, tensor) in file(path)? {
            if all.contains_key(&name) {
                let folder = folder.to_owned();
                return Err(WeightsError::Twice { folder, name });
            }
            all.insert(name, tensor);
        }
    }
    if all.is_empty() { Err(WeightsError::NoFile(folder.to_owned())) } else { Ok(all) }
}

/// The contents of an index.
#[derive(serde::Deserialize)]
struct Index {
    /// File names by tensor names.
    weight_map: BTreeMap<String, String>,
}

fn index(path: &Path) -> Result<IndexMap<String, Tensor>, WeightsError> {
    let text = pt2onnx_tensor::read(path).map_err(io_error(path))?;
    let Index { weight_map } = serde_json::from_slice(&text).map_err(|error| {
        let path = path.to_owned();
        WeightsError::Index { path, error }
    })?;
    let mut files: BTreeMap<&str, IndexMap<String, Tensor>> = BTreeMap::new();
    let mut all = IndexMap::with_capacity(weight_map.len());
    for (name, wanted) in &weight_map {
        if Path::new(wanted).file_name() != Some(wanted.as_ref()) {
            let (path, file) = (path.to_owned(), wanted.clone());
            return Err(WeightsError::Outside { path, file });
        }
        if !files.contains_key(wanted.as_str()) {
            files.insert(wanted, file(&path.with_file_name(wanted))?);
        }
        let tensor = files.get(wanted.as_str()).and_then(|file| file.get(name));
        let tensor = tensor.ok_or_else(|| WeightsError::NotThere {
            path: path.to_owned(),
            name: name.clone(),
            file: wanted.clone(),
        })?;
        all.insert(name.clone(), tensor.clone());
    }
    Ok(all)
}

/// Reads one file, of the kind that its first bytes show.
fn file(path: &Path) -> Result<IndexMap<String, Tensor>, WeightsError> {
    let mut start = Vec::new();
    let opened = pt2onnx_tensor::open(path).map_err(io_error(path))?;
    (&opened).take(2).read_to_end(&mut start).map_err(io_error(path))?;
    if start == b"PK" {
        return zip(path);
    }
    safetensors(opened, path)
}

/// The state and constants of an archive's program, or a state dict.
fn zip(path: &Path) -> Result<IndexMap<String, Tensor>, WeightsError> {
    let program = match archive::read(path) {
        Err(error) if torchscript_program::is_one(&error) => {
            let archive = Archive::new(Records::open(path)?);
            let archive = archive.map_err(pt2onnx_torchscript::Error::from)?;
            let tensors = torchscript_program::weights(&archive)?;
            return Ok(tensors.into_iter().filter(|(_, tensor)| tensor.has_data()).collect());
        }
        Err(pt2onnx_fx::Error::Layout { .. }) => return Ok(archive::state_dict(path)?),
        program => program?,
    };
    let constants = program.constants.into_iter();
    let constants = constants.filter_map(|(name, constant)| match constant {
        Constant::Tensor(tensor) => Some((name, tensor)),
        Constant::Opaque { .. } => None,
    });
    let all = program.state.into_iter().chain(constants);
    Ok(all.filter(|(_, tensor)| tensor.has_data()).collect())
}

fn safetensors(opened: File, path: &Path) -> Result<IndexMap<String, Tensor>, WeightsError> {
    let whole = Storage::map(opened, path).map_err(io_error(path))?;
    let bytes = whole.bytes();
    let (header, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| {
        let path = path.to_owned();
        WeightsError::Safetensors { path, error }
    })?;
    // The length of the header is in front of it.
    let start = size_of::<u64>() + header;
    let mut all = IndexMap::new();
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else {
            continue;
        };
        let error =
            |error| WeightsError::Tensor { path: path.to_owned(), name: name.clone(), error };
        let dtype = dtype(info.dtype).ok_or_else(|| WeightsError::Type {
            path: path.to_owned(),
            name: name.clone(),
            dtype: format!("{:?}", info.dtype),
        })?;
        let (from, to) = info.data_offsets;
        let storage = whole.slice(start + from..start + to);
        let storage =
            storage.ok_or(TensorError::OutOfBounds { needed: start + to, available: bytes.len() });
        let tensor = storage.and_then(|s| Tensor::whole(dtype, info.shape.clone(), s));
        all.insert(name.clone(), tensor.map_err(error)?);
    }
    // `save_model` writes one of several tied tensors, and its other names here.
    for (other, name) in metadata.metadata().iter().flatten() {
        if let (false, Some(tensor)) = (all.contains_key(other), all.get(name)) {
            all.insert(other.clone(), tensor.clone());
        }
    }
    Ok(all)
}

fn dtype(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::F4 => DType::F4E2M1,
        Dtype::U8 => DType::U8,
        Dtype::I8 => DType::I8,
        Dtype::F8_E5M2 => DType::F8E5M2,
        Dtype::F8_E4M3 => DType::F8E4M3FN,
        Dtype::F8_E4M3FNUZ => DType::F8E4M3FNUZ,
        Dtype::F8_E5M2FNUZ => DType::F8E5M2FNUZ,
        Dtype::F8_E8M0 => DType::F8E8M0,
        Dtype::I16 => DType::I16,
        Dtype::U16 => DType::U16,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::I32 => DType::I32,
        Dtype::U32 => DType::U32,
        Dtype::F32 => DType::F32,
        Dtype::C64 => DType::C64,
        Dtype::F64 => DType::F64,
        Dtype::I64 => DType::I64,
        Dtype::U64 => DType::U64,
        _ => return None,
    })
}
