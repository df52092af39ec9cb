//! Tensors: strided views of storages. Several tensors may share one storage.

use crate::{DType, Element, Storage, transpose::transpose};
use bytes::Bytes;
use std::{borrow::Cow, fmt, io, sync::Arc};

/// Why a tensor cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages are the documentation")]
#[non_exhaustive]
pub enum TensorError {
    #[error("sizes {sizes:?} and strides {strides:?} differ in length")]
    RankMismatch { sizes: Vec<usize>, strides: Vec<usize> },
    #[error("a tensor of sizes {0:?} is larger than the address space")]
    Overflow(Vec<usize>),
    #[error("needs {needed} bytes of storage, there are {available}")]
    OutOfBounds { needed: usize, available: usize },
    #[error(
        "a tensor of {0} cannot be a strided view: its elements are not whole bytes of a fixed size"
    )]
    NoLayout(DType),
    #[error("strings have no bytes of a fixed size: `Tensor::strings` makes a tensor of them")]
    Strings,
}

/// Computes the elements of a tensor ([`Tensor::computed`]). The same range always gives the same
/// bytes, and several threads may ask for ranges at the same time.
pub trait Compute: fmt::Debug + Send + Sync {
    /// The tensors that it computes from.
    fn operands(&self) -> Vec<Tensor>;

    /// Computes shared data of all ranges, on all cores, by default that of the operands. Without
    /// this call, the first range does it.
    ///
    /// # Errors
    /// Those of [`fill`](Self::fill).
    fn prepare(&self) -> io::Result<()> {
        self.operands().iter().filter_map(Tensor::compute).try_for_each(|c| c.prepare())
    }

    /// Bytes that are computed together. Ranges begin at multiples of it, and end there or at the
    /// end of the tensor.
    fn unit(&self) -> usize;

    /// If [`fill`](Self::fill) packs two elements into a byte: the same elements, one per byte.
    /// Readers of all elements may read these in any order and [pack](crate::pack_halves) them.
    fn unpacked(&self) -> Option<&Tensor> {
        None
    }

    /// Writes the bytes from byte `start` on, in row-major order.
    ///
    /// # Errors
    /// Values cannot be read. [`io::ErrorKind::InvalidData`]: the element type cannot hold the
    /// result.
    fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()>;
}

#[derive(Clone, Debug)]
enum Data {
    Bytes(Storage),
    Strings(Arc<[Bytes]>),
    /// No values, only type and shape: a weight saved under FakeTensorMode. Clones of the tensor
    /// share the `Arc`.
    Absent(Arc<()>),
    /// Elements that are computed when they are needed. Views of them are those of a storage.
    Computed(Arc<dyn Compute>),
}

/// A tensor: element type, sizes, strides, and a storage. A clone is cheap and shares the values.
#[derive(Clone, Debug)]
pub struct Tensor(Arc<View>);

#[derive(Clone, Debug)]
struct View {
    dtype: DType,
    shape: Vec<usize>,
    /// In elements; `None` if contiguous.
    strides: Option<Vec<usize>>,
    /// In elements.
    offset: usize,
    data: Data,
}

impl Tensor {
    fn of(view: View) -> Self {
        Self(Arc::new(view))
    }

    fn contiguous(dtype: DType, shape: Vec<usize>, data: Data) -> Self {
        Self::of(View { dtype, shape, strides: None, offset: 0, data })
    }

    /// A contiguous tensor of little-endian bytes. Sub-byte elements are packed, low bits first.
    ///
    /// # Errors
    /// The byte count does not fit the sizes, the sizes overflow, or elements are strings (see
    /// [`strings`](Self::strings)).
    pub fn new(
        dtype: DType,
        shape: impl Into<Vec<usize>>,
        bytes: impl Into<Bytes>,
    ) -> Result<Self, TensorError> {
        Self::whole(dtype, shape, Storage::new(bytes))
    }

    /// A contiguous tensor of all bytes of a storage; see [`new`](Self::new).
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn whole(
        dtype: DType,
        shape: impl Into<Vec<usize>>,
        storage: Storage,
    ) -> Result<Self, TensorError> {
        let shape = shape.into();
        if dtype == DType::String {
            return Err(TensorError::Strings);
        }
        let (needed, available) = (byte_size(dtype, &shape)?, storage.bytes().len());
        if available != needed {
            return Err(TensorError::OutOfBounds { needed, available });
        }
        Ok(Self::contiguous(dtype, shape, Data::Bytes(storage)))
    }

