//! Emission that emits nothing where nothing needs doing, and constants where all is known.

use super::Builder;
use crate::{Reduction, Shape, Type, Value, attribute::attributes};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

impl Builder<'_> {
    /// `x` as `dtype`.
    pub fn cast(&self, x: Value, dtype: DType) -> Value {
        if self.dtype(x) == dtype {
            return x;
        }
        if dtype.is_complex() || dtype == DType::C32 {
            self.report(format!("a cast to {dtype} has no ONNX operator"));
            return x;
        }
        let contents = self.contents(x).filter(|_| dtype == DType::I64);
        let to = crate::schema::data_type(dtype);
        let ty = Type::Tensor(crate::TensorType { dtype, shape: self.known_shape(x) });
        let result = self.emit_typed("Cast", &[x], attributes([("to", to.into())]), ty);
        if let Some(known) = contents {
            self.set_contents(result, known);
        }
        result
    }

    /// `x` with other sizes; their product must be the same.
    pub fn reshape(&self, x: Value, dims: &[Expr]) -> Value {
        let from = self.shape(x);
        if from == dims {
            return x;
        }
        if let Some(t) = self.small_constant(x)
            && let Some(shape) =
                dims.iter().map(|d| usize::try_from(d.as_int()?).ok()).collect::<Option<Vec<_>>>()
            && let Some(reshaped) = t.reshaped(shape)
        {
            return self.constant(reshaped);
        }
        let mut given = crate::Attributes::new();
        let target = match self.reshape_target(&from, dims) {
            Some(known) => self.ints(&known),
            None => {
                if let Some(result) = self.ones_only(x, &from, dims) {
                    return result;
                }
                // A size that turns out to be 0 means 0 here, not "as in `from`".
                if !dims.iter().all(|d| self.constraints().prove_ge(d, &Expr::int(1))) {
                    given = attributes([("allowzero", 1i64.into())]);
                }
                self.sizes(dims)
            }
        };
        let result =
            self.emit_typed("Reshape", &[x, target], given, Type::tensor(self.dtype(x), dims));
        if let Some(known) = self.contents(x).filter(|_| dims.len() <= 1) {
            self.set_contents(result, known);
        }
        result
    }

    /// `x` with other dimensions of size 1, if that is all that differs: no other size has to be known then.
    fn ones_only(&self, x: Value, from: &[Expr], dims: &[Expr]) -> Option<Value> {
        let one = |shape: &[Expr], i: usize| shape[i].as_int() == Some(1);
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        while i < from.len() || j < dims.len() {
            if i < from.len() && j < dims.len() && from[i] == dims[j] {
                (i, j) = (i + 1, j + 1);
            } else if i < from.len() && one(from, i) {
                gone.push(i);
                i += 1;
            } else if j < dims.len() && one(dims, j) {
                new.push(j);
                j += 1;
            } else {
                return None;
            }
        }
        Some(self.unsqueeze(self.squeeze(x, &gone), &new))
    }

    /// The sizes as constants, if `0` (as in `from`) and one `-1` (the rest) can stand for all that is symbolic.
    /// `-1` only where the other sizes are positive: beside a zero it says nothing.
    fn reshape_target(&self, from: &[Expr], dims: &[Expr]) -> Option<Vec<i64>> {
        let mut target = Vec::with_capacity(dims.len());
        let mut rest = None;
        for (i, dim) in dims.iter().enumerate() {
            target.push(match dim.as_int() {
                // 0 would mean "as in `from`"; an empty result is spelled by 0 only where that is 0, too.
                Some(0) if from.get(i) != Some(dim) => return None,
                Some(known) => known,
                None if from.get(i) == Some(dim) => 0,
                None if rest.is_none() => {
                    rest = Some(i);
                    -1
                }
                None => return None,
            });
        }
        let one = Expr::int(1);
        let constraints = self.constraints();
        let positive = |i: usize| constraints.prove_ge(&dims[i], &one);
        rest.is_none_or(|r| (0..dims.len()).all(|i| i == r || positive(i))).then_some(target)
    }

    /// `x` with its dimensions permuted: dimension `i` of the result is dimension `perm[i]` of `x`.
    pub fn transpose(&self, x: Value, perm: &[usize]) -> Value {
        if perm.iter().copied().eq(0..perm.len()) {
            return x;
        }
        let from = self.shape(x);
        if perm.len() != from.len() || perm.iter().any(|&p| p >= from.len()) {
            self.report(format!(
                "{perm:?} does not permute the dimensions of {}",
                self.describe(x)
            ));
            return x;
        }
        let ty =
            Type::tensor(self.dtype(x), perm.iter().map(|&p| from[p].clone()).collect::<Shape>());
        let given: Vec<i64> = perm.iter().map(|&p| p as i64).collect();
        self.emit_typed("Transpose", &[x], attributes([("perm", given.into())]), ty)
    }

    /// `x` with dimensions `a` and `b` exchanged.
    pub fn swap_axes(&self, x: Value, a: usize, b: usize) -> Value {
        let mut perm: Vec<usize> = (0..self.rank(x)).collect();
        if a.max(b) < perm.len() {
            perm.swap(a, b);
        }
        self.transpose(x, &perm)
    }

    /// `x` broadcast to `dims`.
    pub fn expand(&self, x: Value, dims: &[Expr]) -> Value {
        let from = self.shape(x);
        if from == dims {
            return x;
        }
        // ONNX broadcasts both ways, so a size that `x` has already may be spelled 1: no need to know it. One of 2 or more
        // can only be the target's, whatever the symbols.
        let lead = dims.len().saturating_sub(from.len());
        let target: Vec<Expr> = dims
            .iter()
            .enumerate()
            .map(|(i, d)| match i.checked_sub(lead).map(|i| &from[i]) {
                Some(size) if size == d || self.constraints().prove_ge(size, &Expr::int(2)) => {
                    Expr::int(1)
                }
                _ => d.clone(),
            })
            .collect();
        if lead == 0 && target.iter().all(|d| d.as_int() == Some(1)) {
            return x;
        }
        let ty = Type::tensor(self.dtype(x), dims);
        self.emit_typed("Expand", &[x, self.sizes(&target)], Default::default(), ty)
    }

    /// A tensor of `dims` filled with one number.
    pub fn full(
        &self,
        dims: &[Expr],
        value: impl Into<pt2onnx_tensor::Scalar>,
        dtype: DType,
    ) -> Value {
        let scalar = self.scalar(value, dtype);
        self.expand(scalar, dims)
    }

    /// The values one behind the other along `axis`.
    pub fn concat(&self, values: &[Value], axis: usize) -> Value {
        match values {
            [one] => *one,
            _ => {
                let inputs: Vec<Option<Value>> = values.iter().map(|&v| Some(v)).collect();
                self.emit1("Concat", &inputs, attributes([("axis", (axis as i64).into())]))
            }
        }
    }

    /// `x` with dimensions of size 1 inserted, so that they are dimensions `axes` of the result.
    pub fn unsqueeze(&self, x: Value, axes: &[usize]) -> Value {
        if axes.is_empty() {
            return x;
        }
        let mut dims = self.shape(x);
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        for &axis in &sorted {
            dims.insert(axis.min(dims.len()), Expr::int(1));
        }
        if let Some(t) = self.small_constant(x)
            && let Some(t) = t.reshaped(
                dims.iter().filter_map(|d| usize::try_from(d.as_int()?).ok()).collect::<Vec<_>>(),
            )
        {
            return self.constant(t);
        }
        let given: Vec<i64> = sorted.iter().map(|&a| a as i64).collect();
        let ty = Type::tensor(self.dtype(x), dims);
        self.emit_typed("Unsqueeze", &[x, self.ints(&given)], Default::default(), ty)
    }

    /// `x` without its dimensions `axes`, which are of size 1.
    pub fn squeeze(&self, x: Value, axes: &[usize]) -> Value {
        if axes.is_empty() {
            return x;
        }
        let dims: Shape = self
            .shape(x)
            .into_iter()
            .enumerate()
            .filter(|(i, _)| !axes.contains(i))
            .map(|(_, d)| d)
            .collect();
        let given: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
        let ty = Type::tensor(self.dtype(x), dims);
        self.emit_typed("Squeeze", &[x, self.ints(&given)], Default::default(), ty)
    }

    /// The elements `start`, `start + step`, ... before `end` along `axis`. Bounds are not negative and, like ONNX's,
    /// held to the size; `step` is positive.
    pub fn slice(&self, x: Value, axis: usize, start: &Expr, end: &Expr, step: i64) -> Value {
        let size = self.dim(x, axis as i64);
        let whole = {
            let constraints = self.constraints();
            *start == Expr::int(0)
                && step == 1
                && (end == &size || constraints.prove_ge(end, &size))
        };
        if whole {
            return x;
        }
        let mut dims = self.shape(x);
        if let Some(dim) = dims.get_mut(axis) {
            *dim = self.slice_length(&size, start, end, step);
        }
        let ty = Type::tensor(self.dtype(x), dims);
        let bound = |e: &Expr| self.sizes(std::slice::from_ref(e));
        let mut inputs = vec![x, bound(start), bound(end), self.ints(&[axis as i64])];
        if step != 1 {
            inputs.push(self.ints(&[step]));
        }
        self.emit_typed("Slice", &inputs, Default::default(), ty)
    }

    /// Length of the slice: `ceil((min(end, size) - min(start, size)) / step)`, not below 0.
    fn slice_length(&self, size: &Expr, start: &Expr, end: &Expr, step: i64) -> Expr {
        let constraints = self.constraints();
        let held = |e: &Expr| {
            if constraints.prove_ge(size, e) {
                e.clone()
            } else if constraints.prove_ge(e, size) {
                size.clone()
            } else {
                e.min(size)
            }
        };
        let mut span = held(end) - held(start);
        if !constraints.prove_ge(&span, &Expr::int(0)) {
            span = Expr::max(&span, &Expr::int(0));
        }
        (span + (step - 1)).floor_div(&Expr::int(step))
    }

    /// `Pad` of the dimensions `axes`, begins and then ends in `pads`; of all without `axes`. Where the pads are known, as numbers
    /// or expressions, they are spelled out for all dimensions: ONNX Runtime moves a `Transpose` through a `Pad` as if it had
    /// no `axes`.
    pub fn pad(
        &self,
        x: Value,
        pads: Value,
        value: impl Into<Option<Value>>,
        axes: impl Into<Option<Value>>,
        options: crate::attrs::Pad,
    ) -> Value {
        let (value, axes) = (value.into(), axes.into());
        let spelled_out = axes.and_then(|axes| self.pads_of_all(x, pads, axes));
        match spelled_out {
            Some(all) => self.pad_op(x, self.sizes(&all), value, None, options),
            None => self.pad_op(x, pads, value, axes, options),
        }
    }

    fn pads_of_all(&self, x: Value, pads: Value, axes: Value) -> Option<Vec<Expr>> {
        let rank = self.known_shape(x)?.len();
        let (pads, axes) = (self.contents(pads)?, self.contents(axes)?);
        let mut all = vec![Expr::int(0); 2 * rank];
        for (i, axis) in axes.iter().enumerate() {
            let axis = axis.as_int()?;
            let axis = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok()?;
            *all.get_mut(axis).filter(|_| axis < rank)? = pads.get(i)?.clone();
            *all.get_mut(axis + rank)? = pads.get(i + axes.len())?.clone();
        }
        Some(all)
    }

    /// Element `index` along `axis`, that dimension gone.
    pub fn take(&self, x: Value, axis: usize, index: &Expr) -> Value {
        let mut dims = self.shape(x);
        if axis < dims.len() {
            dims.remove(axis);
        }
        let given = attributes([("axis", (axis as i64).into())]);
        self.emit_typed("Gather", &[x, self.size(index)], given, Type::tensor(self.dtype(x), dims))
    }

    /// `x` in pieces of the given sizes along `axis`.
    pub fn split(&self, x: Value, axis: usize, sizes: &[Expr]) -> Vec<Value> {
        if let [_] = sizes {
            return vec![x];
        }
        let lengths = self.sizes(sizes);
        let pieces = self.emit(
            "Split",
            &[Some(x), Some(lengths)],
            attributes([("axis", (axis as i64).into())]),
            sizes.len(),
        );
        for (&piece, size) in pieces.iter().zip(sizes) {
            let mut dims = self.shape(x);
            dims[axis] = size.clone();
            self.set_type(piece, Type::tensor(self.dtype(x), dims));
        }
        pieces.to_vec()
    }

    /// The two halves of `x` along `axis`, whose size is even.
    pub fn halves(&self, x: Value, axis: usize) -> [Value; 2] {
        let mut dims = self.shape(x);
        if let Some(dim) = dims.get_mut(axis) {
            *dim = dim.floor_div(&Expr::int(2));
        }
        let given = attributes([("axis", (axis as i64).into()), ("num_outputs", 2i64.into())]);
        let pieces = self.emit("Split", &[Some(x)], given, 2);
        for &piece in &pieces {
            self.set_type(piece, Type::tensor(self.dtype(x), dims.clone()));
        }
        [pieces[0], pieces[1]]
    }

    /// A reduction over `axes`, or over all dimensions if `axes` is empty.
    pub fn reduce(&self, op: Reduction, x: Value, axes: &[usize], keepdims: bool) -> Value {
        let given: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
        let axes = (!axes.is_empty()).then(|| self.ints(&given));
        self.emit1(
            op.op(),
            &[Some(x), axes],
            attributes([("keepdims", i64::from(keepdims).into())]),
        )
    }

    /// `Gather`: the elements of `x` at `indices` along `axis`.
    pub fn gather(&self, x: Value, indices: Value, axis: usize) -> Value {
        self.emit1(
            "Gather",
            &[Some(x), Some(indices)],
            attributes([("axis", (axis as i64).into())]),
        )
    }

    /// The numbers `start`, `start + step`, ... before `end`, all 0-d of one type.
    pub fn range(&self, start: Value, end: Value, step: Value) -> Value {
        self.emit1("Range", &[Some(start), Some(end), Some(step)], Default::default())
    }

    /// The numbers `0, 1, .. n - 1`, int64: a constant where `n` is known and no larger than what folding would make one.
    pub fn iota(&self, n: &Expr) -> Value {
        if let Some(known @ 0..=1024) = n.as_int() {
            return self.ints(&(0..known).collect::<Vec<_>>());
        }
        let bound = |i: i64| self.constant(Tensor::scalar(i));
        let numbers = self.range(bound(0), self.size(n), bound(1));
        self.set_type(numbers, Type::tensor(DType::I64, [n.clone()]));
        numbers
    }

    /// A node that only gives a value another name.
    pub fn identity(&self, x: Value) -> Value {
        self.emit1("Identity", &[Some(x)], Default::default())
    }

    /// The tensor, if it is a constant small enough to be made anew.
    fn small_constant(&self, x: Value) -> Option<Tensor> {
        self.constant_of(x).filter(|t| t.has_data() && t.nbytes() <= super::INTERNED_BYTES)
    }
}
