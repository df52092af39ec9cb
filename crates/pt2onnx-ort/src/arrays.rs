//! Arrays by name in files: reads NumPy's `.npz` and `.npy`, writes `.npz` and safetensors.

use bytes::Bytes;
use half::f16;
use indexmap::IndexMap;
use npyz::WriterBuilder;
use pt2onnx_fx::archive::Records;
use pt2onnx_tensor::{DType, Element, Storage, Tensor, open};
use py_literal::Value;
use safetensors::{Dtype, tensor::TensorView};
use std::{
    io::{self, Cursor, Read, Write},
    path::{Path, PathBuf},
};
use zip::{ZipWriter, write::SimpleFileOptions};

/// Limit of inflated bytes of all arrays of a file.
const LIMIT: usize = 1 << 30;

/// Limit of a header in bytes, NumPy's.
const HEADER: usize = 10_000;

/// The reason why arrays cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The operating system refused.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        error: io::Error,
    },
    /// The zip of a `.npz` file cannot be read.
    #[error(transparent)]
    Zip(Box<pt2onnx_fx::Error>),
    /// An array is damaged, or of a type that tensors do not have.
    #[error("array {name}: {reason}")]
    Array {
        /// Its name.
        name: String,
        /// The reason.
        reason: String,
    },
}

/// Reads arrays by name: those of a `.npz` file (compressed or not), or the one array of a `.npy`
/// file as `arr_0`. `None` for a folder and for a file whose first bytes are of another format.
/// Nothing is executed: arrays of objects are errors.
///
/// # Errors
/// See [`ArrayError`].
pub fn read_npz(path: impl AsRef<Path>) -> Result<Option<IndexMap<String, Tensor>>, ArrayError> {
    let path = path.as_ref();
    let io = |error| ArrayError::Io { path: path.to_owned(), error };
    let zip = |error| ArrayError::Zip(Box::new(error));
    let mut start = Vec::new();
    if !path.is_dir() {
        open(path).and_then(|f| f.take(6).read_to_end(&mut start)).map_err(io)?;
    }
    if start == MAGIC {
        let bytes = open(path).and_then(|file| Storage::map(file, path)).map_err(io)?;
        return Ok(Some([("arr_0".to_owned(), array("arr_0", &bytes)?)].into_iter().collect()));
    }
    if start.starts_with(b"PK") {
        let records = Records::open_plain(path).map_err(zip)?;
        let names: Vec<&str> = records.names().collect();
        // An empty `.npz` file has no arrays.
        if names.iter().all(|name| name.ends_with(".npy")) {
            let mut left = LIMIT;
            let read = names.into_iter().map(|record| {
                let name = record.strip_suffix(".npy").unwrap_or(record);
                let (start, size) = records.start(record, HEADER).map_err(zip)?;
                // Before it is inflated.
                Header::read(&start).and_then(|header| header.fills(size)).map_err(wrong(name))?;
                let bytes = records.read(record, left).map_err(zip)?;
                if bytes.source().is_none() {
                    left = left.saturating_sub(bytes.bytes().len());
                }
                Ok((name.to_owned(), array(name, &bytes)?))
            });
            return read.collect::<Result<_, _>>().map(Some);
        }
    }
    Ok(None)
}

fn wrong(name: &str) -> impl Fn(String) -> ArrayError {
    move |reason| ArrayError::Array { name: name.to_owned(), reason }
}