    /// A view of `storage`. `strides` and `offset` are in elements.
    ///
    /// # Errors
    /// An element is outside the storage, `shape` and `strides` differ in length, the sizes
    /// overflow, or elements of `dtype` are not whole bytes of a fixed size.
    pub fn strided(
        dtype: DType,
        shape: impl Into<Vec<usize>>,
        strides: impl Into<Vec<usize>>,
        offset: usize,
        storage: Storage,
    ) -> Result<Self, TensorError> {
        let (shape, strides) = (shape.into(), strides.into());
        if shape.len() != strides.len() {
            return Err(TensorError::RankMismatch { sizes: shape, strides });
        }
        let overflow = || TensorError::Overflow(shape.clone());
        byte_size(dtype, &shape)?;
        let contiguous = strides_are_contiguous(&shape, &strides);
        if !dtype.bits().is_multiple_of(8) || dtype == DType::String {
            return Err(TensorError::NoLayout(dtype));
        }
        let width = dtype.bits() / 8;
        // Without elements, nothing is at the offset.
        let offset = if shape.contains(&0) { 0 } else { offset };
        if !shape.contains(&0) {
            let last = shape.iter().zip(&strides).try_fold(offset, |last, (&size, &stride)| {
                last.checked_add((size - 1).checked_mul(stride)?)
            });
            let needed =
                last.and_then(|l| l.checked_add(1)?.checked_mul(width)).ok_or_else(overflow)?;
            if needed > storage.bytes().len() {
                return Err(TensorError::OutOfBounds { needed, available: storage.bytes().len() });
            }
        }
        let strides = (!contiguous).then_some(strides);
        Ok(Self::of(View { dtype, shape, strides, offset, data: Data::Bytes(storage) }))
    }

    /// A tensor without values, such as a weight saved under FakeTensorMode. It is the
    /// [`same`](Self::same) only as its clones.
    ///
    /// # Errors
    /// The sizes overflow.
    pub fn absent(dtype: DType, shape: impl Into<Vec<usize>>) -> Result<Self, TensorError> {
        let shape = shape.into();
        byte_size(dtype, &shape)?;
        Ok(Self::contiguous(dtype, shape, Data::Absent(Arc::new(()))))
    }

    /// A tensor of the same type and shape without values.
    pub fn without_data(&self) -> Self {
        Self::contiguous(self.0.dtype, self.0.shape.clone(), Data::Absent(Arc::new(())))
    }

    /// A contiguous tensor whose elements are computed when they are needed.
    ///
    /// # Errors
    /// The sizes overflow, or elements are strings.
    pub fn computed(
        dtype: DType,
        shape: impl Into<Vec<usize>>,
        compute: Arc<dyn Compute>,
    ) -> Result<Self, TensorError> {
        let shape = shape.into();
        if dtype == DType::String {
            return Err(TensorError::Strings);
        }
        byte_size(dtype, &shape)?;
        Ok(Self::contiguous(dtype, shape, Data::Computed(compute)))
    }

    /// The computation of the elements, if they are not stored.
    pub fn compute(&self) -> Option<&Arc<dyn Compute>> {
        match &self.0.data {
            Data::Computed(compute) => Some(compute),
            _ => None,
        }
    }

    /// A tensor of strings, in row-major order.
    ///
    /// # Errors
    /// The number of strings does not fit the sizes, or the sizes overflow.
    pub fn strings(
        shape: impl Into<Vec<usize>>,
        strings: impl Into<Arc<[Bytes]>>,
    ) -> Result<Self, TensorError> {
        let (shape, strings) = (shape.into(), strings.into());
        let needed = checked_numel(&shape)?;
        if strings.len() != needed {
            return Err(TensorError::OutOfBounds { needed, available: strings.len() });
        }
        Ok(Self::contiguous(DType::String, shape, Data::Strings(strings)))
    }

    /// A contiguous tensor of the elements, in row-major order.
    ///
    /// # Errors
    /// The number of elements does not fit the sizes, or the sizes overflow.
    pub fn from_slice<T: Element>(
        shape: impl Into<Vec<usize>>,
        elements: &[T],
    ) -> Result<Self, TensorError> {
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        elements.iter().for_each(|e| e.push_le(&mut bytes));
        Self::new(T::DTYPE, shape, bytes)
    }

    /// A 0-d tensor.
    pub fn scalar<T: Element>(value: T) -> Self {
        Self::from_vec(Vec::new(), &[value])
    }

    /// A 1-d tensor of the elements.
    pub fn vector<T: Element>(elements: &[T]) -> Self {
        Self::from_vec(vec![elements.len()], elements)
    }

