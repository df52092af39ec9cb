//! Elements of strided tensors in row-major order, one block at a time.
//!
//! Files are read one window at a time, never mapped; computed elements are asked for in the same
//! windows. All cores read, compute and reorder.

use crate::{
    copy::wide,
    scratch::{Scratch, of_length},
    sink::{Rows, Sink},
};
use pt2onnx_tensor::{CACHE_LINE, Tensor, pack_halves, transpose};
use rayon::prelude::*;
use std::{io, mem};

/// Bytes that are reordered at a time, while as many are written.
const BLOCK: usize = if cfg!(test) { 96 } else { 32 << 20 };

/// Bytes of a file that are in memory at a time.
const WINDOW: usize = if cfg!(test) { 40 } else { 4 << 20 };

/// Minimum bytes per read. Where blocks in order need shorter reads, the order is another.
const READ: usize = if cfg!(test) { 16 } else { 4 << 10 };

/// Gaps in a file up to this size are read through: a second read costs more.
const GAP: usize = if cfg!(test) { 8 } else { 1 << 10 };

/// Elements that are packed at a time.
const PACK: usize = if cfg!(test) { 6 } else { 8 << 10 };

/// Parallelism threshold, in bytes.
const SHARE: usize = if cfg!(test) { 16 } else { 256 << 10 };

/// A dimension: its size, and the bytes from one position to the next.
#[derive(Clone, Copy, Debug)]
struct Dim {
    size: usize,
    /// In the storage.
    from: usize,
    /// In the block.
    to: usize,
}

/// Writes the elements.
pub(crate) fn gather(
    tensor: &Tensor,
    out: &mut impl Sink,
    scratch: &mut Scratch,
) -> io::Result<()> {
    let dims = dims(tensor, width(tensor));
    Gather::new(tensor, false, out, scratch)?.all(&dims)
}

/// Writes 4-bit codes, stored one per byte, two per byte. Returns false, and writes nothing, if a
/// block would end inside a byte.
pub(crate) fn gather_int4(
    codes: &Tensor,
    out: &mut impl Sink,
    scratch: &mut Scratch,
) -> io::Result<bool> {
    let dims = dims(codes, width(codes));
    let (first, last) = (dims.first().map_or(0, |d| d.to), dims.last().map_or(0, |d| d.size));
    let packs = last.is_multiple_of(2) || 2 * first <= BLOCK;
    if packs {
        Gather::new(codes, true, out, scratch)?.all(&dims)?;
    }
    Ok(packs)
}

/// Bytes of an element.
fn width(tensor: &Tensor) -> usize {
    tensor.dtype().bits() / 8
}

/// Dimensions in row-major order, adjacent ones merged; `to` is the step in the whole tensor.
fn dims(tensor: &Tensor, width: usize) -> Vec<Dim> {
    let mut dims: Vec<Dim> = Vec::new();
    let strides = tensor.strides();
    for (&size, &stride) in tensor.shape().iter().zip(strides.iter()) {
        let from = stride * width;
        match dims.last_mut() {
            _ if size == 1 => {}
            Some(outer) if outer.from == size * from => {
                outer.size *= size;
                outer.from = from;
            }
            _ => dims.push(Dim { size, from, to: 0 }),
        }
    }
    let mut step = width;
    for dim in dims.iter_mut().rev() {
        dim.to = step;
        step *= dim.size;
    }
    dims
}

/// A tensor that is written. Positions are in bytes.
struct Gather<'a, S> {
    source: Source<'a>,
    /// Bytes of an element.
    width: usize,
    /// Whether two 4-bit codes are packed into each byte.
    int4: bool,
    block: &'a mut Vec<u8>,
    out: &'a mut S,
}

impl<'a, S: Sink> Gather<'a, S> {
    fn new(
        tensor: &'a Tensor,
        int4: bool,
        out: &'a mut S,
        scratch: &'a mut Scratch,
    ) -> io::Result<Self> {
        let compute = tensor.compute();
        compute.map_or(Ok(()), |compute| compute.prepare())?;
        let unit = compute.map_or(1, |compute| compute.unit().max(1));
        let Scratch { block, window } = scratch;
        Ok(Self { source: Source { tensor, unit, window }, width: width(tensor), int4, block, out })
    }

    /// Writes all elements.
    fn all(&mut self, dims: &[Dim]) -> io::Result<()> {
        match self.source.tensor.numel() {
            0 => Ok(()),
            _ => self.blocks(dims, self.source.tensor.offset() * self.width),
        }
    }