/// The first bytes of a `.npy` file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// The header of a `.npy` file. The crate `npyz`, which writes these files, panics at sizes whose
/// product overflows, so that it does not read them.
struct Header {
    elements: Elements,
    sizes: Vec<usize>,
    columns_first: bool,
    /// Bytes of the header itself.
    bytes: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let damaged = || "its header is damaged".to_owned();
        let (length, rest) = match bytes.strip_prefix(MAGIC) {
            Some([1, _, a, b, rest @ ..]) => (u32::from(u16::from_le_bytes([*a, *b])), rest),
            Some([2 | 3, _, a, b, c, d, rest @ ..]) => (u32::from_le_bytes([*a, *b, *c, *d]), rest),
            _ => return Err(damaged()),
        };
        let length = usize::try_from(length).map_err(|_| damaged())?;
        let text = rest.get(..length).and_then(|text| str::from_utf8(text).ok());
        // The parser recurses at each bracket.
        let flat = |text: &&str| text.len() <= HEADER && text.matches(['(', '[', '{']).count() < 64;
        let text = text.filter(flat).ok_or_else(damaged)?;
        let entries = match text.trim_end().parse() {
            Ok(Value::Dict(entries)) => entries,
            _ => return Err(damaged()),
        };
        let entry = |wanted: &str| {
            let found =
                entries.iter().find(|(key, _)| key.as_string().is_some_and(|k| k == wanted));
            found.map(|(_, value)| value).ok_or_else(damaged)
        };
        let descr = entry("descr")?;
        let elements = descr.as_string().and_then(|descr| known(descr)).ok_or_else(|| {
            let descr = descr.as_string().cloned().unwrap_or_else(|| descr.to_string());
            format!("elements of NumPy type {descr} are not supported: convert them with `astype`")
        })?;
        let sizes = entry("shape")?.as_tuple().ok_or_else(damaged)?.iter();
        let sizes = sizes.map(|size| size.as_integer().and_then(|size| usize::try_from(size).ok()));
        let sizes: Option<Vec<usize>> = sizes.collect();
        let sizes = sizes.ok_or("it has a size that no array can have")?;
        let columns_first = entry("fortran_order")?.as_boolean().ok_or_else(damaged)?;
        Ok(Self { elements, sizes, columns_first, bytes: bytes.len() - rest.len() + length })
    }

    /// An error if header and array have fewer bytes than the record, `there`.
    fn fills(&self, there: u64) -> Result<(), String> {
        let sizes = self.sizes.iter().map(|&size| size as u64);
        let count = sizes.fold(1u64, u64::saturating_mul);
        let stated = count.saturating_mul(self.elements.width() as u64);
        let stated = stated.saturating_add(self.bytes as u64);
        if stated < there {
            Err(format!("its header says {stated} bytes, there are {there}"))
        } else {
            Ok(())
        }
    }
}

/// The elements of an array. Texts have room for some characters of UTF-32 or bytes of UTF-8, which
/// zeros fill up.
#[derive(Clone, Copy)]
enum Elements {
    Numbers(DType),
    Utf32(usize),
    Utf8(usize),
}

impl Elements {
    /// Bytes of one.
    fn width(self) -> usize {
        match self {
            Self::Numbers(dtype) => dtype.bits() / 8,
            Self::Utf32(characters) => characters.saturating_mul(4),
            Self::Utf8(bytes) => bytes,
        }
    }

    /// The text in these bytes.
    fn text(self, bytes: &[u8]) -> Result<Bytes, String> {
        let text = match self {
            Self::Utf32(_) => {
                let codes = bytes.as_chunks::<4>().0.iter().map(|code| u32::from_le_bytes(*code));
                codes.map(char::from_u32).collect::<Option<String>>()
            }
            _ => String::from_utf8(bytes.to_vec()).ok(),
        };
        let text = text.ok_or("its texts are not Unicode")?;
        Ok(text.trim_end_matches('\0').to_owned().into())
    }

    /// The tensor of texts of these sizes.
    fn texts(self, sizes: Vec<usize>, steps: &[usize], data: &[u8]) -> Result<Tensor, String> {
        let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let width = self.width();
        let there = count.filter(|&count| count.saturating_mul(width) <= data.len());
        let count = there.ok_or("its texts are cut short")?;
        let one = |index: usize| {
            let (mut rest, mut at) = (index, 0);
            for (size, step) in sizes.iter().zip(steps).rev() {
                at += rest % size * step;
                rest /= size;
            }
            self.text(&data[at * width..][..width])
        };
        let texts = (0..count).map(one).collect::<Result<Vec<_>, _>>()?;
        Tensor::strings(sizes, texts).map_err(|e| e.to_string())
    }
}