    fn from_vec<T: Element>(shape: Vec<usize>, elements: &[T]) -> Self {
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        elements.iter().for_each(|e| e.push_le(&mut bytes));
        Self::contiguous(T::DTYPE, shape, Data::Bytes(Storage::new(bytes)))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The size of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.shape.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.0.shape.iter().product()
    }

    /// The number of bytes of all elements in a contiguous layout. For strings, the sum of their
    /// lengths.
    pub fn nbytes(&self) -> usize {
        match &self.0.data {
            Data::Strings(s) => s.iter().map(Bytes::len).sum(),
            // The other sizes may be any numbers.
            _ if self.0.shape.contains(&0) => 0,
            _ => byte_size(self.0.dtype, &self.0.shape).unwrap_or(usize::MAX),
        }
    }

    /// Whether the tensor has values. A weight saved under FakeTensorMode has none.
    pub fn has_data(&self) -> bool {
        !matches!(self.0.data, Data::Absent(_))
    }

    /// The storage. Tensors of strings, tensors without values, and those whose elements are
    /// computed have none.
    pub fn storage(&self) -> Option<&Storage> {
        match &self.0.data {
            Data::Bytes(s) => Some(s),
            _ => None,
        }
    }

    /// The strings of a string tensor.
    pub fn as_strings(&self) -> Option<&[Bytes]> {
        match &self.0.data {
            Data::Strings(s) => Some(s),
            _ => None,
        }
    }

