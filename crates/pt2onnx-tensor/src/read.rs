//! Reads ranges of a tensor's elements. Files are read, not mapped, so that memory stays free.

use crate::{Compute, DType, Element, FileRange, Storage, Tensor};
use half::{bf16, f16};
use std::{fs::File, io};

/// A view whose rows or columns have larger steps is read element by element.
const NEAR: usize = 16;

/// Columns that are read before their elements are put into rows.
const COLUMNS: usize = 16;

impl FileRange {
    /// Reads from byte `at` of the range on. The file's cursor, which others share, is not moved.
    ///
    /// # Errors
    /// The file ends before the buffer is full, or cannot be read. The message names the file.
    pub fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let at = self.offset.checked_add(at).ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        at.and_then(|at| read(&self.file, buffer, at))
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", self.path.display())))
    }
}

#[cfg(unix)]
fn read(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_read(file, buffer, at)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[n..];
        at += n as u64;
    }
    Ok(())
}

impl Storage {
    /// Reads bytes: from the file, if they are in one.
    fn read(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        match self.source() {
            Some(source) => source.read_exact_at(out, start as u64),
            None => {
                let bytes = self.bytes().get(start..start + out.len());
                out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

impl Tensor {
    /// Fills `out` with bytes of the elements in row-major order, from byte `start` on. Both ends
    /// are boundaries of elements; of elements that are computed, whole
    /// [units](crate::Compute::unit) are. Elements in a file are read, not mapped.
    ///
    /// # Errors
    /// The elements cannot be read or computed, the range is not inside the tensor, or there are no
    /// values; the tensor is not contiguous and an end is inside of an element.
    pub fn read(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        if start.checked_add(out.len()).is_none_or(|end| end > self.nbytes()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if self.is_contiguous() {
            return self.read_stored(self.offset() * self.dtype().bits() / 8 + start, out);
        }
        let width = self.dtype().bits() / 8;
        if !start.is_multiple_of(width) || !out.len().is_multiple_of(width) {
            let what = "a range of a view must begin and end between elements";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Panels::new(self, width).read(start / width, out)
    }

    /// Fills `out` with bytes of the storage, or of the elements in the order in which they are
    /// computed, from byte `start` on. Sizes and strides do not matter. Both ends are boundaries of
    /// elements; whole [units](crate::Compute::unit) are computed.
    ///
    /// # Errors
    /// The elements cannot be read or computed, the range is not inside, or there are no values.
    pub fn read_stored(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
        match (self.storage(), self.compute()) {
            (Some(storage), _) => storage.read(start, out),
            (None, Some(compute)) => fill(&**compute, self.nbytes(), start, out),
            (None, None) => Err(io::Error::other("a weight has no values")),
        }
    }

    /// The elements of a tensor of numbers or bools as float64, which rounds integers beyond 2^53.
    /// `None` for other types, or without values.
    pub fn to_doubles(&self) -> Option<Vec<f64>> {
        fn all<T: Element>(t: &Tensor, double: impl Fn(T) -> f64) -> Option<Vec<f64>> {
            Some(t.to_vec::<T>()?.into_iter().map(double).collect())
        }
        match self.dtype() {
            DType::F64 => self.to_vec(),
            DType::F32 => all::<f32>(self, f64::from),
            DType::F16 => all::<f16>(self, f64::from),
            DType::BF16 => all::<bf16>(self, f64::from),
            DType::I64 => all::<i64>(self, |v| v as f64),
            DType::I32 => all::<i32>(self, f64::from),
            DType::I16 => all::<i16>(self, f64::from),
            DType::I8 => all::<i8>(self, f64::from),
            DType::U64 => all::<u64>(self, |v| v as f64),
            DType::U32 => all::<u32>(self, f64::from),
            DType::U16 => all::<u16>(self, f64::from),
            DType::U8 => all::<u8>(self, f64::from),
            DType::Bool => all::<bool>(self, |v| f64::from(u8::from(v))),
            _ => None,
        }
    }

    /// The same tensor with its elements in memory, if they are to be computed; otherwise the
    /// tensor itself.
    ///
    /// # Errors
    /// The elements cannot be computed.
    pub fn evaluated(&self) -> io::Result<Self> {
        let Some(compute) = self.compute() else {
            return Ok(self.clone());
        };
        let mut bytes = vec![0; self.nbytes()];
        compute.prepare()?;
        compute.fill(0, &mut bytes)?;
        if self.is_contiguous() {
            Self::new(self.dtype(), self.shape(), bytes)
        } else {
            let (strides, storage) = (self.strides(), Storage::new(bytes));
            Self::strided(self.dtype(), self.shape(), strides, self.offset(), storage)
        }
        .map_err(io::Error::other)
    }

    /// The parts of files that the elements are in, or are computed from.
    pub fn sources(&self) -> Vec<FileRange> {
        match self.compute() {
            Some(compute) => compute.operands().iter().flat_map(Self::sources).collect(),
            None => self.storage().and_then(Storage::source).cloned().into_iter().collect(),
        }
    }
}

/// Computes a range of the `all` bytes that there are.
fn fill(compute: &dyn Compute, all: usize, start: usize, out: &mut [u8]) -> io::Result<()> {
    let (unit, end) = (compute.unit().max(1), start + out.len());
    let (first, last) = (start / unit * unit, end.next_multiple_of(unit).min(all));
    if (first, last) == (start, end) {
        return compute.fill(start, out);
    }
    let mut whole = vec![0; last.saturating_sub(first)];
    compute.fill(first, &mut whole)?;
    let part = whole.get(start - first..end - first);
    out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}

/// A view as matrices of its last two dimensions.
struct Panels<'a> {
    tensor: &'a Tensor,
    width: usize,
    start: usize,
    /// Sizes and strides of the dimensions before, innermost last.
    outer: Vec<(usize, usize)>,
    /// Size and stride.
    rows: (usize, usize),
    columns: (usize, usize),
}

impl<'a> Panels<'a> {
    fn new(tensor: &'a Tensor, width: usize) -> Self {
        let strides = tensor.strides();
        let sizes = tensor.shape().iter().copied();
        let mut outer: Vec<_> = sizes.zip(strides.iter().copied()).collect();
        let columns = outer.pop().unwrap_or((1, 0));
        let rows = outer.pop().unwrap_or((1, 0));
        Self { tensor, width, start: tensor.offset(), outer, rows, columns }
    }

    /// Reads from element `at` on. A range is at most the rest of a row, whole rows, and the start
    /// of a row, for each panel.
    fn read(&self, mut at: usize, mut out: &mut [u8]) -> io::Result<()> {
        let (rows, columns) = (self.rows.0, self.columns.0);
        while !out.is_empty() {
            let left = out.len() / self.width;
            let (row, column) = (at / columns % rows, at % columns);
            let (count, take) = match column {
                0 if left >= columns => ((left / columns).min(rows - row), columns),
                _ => (1, left.min(columns - column)),
            };
            let (now, rest) = out.split_at_mut(count * take * self.width);
            let base = self.panel(at / columns / rows) + row * self.rows.1;
            self.block(base + column * self.columns.1, count, take, now)?;
            at += count * take;
            out = rest;
        }
        Ok(())
    }

    /// The element that a panel begins at.
    fn panel(&self, mut index: usize) -> usize {
        let mut at = self.start;
        for (size, stride) in self.outer.iter().rev() {
            at += index % size * stride;
            index /= size;
        }
        at
    }

    /// Reads some columns of some rows.
    fn block(&self, at: usize, rows: usize, columns: usize, out: &mut [u8]) -> io::Result<()> {
        let (width, down, across) = (self.width, self.rows.1, self.columns.1);
        if across == 1 {
            let parts = out.chunks_exact_mut(columns * width).enumerate();
            let mut parts = parts.map(|(row, part)| ((at + row * down) * width, part));
            return parts.try_for_each(|(at, part)| self.tensor.read_stored(at, part));
        }
        // Lines are read along the dimension of the smaller step, with all that lies between their
        // ends. Each dimension has its size, its step in the file, and its step in `out`.
        let (first, second) = ((rows, down, columns), (columns, across, 1));
        let by_rows = rows > 1 && (down <= across || across > NEAR) && down <= NEAR;
        let ((long, step, to), (short, jump, aside)) =
            if by_rows { (first, second) } else { (second, first) };
        if step > NEAR {
            return self.single(at, (rows, columns), out);
        }
        let span = ((long - 1) * step + 1) * width;
        let mut lines = vec![0; span * short.min(COLUMNS)];
        for begin in (0..short).step_by(COLUMNS) {
            let count = COLUMNS.min(short - begin);
            for (i, line) in lines.chunks_exact_mut(span).take(count).enumerate() {
                self.tensor.read_stored((at + (begin + i) * jump) * width, line)?;
            }
            for l in 0..long {
                for i in 0..count {
                    let from = i * span + l * step * width;
                    let into = (l * to + (begin + i) * aside) * width;
                    copy(lines.get(from..from + width), out.get_mut(into..into + width));
                }
            }
        }
        Ok(())
    }

    /// Reads one element after the other, from the mapped file if they are in one.
    fn single(&self, at: usize, size: (usize, usize), out: &mut [u8]) -> io::Result<()> {
        let bytes = self.tensor.storage().map(Storage::bytes);
        for (i, to) in out.chunks_exact_mut(self.width).enumerate().take(size.0 * size.1) {
            let from = at + i / size.1 * self.rows.1 + i % size.1 * self.columns.1;
            match bytes {
                Some(bytes) => {
                    copy(bytes.get(from * self.width..(from + 1) * self.width), Some(to))
                }
                None => self.tensor.read_stored(from * self.width, to)?,
            }
        }
        Ok(())
    }
}

/// Copies an element, if both sides have one of the same width.
fn copy(from: Option<&[u8]>, to: Option<&mut [u8]>) {
    if let (Some(from), Some(to)) = (from, to)
        && from.len() == to.len()
    {
        match (<&[u8; 4]>::try_from(from), <&mut [u8; 4]>::try_from(&mut *to)) {
            (Ok(from), Ok(to)) => *to = *from,
            _ => to.copy_from_slice(from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use std::io::Write;

    /// Bytes that are computed so many at once.
    #[derive(Debug)]
    struct Counted(usize);

    impl Compute for Counted {
        fn operands(&self) -> Vec<Tensor> {
            Vec::new()
        }

        fn unit(&self) -> usize {
            self.0
        }

        fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
            let end = start + out.len();
            assert!(start.is_multiple_of(self.0) && (end == 120 || end.is_multiple_of(self.0)));
            (start..).zip(out).for_each(|(i, to)| *to = (i * 7 % 251) as u8);
            Ok(())
        }
    }

    /// All ranges of a permuted tensor are the same whether its elements are computed or stored.
    #[test]
    fn ranges_of_computed_views() {
        for unit in [1, 7, 20, 200] {
            ranges_of_views_computed_by(unit);
        }
    }

    fn ranges_of_views_computed_by(unit: usize) {
        let shape = [2, 20, 3];
        let counted = std::sync::Arc::new(Counted(unit));
        let whole = Tensor::computed(DType::U8, shape, counted).unwrap();
        let stored = Tensor::new(DType::U8, shape, whole.to_bytes().into_owned()).unwrap();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let (view, expected) =
                (whole.permuted(&order).unwrap(), stored.permuted(&order).unwrap());
            let bytes = expected.to_bytes();
            assert_eq!(view.shape(), order.map(|i| shape[i]));
            assert_eq!(
                (view.to_bytes(), view.evaluated().unwrap().to_bytes()),
                (bytes.clone(), bytes.clone())
            );
            for start in 0..bytes.len() {
                let mut out = vec![0; bytes.len() - start];
                view.read(start, &mut out).unwrap();
                assert_eq!(out, bytes[start..], "{order:?} from {start}");
            }
            match view.as_stored() {
                Some((tensor, back)) => {
                    assert!(tensor.same(&whole) && tensor.permuted(&back).unwrap().same(&view));
                }
                None => assert!(view.same(&whole)),
            }
        }
        assert!(whole.permuted(&[0, 1]).is_none() && whole.permuted(&[0, 1, 1]).is_none());
        let gaps = Tensor::strided(DType::U8, [3, 2], [1, 4], 0, stored.storage().unwrap().clone());
        assert!(gaps.unwrap().as_stored().is_none());
    }

    /// All ranges of views of several forms, in memory and in a file, are what `to_bytes` has
    /// there.
    #[test]
    fn ranges_of_views() {
        let bytes: Vec<u8> = (0..=250).cycle().step_by(7).take(6000).collect();
        let path = std::env::temp_dir().join(format!("pt2onnx-read-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        file.write_all(&bytes).unwrap();
        let mapped = Storage::map(File::open(&path).unwrap(), &path).unwrap();
        let cases: &[(&[usize], &[usize], usize)] = &[
            (&[], &[], 3),
            (&[5], &[0], 3),
            (&[7], &[3], 0),
            (&[7], &[40], 0),
            (&[3, 5], &[1, 3], 2),
            (&[20, 3], &[1, 20], 2),
            (&[3, 20], &[1, 3], 2),
            (&[3, 20], &[50, 2], 2),
            (&[3, 4], &[90, 30], 2),
            (&[2, 5, 3], &[15, 1, 5], 0),
            (&[2, 3, 2, 4], &[24, 1, 12, 3], 0),
            (&[3, 1, 4], &[0, 9, 1], 1),
            (&[0, 3], &[1, 7], 0),
        ];
        for dtype in [DType::I8, DType::F16, DType::F32, DType::F64] {
            for (shape, strides, offset) in cases {
                for storage in [Storage::new(bytes.clone()), mapped.clone()] {
                    let view = Tensor::strided(dtype, *shape, *strides, *offset, storage).unwrap();
                    let (all, width) = (view.to_bytes(), dtype.bits() / 8);
                    for start in 0..=view.numel() {
                        for end in start..=view.numel() {
                            let mut out = vec![0; (end - start) * width];
                            view.read(start * width, &mut out).unwrap();
                            assert_eq!(
                                out,
                                all[start * width..end * width],
                                "{shape:?} {strides:?}"
                            );
                        }
                    }
                    assert!(view.read(all.len(), &mut [0]).is_err());
                    let part = width > 1 && view.numel() > 1 && !view.is_contiguous();
                    for (start, length) in [(0, 1), (1, width)].into_iter().filter(|_| part) {
                        let error = view.read(start, &mut vec![0; length]).unwrap_err();
                        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
                    }
                }
            }
        }
        let end = FileRange { offset: u64::MAX - 4, ..mapped.source().unwrap().clone() };
        let far = Storage::mapped(bytes.into(), end).slice(8..16).unwrap();
        for at in [0, 4, u64::MAX] {
            let error = far.source().unwrap().read_exact_at(&mut [0; 4], at).unwrap_err();
            assert!(error.to_string().contains("pt2onnx-read-"), "{error}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