    /// Writes the elements of these dimensions, which begin at byte `at` of the source.
    fn blocks(&mut self, dims: &[Dim], at: usize) -> io::Result<()> {
        let Some((first, inner)) = dims.split_first() else {
            return self.block(dims, at);
        };
        // `to` is the size of everything inside the dimension.
        let rows = self.rows(first);
        if let Some(tile) = self.tile(first, inner, rows) {
            return self.tiles(dims, at, tile);
        }
        if rows == 0 {
            return (0..first.size).try_for_each(|i| self.blocks(inner, at + i * first.from));
        }
        let mut block = dims.to_vec();
        for start in (0..first.size).step_by(rows) {
            if let Some(part) = block.first_mut() {
                part.size = rows.min(first.size - start);
            }
            self.block(&block, at + start * first.from)?;
        }
        Ok(())
    }

    /// Positions of the first dimension in a block: whole units of computing and packing.
    fn rows(&self, first: &Dim) -> usize {
        let rows = (BLOCK / first.to).min(first.size);
        let even = if self.int4 && first.to % 2 == 1 { 2 } else { 1 };
        let group = even * self.group(first);
        match rows {
            _ if rows == first.size => rows,
            _ if rows >= group => rows - rows % group,
            _ => rows - rows % even,
        }
    }

    /// Positions of a dimension that are computed together.
    fn group(&self, dim: &Dim) -> usize {
        if dim.from == self.width { (self.source.unit / self.width).max(1) } else { 1 }
    }

    /// Writes a block that comes next.
    fn block(&mut self, dims: &[Dim], at: usize) -> io::Result<()> {
        let bytes = self.fill(dims, at)?;
        let bytes = if self.int4 { pack(of_length(self.block, bytes)) } else { bytes };
        *self.block = self.out.block(mem::take(self.block), bytes)?;
        Ok(())
    }

    /// The sizes of the two outer dimensions in a block, if blocks out of order are read faster
    /// because `rows` rows are a short read.
    fn tile(&mut self, first: &Dim, inner: &[Dim], rows: usize) -> Option<[usize; 2]> {
        let second = inner.first()?;
        let turned = 0 < first.from && first.from < second.from;
        let short = rows < first.size && 2 * rows * first.from < READ;
        if !turned || !short || self.source.in_memory().is_some() {
            return None;
        }
        if self.int4 && first.to % 2 == 1 {
            return None;
        }
        let tall = (READ / first.from).clamp(1, first.size);
        let tall = tall.next_multiple_of(self.group(first)).min(first.size);
        let mut across = (BLOCK / tall / second.to).min(second.size);
        if self.int4 && second.to % 2 == 1 {
            across -= across % 2;
        }
        (across > 0 && self.out.is_random()).then_some([tall, across])
    }

    /// Writes blocks of so many positions of the two outer dimensions.
    fn tiles(&mut self, dims: &[Dim], at: usize, [tall, across]: [usize; 2]) -> io::Result<()> {
        let mut tile = dims.to_vec();
        let [first, second, ..] = dims else {
            return Ok(());
        };
        for i in (0..first.size).step_by(tall) {
            for j in (0..second.size).step_by(across) {
                let mut rows = Rows {
                    count: tall.min(first.size - i),
                    length: across.min(second.size - j) * second.to,
                    start: i * first.to + j * second.to,
                    step: first.to,
                };
                if let [a, b, ..] = tile.as_mut_slice() {
                    (a.size, a.to) = (rows.count, rows.length);
                    b.size = rows.length / second.to;
                }
                let bytes = self.fill(&tile, at + i * first.from + j * second.from)?;
                if self.int4 {
                    pack(of_length(self.block, bytes));
                    rows = rows.halved();
                }
                *self.block = self.out.rows(mem::take(self.block), rows)?;
            }
        }
        let bytes = first.size * first.to;
        self.out.skip(wide(if self.int4 { bytes / 2 } else { bytes }))
    }

    /// Reads elements into the block. Returns their bytes.
    fn fill(&mut self, dims: &[Dim], at: usize) -> io::Result<usize> {
        let bytes = self.width * dims.iter().map(|d| d.size).product::<usize>();
        let mut order = dims.to_vec();
        order.sort_by_key(|d| std::cmp::Reverse(d.from));
        fill(&mut self.source, &order, self.width, at, of_length(self.block, bytes))?;
        Ok(bytes)
    }
}

/// Packs codes of four bits two in a byte, at the start of the buffer. Returns the number of bytes.
fn pack(codes: &mut [u8]) -> usize {
    let mut some = [0; PACK];
    for start in (0..codes.len()).step_by(PACK) {
        let count = PACK.min(codes.len() - start);
        let (from, to) = (codes.get(start..start + count), some.get_mut(..count));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
            pack_halves(to, codes.get_mut(start / 2..).unwrap_or_default());
        }
    }
    codes.len().div_ceil(2)
}

