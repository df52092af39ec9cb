//! A weight whose codes, scales and zero points are computed block by block.

use crate::{
    Axes, ChannelMoments, Format, Param, Scheme, Weight,
    feedback::Feedback,
    numbers::{WeightName, at_once, unit},
    ranges::Range,
    summary::{Losses, Sums},
};
use half::{bf16, f16};
use pt2onnx_tensor::{DType, Tensor};
use rayon::prelude::*;
use std::{
    io,
    sync::{Arc, OnceLock},
};

/// The most codes that are computed together where they are not in the order of the source.
const SHORT: usize = 64 << 10;

/// Rows whose errors are made up for together: the factors are read once for all.
const ROWS: usize = 64;

/// A weight to be quantised. Its dimensions are taken as three: those before the axis along which
/// scales differ or blocks lie, the axis, and those after it.
#[derive(Debug)]
pub(crate) struct Quantised {
    pub name: WeightName,
    /// The weight, or what is stored: a transposed weight is transposed when its codes are written.
    pub source: Tensor,
    /// The order of dimensions in which the source is the weight, if not its own.
    pub order: Option<Vec<usize>>,
    pub scheme: Scheme,
    /// The axis in the source. Without, there is one scale for all.
    pub along: Option<usize>,
    pub outer: usize,
    pub axis: usize,
    pub inner: usize,
    /// Positions along the axis that share a scale, each for itself in the dimensions around it.
    /// Without, a position has one scale.
    pub block: Option<usize>,
    /// The known moments of the inputs of products, along the axis that has blocks.
    pub inputs: Option<Arc<ChannelMoments>>,
    /// The way to make up for errors along the axis, if that is the last one and has blocks.
    pub feedback: Option<Arc<Feedback>>,
    /// The smallest scales of channels; none are any.
    pub least: Vec<f32>,
    /// How many elements of a channel lie beside one another whose errors cancel; without an order
    /// of dimensions and blocks.
    pub balanced: Option<usize>,
    pub losses: Arc<Losses>,
    params: OnceLock<Vec<Param>>,
}

/// Calls `each` with parts of a range of elements, as offset, length and channel. If the channels
/// are the last dimension, a part goes through them; otherwise it is of one.
fn runs(
    channels: usize,
    inner: usize,
    start: usize,
    count: usize,
    mut each: impl FnMut(usize, usize, usize),
) {
    let mut at = start;
    while at < start + count {
        let (length, channel) = match inner {
            1 => (channels - at % channels, at % channels),
            inner => (inner - at % inner, at / inner % channels),
        };
        let length = length.min(start + count - at);
        each(at - start, length, channel);
        at += length;
    }
}

/// The elements before an axis, along it, and after it. Without an axis, all are after it.
fn around(shape: &[usize], axis: Option<usize>) -> [usize; 3] {
    let Some(axis) = axis else {
        return [1, 1, shape.iter().product()];
    };
    let (before, rest) = shape.split_at(axis.min(shape.len()));
    let size = rest.first().copied().unwrap_or(1);
    [before.iter().product(), size, rest.iter().skip(1).product()]
}

impl Quantised {
    /// A weight whose codes are computed in the order in which it is stored, where that needs few
    /// others at a time.
    pub fn new(weight: &Weight, scheme: Scheme, axis: Option<usize>, block: Option<usize>) -> Self {
        let name = weight.name.clone();
        if let Some((stored, order)) = weight.tensor.as_stored() {
            let along = axis.and_then(|axis| order.get(axis)).copied();
            let turned = Self::in_order(name.clone(), stored, scheme, along, block);
            if turned.unit() <= SHORT {
                return Self { order: Some(order), ..turned };
            }
        }
        Self::in_order(name, weight.tensor.clone(), scheme, axis, block)
    }

    /// A weight whose codes are computed in the order of its elements.
    pub fn in_order(
        name: WeightName,
        source: Tensor,
        scheme: Scheme,
        along: Option<usize>,
        block: Option<usize>,
    ) -> Self {
        let [outer, axis, inner] = around(source.shape(), along);
        Self {
            name,
            source,
            scheme,
            along,
            outer,
            axis,
            inner,
            block,
            order: None,
            inputs: None,
            feedback: None,
            least: Vec::new(),
            balanced: None,
            losses: Arc::default(),
            params: OnceLock::new(),
        }
    }

    /// A matrix with rows for the sums of products, whose codes make up for the errors of others.
    pub fn by_rows(
        weight: &Weight,
        scheme: Scheme,
        axes: Axes,
        block: Option<usize>,
        feedback: Arc<Feedback>,
    ) -> Self {
        let turned = weight.tensor.permuted(&[1, 0]).filter(|_| axes.sum == 0);
        let order = turned.as_ref().map(|_| vec![1, 0]);
        let rows = turned.unwrap_or_else(|| weight.tensor.clone());
        let made = Self::in_order(weight.name.clone(), rows, scheme, Some(1), block);
        Self { order, feedback: Some(feedback), ..made }
    }