/// An array as NumPy saves it. Numbers are a view of the bytes.
fn array(name: &str, bytes: &Storage) -> Result<Tensor, ArrayError> {
    let wrong = wrong(name);
    let Header { elements, sizes, columns_first, bytes: start } =
        Header::read(bytes.bytes()).map_err(&wrong)?;
    let data = bytes.slice(start..bytes.bytes().len());
    let data = data.ok_or_else(|| wrong("it has no data".to_owned()))?;
    // In elements. Sizes that overflow are an error of the tensor.
    let strides = |sizes: &mut dyn Iterator<Item = &usize>| -> Vec<usize> {
        sizes
            .scan(1usize, |step, &size| Some(std::mem::replace(step, step.saturating_mul(size))))
            .collect()
    };
    let strides = if columns_first {
        strides(&mut sizes.iter())
    } else {
        let mut strides = strides(&mut sizes.iter().rev());
        strides.reverse();
        strides
    };
    match elements {
        Elements::Numbers(dtype) => {
            Tensor::strided(dtype, sizes, strides, 0, data).map_err(|e| wrong(e.to_string()))
        }
        _ => elements.texts(sizes, &strides, data.bytes()).map_err(wrong),
    }
}

/// The elements of a little-endian NumPy type: `<f4`, `<U12`, `|S12`.
fn known(descr: &str) -> Option<Elements> {
    let wide = |start: &str| {
        descr.strip_prefix(start)?.parse().ok().filter(|width| (1..1 << 20).contains(width))
    };
    let texts = wide("<U").map(Elements::Utf32).or_else(|| wide("|S").map(Elements::Utf8));
    texts.or_else(|| number(descr).map(Elements::Numbers))
}

fn number(descr: &str) -> Option<DType> {
    Some(match descr {
        "<f8" => DType::F64,
        "<f4" => DType::F32,
        "<f2" => DType::F16,
        "<i8" => DType::I64,
        "<i4" => DType::I32,
        "<i2" => DType::I16,
        "|i1" | "<i1" => DType::I8,
        "<u8" => DType::U64,
        "<u4" => DType::U32,
        "<u2" => DType::U16,
        "|u1" | "<u1" => DType::U8,
        "|b1" | "<b1" => DType::Bool,
        _ => return None,
    })
}

/// The bytes of an uncompressed `.npz` file.
///
/// # Errors
/// [`ArrayError::Array`]: NumPy has no such type (bfloat16), or a tensor has no values.
pub fn to_npz<'a>(
    arrays: impl IntoIterator<Item = (&'a String, &'a Tensor)>,
) -> Result<Vec<u8>, ArrayError> {
    let mut file = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().large_file(true);
    for (name, tensor) in arrays {
        let wrong = |reason: String| ArrayError::Array { name: name.clone(), reason };
        let bytes = npy(tensor).map_err(wrong)?;
        let written = file.start_file(format!("{name}.npy"), stored);
        written
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(&bytes))
            .map_err(|e| wrong(e.to_string()))?;
    }
    let end = |e: zip::result::ZipError| ArrayError::Array {
        name: "(the end)".to_owned(),
        reason: e.to_string(),
    };
    Ok(file.finish().map_err(end)?.into_inner())
}

