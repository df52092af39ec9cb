//! Moments of the inputs of products: which errors of weights cancel out in their sums.

use crate::scheme::BLOCKS;
use ndarray::{Array2, ArrayView2, Axis, linalg::general_mat_mul, s};
use rayon::prelude::*;

/// The bytes that the moments of all inputs take at most, where spans are not the shortest.
pub(crate) const MEMORY: usize = 512 << 20;

/// Columns of a matrix that are computed together.
pub(crate) const PANEL: usize = 64;

/// The number of neighbours whose products are summed up, so that all have room.
pub(crate) fn span(widths: impl Iterator<Item = usize> + Clone, memory: usize) -> usize {
    let room = memory / size_of::<f32>();
    let shortest = *BLOCKS.end();
    let mut span = widths.clone().max().unwrap_or(0).next_multiple_of(shortest);
    while span > shortest
        && widths.clone().map(|width| width * width.min(span)).sum::<usize>() > room
    {
        span = (span / 2).next_multiple_of(shortest);
    }
    span
}

/// The means and variances of the places in a product's sums.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelMoments {
    pub(crate) means: Vec<f32>,
    pub(crate) variances: Vec<f32>,
}

/// For each two places in the last dimension of an activation that lie in the same span, the sum of
/// the products of the numbers there.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// A symmetric matrix for each span. Only its upper triangle is computed.
    pub(crate) spans: Vec<Array2<f32>>,
}

impl Moments {
    #[cfg(test)]
    pub(crate) fn with_memory(width: usize, memory: usize) -> Self {
        Self::new(width, span([width].into_iter(), memory))
    }

    pub(crate) fn new(width: usize, span: usize) -> Self {
        let sizes = (0..width).step_by(span.max(1)).map(|start| span.min(width - start));
        Self { spans: sizes.map(|size| Array2::zeros((size, size))).collect() }
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(Array2::nrows).sum()
    }

    /// Shows it numbers: rows of the activation.
    pub fn see(&mut self, numbers: &[f32]) {
        let width = self.width();
        let shape = (numbers.len() / width.max(1), width);
        let Ok(rows) = ArrayView2::from_shape(shape, numbers) else { return };
        let mut start = 0;
        for sums in &mut self.spans {
            let size = sums.nrows();
            let own = rows.slice(s![.., start..start + size]);
            let panels: Vec<_> = sums.axis_chunks_iter_mut(Axis(0), PANEL).collect();
            panels.into_par_iter().enumerate().for_each(|(i, mut panel)| {
                let (from, to) = (i * PANEL, i * PANEL + panel.nrows());
                let left = own.slice(s![.., from..to]);
                let right = own.slice(s![.., from..]);
                general_mat_mul(1.0, &left.t(), &right, 1.0, &mut panel.slice_mut(s![.., from..]));
            });
            start += size;
        }
    }

    /// Adds those of another input of the same width.
    pub(crate) fn add(&mut self, other: &Self) {
        self.spans.iter_mut().zip(&other.spans).for_each(|(sums, more)| *sums += more);
    }

    /// The sums of squares. `None` if all numbers were 0, or some not finite.
    pub(crate) fn squares(&self) -> Option<Vec<f32>> {
        let all: Vec<f32> = self.spans.iter().flat_map(|sums| sums.diag().to_vec()).collect();
        let sum = all.iter().sum::<f32>();
        (sum > 0.0 && sum.is_finite()).then_some(all)
    }
}