/// Bytes from the start of the first element to the end of the last one.
fn span(dims: &[Dim], width: usize) -> usize {
    width + dims.iter().map(|d| (d.size - 1) * d.from).sum::<usize>()
}

/// Copies the elements that start at byte `at` of the source into the block. Dimensions with large
/// steps in the source come first.
fn fill(
    source: &mut Source,
    dims: &[Dim],
    width: usize,
    at: usize,
    to: &mut [u8],
) -> io::Result<()> {
    let all = span(dims, width);
    let Some((first, inner)) = dims.split_first().filter(|_| all > WINDOW) else {
        return scatter(dims, width, source.read(at, all)?, to);
    };
    let row = span(inner, width);
    // Rows that lie far apart stand side by side in the window.
    let apart = first.from > row + GAP;
    let step = if apart { row } else { first.from };
    let rows = (WINDOW.saturating_sub(row) / step.max(1) + 1).min(first.size);
    let mut part = dims.to_vec();
    for start in (0..first.size).step_by(rows) {
        let rows = rows.min(first.size - start);
        let to = to.get_mut(start * first.to..).unwrap_or_default();
        let at = at + start * first.from;
        match part.first_mut() {
            Some(chunk) if rows > 1 && row <= WINDOW => {
                (chunk.size, chunk.from) = (rows, step);
                let window = if apart {
                    source.read_rows(at, first.from, row, rows)?
                } else {
                    source.read(at, (rows - 1) * step + row)?
                };
                scatter(&part, width, window, to)?;
            }
            _ => {
                for i in 0..rows {
                    let to = to.get_mut(i * first.to..).unwrap_or_default();
                    fill(source, inner, width, at + i * first.from, to)?;
                }
            }
        }
    }
    Ok(())
}

/// Copies elements to their positions, on all cores if there are many.
fn scatter(dims: &[Dim], width: usize, from: &[u8], to: &mut [u8]) -> io::Result<()> {
    let end = width + dims.iter().map(|d| (d.size - 1) * d.to).sum::<usize>();
    if from.len() < span(dims, width) || to.len() < end {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let bytes = width * dims.iter().map(|d| d.size).product::<usize>();
    // Parts of the outermost dimension of the block do not overlap.
    let outer = (0..dims.len()).max_by_key(|&i| dims.get(i).map(|d| d.to));
    let outer = outer.and_then(|i| Some((i, *dims.get(i)?)));
    let Some((index, dim)) = outer.filter(|_| bytes >= 2 * SHARE) else {
        scatter_as(dims, width, from, to);
        return Ok(());
    };
    let shares = (bytes / SHARE).min(4 * rayon::current_num_threads()).max(1);
    let rows = dim.size.div_ceil(shares).next_multiple_of(CACHE_LINE / width.min(CACHE_LINE));
    let to = to.get_mut(..end).unwrap_or_default();
    to.par_chunks_mut(rows * dim.to).enumerate().for_each(|(i, to)| {
        let mut part = dims.to_vec();
        if let Some(part) = part.get_mut(index) {
            part.size = rows.min(dim.size - i * rows);
        }
        scatter_as(&part, width, from.get(i * rows * dim.from..).unwrap_or_default(), to);
    });
    Ok(())
}

fn scatter_as(dims: &[Dim], width: usize, from: &[u8], to: &mut [u8]) {
    match width {
        1 => scattered::<1>(dims, from, to),
        2 => scattered::<2>(dims, from, to),
        4 => scattered::<4>(dims, from, to),
        8 => scattered::<8>(dims, from, to),
        _ => scattered::<16>(dims, from, to),
    }
}

fn scattered<const W: usize>(dims: &[Dim], from: &[u8], to: &mut [u8]) {
    // The dimensions with the smallest step in the source and in the block are the inner loops.
    let near = |by: fn(&Dim) -> usize| (0..dims.len()).min_by_key(|&i| dims.get(i).map(by));
    let (Some(a), Some(b)) = (near(|d| d.from.max(1)), near(|d| d.to)) else {
        return copy::<W>(from, 0, to, 0);
    };
    let one = Dim { size: 1, from: 0, to: 0 };
    let (Some(&along), Some(&across)) = (dims.get(a), dims.get(b)) else {
        return;
    };
    let along = if a == b { one } else { along };
    let mut outer = dims.to_vec();
    outer.retain(|d| d.to != along.to && d.to != across.to);
    around(&outer, 0, 0, &mut |f, t| {
        if along.size == 1 && (across.from, across.to) == (W, W) {
            let bytes = across.size * W;
            if let (Some(from), Some(to)) = (from.get(f..f + bytes), to.get_mut(t..t + bytes)) {
                to.copy_from_slice(from);
            }
            return;
        }
        if (along.from, across.to) == (W, W) {
            let (from, to) =
                (from.get(f..).unwrap_or_default(), to.get_mut(t..).unwrap_or_default());
            return transpose::<W>(from, across.from, to, along.to, [along.size, across.size]);
        }
        for i in 0..along.size {
            let (f, t) = (f + i * along.from, t + i * along.to);
            for j in 0..across.size {
                copy::<W>(from, f + j * across.from, to, t + j * across.to);
            }
        }
    });
}

/// Calls `each` with the offsets of all positions.
fn around(dims: &[Dim], from: usize, to: usize, each: &mut impl FnMut(usize, usize)) {
    match dims.split_first() {
        None => each(from, to),
        Some((first, inner)) => {
            for i in 0..first.size {
                around(inner, from + i * first.from, to + i * first.to, each);
            }
        }
    }
}

fn copy<const W: usize>(from: &[u8], f: usize, to: &mut [u8], t: usize) {
    let element = from.get(f..).and_then(<[u8]>::first_chunk::<W>);
    let place = to.get_mut(t..).and_then(<[u8]>::first_chunk_mut::<W>);
    if let (Some(element), Some(place)) = (element, place) {
        *place = *element;
    }
}

/// The stored or computed bytes of a tensor.
struct Source<'a> {
    tensor: &'a Tensor,
    /// Bytes that are computed together.
    unit: usize,
    window: &'a mut Vec<u8>,
}

