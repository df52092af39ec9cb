//! Codes of weights by GPTQ: each is rounded so that it makes up for the errors of those before.
//!
//! The squared error that a row of errors `e` of a weight makes in the products is `e H e`, where
//! `H` has the second moments of their inputs. With `H = U U'` for an upper triangular `U`, it is a
//! sum of squares, and a square has no errors but those up to its place: the codes are chosen one
//! after the other, those that inputs with large numbers multiply first. The scales are chosen
//! before.

use crate::{ChannelMoments, Moments, Param, Scheme, moments::PANEL};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, linalg::general_mat_mul, s};
use rayon::prelude::*;
use std::sync::Arc;

/// This part of the mean of the squares is added to each, so that nothing is divided by 0: the
/// first with which there are factors.
const DAMPING: [f32; 3] = [0.01, 0.1, 1.0];

/// The factors of the second moments of a product's input.
#[derive(Debug)]
pub(crate) struct Feedback {
    /// The moment of each place in a sum, relative to the largest, as a variance: codes make up for
    /// what does not cancel out.
    pub inputs: Arc<ChannelMoments>,
    spans: Vec<Span>,
}

/// Some places in a sum, whose errors make up for each other.
#[derive(Debug)]
struct Span {
    /// The order in which codes are chosen.
    order: Vec<usize>,
    /// Below the diagonal: how much the errors of those before count for each.
    factor: Array2<f32>,
}

impl Feedback {
    /// None if all numbers of the input were 0, or some not finite.
    pub fn new(moments: &Moments) -> Option<Self> {
        let squares = moments.squares()?;
        let largest = squares.iter().copied().fold(0.0, f32::max);
        let spans = moments.spans.iter().map(Span::new).collect::<Option<_>>()?;
        let variances = squares.iter().map(|square| square / largest).collect();
        let inputs = Arc::new(ChannelMoments { means: vec![0.0; squares.len()], variances });
        Some(Self { inputs, spans })
    }

    /// Makes codes of whole rows, and numbers of the codes.
    ///
    /// # Arguments
    /// * `params`: Those of all blocks of all rows.
    pub fn encode(
        &self,
        scheme: Scheme,
        (rows, block): (&[f32], usize),
        params: &[Param],
        codes: &mut [u8],
        back: &mut [f32],
    ) {
        let width = self.inputs.variances.len();
        let shape = (rows.len() / width.max(1), width);
        let blocks = (shape.0, width.div_ceil(block.max(1)));
        let (Ok(rows), Ok(params), Ok(mut codes), Ok(mut back)) = (
            ArrayView2::from_shape(shape, rows),
            ArrayView2::from_shape(blocks, params),
            ArrayViewMut2::from_shape(shape, codes),
            ArrayViewMut2::from_shape(shape, back),
        ) else {
            return;
        };
        let mut start = 0;
        for span in &self.spans {
            let own = start..start + span.order.len();
            start = own.end;
            let mut errors = Array2::zeros((shape.0, own.len()));
            for step in (0..own.len()).step_by(PANEL) {
                let wanted = span.wanted(rows.slice(s![.., own.clone()]), errors.view(), step);
                for (row, wanted) in wanted.outer_iter().enumerate() {
                    for (i, wanted) in wanted.iter().enumerate() {
                        let place = own.start + span.order[step + i];
                        let before = s![row, step..step + i];
                        let factor = span.factor.slice(s![step + i, step..step + i]);
                        let number = wanted + factor.dot(&errors.slice(before));
                        let (mut code, mut restored) = ([0], [0.0]);
                        scheme.encode(
                            &[number],
                            params[[row, place / block]],
                            &mut code,
                            &mut restored,
                        );
                        [codes[[row, place]]] = code;
                        [back[[row, place]]] = restored;
                        errors[[row, step + i]] = rows[[row, place]] - back[[row, place]];
                    }
                }
            }
        }
    }
}

impl Span {
    /// None if rounding leaves no factors.
    fn new(sums: &Array2<f32>) -> Option<Self> {
        let size = sums.nrows();
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|a, b| sums[[*b, *b]].total_cmp(&sums[[*a, *a]]));
        // Without any number but zeros, each stands for itself.
        let mean = Some(sums.diag().sum() / size as f32).filter(|mean| *mean > 0.0).unwrap_or(1.0);
        DAMPING.into_iter().find_map(|damping| {
            let mut factor = Array2::from_shape_fn((size, size), |(i, j)| {
                let (i, j) = (order[i], order[j]);
                sums[[i.min(j), i.max(j)]]
            });
            factor.diag_mut().iter_mut().for_each(|square| *square += damping * mean);
            factorise(&mut factor)?;
            for j in 0..size {
                let (column, own) = (factor.slice(s![..j, j]).to_owned(), factor[[j, j]]);
                factor.slice_mut(s![j, ..j]).assign(&(column / own));
            }
            Some(Self { order: order.clone(), factor })
        })
    }

    /// The numbers at some places in the order, from `step` on, with what makes up for the errors
    /// of those before `step`.
    fn wanted(&self, rows: ArrayView2<f32>, errors: ArrayView2<f32>, step: usize) -> Array2<f32> {
        let end = (step + PANEL).min(self.order.len());
        let mut wanted = rows.select(Axis(1), &self.order[step..end]);
        let factor = self.factor.slice(s![step..end, ..step]);
        general_mat_mul(1.0, &errors.slice(s![.., ..step]), &factor.t(), 1.0, &mut wanted);
        wanted
    }
}