/// An array as NumPy saves it.
fn npy(tensor: &Tensor) -> Result<Vec<u8>, String> {
    fn of<T: Element + npyz::AutoSerialize>(tensor: &Tensor) -> Result<Vec<u8>, String> {
        let elements = tensor.to_vec::<T>().ok_or("it has no values")?;
        let shape: Vec<u64> = tensor.shape().iter().map(|&size| size as u64).collect();
        let mut bytes = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape);
        let written = options.writer(&mut bytes).begin_nd().and_then(|mut writer| {
            writer.extend(elements)?;
            writer.finish()
        });
        written.map_err(|e| e.to_string())?;
        Ok(bytes)
    }
    match tensor.dtype() {
        DType::F64 => of::<f64>(tensor),
        DType::F32 => of::<f32>(tensor),
        DType::F16 => of::<f16>(tensor),
        DType::I64 => of::<i64>(tensor),
        DType::I32 => of::<i32>(tensor),
        DType::I16 => of::<i16>(tensor),
        DType::I8 => of::<i8>(tensor),
        DType::U64 => of::<u64>(tensor),
        DType::U32 => of::<u32>(tensor),
        DType::U16 => of::<u16>(tensor),
        DType::U8 => of::<u8>(tensor),
        DType::Bool => of::<bool>(tensor),
        other => Err(format!("NumPy has no type {other}; write .safetensors")),
    }
}

