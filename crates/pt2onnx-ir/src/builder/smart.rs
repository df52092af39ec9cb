//! Methods that emit as little as possible: no node if there is nothing to do, a constant if the
//! result is known.

use super::Builder;
use crate::{Attributes, InferError, Reduction, Shape, Type, Value, attribute::attributes, infer};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

impl Builder<'_> {
    /// `x` cast to `dtype`. Reports a diagnostic for complex types.
    pub fn cast(&self, x: Value, dtype: DType) -> Value {
        if self.dtype(x) == dtype {
            return x;
        }
        if dtype.is_complex() || dtype == DType::C32 {
            self.report(format!("ONNX has no cast to {dtype}"));
            return x;
        }
        let contents = self.contents(x).filter(|_| dtype == DType::I64);
        let to = crate::schema::data_type(dtype);
        let ty = Type::Tensor(crate::TensorType { dtype, shape: self.known_shape(x) });
        // PyTorch saturates float8_e4m3fn only; the other 8-bit floats become infinite or NaN.
        let mut given = attributes([("to", to.into())]);
        if matches!(dtype, DType::F8E4M3FNUZ | DType::F8E5M2 | DType::F8E5M2FNUZ) {
            given.push(("saturate".into(), 0i64.into()));
        }
        let result = self.emit_typed("Cast", &[x], given, ty);
        if let Some(known) = contents {
            self.set_contents(result, known);
        }
        result
    }

    /// `x` reshaped to `dims`, which must have the same product.
    pub fn reshape(&self, x: Value, dims: &[Expr]) -> Value {
        let from = self.shape(x);
        if from == dims {
            return x;
        }
        let known = |sizes: &[Expr]| {
            let known = sizes.contains(&Expr::int(0)) || sizes.iter().all(Expr::is_static);
            known.then(|| Expr::product(sizes.iter().cloned()))
        };
        if let (Some(before), Some(after)) = (known(&from), known(dims))
            && before != after
        {
            self.report(format!("{before} elements cannot be reshaped to {after}"));
        }
        if let Some(reshaped) = self.reshaped_constant(x, dims) {
            return reshaped;
        }
        let mut given = Attributes::new();
        let target = match self.reshape_target(&from, dims) {
            Some(known) => self.ints(&known),
            None => {
                if let Some(result) = self.ones_only(x, &from, dims) {
                    return result;
                }
                given = self.allowzero(dims);
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

    /// `x` with the sizes of `like`. Where [`Builder::reshape`] would have to compute sizes, they
    /// are read by one `Shape`.
    pub fn reshape_like(&self, x: Value, like: Value) -> Value {
        let (from, dims) = (self.shape(x), self.shape(like));
        if from == dims || self.reshape_target(&from, &dims).is_some() {
            return self.reshape(x, &dims);
        }
        let rank = dims.len();
        let target = self.shape_slice(like, 0, rank);
        let given = self.allowzero(&dims);
        self.emit_typed("Reshape", &[x, target], given, Type::tensor(self.dtype(x), dims))
    }

    /// The attribute of a `Reshape` to these computed sizes. Without `allowzero`, one that is 0 at
    /// run time would copy the size of the operand.
    fn allowzero(&self, dims: &[Expr]) -> Attributes {
        if dims.iter().all(|d| self.constraints().prove_ge(d, &Expr::int(1))) {
            Attributes::new()
        } else {
            attributes([("allowzero", 1i64.into())])
        }
    }

    /// `x` reshaped by `Squeeze` and `Unsqueeze`, if `from` and `dims` differ only in dimensions of
    /// size 1. This needs no sizes at run time.
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

    /// The target of `Reshape` as constants: `0` (copy the size of `from`) and one `-1` (computed
    /// from the others) replace symbolic sizes. `None` if there are too many, or if a size beside
    /// `-1` may be 0: then `-1` has no meaning.
    fn reshape_target(&self, from: &[Expr], dims: &[Expr]) -> Option<Vec<i64>> {
        let mut target = Vec::with_capacity(dims.len());
        let mut rest = None;
        for (i, dim) in dims.iter().enumerate() {
            target.push(match dim.as_int() {
                // `0` copies the size of `from`, so it gives 0 only if that size is 0, too.
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

    /// `x` with permuted dimensions: dimension `i` of the result is dimension `perm[i]` of `x`.
    /// Reports a diagnostic if `perm` is not a permutation.
    pub fn transpose(&self, x: Value, perm: &[usize]) -> Value {
        let rank = self.known_shape(x).map_or(perm.len(), |shape| shape.len());
        if perm.iter().copied().eq(0..rank) {
            return x;
        }
        let Some(from) = self.shape_with(x, perm) else {
            return x;
        };
        if perm.len() != from.len() {
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

    /// `x` with dimensions `a` and `b` swapped. Reports a diagnostic if it does not have them.
    pub fn swap_axes(&self, x: Value, a: usize, b: usize) -> Value {
        let axes = [a, b];
        let Some(shape) = self.shape_with(x, if a == b { &axes[..1] } else { &axes }) else {
            return x;
        };
        let mut perm: Vec<usize> = (0..shape.len()).collect();
        perm.swap(a, b);
        self.transpose(x, &perm)
    }

    /// `x` broadcast to `dims`. Reports a diagnostic if it has more dimensions, or other sizes than
    /// these and 1.
    pub fn expand(&self, x: Value, dims: &[Expr]) -> Value {
        let from = self.shape(x);
        if from == dims {
            return x;
        }
        let pairs = from.iter().rev().zip(dims.iter().rev());
        let mut misfits = pairs.filter(|(size, dim)| match (size.as_int(), dim.as_int()) {
            (Some(size), Some(dim)) => size != 1 && size != dim,
            _ => false,
        });
        let misfit = match misfits.next() {
            Some((size, dim)) => Some(InferError::Broadcast(size.clone(), dim.clone()).to_string()),
            None => (from.len() > dims.len())
                .then(|| format!("{} has more than {} dimensions", self.describe(x), dims.len())),
        };
        if let Some(misfit) = misfit {
            self.report(misfit);
            return x;
        }
        // `Expand` broadcasts both ways: where `x` has the size of the target already, 1 gives the
        // same result and need not be computed. A size of 2 or more must be that of the target,
        // whatever their symbols.
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
        // ONNX Runtime's optimiser takes an `Expand` to sizes of 0 and 1 for one that changes
        // nothing.
        let empty = target.iter().position(|d| d.as_int() == Some(0)).filter(|_| lead == 0);
        if let Some(axis) = empty {
            return self.expand(self.slice(x, axis, &Expr::int(0), &Expr::int(0), 1), dims);
        }
        let inputs = [Some(x), Some(self.sizes(&target))];
        let result = self.emit1("Expand", &inputs, Default::default());
        self.set_type(result, Type::tensor(self.dtype(x), dims));
        result
    }

    /// A tensor of sizes `dims` and type `dtype`, filled with one number.
    pub fn full(
        &self,
        dims: &[Expr],
        value: impl Into<pt2onnx_tensor::Scalar>,
        dtype: DType,
    ) -> Value {
        let scalar = self.scalar(value, dtype);
        self.expand(scalar, dims)
    }

    /// The values concatenated along `axis`. Reports a diagnostic if there are none, or the first
    /// one has no such dimension.
    pub fn concat(&self, values: &[Value], axis: usize) -> Value {
        match values {
            [] => {
                self.report("there is nothing to concatenate");
                self.ints(&[])
            }
            [first, ..] if !self.may_have_axes(*first, &[axis]) => *first,
            [one] => *one,
            _ => {
                let inputs: Vec<Option<Value>> = values.iter().map(|&v| Some(v)).collect();
                self.emit1("Concat", &inputs, axis_attribute(axis))
            }
        }
    }

    /// `x` with new dimensions of size 1, which are the dimensions `axes` of the result. Reports a
    /// diagnostic if that does not have them.
    pub fn unsqueeze(&self, x: Value, axes: &[usize]) -> Value {
        if axes.is_empty() {
            return x;
        }
        let Some(mut dims) = self.shape_with(x, &[]) else {
            return x;
        };
        if !self.has_axes(x, dims.len() + axes.len(), axes) {
            return x;
        }
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        for &axis in &sorted {
            dims.insert(axis, Expr::int(1));
        }
        if let Some(reshaped) = self.reshaped_constant(x, &dims) {
            return reshaped;
        }
        let ty = Type::tensor(self.dtype(x), dims);
        self.emit_typed("Unsqueeze", &[x, self.axes(&sorted)], Default::default(), ty)
    }

    /// `x` without the dimensions `axes`, which must have size 1. Reports a diagnostic if they do
    /// not, or `x` does not have them.
    pub fn squeeze(&self, x: Value, axes: &[usize]) -> Value {
        if axes.is_empty() {
            return x;
        }
        let Some(from) = self.shape_with(x, axes) else {
            return x;
        };
        if let Some(axis) = axes.iter().find(|axis| from[**axis].as_int().is_some_and(|n| n != 1)) {
            self.report(format!(
                "dimension {axis} of {} is {}, and must be 1",
                self.describe(x),
                from[*axis]
            ));
            return x;
        }
        let dims = infer::without(from, axes, false);
        let ty = Type::tensor(self.dtype(x), dims);
        self.emit_typed("Squeeze", &[x, self.axes(axes)], Default::default(), ty)
    }

    /// The elements `start`, `start + step`, ... before `end` along `axis`. Bounds must not be
    /// negative and are clamped to the size. Reports a diagnostic if `step` is not positive, or `x`
    /// has no such dimension.
    pub fn slice(&self, x: Value, axis: usize, start: &Expr, end: &Expr, step: i64) -> Value {
        if step < 1 {
            self.report(format!("the step of a slice must be positive, but is {step}"));
            return x;
        }
        let Some(mut dims) = self.shape_with(x, &[axis]) else {
            return x;
        };
        let size = dims[axis].clone();
        let to_end = || end == &size || self.constraints().prove_ge(end, &size);
        if *start == Expr::ZERO && step == 1 && to_end() {
            return x;
        }
        dims[axis] = self.slice_length(&size, start, end, step);
        let ty = Type::tensor(self.dtype(x), dims);
        let bound = |e: &Expr| self.sizes(std::slice::from_ref(e));
        let mut inputs = vec![x, bound(start), bound(end), self.ints(&[axis as i64])];
        if step != 1 {
            inputs.push(self.ints(&[step]));
        }
        self.emit_typed("Slice", &inputs, Default::default(), ty)
    }

    /// The length of the slice: `ceil((min(end, size) - min(start, size)) / step)`, at least 0.
    fn slice_length(&self, size: &Expr, start: &Expr, end: &Expr, step: i64) -> Expr {
        let constraints = self.constraints();
        let held = |e: &Expr| match () {
            () if constraints.prove_ge(size, e) => e.clone(),
            () if constraints.prove_ge(e, size) => size.clone(),
            () => e.min(size),
        };
        let mut span = held(end) - held(start);
        if !constraints.prove_ge(&span, &Expr::int(0)) {
            span = Expr::max(&span, &Expr::int(0));
        }
        (span + (step - 1)).floor_div(&Expr::int(step))
    }

    /// `Pad` of the dimensions `axes`, or of all dimensions without `axes`. `pads` holds the pads
    /// at the start of each dimension, then those at the end. If the pads are known, as numbers or
    /// expressions, they are given for all dimensions, without `axes`: ONNX Runtime ignores `axes`
    /// when it moves a `Transpose` through a `Pad`.
    pub fn pad(
        &self,
        x: Value,
        pads: Value,
        value: impl Into<Option<Value>>,
        axes: impl Into<Option<Value>>,
        options: crate::attrs::Pad,
    ) -> Value {
        let (value, axes) = (value.into(), axes.into());
        match axes.and_then(|axes| self.pads_of_all(x, pads, axes)) {
            Some(all) => self.pad_op(x, self.sizes(&all), value, None, options),
            None => self.pad_op(x, pads, value, axes, options),
        }
    }

    /// The pads of all dimensions; `None` if pads or axes are not known.
    fn pads_of_all(&self, x: Value, pads: Value, axes: Value) -> Option<Vec<Expr>> {
        let rank = self.known_shape(x)?.len();
        let (pads, axes) = (self.contents(pads)?, self.contents(axes)?);
        let mut all = vec![Expr::int(0); 2 * rank];
        for (i, axis) in axes.iter().enumerate() {
            let axis = pt2onnx_symbolic::axis(axis.as_int()?, rank)?;
            *all.get_mut(axis)? = pads.get(i)?.clone();
            *all.get_mut(axis + rank)? = pads.get(i + axes.len())?.clone();
        }
        Some(all)
    }

    /// Element `index` along `axis`; the result does not have that dimension. Reports a diagnostic
    /// if `x` does not have it, or the element is outside.
    pub fn take(&self, x: Value, axis: usize, index: &Expr) -> Value {
        let Some(mut dims) = self.shape_with(x, &[axis]) else {
            return x;
        };
        let size = dims.remove(axis);
        if let (Some(index), Some(n)) = (index.as_int(), size.as_int())
            && !(n.saturating_neg()..n).contains(&index)
        {
            self.report(InferError::Outside(index, size).to_string());
        }
        let ty = Type::tensor(self.dtype(x), dims);
        self.emit_typed("Gather", &[x, self.size(index)], axis_attribute(axis), ty)
    }

    /// `x` split along `axis` into pieces of the given sizes. Reports a diagnostic if `x` has no
    /// such dimension, or there are no pieces.
    pub fn split(&self, x: Value, axis: usize, sizes: &[Expr]) -> Vec<Value> {
        let Some(dims) = self.shape_with(x, &[axis]) else {
            return vec![x; sizes.len()];
        };
        match sizes {
            [] => {
                self.report("there is nothing to split into");
                return Vec::new();
            }
            [_] => return vec![x],
            _ => {}
        }
        let lengths = self.sizes(sizes);
        let inputs = [Some(x), Some(lengths)];
        let pieces = self.emit("Split", &inputs, axis_attribute(axis), sizes.len());
        for (&piece, size) in pieces.iter().zip(sizes) {
            let mut dims = dims.clone();
            dims[axis] = size.clone();
            self.set_type(piece, Type::tensor(self.dtype(x), dims));
        }
        pieces.to_vec()
    }

    /// The two halves of `x` along `axis`, whose size must be even. Reports a diagnostic if `x` has
    /// no such dimension.
    pub fn halves(&self, x: Value, axis: usize) -> [Value; 2] {
        let Some(mut dims) = self.shape_with(x, &[axis]) else {
            return [x; 2];
        };
        let size = dims[axis].clone();
        let half = size.floor_div(&Expr::int(2));
        // ONNX Runtime refuses to split nothing into a number of parts.
        if !self.constraints().prove_ge(&size, &Expr::int(1)) {
            let pieces = self.split(x, axis, &[half.clone(), half]);
            return [pieces[0], pieces[1]];
        }
        dims[axis] = half;
        let mut given = axis_attribute(axis);
        given.push(("num_outputs".into(), 2i64.into()));
        let pieces = self.emit("Split", &[Some(x)], given, 2);
        for &piece in &pieces {
            self.set_type(piece, Type::tensor(self.dtype(x), dims.clone()));
        }
        [pieces[0], pieces[1]]
    }

    /// `x` reduced over `axes`, or over all dimensions if `axes` is empty. With `keepdims`, reduced
    /// dimensions have size 1 in the result. Reports a diagnostic if `x` does not have these
    /// dimensions.
    pub fn reduce(&self, op: Reduction, x: Value, axes: &[usize], keepdims: bool) -> Value {
        if !self.may_have_axes(x, axes) {
            return x;
        }
        let axes = (!axes.is_empty()).then(|| self.axes(axes));
        let given = attributes([("keepdims", i64::from(keepdims).into())]);
        self.emit1(op.name(), &[Some(x), axes], given)
    }

    /// `Gather`: the elements of `x` at `indices` along `axis`. Reports a diagnostic if `x` has no
    /// such dimension.
    pub fn gather(&self, x: Value, indices: Value, axis: usize) -> Value {
        if !self.may_have_axes(x, &[axis]) {
            return x;
        }
        self.emit1("Gather", &[Some(x), Some(indices)], axis_attribute(axis))
    }

    /// The numbers `start`, `start + step`, ... before `end`. All three must be 0-d and of one
    /// type.
    pub fn range(&self, start: Value, end: Value, step: Value) -> Value {
        self.emit1("Range", &[Some(start), Some(end), Some(step)], Default::default())
    }

    /// The numbers `0, 1, .. n - 1`, int64; a constant if `n` is known and at most 1024, as
    /// constant folding would do.
    pub fn iota(&self, n: &Expr) -> Value {
        if let Some(known @ 0..=1024) = n.as_int() {
            return self.ints(&(0..known).collect::<Vec<_>>());
        }
        let bound = |i: i64| self.constant(Tensor::scalar(i));
        let numbers = self.range(bound(0), self.size(n), bound(1));
        self.set_type(numbers, Type::tensor(DType::I64, [n.clone()]));
        numbers
    }

    /// An `Identity` of `x`: the same tensor as another value.
    pub fn identity(&self, x: Value) -> Value {
        self.emit1("Identity", &[Some(x)], Default::default())
    }

    /// Axes as an input of a node.
    fn axes(&self, axes: &[usize]) -> Value {
        self.ints(&axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>())
    }

    /// A small constant with these sizes; `None` if it is another value, or they are not known.
    fn reshaped_constant(&self, x: Value, dims: &[Expr]) -> Option<Value> {
        let size = |d: &Expr| usize::try_from(d.as_int()?).ok();
        let small = |t: &Tensor| t.has_data() && t.nbytes() <= super::INTERNED_BYTES;
        let shape = dims.iter().map(size).collect::<Option<Vec<_>>>()?;
        Some(self.constant(self.constant_of(x).filter(small)?.reshaped(shape)?))
    }
}

/// The attribute `axis`.
fn axis_attribute(axis: usize) -> Attributes {
    attributes([("axis", (axis as i64).into())])
}
