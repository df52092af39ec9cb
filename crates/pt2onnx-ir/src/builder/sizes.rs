//! Sizes at run time: emits the nodes that compute an expression over the program's symbols.
//!
//! A symbol is bound to a place where it can be read: a dimension of an input, or a value that a
//! data-dependent op returns. Expressions are computed from their symbols on demand, once per
//! region. So the program's ops on sizes need no translation.

use super::{Builder, arithmetic::Form, scopes::Source};
use crate::{Type, Value, attribute::attributes};
use pt2onnx_symbolic::{Expr, Symbol};
use pt2onnx_tensor::{DType, Tensor};

impl Builder<'_> {
    /// Binds the sizes of `value`: expressions over their symbols can be computed from now on. The
    /// first binding of an expression is used. Other symbols are solved for, from a dimension such
    /// as `2*s0 + 1`.
    pub fn bind_dims(&self, value: Value) {
        for (axis, dim) in self.known_shape(value).unwrap_or_default().into_iter().enumerate() {
            self.state.borrow_mut().sizes.bind(dim, Source::Dim(value, axis));
        }
    }

    /// As [`Builder::bind_dims`], for a value whose sizes in the program differ from those in its
    /// type.
    pub fn bind_recorded_dims(&self, value: Value, sizes: &[Expr]) {
        for (axis, dim) in sizes.iter().enumerate() {
            self.state.borrow_mut().sizes.bind(dim.clone(), Source::Dim(value, axis));
        }
    }

    /// Binds `expr` to an integer, float or bool value with one element.
    pub fn bind_scalar(&self, expr: Expr, value: Value) {
        self.state.borrow_mut().sizes.bind(expr, Source::Scalar(value));
    }

    /// Binds a symbol that may have another value outside of the innermost scope: a loop gives a
    /// variable another value each time.
    pub fn rebind_scalar(&self, symbol: &str, value: Value) {
        self.state.borrow_mut().sizes.rebind(symbol.into(), Source::Scalar(value));
    }

    /// As [`Builder::rebind_scalar`], to the size of a dimension.
    pub fn rebind_dim(&self, symbol: &str, value: Value, axis: usize) {
        self.state.borrow_mut().sizes.rebind(symbol.into(), Source::Dim(value, axis));
    }

    /// Begins a scope for sizes: what is bound or computed until [`Builder::close_scope`] is then
    /// forgotten. Regions are such scopes themselves.
    pub fn open_scope(&self) {
        self.state.borrow_mut().sizes.enter();
    }

    /// Ends the scope of [`Builder::open_scope`].
    pub fn close_scope(&self) {
        self.state.borrow_mut().sizes.leave();
    }

    /// Whether a symbol occurs in a bound expression.
    pub fn is_bound(&self, symbol: &Symbol) -> bool {
        self.state.borrow().sizes.is_bound(symbol)
    }

    /// A vector of sizes, int64; a constant if all are known numbers.
    pub fn sizes(&self, dims: &[Expr]) -> Value {
        if let Some(known) = dims.iter().map(Expr::as_int).collect::<Option<Vec<_>>>() {
            return self.ints(&known);
        }
        let mut pieces = Vec::new();
        let mut known: Vec<i64> = Vec::new();
        let mut i = 0;
        while i < dims.len() {
            let run = self.shape_run(&dims[i..], i == 0);
            match (run, dims[i].as_int()) {
                (None, Some(number)) => {
                    known.push(number);
                    i += 1;
                    continue;
                }
                _ if !known.is_empty() => pieces.push(self.ints(&std::mem::take(&mut known))),
                _ => {}
            }
            match run {
                Some((value, axis, length)) => {
                    pieces.push(self.shape_slice(value, axis, length));
                    i += length;
                }
                None => {
                    pieces.push(self.cast(self.element(&dims[i]), DType::I64));
                    i += 1;
                }
            }
        }
        if !known.is_empty() {
            pieces.push(self.ints(&known));
        }
        let value = self.concat(&pieces, 0);
        self.set_contents(value, dims.to_vec());
        value
    }

    /// The longest run of dimensions of one value that `dims` begins with: the value, its first
    /// dimension in the run, and the length. `None` if one `Shape` for the run does not save nodes:
    /// sizes that were computed before cost nothing. `all`: whether `dims` are all sizes of the
    /// vector, so that a run of all of them needs no `Concat`.
    fn shape_run(&self, dims: &[Expr], all: bool) -> Option<(Value, usize, usize)> {
        let candidates = dims.iter().filter(|d| !d.is_static()).filter_map(|d| {
            match self.state.borrow().sizes.source(d)? {
                Source::Dim(value, _) => Some(value),
                Source::Scalar(_) => None,
            }
        });
        let mut best: Option<(Value, usize, usize)> = None;
        for value in candidates {
            let shape = self.known_shape(value).unwrap_or_default();
            for axis in 0..shape.len() {
                let same = shape[axis..].iter().zip(dims).take_while(|(a, b)| a == b);
                let length = same.count();
                let state = self.state.borrow();
                let new = dims[..length]
                    .iter()
                    .filter(|d| !d.is_static() && state.sizes.get(d).is_none())
                    .count();
                let symbolic = dims[..length].iter().any(|d| !d.is_static());
                let pays = new > 1 || symbolic && all && length == dims.len();
                if pays && length > best.map_or(1, |(.., longest)| longest) {
                    best = Some((value, axis, length));
                }
            }
        }
        best
    }

    /// The sizes of `length` dimensions of a value from `axis` on, as a vector.
    pub(super) fn shape_slice(&self, value: Value, axis: usize, length: usize) -> Value {
        // Emitted once per region. The key is a symbol that no program can have.
        let key = Expr::symbol(&format!("?shape {} {axis} {length}", value.index()));
        if let Some(known) = self.state.borrow().sizes.get(&key) {
            return known;
        }
        let (start, end) = (axis as i64, (axis + length) as i64);
        let given = attributes([("start", start.into()), ("end", end.into())]);
        let result = self.emit_typed(
            "Shape",
            &[value],
            given,
            Type::tensor(DType::I64, [Expr::int(length as i64)]),
        );
        self.state.borrow_mut().sizes.put(&key, result);
        result
    }

    /// The value of a size, 0-d int64.
    pub fn size(&self, dim: &Expr) -> Value {
        self.cast(self.number(dim), DType::I64)
    }

    /// The value of an expression, 0-d: int64 for integers, double for fractions, bool for
    /// relations.
    pub fn number(&self, e: &Expr) -> Value {
        self.number_of(e, false)
    }

    /// As [`Builder::number`]. `of_scalars`: it is computed from 0-d values, whatever the form of
    /// its symbols.
    pub(super) fn number_of(&self, e: &Expr, of_scalars: bool) -> Value {
        if let Some(i) = e.as_int() {
            return self.constant(Tensor::scalar(i));
        }
        if let Some(known) = self.state.borrow().sizes.get_scalar(e) {
            return known;
        }
        let (source, vector) = {
            let sizes = &self.state.borrow().sizes;
            (sizes.source(e), sizes.get(e))
        };
        let value = match (source, vector) {
            (Some(Source::Scalar(value)), _) | (_, Some(value)) => self.reshape(value, &[]),
            (Some(Source::Dim(value, axis)), None) => {
                let vector = self.shape_slice(value, axis, 1);
                self.set_contents(vector, vec![e.clone()]);
                self.state.borrow_mut().sizes.put(e, vector);
                self.reshape(vector, &[])
            }
            (None, None) if of_scalars || self.is_of_scalars(e) => self.compute(e, Form::Scalar),
            (None, None) => self.reshape(self.element(e), &[]),
        };
        self.set_contents(value, vec![e.clone()]);
        self.state.borrow_mut().sizes.put_scalar(e, value);
        value
    }

    /// Whether an expression is computed from 0-d values with fewer nodes than from vectors of one
    /// element: the form of its symbols decides, as each of the other form needs a `Reshape`.
    fn is_of_scalars(&self, e: &Expr) -> bool {
        let is_scalar = |symbol: &Symbol| {
            let source = self.state.borrow().sizes.source(&Expr::symbol(symbol));
            let Some(Source::Scalar(value)) = source else { return false };
            self.known_shape(value).is_some_and(|shape| shape.is_empty())
        };
        let symbols = e.symbols();
        let scalars = symbols.iter().filter(|symbol| is_scalar(symbol)).count();
        scalars > 0 && symbols.len() - scalars <= scalars
    }

    /// The value of an expression as a vector of one element, of the type that
    /// [`number`](Self::number) gives.
    pub fn element(&self, e: &Expr) -> Value {
        if let Some(i) = e.as_int() {
            return self.ints(&[i]);
        }
        if let Some(known) = self.state.borrow().sizes.get(e) {
            return known;
        }
        let (source, scalar) = {
            let sizes = &self.state.borrow().sizes;
            (sizes.source(e), sizes.get_scalar(e))
        };
        let value = match (source, scalar) {
            (Some(Source::Dim(value, axis)), _) => self.shape_slice(value, axis, 1),
            (Some(Source::Scalar(value)), _) | (None, Some(value)) => {
                self.reshape(value, &[Expr::int(1)])
            }
            (None, None) => self.compute(e, Form::Vector),
        };
        self.set_contents(value, vec![e.clone()]);
        self.state.borrow_mut().sizes.put(e, value);
        value
    }
}