    /// The stride of each dimension, in elements.
    pub fn strides(&self) -> Cow<'_, [usize]> {
        match &self.0.strides {
            Some(s) => Cow::Borrowed(s),
            None => Cow::Owned(contiguous_strides(&self.0.shape)),
        }
    }

    /// The position of the first element in the storage, in elements.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// Whether the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.0.strides.is_none()
    }

    /// Whether two tensors are the same view of the same memory.
    pub fn same(&self, other: &Tensor) -> bool {
        let same_data = match (&self.0.data, &other.0.data) {
            (Data::Bytes(a), Data::Bytes(b)) => a.same(b),
            (Data::Strings(a), Data::Strings(b)) => Arc::ptr_eq(a, b),
            (Data::Absent(a), Data::Absent(b)) => Arc::ptr_eq(a, b),
            (Data::Computed(a), Data::Computed(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same_data
            && (self.0.dtype, self.0.offset) == (other.0.dtype, other.0.offset)
            && (&self.0.shape, &self.0.strides) == (&other.0.shape, &other.0.strides)
    }

    /// The address of the storage, as a key of tables. Tensors that are the [`same`](Self::same)
    /// have equal addresses.
    pub fn address(&self) -> usize {
        match &self.0.data {
            Data::Bytes(storage) => storage.bytes().as_ptr().addr(),
            Data::Strings(strings) => strings.as_ptr().addr(),
            Data::Absent(identity) => Arc::as_ptr(identity).addr(),
            Data::Computed(compute) => Arc::as_ptr(compute).addr(),
        }
    }

    /// The bytes of the elements in a contiguous layout: copied if the tensor is not contiguous, or
    /// few bytes of a file. Empty if there are no values, for strings, and if elements cannot be
    /// computed: [`evaluated`](Self::evaluated) returns the reason.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        let storage = match &self.0.data {
            Data::Bytes(storage) => storage,
            Data::Computed(_) => {
                return match self.evaluated() {
                    Ok(tensor) => Cow::Owned(tensor.to_bytes().into_owned()),
                    Err(_) => Cow::Borrowed(&[]),
                };
            }
            Data::Strings(_) | Data::Absent(_) => return Cow::Borrowed(&[]),
        };
        if self.is_contiguous() {
            let start = self.0.offset * self.0.dtype.bits() / 8;
            return storage.part(start..start + self.nbytes());
        }
        let bytes = storage.bytes();
        let mut out = vec![0; self.nbytes()];
        let gather = match self.0.dtype.bits() {
            8 => gather::<1>,
            16 => gather::<2>,
            32 => gather::<4>,
            64 => gather::<8>,
            // The only other size that views may have: complex128.
            _ => gather::<16>,
        };
        let strides = self.0.strides.as_deref().unwrap_or_default();
        gather(bytes, &self.0.shape, strides, self.0.offset, &mut out);
        Cow::Owned(out)
    }

    /// The elements in row-major order. `None` if the element type is not `T` or there are no
    /// values.
    pub fn to_vec<T: Element>(&self) -> Option<Vec<T>> {
        (self.0.dtype == T::DTYPE && self.has_data())
            .then(|| self.to_bytes().chunks_exact(size_of::<T>()).map(T::from_le).collect())
    }

    /// The elements of an int64 or int32 tensor. `None` for other types, or without values.
    pub fn to_ints(&self) -> Option<Vec<i64>> {
        let narrow = || Some(self.to_vec::<i32>()?.into_iter().map(i64::from).collect());
        self.to_vec::<i64>().or_else(narrow)
    }

    /// A complex tensor as real/imaginary pairs in a last dimension of 2, with the same storage.
    /// Other tensors are returned unchanged.
    pub fn view_as_real(&self) -> Self {
        if !self.0.dtype.is_complex() {
            return self.clone();
        }
        // The stride of a dimension of size 1 may be any number.
        let pairs = |v: &[usize], last| {
            v.iter().map(|s| s.saturating_mul(2)).chain([last]).collect::<Vec<_>>()
        };
        Self::of(View {
            dtype: self.0.dtype.to_real(),
            shape: self.0.shape.iter().copied().chain([2]).collect(),
            strides: self.0.strides.as_deref().map(|s| pairs(s, 1)),
            offset: self.0.offset * 2,
            data: self.0.data.clone(),
        })
    }

    /// `permute` of PyTorch: dimension `i` of the view is dimension `order[i]` of this tensor.
    /// `None` if `order` is not a permutation, or if elements are strings, are not whole bytes, or
    /// are computed in units ([`Compute::unit`]) that split them. Reading a range of computed
    /// elements computes each unit that it touches.
    pub fn permuted(&self, order: &[usize]) -> Option<Self> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        let width = self.0.dtype.bits();
        let whole = match &self.0.data {
            Data::Bytes(_) | Data::Absent(_) => true,
            Data::Computed(compute) => (compute.unit() * 8).is_multiple_of(width),
            Data::Strings(_) => false,
        };
        if !sorted.into_iter().eq(0..self.rank()) || !whole || !width.is_multiple_of(8) {
            return None;
        }
        let own = self.strides();
        let of = |v: &[usize]| order.iter().filter_map(|&i| v.get(i).copied()).collect::<Vec<_>>();
        let (shape, strides) = (of(&self.0.shape), of(&own));
        let strides = (!strides_are_contiguous(&shape, &strides)).then_some(strides);
        Some(Self::of(View { shape, strides, ..View::clone(&self.0) }))
    }

    /// A contiguous tensor of the elements in storage order, and the permutation that [gives this
    /// tensor](Self::permuted). `None` if this tensor is contiguous, has gaps, or shows an element
    /// twice.
    pub fn as_stored(&self) -> Option<(Self, Vec<usize>)> {
        let strides = self.0.strides.as_ref()?;
        let mut stored: Vec<usize> = (0..self.rank()).collect();
        stored.sort_by_key(|&i| std::cmp::Reverse(strides[i]));
        let whole = self.permuted(&stored).filter(Self::is_contiguous)?;
        let mut order = vec![0; stored.len()];
        stored.iter().enumerate().for_each(|(place, &i)| order[i] = place);
        Some((whole, order))
    }

    /// The same elements with other sizes. `None` if their number differs or the tensor is not
    /// contiguous.
    pub fn reshaped(&self, shape: impl Into<Vec<usize>>) -> Option<Self> {
        let shape = shape.into();
        let fits = self.is_contiguous() && checked_numel(&shape).is_ok_and(|n| n == self.numel());
        fits.then(|| Self::of(View { shape, ..View::clone(&self.0) }))
    }
}

/// Copies the elements of a view into `out`, in row-major order. An element has `W` bytes; the
/// first one is at position `start`, in elements. `out` has exactly the size of the view.
fn gather<const W: usize>(
    bytes: &[u8],
    shape: &[usize],
    strides: &[usize],
    start: usize,
    out: &mut [u8],
) {
    if out.is_empty() {
        return;
    }
    let (rows, columns, down, across) = match (shape, strides) {
        ([], _) => (1, 1, 0, 0),
        ([columns], [across]) => (1, *columns, 0, *across),
        ([rows, columns], [down, across]) => (*rows, *columns, *down, *across),
        ([size, shape @ ..], [stride, strides @ ..]) => {
            let parts = out.chunks_exact_mut(out.len() / size);
            return parts.enumerate().for_each(|(i, part)| {
                gather::<W>(bytes, shape, strides, start + i * stride, part);
            });
        }
        _ => return,
    };
    if across == 1 {
        for (row, to) in out.chunks_exact_mut(columns * W).enumerate() {
            let from = (start + row * down) * W;
            if let Some(from) = bytes.get(from..from + to.len()) {
                to.copy_from_slice(from);
            }
        }
        return;
    }
    if down == 1 {
        let from = bytes.get(start * W..).unwrap_or_default();
        return transpose::<W>(from, across * W, out, columns * W, [rows, columns]);
    }
    for (i, to) in out.as_chunks_mut::<W>().0.iter_mut().enumerate() {
        let from = start + i / columns * down + i % columns * across;
        if let Some(from) = bytes.get(from * W..).and_then(<[u8]>::first_chunk) {
            *to = *from;
        }
    }
}

