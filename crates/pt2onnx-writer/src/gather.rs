//! Elements of strided tensors in row-major order, one block at a time. Of a file, only what a block needs is read, one window
//! at a time; nothing is mapped.

use crate::copy::wide;
use pt2onnx_tensor::{Storage, Tensor};
use std::io::{self, Write};

/// Bytes that are reordered at a time.
const BLOCK: usize = if cfg!(test) { 96 } else { 32 << 20 };

/// Bytes of a file that are in memory at a time.
const WINDOW: usize = if cfg!(test) { 40 } else { 4 << 20 };

/// Larger gaps are skipped when a file is read: an additional read costs less.
const GAP: usize = if cfg!(test) { 8 } else { 4 << 10 };

/// Sides of the tiles that are transposed: a cache line of four-byte elements.
const TILE: usize = 16;

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
pub(crate) fn gather(tensor: &Tensor, out: &mut impl Write) -> io::Result<()> {
    let Some(storage) = tensor.storage().filter(|_| tensor.numel() > 0) else {
        return Ok(());
    };
    let width = tensor.dtype().bits() / 8;
    let mut source = Source { storage, window: Vec::new() };
    let mut block = Vec::new();
    let dims = dims(tensor, width);
    blocks(&dims, tensor.offset() * width, &mut |dims, at| {
        block.resize(width * dims.iter().map(|d| d.size).product::<usize>(), 0);
        let mut order = dims.to_vec();
        order.sort_by_key(|d| std::cmp::Reverse(d.from));
        fill(&mut source, &order, width, at, &mut block)?;
        out.write_all(&block)
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
    let rows = match first.from > row + GAP {
        true => 1,
        false => (WINDOW.saturating_sub(row) / first.from.max(1) + 1).min(first.size),
    };
    let mut part = dims.to_vec();
    for start in (0..first.size).step_by(rows) {
        let to = to.get_mut(start * first.to..).unwrap_or_default();
        let at = at + start * first.from;
        match (rows, part.first_mut()) {
            (2.., Some(chunk)) => {
                chunk.size = rows.min(first.size - start);
                fill(source, &part, width, at, to)?;
            }
            _ => fill(source, inner, width, at, to)?,
        }
    }
    Ok(())
}

/// Copies elements to their positions.
fn scatter(dims: &[Dim], width: usize, from: &[u8], to: &mut [u8]) -> io::Result<()> {
    // Checked once, so that no element is left out.
    let end = width + dims.iter().map(|d| (d.size - 1) * d.to).sum::<usize>();
    if from.len() < span(dims, width) || to.len() < end {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match width {
        1 => scattered::<1>(dims, from, to),
        2 => scattered::<2>(dims, from, to),
        4 => scattered::<4>(dims, from, to),
        8 => scattered::<8>(dims, from, to),
        _ => scattered::<16>(dims, from, to),
    }
    Ok(())
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
        for i0 in (0..along.size).step_by(TILE) {
            for j0 in (0..across.size).step_by(TILE) {
                for i in i0..along.size.min(i0 + TILE) {
                    let (f, t) = (f + i * along.from, t + i * along.to);
                    for j in j0..across.size.min(j0 + TILE) {
                        copy::<W>(from, f + j * across.from, to, t + j * across.to);
                    }
                }
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
    window: Vec<u8>,
}

impl Source<'_> {
    /// Bytes of the storage, read if they are in a file.
    fn read(&mut self, start: usize, length: usize) -> io::Result<&[u8]> {
        match self.storage.source() {
            None => {
                let bytes = self.storage.bytes().get(start..start + length);
                bytes.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
            Some(source) => {
                self.window.resize(length.max(self.window.len()), 0);
                let window = self.window.get_mut(..length).unwrap_or_default();
                source.read_exact_at(window, wide(start))?;
                Ok(window)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pt2onnx_tensor::DType;

    /// All ways to lie of some tensors, of all widths, in memory and in a file, with the small limits above.
    #[test]
    fn elements_come_as_they_look() {
        let bytes: Vec<u8> = (0..=250).cycle().step_by(7).take(40_000).collect();
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
            (&[2, 30, 3], &[90, 1, 30], 0),
            (&[4, 5, 6], &[1, 4, 20], 1),
            (&[6, 1, 5, 4], &[20, 99, 1, 5], 0),
            (&[3, 4, 50], &[0, 50, 1], 0),
            (&[20, 20], &[41, 2], 5),
            (&[2, 3, 4, 5], &[1, 2, 6, 24], 0),
            (&[0, 3], &[1, 7], 0),
        ];
        for dtype in [DType::I8, DType::F16, DType::F32, DType::F64, DType::C128] {
            for (shape, strides, offset) in cases {
                for storage in [Storage::new(bytes.clone()), mapped.slice(64..40_000).unwrap()] {
                    let tensor =
                        Tensor::strided(dtype, *shape, *strides, *offset, storage).unwrap();
                    let mut out = Vec::new();
                    gather(&tensor, &mut out).unwrap();
                    assert!(out == *tensor.to_bytes(), "{dtype} {shape:?} {strides:?}");
                }
            }
        }
    }
}