    /// Scales that there are.
    pub fn scales(&self) -> usize {
        match self.block {
            Some(_) => self.outer * self.blocks() * self.inner,
            None => self.axis,
        }
    }

    /// The sizes of the tensor of scales, with dimensions in the order of the source.
    pub fn scale_shape(&self) -> Vec<usize> {
        match (self.along, self.block) {
            (None, _) => Vec::new(),
            (Some(_), None) => vec![self.axis],
            (Some(along), Some(_)) => {
                let mut shape = self.source.shape().to_vec();
                shape.iter_mut().skip(along).take(1).for_each(|size| *size = self.blocks());
                shape
            }
        }
    }

    /// Blocks along the axis.
    pub fn blocks(&self) -> usize {
        self.block.map_or(1, |block| self.axis.div_ceil(block))
    }

    /// How many rows of a transposed matrix are read together, if scales lie along its rows: each
    /// element of a part of a row is a separate read. Errors are made up for in whole rows, too.
    pub fn rows(&self) -> Option<usize> {
        let turned = self.inner == 1 && !self.source.is_contiguous();
        let read = turned.then(|| unit(&self.source).checked_div(self.axis)).flatten();
        read.filter(|rows| *rows > 0).or(self.feedback.as_ref().map(|_| ROWS))
    }

    /// Elements from which codes can be computed without others.
    pub fn unit(&self) -> usize {
        if self.feedback.is_some() {
            return self.rows().unwrap_or(1) * self.axis;
        }
        let alone = match self.block {
            Some(block) if self.outer == 1 || self.axis.is_multiple_of(block) => block * self.inner,
            Some(_) => self.axis * self.inner,
            None => self.balanced.unwrap_or(1),
        };
        match unit(&self.source) {
            together if together > alone => together / alone * alone,
            _ => alone,
        }
    }

    /// Scales and zero points of channels, computed on all cores. Those of a block are computed
    /// with it.
    pub fn prepare(&self) -> io::Result<()> {
        if self.block.is_some() || self.params.get().is_some() {
            return Ok(());
        }
        let empty = || vec![Range::EMPTY; self.axis];
        let add =
            |mut ranges: Vec<Range>, chunk| self.add_ranges(chunk, &mut ranges).map(|()| ranges);
        let ranges = (0..self.chunks())
            .into_par_iter()
            .try_fold(empty, add)
            .try_reduce(empty, |a, b| Ok(a.into_iter().zip(b).map(|(a, b)| a.and(b)).collect()))?;
        self.settle(ranges)
    }

    /// The scales of channels. No thread waits for another here: some may compute the same.
    fn channels(&self) -> io::Result<&[Param]> {
        if self.params.get().is_none() {
            let mut ranges = vec![Range::EMPTY; self.axis];
            for chunk in 0..self.chunks() {
                self.add_ranges(chunk, &mut ranges)?;
            }
            self.settle(ranges)?;
        }
        Ok(self.params.get().map(Vec::as_slice).unwrap_or_default())
    }

    /// Reads that all elements take.
    fn chunks(&self) -> usize {
        self.source.numel().div_ceil(at_once(&self.source))
    }

    /// Adds the elements of a chunk to the ranges of their channels.
    fn add_ranges(&self, chunk: usize, ranges: &mut [Range]) -> io::Result<()> {
        let size = at_once(&self.source);
        let start = chunk * size;
        let count = size.min(self.source.numel() - start);
        let numbers = self.name.floats(&self.source, start, count)?;
        runs(self.axis, self.inner, start, numbers.len(), |at, length, channel| {
            let part = numbers.get(at..at + length).unwrap_or_default();
            match self.inner {
                1 => { ranges.iter_mut().skip(channel).zip(part) }
                    .for_each(|(range, x)| range.add(*x)),
                _ => { ranges.get_mut(channel) }
                    .into_iter()
                    .for_each(|range| *range = range.and(Range::of(part))),
            }
        });
        Ok(())
    }

    fn settle(&self, ranges: Vec<Range>) -> io::Result<()> {
        self.finite(&ranges)?;
        let all = ranges.iter().copied().fold(Range::EMPTY, Range::and);
        let param = |range: Range| {
            if range.min == 0.0 && range.max == 0.0 {
                self.scheme.zeros(all)
            } else {
                self.scheme.param(range)
            }
        };
        let mut params: Vec<Param> = ranges.into_iter().map(param).collect();
        for (param, least) in params.iter_mut().zip(&self.least) {
            param.scale = param.scale.max(*least);
        }
        // Another thread may have been first, with the same.
        let _ = self.params.set(params);
        Ok(())
    }