/// The bytes of a safetensors file.
///
/// # Errors
/// [`ArrayError::Array`]: a tensor has no values, or a type that the format does not have.
pub fn to_safetensors<'a>(
    arrays: impl IntoIterator<Item = (&'a String, &'a Tensor)>,
) -> Result<Vec<u8>, ArrayError> {
    let arrays: Vec<_> = arrays.into_iter().map(|(name, t)| (name, t, t.to_bytes())).collect();
    let views = arrays.iter().map(|(name, tensor, bytes)| {
        let wrong = |reason: String| ArrayError::Array { name: (*name).clone(), reason };
        let dtype = match tensor.dtype() {
            DType::F64 => Dtype::F64,
            DType::F32 => Dtype::F32,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            DType::I64 => Dtype::I64,
            DType::I32 => Dtype::I32,
            DType::I16 => Dtype::I16,
            DType::I8 => Dtype::I8,
            DType::U64 => Dtype::U64,
            DType::U32 => Dtype::U32,
            DType::U16 => Dtype::U16,
            DType::U8 => Dtype::U8,
            DType::Bool => Dtype::BOOL,
            other => return Err(wrong(format!("safetensors have no type {other}"))),
        };
        let view = TensorView::new(dtype, tensor.shape().to_vec(), bytes);
        Ok(((*name).clone(), view.map_err(|e| wrong(e.to_string()))?))
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let end = |e: safetensors::SafeTensorError| ArrayError::Array {
        name: "(the end)".to_owned(),
        reason: e.to_string(),
    };
    safetensors::serialize(views, None).map_err(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn texts_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        let texts = |descr: &str, columns_first: &str, data: &[u8]| {
            let text = format!(
                "{{'descr': '{descr}', 'fortran_order': {columns_first}, 'shape': (2, 1, 2), }}\n"
            );
            let size = (text.len() as u16).to_le_bytes();
            let bytes = [&b"\x93NUMPY\x01\x00"[..], &size, text.as_bytes(), data].concat();
            fs::write(&path, bytes).expect("a file");
            read_npz(&path).map_err(|e| e.to_string()).map(|read| {
                let read = read.expect("a .npy file");
                let all = read["arr_0"].as_strings().expect("texts").iter();
                all.map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>()
            })
        };
        let wide = "aéc\0d\0\0\0".chars().flat_map(|c| u32::from(c).to_le_bytes());
        let wide: Vec<u8> = wide.collect();
        let read = |texts: [&str; 4]| Ok(texts.map(str::to_owned).to_vec());
        assert_eq!(texts("<U2", "False", &wide), read(["aé", "c", "d", ""]));
        assert_eq!(texts("<U2", "True", &wide), read(["aé", "d", "c", ""]));
        assert_eq!(texts("|S2", "False", b"a\0bcd\0\0\0"), read(["a", "bc", "d", ""]));
        let error = |said: &str| Err(format!("array arr_0: its texts {said}"));
        assert_eq!(texts("|S2", "False", &[255; 8]), error("are not Unicode"));
        assert_eq!(texts("|S2", "False", b"a"), error("are cut short"));
    }

    /// The bytes with `new` in the place of `old`, which is as long.
    fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
        let at = bytes.windows(old.len()).position(|w| w == old).expect("the bytes");
        let mut bytes = bytes.to_vec();
        bytes.splice(at..at + old.len(), new.iter().copied());
        bytes
    }

    #[test]
    fn arrays_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npz");
        let tensor = |shape: &[usize]| {
            Tensor::from_slice(shape, &[1.0f32, -2.0, 3.5, 4.0, 5.0, 6.0]).expect("a tensor")
        };
        let half = Tensor::from_slice(vec![1], &[f16::from_f32(0.5)]).expect("a tensor");
        let arrays: IndexMap<String, Tensor> = [
            ("folder/x".to_owned(), tensor(&[2, 3])),
            ("x".to_owned(), tensor(&[3, 2])),
            ("folder/x.npy".to_owned(), tensor(&[6])),
            ("y/z".to_owned(), Tensor::from_slice(Vec::new(), &[true]).expect("a tensor")),
            ("h".to_owned(), half),
            ("none".to_owned(), Tensor::from_slice(vec![0, 4], &[] as &[i64]).expect("a tensor")),
        ]
        .into_iter()
        .collect();
        fs::write(&path, to_npz(&arrays).expect("bytes")).expect("a file");
        let read = read_npz(&path).expect("arrays").expect("a .npz file");
        assert_eq!(read.len(), arrays.len());
        for (name, tensor) in &arrays {
            let parts = |t: &Tensor| (t.dtype(), t.shape().to_vec(), t.to_bytes().to_vec());
            assert_eq!(parts(&read[name]), parts(tensor), "{name}");
        }
        // Columns first.
        let fortran = npy(&tensor(&[2, 3])).expect("bytes");
        let fortran = replaced(&fortran, b"False", b"True ");
        fs::write(&path, &fortran).expect("a file");
        let read = read_npz(&path).expect("an array").expect("a .npy file");
        assert_eq!(read["arr_0"].to_vec::<f32>(), Some(vec![1.0, 3.5, 5.0, -2.0, 4.0, 6.0]));
        let sized = |sizes: &str| {
            let text =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({sizes}), }}\n");
            [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()]
                .concat()
        };
        // Cut short, of objects, and without a header.
        for (bytes, said) in [
            (
                fortran[..fortran.len() - 4].to_vec(),
                "array arr_0: needs 24 bytes of storage, there are 20",
            ),
            (replaced(&fortran, b"<f4", b"|O "), "elements of NumPy type |O"),
            (b"\x93NUMPY".to_vec(), "array arr_0: its header is damaged"),
            // Headers do not nest, and arrays do not have so many elements.
            (
                [b"\x93NUMPY\x01\x00\x10\x27", "(".repeat(10_000).as_bytes()].concat(),
                "header is damaged",
            ),
            (sized("9223372036854775807, 8"), "array arr_0: "),
            (sized("-1, 8"), "array arr_0: it has a size that no array can have"),
        ] {
            fs::write(&path, bytes).expect("a file");
            let error = read_npz(&path).expect_err("an error").to_string();
            assert!(error.contains(said), "{error}");
        }
        fs::write(&path, &fortran[6..]).expect("a file");
        assert!(read_npz(&path).expect("another format").is_none());
        let wide = Tensor::from_slice(vec![1], &[half::bf16::ONE]).expect("a tensor");
        let error = to_npz([(&"b".to_owned(), &wide)]).expect_err("an error").to_string();
        assert_eq!(error, "array b: NumPy has no type bfloat16; write .safetensors");
    }
}
