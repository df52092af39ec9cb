//! Complex tensors: pairs of real numbers in a trailing dimension of 2.
//!
//! Which values are complex is what the program says of their names: `view_as_real` changes a type, not a value.

use crate::Cx;
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// How complex arguments come to the lowering that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Not at all.
    #[default]
    Real,
    /// As one of their parts: 0 the real ones, 1 the imaginary ones.
    Part(usize),
    /// As [`Complex`]; as pairs where a plain `Value` is wanted.
    Complex,
}

/// The parts of pairs that were made of two parts, so that taking them apart emits nothing.
#[derive(Default)]
pub(crate) struct Parts(RefCell<FxHashMap<Value, [Value; 2]>>);

impl Parts {
    fn of(&self, pairs: Value) -> Option<[Value; 2]> {
        self.0.borrow().get(&pairs).copied()
    }

    fn remember(&self, pairs: Value, parts: [Value; 2]) {
        self.0.borrow_mut().insert(pairs, parts);
    }
}

/// A complex tensor, its parts apart. Of a real one, `im` is a 0-d zero, which broadcasts.
#[derive(Clone, Copy, Debug)]
pub struct Complex {
    /// Real parts.
    pub re: Value,
    /// Imaginary parts.
    pub im: Value,
}

impl Cx<'_, '_> {
    /// Part 0 (real) or 1 (imaginary) of pairs. Of pairs just made of two parts, those parts.
    pub fn part(&self, pairs: Value, part: usize) -> Value {
        match self.known_parts().of(pairs) {
            Some(parts) => parts[part],
            None => self.take(pairs, self.rank(pairs).saturating_sub(1), &Expr::int(part as i64)),
        }
    }

    /// Both parts of pairs.
    pub fn parts(&self, pairs: Value) -> Complex {
        Complex { re: self.part(pairs, 0), im: self.part(pairs, 1) }
    }

    /// Pairs of two parts, broadcast together.
    pub fn pairs(&self, c: Complex) -> Value {
        let shape = self.broadcast_shapes(&self.shape(c.re), &self.shape(c.im));
        let (re, im) = (self.expand(c.re, &shape), self.expand(c.im, &shape));
        let column = |part| self.unsqueeze(part, &[shape.len()]);
        let pairs = match self.is_zero(c.im) && !shape.is_empty() {
            true => self.with_zeros_behind(column(re)),
            false => self.concat(&[column(re), column(im)], shape.len()),
        };
        self.known_parts().remember(pairs, [re, im]);
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

    /// A real tensor as a complex one.
    pub fn real(&self, re: Value) -> Complex {
        Complex { re, im: self.scalar(0, self.dtype(re)) }
    }
}

/// An operand of an op that treats both parts alike, as pairs where it has them: a real tensor does not.
#[derive(Clone, Copy, Debug)]
pub struct Paired {
    /// The pairs; of a number, one.
    pub pairs: Option<Value>,
    /// The parts.
    pub parts: Complex,
}