/// Makes the upper triangle of a symmetric matrix that of its factor `U`, whose product with its
/// transpose is the matrix. None if it is not positive.
fn factorise(matrix: &mut Array2<f32>) -> Option<()> {
    let size = matrix.nrows();
    for start in (0..size).step_by(PANEL).rev() {
        let end = (start + PANEL).min(size);
        let mut corner = matrix.slice(s![start..end, start..end]).to_owned();
        for j in (0..corner.nrows()).rev() {
            let root = Some(corner[[j, j]]).filter(|x| *x > 0.0 && x.is_finite())?.sqrt();
            corner[[j, j]] = root;
            corner.slice_mut(s![..j, j]).mapv_inplace(|x| x / root);
            let column = corner.slice(s![..j, j]).to_owned();
            for (k, x) in column.iter().enumerate() {
                corner.slice_mut(s![..=k, k]).scaled_add(-x, &column.slice(s![..=k]));
            }
        }
        matrix.slice_mut(s![start..end, start..end]).assign(&corner);
        let (mut rest, mut above) = matrix.slice_mut(s![..start, ..end]).split_at(Axis(1), start);
        let rows: Vec<_> = above.outer_iter_mut().collect();
        rows.into_par_iter().for_each(|mut row| {
            for j in (0..row.len()).rev() {
                let known = row.slice(s![j + 1..]).dot(&corner.slice(s![j, j + 1..]));
                row[j] = (row[j] - known) / corner[[j, j]];
            }
        });
        let panels: Vec<_> = rest.axis_chunks_iter_mut(Axis(0), PANEL).collect();
        panels.into_par_iter().enumerate().for_each(|(i, mut panel)| {
            let (from, to) = (i * PANEL, i * PANEL + panel.nrows());
            let (left, right) = (above.slice(s![from..to, ..]), above.slice(s![from.., ..]));
            general_mat_mul(-1.0, &left, &right.t(), 1.0, &mut panel.slice_mut(s![.., from..]));
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, ranges::Range};
    use pt2onnx_tensor::DType;

    /// Numbers between -1 and 1.
    fn draw(count: usize, seed: &mut u32) -> Vec<f32> {
        let mut next = || {
            *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (*seed >> 8) as f32 / 8_388_608.0 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// Inputs whose places depend on each other and have numbers of several sizes.
    fn inputs(width: usize) -> Array2<f32> {
        let mut seed = 7;
        let causes = Array2::from_shape_vec((300, 9), draw(300 * 9, &mut seed)).unwrap();
        let mixed = Array2::from_shape_vec((9, width), draw(9 * width, &mut seed)).unwrap();
        let noise = Array2::from_shape_vec((300, width), draw(300 * width, &mut seed)).unwrap();
        causes.dot(&mixed) + noise * 0.2 + 0.3
    }

    #[test]
    fn factors_of_any_size() {
        for size in [1, 63, 64, 65, 200] {
            let inputs = inputs(size);
            let sums = inputs.t().dot(&inputs);
            let span = Span::new(&sums).unwrap();
            let mean = sums.diag().sum() / size as f32;
            let upper =
                Array2::from_shape_fn(
                    (size, size),
                    |(i, j)| {
                        if i <= j { span.factor[[i, j]] } else { 0.0 }
                    },
                );
            for ((i, j), found) in upper.dot(&upper.t()).indexed_iter() {
                let damped = if i == j { DAMPING[0] * mean } else { 0.0 };
                let expected = sums[[span.order[i], span.order[j]]] + damped;
                assert!((found - expected).abs() < 1e-3 * mean, "{size} {i} {j}");
                assert!(i <= j || span.factor[[i, j]] == upper[[j, i]] / upper[[i, i]]);
            }
        }
        assert_eq!(Span::new(&Array2::zeros((3, 3))).unwrap().factor[[2, 1]], 0.0);
    }

    #[test]
    fn products_lose_less() {
        let (count, width, block) = (20, 300, 32);
        let inputs = inputs(width);
        let rows = draw(count * width, &mut 3);
        for (symmetric, memory) in [(true, 1 << 20), (false, 1 << 20), (true, 1)] {
            let scheme = Scheme {
                format: Format::Int4,
                symmetric,
                unsigned: true,
                scale: DType::F32,
                restored: DType::F32,
            };
            let mut moments = Moments::with_memory(width, memory);
            moments.see(inputs.as_slice().unwrap());
            let feedback = Feedback::new(&moments).unwrap();
            let blocks = rows.chunks(width).flat_map(|row| row.chunks(block));
            let params: Vec<Param> = blocks.map(|own| scheme.param(Range::of(own))).collect();
            let (mut codes, mut back) = (vec![0; rows.len()], vec![0.0; rows.len()]);
            let lost = |back: &[f32]| {
                let errors = rows.iter().zip(back).map(|(x, y)| x - y).collect();
                let errors = Array2::from_shape_vec((count, width), errors).unwrap();
                inputs.dot(&errors.t()).iter().map(|x| x * x).sum::<f32>()
            };
            feedback.encode(scheme, (&rows, block), &params, &mut codes, &mut back);
            let with_feedback = lost(&back);
            for (i, (x, y)) in codes.iter().zip(&back).enumerate() {
                let param = params[i / width * width.div_ceil(block) + i % width / block];
                assert_eq!((f32::from(*x) - param.zero) * param.scale, *y);
            }
            for (i, x) in rows.iter().enumerate() {
                let param = params[i / width * width.div_ceil(block) + i % width / block];
                scheme.encode(&[*x], param, &mut [0], &mut back[i..=i]);
            }
            let nearest = lost(&back);
            assert!(with_feedback < nearest / 4.0, "{with_feedback} {nearest}");
        }
    }
}