    fn finite(&self, ranges: &[Range]) -> io::Result<()> {
        if ranges.iter().all(|range| range.is_finite()) {
            Ok(())
        } else {
            Err(self.name.error("has NaN or infinite values, which cannot be quantised", ""))
        }
    }

    /// Calls `each` with the number of each block and its elements: rows of `inner`.
    fn each_block(
        &self,
        first: usize,
        count: usize,
        mut each: impl FnMut(usize, &[f32]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (size, blocks) = (self.block.unwrap_or(self.axis), self.blocks());
        let place = |block: usize| {
            let along = block % blocks * size;
            let start = (block / blocks * self.axis + along) * self.inner;
            (start, size.min(self.axis - along) * self.inner)
        };
        let together = match self.rows() {
            Some(rows) => rows * blocks,
            None => (at_once(&self.source) / (size * self.inner).max(1)).max(1),
        };
        for group in (first..first + count).step_by(together) {
            let end = (group + together).min(first + count);
            let (start, (last, length)) = (place(group).0, place(end - 1));
            let numbers = self.name.floats(&self.source, start, last + length - start)?;
            for block in group..end {
                let (at, length) = place(block);
                each(block, numbers.get(at - start..at - start + length).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// Adds the scales of a block: one for each column.
    fn add_params(&self, block: usize, numbers: &[f32], to: &mut Vec<Param>) -> io::Result<()> {
        let from = to.len();
        if self.inner == 1 {
            let range = Range::of(numbers);
            self.finite(&[range])?;
            to.push(self.scheme.param(range));
        } else {
            let mut ranges = vec![Range::EMPTY; self.inner];
            for row in numbers.chunks_exact(self.inner) {
                ranges.iter_mut().zip(row).for_each(|(range, x)| range.add(*x));
            }
            self.finite(&ranges)?;
            to.extend(ranges.into_iter().map(|range| self.scheme.param(range)));
        }
        let at = block % self.blocks() * self.block.unwrap_or(self.axis);
        let params = to.get_mut(from..).unwrap_or_default();
        self.scheme.fit(numbers, (self.inputs.as_deref(), at), params);
        Ok(())
    }

    /// Scales and zero points from number `start` on.
    pub fn params(&self, start: usize, count: usize) -> io::Result<Vec<Param>> {
        if self.block.is_none() {
            return Ok(self.channels()?.get(start..start + count).unwrap_or_default().to_vec());
        }
        let first = start / self.inner;
        let blocks = (start + count).div_ceil(self.inner) - first;
        let mut params = Vec::with_capacity(blocks * self.inner);
        self.each_block(first, blocks, |block, numbers| {
            self.add_params(block, numbers, &mut params)
        })?;
        let skipped = start - first * self.inner;
        Ok(params.get(skipped..skipped + count).unwrap_or_default().to_vec())
    }

    /// Codes from element `start` on, one in a byte. Ends are those of [units](Self::unit) or of
    /// the weight.
    pub fn codes(&self, start: usize, codes: &mut [u8]) -> io::Result<()> {
        if codes.is_empty() {
            return Ok(());
        }
        match (&self.feedback, self.block) {
            (Some(feedback), Some(block)) => {
                self.codes_of_rows(feedback, block, start, codes).map(drop)
            }
            (_, Some(_)) => self.codes_of_blocks(start, codes),
            (_, None) => self.codes_of_channels(start, codes),
        }
    }

    fn codes_of_channels(&self, start: usize, codes: &mut [u8]) -> io::Result<()> {
        let params = self.channels()?;
        let (mut at, mut back, mut sums) = (start, Vec::new(), Sums::default());
        let group = self.balanced.unwrap_or(1);
        for codes in codes.chunks_mut(at_once(&self.source).div_ceil(group) * group) {
            let numbers = self.name.floats(&self.source, at, codes.len())?;
            back.resize(numbers.len(), 0.0);
            runs(self.axis, self.inner, at, numbers.len(), |from, length, channel| {
                let (Some(x), Some(code), Some(y)) = (
                    numbers.get(from..from + length),
                    codes.get_mut(from..from + length),
                    back.get_mut(from..from + length),
                ) else {
                    return;
                };
                match self.inner {
                    1 => self.scheme.encode_each(
                        x,
                        params.get(channel..).unwrap_or_default(),
                        code,
                        y,
                    ),
                    _ => {
                        let param = params.get(channel).copied().unwrap_or_default();
                        self.scheme.encode(x, param, code, y);
                        if let Some(group) = self.balanced {
                            let all = x.chunks(group).zip(code.chunks_mut(group));
                            for ((x, code), y) in all.zip(y.chunks_mut(group)) {
                                self.scheme.balance(x, param, code, y);
                            }
                        }
                    }
                }
            });
            sums.add(&numbers, &back);
            at += codes.len();
        }
        self.losses.note(start, sums);
        Ok(())
    }

    fn codes_of_blocks(&self, start: usize, codes: &mut [u8]) -> io::Result<()> {
        let row = self.axis * self.inner;
        let size = self.block.unwrap_or(self.axis) * self.inner;
        let number = |element: usize| element / row * self.blocks() + element % row / size;
        let (first, last) = (number(start), number(start + codes.len() - 1));
        let (mut rest, mut back, mut sums) = (codes, Vec::new(), Sums::default());
        let mut params = Vec::new();
        self.each_block(first, last + 1 - first, |block, numbers| {
            let (now, after) = std::mem::take(&mut rest).split_at_mut(numbers.len());
            rest = after;
            params.clear();
            self.add_params(block, numbers, &mut params)?;
            self.code_block(numbers, &params, now, &mut back, &mut sums);
            Ok(())
        })?;
        self.losses.note(start, sums);
        Ok(())
    }

    /// The codes of whole rows, and the scales of their blocks.
    fn codes_of_rows(
        &self,
        feedback: &Feedback,
        block: usize,
        start: usize,
        codes: &mut [u8],
    ) -> io::Result<Vec<Param>> {
        let numbers = self.name.floats(&self.source, start, codes.len())?;
        let first = start / self.axis * self.blocks();
        let all = numbers.chunks(self.axis).flat_map(|row| row.chunks(block));
        let mut params = Vec::new();
        for (at, block) in all.enumerate() {
            self.add_params(first + at, block, &mut params)?;
        }
        let mut back = vec![0.0; numbers.len()];
        feedback.encode(self.scheme, (&numbers, block), &params, codes, &mut back);
        let mut sums = Sums::default();
        sums.add(&numbers, &back);
        self.losses.note(start, sums);
        Ok(params)
    }

    /// Makes the codes of a block, and adds their errors to the sums.
    fn code_block(
        &self,
        numbers: &[f32],
        params: &[Param],
        codes: &mut [u8],
        back: &mut Vec<f32>,
        sums: &mut Sums,
    ) {
        back.resize(numbers.len(), 0.0);
        match params {
            [one] => self.scheme.encode(numbers, *one, codes, back),
            all => {
                let rows = numbers.chunks_exact(self.inner).zip(codes.chunks_exact_mut(self.inner));
                for ((x, code), y) in rows.zip(back.chunks_exact_mut(self.inner)) {
                    self.scheme.encode_each(x, all, code, y);
                }
            }
        }
        sums.add(numbers, back);
    }

    /// Codes of whole blocks; those of four bits two in a byte, low bits first. A block that the
    /// axis cuts off is filled up: `MatMulNBits` has it so.
    pub fn padded(&self, first: usize, out: &mut [u8]) -> io::Result<()> {
        let size = self.block.unwrap_or(self.axis);
        let bytes = size * self.scheme.bits() / 8;
        let (mut parts, mut sums) = (out.chunks_exact_mut(bytes), Sums::default());
        if let Some(feedback) = &self.feedback {
            let start = first / self.blocks() * self.axis;
            let mut codes = vec![0; parts.len() / self.blocks() * self.axis];
            let params = self.codes_of_rows(feedback, size, start, &mut codes)?;
            let blocks = codes.chunks(self.axis).flat_map(|row| row.chunks(size));
            let mut whole = vec![0; size];
            for ((block, param), part) in blocks.zip(params).zip(parts) {
                whole.fill(param.zero as u8);
                whole.iter_mut().zip(block).for_each(|(to, code)| *to = *code);
                self.scheme.pack(&whole, part);
            }
            return Ok(());
        }
        let (mut codes, mut back, mut params) = (vec![0; size], Vec::new(), Vec::new());
        let count = parts.len();
        self.each_block(first, count, |block, numbers| {
            params.clear();
            self.add_params(block, numbers, &mut params)?;
            codes.fill(params.first().map_or(0, |p| p.zero as u8));
            let own = codes.get_mut(..numbers.len()).unwrap_or_default();
            self.code_block(numbers, &params, own, &mut back, &mut sums);
            parts.next().into_iter().for_each(|part| self.scheme.pack(&codes, part));
            Ok(())
        })?;
        self.losses.note(first * size, sums);
        Ok(())
    }
}

pub(crate) fn scale_bytes(scale: f32, dtype: DType, to: &mut [u8]) {
    match dtype {
        DType::F16 => to.copy_from_slice(&f16::from_f32(scale).to_le_bytes()),
        DType::BF16 => to.copy_from_slice(&bf16::from_f32(scale).to_le_bytes()),
        _ => to.copy_from_slice(&scale.to_le_bytes()),
    }
}

pub(crate) fn is_half_byte(scheme: &Scheme) -> bool {
    scheme.format == Format::Int4
}