impl<'a> Source<'a> {
    /// All bytes, if they need not be read or computed.
    fn in_memory(&self) -> Option<&'a [u8]> {
        let storage = self.tensor.storage().filter(|storage| storage.source().is_none())?;
        Some(storage.bytes())
    }

    fn read(&mut self, start: usize, length: usize) -> io::Result<&[u8]> {
        if let Some(bytes) = self.in_memory() {
            let bytes = bytes.get(start..start + length);
            return bytes.ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        }
        let tensor = self.tensor;
        let window = of_length(self.window, length);
        let share = (SHARE / self.unit).max(1) * self.unit;
        let parts = window.par_chunks_mut(share).enumerate();
        parts.try_for_each(|(i, part)| tensor.read_stored(start + i * share, part))?;
        Ok(window)
    }

    /// Rows of `length` bytes that begin every `step` bytes, one after another.
    fn read_rows(
        &mut self,
        start: usize,
        step: usize,
        length: usize,
        rows: usize,
    ) -> io::Result<&[u8]> {
        let window = of_length(self.window, rows * length);
        let tensor = self.tensor;
        let together = (SHARE / length.max(1)).max(1);
        let parts = window.par_chunks_mut(together * length.max(1)).enumerate();
        parts.try_for_each(|(i, part)| {
            let mut rows = part.chunks_exact_mut(length.max(1)).enumerate();
            rows.try_for_each(|(j, row)| tensor.read_stored(start + (i * together + j) * step, row))
        })?;
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::FileSink;
    use pt2onnx_tensor::{Compute, DType, Storage};
    use std::{
        io::{Read, Seek, Write},
        sync::Arc,
    };

    /// A tensor written to memory and, between other bytes and out of order, to a file.
    fn written(tensor: &Tensor, int4: bool, scratch: &mut Scratch) -> [Vec<u8>; 2] {
        let mut out = Vec::new();
        write(tensor, int4, &mut out, scratch).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        FileSink::fill(&file, 0, &|_| {}, |sink| {
            sink.write_all(b"before")?;
            write(tensor, int4, sink, scratch)?;
            sink.write_all(b"after")
        })
        .unwrap();
        let mut content = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut content).unwrap();
        let inside = content.strip_prefix(b"before").and_then(|c| c.strip_suffix(b"after"));
        [out, inside.unwrap().to_vec()]
    }

    fn write(
        tensor: &Tensor,
        int4: bool,
        out: &mut impl Sink,
        scratch: &mut Scratch,
    ) -> io::Result<()> {
        if int4 {
            gather_int4(tensor, out, scratch).map(drop)
        } else {
            gather(tensor, out, scratch)
        }
    }

    /// A computed copy of a tensor, with a unit in bytes.
    #[derive(Debug)]
    struct Copied(Tensor, usize);

    impl Compute for Copied {
        fn operands(&self) -> Vec<Tensor> {
            vec![self.0.clone()]
        }

        fn unit(&self) -> usize {
            self.1
        }

        fn fill(&self, start: usize, out: &mut [u8]) -> io::Result<()> {
            let end = start + out.len();
            assert!(start.is_multiple_of(self.1));
            assert!(end.is_multiple_of(self.1) || end == self.0.nbytes());
            self.0.read(start, out)
        }
    }

    /// The elements of a view, computed some at once.
    fn computed(view: &Tensor, unit: usize) -> Option<Tensor> {
        let (stored, order) = view.as_stored()?;
        let (dtype, shape) = (stored.dtype(), stored.shape().to_vec());
        Tensor::computed(dtype, shape, Arc::new(Copied(stored, unit))).ok()?.permuted(&order)
    }

    /// All element widths and many strides, in memory and in a file.
    #[test]
    fn elements_come_as_they_look() {
        let bytes: Vec<u8> = (0..=250).cycle().step_by(7).take(200_000).collect();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let mapped = Storage::map(file.reopen().unwrap(), file.path()).unwrap();
        let cases: &[(&[usize], &[usize], usize)] = &[
            (&[], &[], 3),
            (&[5], &[0], 3),
            (&[7], &[3], 0),
            (&[3, 5], &[1, 3], 0),
            (&[40, 3], &[1, 40], 2),
            (&[3, 40], &[1, 3], 2),
            (&[37, 33], &[1, 37], 0),
            (&[70, 130], &[1, 70], 3),
            (&[70, 130], &[1, 80], 3),
            (&[2, 9, 50], &[450, 1, 9], 2),
            (&[9, 50, 3], &[3, 27, 1], 2),
            (&[5, 2, 50], &[2, 1, 10], 0),
            (&[3, 300], &[1, 3], 0),
            (&[2, 30, 3], &[90, 1, 30], 0),
            (&[4, 5, 6], &[1, 4, 20], 1),
            (&[6, 1, 5, 4], &[20, 99, 1, 5], 0),
            (&[3, 4, 50], &[0, 50, 1], 0),
            (&[20, 20], &[41, 2], 5),
            (&[2, 3, 4, 5], &[1, 2, 6, 24], 0),
            (&[0, 3], &[1, 7], 0),
        ];
        let mut scratch = Scratch::default();
        for dtype in [DType::I8, DType::F16, DType::F32, DType::F64, DType::C128] {
            for (shape, strides, offset) in cases {
                for storage in [Storage::new(bytes.clone()), mapped.slice(64..200_000).unwrap()] {
                    let tensor =
                        Tensor::strided(dtype, *shape, *strides, *offset, storage).unwrap();
                    let expected = tensor.to_bytes();
                    for bytes in written(&tensor, false, &mut scratch) {
                        assert!(bytes == *expected, "{dtype} {shape:?} {strides:?}");
                    }
                    let width = dtype.bits() / 8;
                    for unit in [width, 7 * width, 20 * width] {
                        let Some(computed) = computed(&tensor, unit) else {
                            continue;
                        };
                        for bytes in written(&computed, false, &mut scratch) {
                            assert!(bytes == *expected, "{dtype} {shape:?} {strides:?} by {unit}");
                        }
                    }
                }
            }
        }
    }

    /// Views of codes with odd and even sizes: packed, or left out where a block has an odd number.
    #[test]
    fn int4_codes_come_as_they_look() {
        let bytes: Vec<u8> = (0..16).cycle().step_by(7).take(20_000).collect();
        let storage = Storage::new(bytes);
        let cases: &[(&[usize], &[usize])] = &[
            (&[40, 3], &[1, 40]),
            (&[3, 40], &[1, 3]),
            (&[37, 33], &[1, 37]),
            (&[70, 130], &[1, 70]),
            (&[33, 44], &[1, 33]),
            (&[2, 9, 50], &[450, 1, 9]),
            (&[5, 7, 9], &[1, 5, 35]),
        ];
        let mut scratch = Scratch::default();
        for (shape, strides) in cases {
            let view = Tensor::strided(DType::U8, *shape, *strides, 0, storage.clone()).unwrap();
            let codes = view.to_bytes();
            let mut expected = vec![0; codes.len().div_ceil(2)];
            pack_halves(&codes, &mut expected);
            for unit in [1, 2, 5, 33] {
                let codes = computed(&view, unit).unwrap();
                let packs = shape.last().is_some_and(|n| n % 2 == 0)
                    || 2 * shape.iter().skip(1).product::<usize>() <= BLOCK;
                for bytes in written(&codes, true, &mut scratch) {
                    assert_eq!(bytes, if packs { expected.clone() } else { Vec::new() });
                }
            }
        }
    }
}
