//! The order of dimensions that PyTorch's `TensorIterator` gives results.

use super::ordered;
use crate::eval::Evaluator;
use pt2onnx_fx::TensorMeta;
use pt2onnx_symbolic::Expr;
use std::cmp::Ordering;

impl Evaluator<'_> {
    /// The strides of a new tensor whose dimensions are in the order of the operands', if it is
    /// known.
    pub(crate) fn pointwise_strides(
        &self,
        operands: &[&TensorMeta],
        sizes: &[Expr],
    ) -> Option<Vec<Expr>> {
        let broadcast = |operand: &&TensorMeta| {
            let lead = sizes.len().checked_sub(operand.sizes.len())?;
            let mut strides = vec![Expr::ZERO; lead];
            for ((size, stride), wide) in
                operand.sizes.iter().zip(&operand.strides).zip(&sizes[lead..])
            {
                let repeated = size.as_int() == Some(1) && wide.as_int() != Some(1);
                strides.push(if repeated { Expr::ZERO } else { stride.clone() });
            }
            (strides.len() == sizes.len()).then_some(strides)
        };
        let operands: Vec<Vec<Expr>> = operands.iter().map(broadcast).collect::<Option<_>>()?;
        // From the dimension with the smallest steps on.
        let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
        for next in 1..order.len() {
            let mut moved = next;
            for at in (0..next).rev() {
                match self.by_steps(&operands, sizes, order[at], order[moved])? {
                    Ordering::Greater => {
                        order.swap(at, moved);
                        moved = at;
                    }
                    Ordering::Less => break,
                    Ordering::Equal => {}
                }
            }
        }
        Some(ordered(sizes, &order))
    }

    /// Compares the steps of two dimensions in the first operand that decides, if it is known.
    fn by_steps(
        &self,
        operands: &[Vec<Expr>],
        sizes: &[Expr],
        a: usize,
        b: usize,
    ) -> Option<Ordering> {
        for strides in operands {
            let (x, y) = (&strides[a], &strides[b]);
            if x == &Expr::ZERO || y == &Expr::ZERO {
                continue;
            }
            match self.ordering(x, y)? {
                Ordering::Equal if self.ordering(&sizes[a], &sizes[b])? == Ordering::Greater => {
                    return Some(Ordering::Greater);
                }
                Ordering::Equal => {}
                unequal => return Some(unequal),
            }
        }
        Some(Ordering::Equal)
    }

    /// Which number is larger; `None` if that is not known. Those that may be equal differ: the
    /// dimension between them has one element then, so that its place does not matter.
    fn ordering(&self, a: &Expr, b: &Expr) -> Option<Ordering> {
        let known = self.constraints();
        if known.prove_eq(a, b) == Some(true) {
            Some(Ordering::Equal)
        } else if known.prove_ge(a, b) {
            Some(Ordering::Greater)
        } else {
            known.prove_ge(b, a).then_some(Ordering::Less)
        }
    }
}