pub(crate) fn checked_numel(shape: &[usize]) -> Result<usize, TensorError> {
    let nonzero = shape.iter().filter(|&&s| s != 0).try_fold(1usize, |n, &s| n.checked_mul(s));
    let n = nonzero.ok_or_else(|| TensorError::Overflow(shape.to_vec()))?;
    Ok(if shape.contains(&0) { 0 } else { n })
}

fn byte_size(dtype: DType, shape: &[usize]) -> Result<usize, TensorError> {
    let bits = checked_numel(shape)?.checked_mul(dtype.bits());
    bits.map(|b| b.div_ceil(8)).ok_or_else(|| TensorError::Overflow(shape.to_vec()))
}

/// Row-major strides, in elements. Those of a tensor without elements saturate.
fn contiguous_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i].max(1));
    }
    strides
}

/// PyTorch's rule: a dimension of size 1 may have any stride, and an empty tensor any strides.
fn strides_are_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    shape.contains(&0)
        || contiguous_strides(shape)
            .iter()
            .zip(shape)
            .zip(strides)
            .all(|((&c, &size), &s)| size == 1 || s == c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_views_gather() {
        let base = Tensor::from_slice(vec![2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        for (shape, strides, offset, contiguous, expected) in [
            ([3, 2], [1, 3], 0, false, &[1, 4, 2, 5, 3, 6][..]),
            ([1, 3], [77, 1], 3, true, &[4, 5, 6]),
            ([2, 2], [0, 1], 4, false, &[5, 6, 5, 6]),
        ] {
            let storage = base.storage().unwrap().clone();
            let t = Tensor::strided(DType::I32, shape, strides, offset, storage).unwrap();
            assert_eq!((t.is_contiguous(), &t.to_vec().unwrap()[..]), (contiguous, expected));
        }
    }

    #[test]
    fn complex_views_are_pairs() {
        let storage = Storage::new(
            [1f32, 2., 3., 4., 5., 6.].iter().flat_map(|f| f.to_le_bytes()).collect::<Vec<_>>(),
        );
        let t = Tensor::strided(DType::C64, vec![2], vec![2], 0, storage).unwrap().view_as_real();
        assert_eq!((t.dtype(), t.shape()), (DType::F32, &[2, 2][..]));
        assert_eq!(t.to_vec::<f32>().unwrap(), [1., 2., 5., 6.]);
    }

    #[test]
    fn lies_about_sizes_are_refused() {
        let storage = Storage::new(vec![0u8; 16]);
        let huge = usize::MAX;
        for (shape, strides, offset) in [
            (vec![5], vec![1], 0),
            (vec![4], vec![1], 1),
            (vec![2], vec![huge], 0),
            (vec![huge, huge], vec![1, 1], 0),
            (vec![1], vec![1], huge),
        ] {
            assert!(Tensor::strided(DType::F32, shape, strides, offset, storage.clone()).is_err());
        }
        for (shape, strides, bytes) in [(vec![0], vec![1], 0), (vec![1, 2], vec![huge, 0], 16)] {
            let offset = if bytes == 0 { huge } else { 0 };
            let t = Tensor::strided(DType::C64, shape, strides, offset, storage.clone()).unwrap();
            assert_eq!(t.view_as_real().to_bytes().len(), bytes);
        }
        assert!(Tensor::new(DType::I4, vec![3], vec![0u8; 2]).is_ok());
        assert!(Tensor::new(DType::F32, vec![0, huge], vec![]).is_ok());
        let pairs = Tensor::absent(DType::C64, vec![0, huge]).unwrap().view_as_real();
        assert_eq!((pairs.strides().to_vec(), pairs.nbytes()), (vec![huge, 2, 1], 0));
        for shape in [vec![3], vec![0], vec![]] {
            let strings = Tensor::new(DType::String, shape, vec![]);
            assert_eq!(strings.unwrap_err(), TensorError::Strings);
        }
    }
}
