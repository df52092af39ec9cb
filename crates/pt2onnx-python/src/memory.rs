//! Memory that Python lends to Rust, and Rust to Python. Nothing is copied either way.
#![expect(unsafe_code, reason = "memory changes hands")]

use bytes::Bytes;
use indexmap::IndexMap;
use pt2onnx::fx::dtype_numbered;
use pt2onnx::tensor::{FileRange, Storage, Tensor};
use pyo3::{exceptions::PyValueError, ffi, prelude::*};
use std::{
    collections::{HashMap, hash_map::Entry},
    ffi::c_int,
    fs::File,
    path::PathBuf,
    sync::Arc,
};

/// Memory of Python: its address, its size in bytes, the object that owns it, and the file and the
/// offset at which the same bytes are, if there is one.
pub type Lent = (usize, usize, Py<PyAny>, Option<(PathBuf, u64)>);

/// A tensor in Python's memory: its name, its element type as [`dtype_numbered`] has it, sizes,
/// strides and offset in elements, and the number of its storage; `None` if it has no data.
pub type Row = (String, u8, Vec<usize>, Vec<usize>, usize, Option<usize>);

struct Owned {
    address: usize,
    size: usize,
    _owner: Py<PyAny>,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the Python side passes address and size of memory that `_owner` keeps;
        // `pt2onnx.export` documents that weights must not be resized while the result lives.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.size) }
    }
}

/// The bytes that Python lends.
pub fn lent((address, size, owner, _): Lent) -> Bytes {
    if address == 0 || size == 0 {
        Bytes::new()
    } else {
        Bytes::from_owner(Owned { address, size, _owner: owner })
    }
}

/// The storages that Python lends. Each file is opened once.
pub fn storages(all: Vec<Lent>) -> PyResult<Vec<Storage>> {
    let mut files: HashMap<PathBuf, FileRange> = HashMap::new();
    let storage = |mut one: Lent| {
        let Some((path, offset)) = one.3.take() else {
            return Ok(Storage::new(lent(one)));
        };
        let whole = match files.entry(path) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let (path, file) = (entry.key().clone(), File::open(entry.key())?);
                entry.insert(FileRange { path: Arc::new(path), file: Arc::new(file), offset: 0 })
            }
        };
        Ok(Storage::mapped(lent(one), FileRange { offset, ..whole.clone() }))
    };
    all.into_iter().map(storage).collect()
}

/// The tensors, by name.
pub fn tensors(rows: Vec<Row>, storages: &[Storage]) -> PyResult<IndexMap<String, Tensor>> {
    let tensor = |(name, code, sizes, strides, offset, storage): Row| {
        let wrong = |what: String| PyValueError::new_err(format!("{name}: {what}"));
        let dtype = dtype_numbered(code.into());
        let dtype = dtype.ok_or_else(|| wrong(format!("there is no element type {code}")))?;
        let made = match storage.and_then(|i| storages.get(i)) {
            Some(storage) if dtype.bits() < 8 => {
                // Contiguous, from the start of a byte.
                let (start, numel) = (offset * dtype.bits() / 8, sizes.iter().product::<usize>());
                let part = storage.slice(start..start + (numel * dtype.bits()).div_ceil(8));
                Tensor::whole(dtype, sizes, part.ok_or_else(|| wrong("it has no memory".into()))?)
            }
            Some(storage) => Tensor::strided(dtype, sizes, strides, offset, storage.clone()),
            None => Tensor::absent(dtype, sizes),
        };
        let tensor = made.map_err(|e| wrong(e.to_string()))?;
        Ok((name, tensor))
    };
    rows.into_iter().map(tensor).collect()
}

/// The elements of a weight, in row-major order: a read-only buffer (`memoryview(buffer)`,
/// `numpy.frombuffer(buffer, ...)`).
#[pyclass(frozen, module = "pt2onnx._pt2onnx")]
pub struct Buffer {
    pub bytes: Bytes,
}

impl Buffer {
    /// The elements of a tensor. They are copied only if they are not contiguous.
    pub fn of(tensor: &Tensor) -> Self {
        let start = tensor.offset() * tensor.dtype().bits() / 8;
        let own = tensor.storage().filter(|_| tensor.is_contiguous());
        let bytes = own.map(|storage| storage.bytes().slice(start..start + tensor.nbytes()));
        Self { bytes: bytes.unwrap_or_else(|| tensor.to_bytes().into_owned().into()) }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    unsafe fn __getbuffer__(
        this: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = &this.get().bytes;
        let start = bytes.as_ptr().cast_mut().cast();
        let size = ffi::Py_ssize_t::try_from(bytes.len())?;
        // SAFETY: Python passes a view to be filled. The bytes live as long as `this`, which the
        // view keeps; the view is read-only.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, this.as_ptr(), start, size, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(this.py())) }
    }
}
