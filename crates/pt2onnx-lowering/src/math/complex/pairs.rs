//! Tensors of real/imaginary pairs: how ONNX models hold complex tensors.

use super::Complex;
use crate::Cx;
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

impl Cx<'_, '_> {
    /// Part 0 (real) or 1 (imaginary) of a tensor of real/imaginary pairs. If
    /// [`pairs`](Self::pairs) made the tensor, this emits nothing.
    pub fn part(&self, pairs: Value, part: usize) -> Value {
        match self.known_parts().of(pairs) {
            Some(parts) => parts[part],
            None => self.take(pairs, self.rank(pairs).saturating_sub(1), &Expr::int(part as i64)),
        }
    }

    /// Both parts of a tensor of real/imaginary pairs, which are in its last dimension.
    pub fn parts(&self, pairs: Value) -> Complex {
        Complex::new(self.part(pairs, 0), self.part(pairs, 1)).with_pairs(pairs)
    }

    /// Real/imaginary pairs: the two parts are broadcast together and stacked in a new last
    /// dimension. The imaginary parts of a real tensor are zeros.
    pub fn pairs(&self, c: Complex) -> Value {
        if let Some(pairs) = c.given_pairs() {
            return pairs;
        }
        let im = c.imag(self);
        let shape = self.broadcast_shapes(&self.shape(c.re), &self.shape(im));
        let (re, wide) = (self.expand(c.re, &shape), self.expand(im, &shape));
        let column = |part| self.unsqueeze(part, &[shape.len()]);
        let pairs = if self.is_zero(im) && !shape.is_empty() {
            self.with_zeros_behind(column(re))
        } else {
            self.concat(&[column(re), column(wide)], shape.len())
        };
        self.known_parts().remember(pairs, [re, wide]);
        pairs
    }

    /// Whether a value is a 0-d constant of 0, as the imaginary parts of real tensors are.
    fn is_zero(&self, value: Value) -> bool {
        let constant = self.constant_of(value).filter(|t| t.rank() == 0);
        constant.is_some_and(|t| t.has_data() && t.to_bytes().iter().all(|&b| b == 0))
    }

    /// `x`, whose last dimension is 1, padded to 2.
    fn with_zeros_behind(&self, x: Value) -> Value {
        let mut pads = vec![0; 2 * self.rank(x)];
        if let Some(last) = pads.last_mut() {
            *last = 1;
        }
        let inputs = [Some(x), Some(self.ints(&pads))];
        self.emit1("Pad", &inputs, Default::default())
    }
}
