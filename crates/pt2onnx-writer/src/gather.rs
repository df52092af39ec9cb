//! Elements of strided tensors in row-major order, one block at a time.
//!
//! Of a file, only what a block needs is read, one window at a time; nothing is mapped. All cores read and reorder.

use crate::{
    copy::wide,
    memory::{Scratch, of_length},
    sink::Sink,
};
use pt2onnx_tensor::{CACHE_LINE, Storage, Tensor, transpose};
use rayon::prelude::*;
use std::{io, mem};

/// Bytes that are reordered at a time, while as many are written.
const BLOCK: usize = if cfg!(test) { 96 } else { 16 << 20 };

/// Bytes of a file that are in memory at a time.
const WINDOW: usize = if cfg!(test) { 40 } else { 4 << 20 };

/// Larger gaps are skipped when a file is read: an additional read costs less.
const GAP: usize = if cfg!(test) { 8 } else { 1 << 10 };

/// Bytes that are worth a thread.
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
    let Some(storage) = tensor.storage().filter(|_| tensor.numel() > 0) else {
        return Ok(());
    };
    let width = tensor.dtype().bits() / 8;
    let Scratch { block, window } = scratch;
    let mut source = Source { storage, window };
    let dims = dims(tensor, width);
    blocks(&dims, tensor.offset() * width, &mut |dims, at| {
        let bytes = width * dims.iter().map(|d| d.size).product::<usize>();
        let mut order = dims.to_vec();
        order.sort_by_key(|d| std::cmp::Reverse(d.from));
        fill(&mut source, &order, width, at, of_length(block, bytes))?;
        *block = out.block(mem::take(block), bytes)?;
        Ok(())
    })
}

/// Dimensions in row-major order. Adjacent ones are merged where the strides allow it. `to` is the step in the whole tensor.
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

/// Calls `each` with the dimensions and the start of each block, in order.
fn blocks(
    dims: &[Dim],
    at: usize,
    each: &mut impl FnMut(&[Dim], usize) -> io::Result<()>,
) -> io::Result<()> {
    let Some((first, inner)) = dims.split_first() else {
        return each(dims, at);
    };
    // `to` is the size of everything inside the dimension.
    let rows = (BLOCK / first.to).min(first.size);
    if rows == 0 {
        return (0..first.size).try_for_each(|i| blocks(inner, at + i * first.from, each));
    }
    let mut block = dims.to_vec();
    for start in (0..first.size).step_by(rows) {
        if let Some(part) = block.first_mut() {
            part.size = rows.min(first.size - start);
        }
        each(&block, at + start * first.from)?;
    }
    Ok(())
}

/// Bytes from the start of the first element to the end of the last one.
fn span(dims: &[Dim], width: usize) -> usize {
    width + dims.iter().map(|d| (d.size - 1) * d.from).sum::<usize>()
}

/// Copies the elements that start at byte `at` of the source into the block. Dimensions with large steps in the source come
/// first.
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
                let window = match apart {
                    true => source.read_rows(at, first.from, row, rows)?,
                    false => source.read(at, (rows - 1) * step + row)?,
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
    // Checked once, so that no element is left out.
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

/// The bytes of a tensor.
struct Source<'a> {
    storage: &'a Storage,
    window: &'a mut Vec<u8>,
}

impl Source<'_> {
    /// Bytes of the storage, read if they are in a file.
    fn read(&mut self, start: usize, length: usize) -> io::Result<&[u8]> {
        let Some(source) = self.storage.source() else {
            let bytes = self.storage.bytes().get(start..start + length);
            return bytes.ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        };
        let window = of_length(self.window, length);
        let parts = window.par_chunks_mut(SHARE).enumerate();
        parts.try_for_each(|(i, part)| source.read_exact_at(part, wide(start + i * SHARE)))?;
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
        let storage = self.storage;
        let together = (SHARE / length.max(1)).max(1);
        let parts = window.par_chunks_mut(together * length.max(1)).enumerate();
        parts.try_for_each(|(i, part)| {
            for (j, row) in part.chunks_exact_mut(length.max(1)).enumerate() {
                let at = start + (i * together + j) * step;
                match storage.source() {
                    Some(source) => source.read_exact_at(row, wide(at))?,
                    None => match storage.bytes().get(at..at + length) {
                        Some(bytes) => row.copy_from_slice(bytes),
                        None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                    },
                }
            }
            Ok(())
        })?;
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_tensor::DType;
    use std::io::Write;

    /// All ways to lie of some tensors, of all widths, in memory and in a file, with the small limits above.
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
                    let mut out = Vec::new();
                    gather(&tensor, &mut out, &mut scratch).unwrap();
                    assert!(out == *tensor.to_bytes(), "{dtype} {shape:?} {strides:?}");
                }
            }
        }
    }
}
