//! Sizes at run time: emits the nodes that compute an expression over the program's symbols.
//!
//! A symbol is bound to a place where it can be read: a dimension of an input, or a value that a data-dependent op
//! returns. Expressions are computed from their symbols on demand, once per region. So the program's ops on sizes need no
//! translation.

use super::{Builder, Diagnostic, scopes::Source};
use crate::{Type, Value, attribute::attributes, attrs};
use pt2onnx_symbolic::{Expr, Func, Symbol, View};
use pt2onnx_tensor::{DType, Tensor};

impl Builder<'_> {
    /// Binds the sizes of `value`: expressions over their symbols can be computed from now on. The first binding of an
    /// expression is used. A symbol that is no dimension itself is solved for, from a dimension such as `2*s0 + 1`.
    pub fn bind_dims(&self, value: Value) {
        for (axis, dim) in self.known_shape(value).unwrap_or_default().into_iter().enumerate() {
            self.state.borrow_mut().sizes.bind(dim, Source::Dim(value, axis));
        }
    }

    /// As [`Builder::bind_dims`], for a value whose sizes in the program differ from those in its type.
    pub fn bind_recorded_dims(&self, value: Value, sizes: &[Expr]) {
        for (axis, dim) in sizes.iter().enumerate() {
            self.state.borrow_mut().sizes.bind(dim.clone(), Source::Dim(value, axis));
        }
    }

    /// Binds `expr` to an integer, float or bool value with one element.
    pub fn bind_scalar(&self, expr: Expr, value: Value) {
        self.state.borrow_mut().sizes.bind(expr, Source::Scalar(value));
    }

    /// Binds a symbol that may have another value outside of the innermost scope: a loop gives a variable another value each time.
    pub fn rebind_scalar(&self, symbol: &str, value: Value) {
        self.state.borrow_mut().sizes.rebind(symbol.into(), Source::Scalar(value));
    }

    /// As [`Builder::rebind_scalar`], to the size of a dimension.
    pub fn rebind_dim(&self, symbol: &str, value: Value, axis: usize) {
        self.state.borrow_mut().sizes.rebind(symbol.into(), Source::Dim(value, axis));
    }

    /// Begins a scope for sizes: what is bound or computed until [`Builder::close_scope`] is then forgotten. Regions are such
    /// scopes themselves.
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

    /// The longest run of dimensions of one value that `dims` begins with: the value, its first dimension in the run, and the
    /// length. `None` if one `Shape` for the run does not save nodes: sizes that were computed before cost nothing.
    /// `all`: whether `dims` are all sizes of the vector, so that a run of all of them needs no `Concat`.
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

    /// The value of an expression, 0-d: int64 for integers, double for fractions, bool for relations.
    pub fn number(&self, e: &Expr) -> Value {
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
            (None, None) if self.of_scalars.get() || self.is_of_scalars(e) => {
                let around = self.of_scalars.replace(true);
                let value = self.compute(e);
                self.of_scalars.set(around);
                value
            }
            (None, None) => self.reshape(self.element(e), &[]),
        };
        self.set_contents(value, vec![e.clone()]);
        self.state.borrow_mut().sizes.put_scalar(e, value);
        value
    }

    /// Whether an expression is computed from 0-d values with fewer nodes than from vectors of one element: the form of its symbols
    /// decides, as each of the other form needs a `Reshape`.
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

    /// The value of an expression as a vector of one element; 0-d within [`Builder::number`] of 0-d values.
    fn element(&self, e: &Expr) -> Value {
        if self.of_scalars.get() {
            return self.number(e);
        }
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
            (None, None) => self.compute(e),
        };
        self.set_contents(value, vec![e.clone()]);
        self.state.borrow_mut().sizes.put(e, value);
        value
    }

    /// Emits the arithmetic of an expression that cannot be read.
    fn compute(&self, e: &Expr) -> Value {
        match e.view() {
            View::Int(i) => self.ints(&[i]),
            View::Rational(numerator, denominator) => {
                self.fraction(numerator as f64 / denominator as f64)
            }
            View::Float(f) => self.fraction(f),
            View::Symbol(name) => self.solve(e, name),
            View::Add(terms) => self.total(terms),
            View::Mul(factors) => self.chain(factors, |a, b| self.mul(a, b)),
            View::Pow(base, exponent) => match exponent.as_int() {
                Some(n @ 2..=4) => {
                    let base = self.element(base);
                    (1..n).fold(base, |power, _| self.mul(power, base))
                }
                _ => self.arithmetic(base, exponent, |a, b| self.pow(a, b)),
            },
            View::Call(func, args) => self.call(func, args),
        }
    }

    /// A known float in the form of [`Builder::element`].
    fn fraction(&self, f: f64) -> Value {
        if self.of_scalars.get() { self.scalar(f, DType::F64) } else { self.vector(&[f]) }
    }

    /// Computes a symbol from the first bound expression that is linear in it.
    fn solve(&self, symbol: &Expr, name: &str) -> Value {
        let found = {
            let s = self.state.borrow();
            let sizes = &s.sizes;
            let mut candidates: Vec<_> = sizes
                .readable()
                .filter(|e| {
                    e.symbols()
                        .iter()
                        .all(|o| &**o == name || sizes.source(&Expr::symbol(o)).is_some())
                })
                .filter_map(|e| Some((e.clone(), e.solve_linear(name)?)))
                .collect();
            candidates.sort_by(|a, b| a.0.cmp_form(&b.0));
            candidates.into_iter().next()
        };
        match found {
            Some((e, (a, b))) if a != 0 => {
                let rest = match b.as_int() {
                    Some(0) => self.element(&e),
                    _ => self.arithmetic(&e, &b, |x, b| self.sub(x, b)),
                };
                self.div(rest, a)
            }
            _ if Expr::is_opaque(name) => {
                self.diagnose(Diagnostic::LargeSize);
                self.ints(&[1])
            }
            _ => {
                self.report(format!("the size {symbol} cannot be computed from the inputs"));
                self.ints(&[1])
            }
        }
    }

    /// A sum; terms with a negative coefficient are subtracted.
    fn total(&self, terms: &[Expr]) -> Value {
        let negative = |t: &Expr| match t.view() {
            View::Int(i) => i < 0,
            View::Mul(factors) => factors[0].as_int().is_some_and(|c| c < 0),
            _ => false,
        };
        let mut ordered: Vec<(bool, Expr)> = terms
            .iter()
            .map(|t| if negative(t) { (true, -t) } else { (false, t.clone()) })
            .collect();
        ordered.sort_by_key(|(negative, _)| *negative);
        let mut terms = ordered.into_iter();
        let first = terms.next().map(
            |(negative, t)| {
                if negative { self.element(&-t) } else { self.element(&t) }
            },
        );
        let mut sum = first.unwrap_or_else(|| self.ints(&[0]));
        for (negative, term) in terms {
            let (a, b) = self.common(sum, self.element(&term));
            sum = if negative { self.sub(a, b) } else { self.add(a, b) };
        }
        sum
    }

    /// Applies an operation to the values of all arguments, from the left.
    fn chain(&self, args: &[Expr], op: impl Fn(Value, Value) -> Value) -> Value {
        let mut values = args.iter().map(|a| self.element(a));
        let first = values.next().unwrap_or_else(|| self.ints(&[1]));
        values.fold(first, |a, b| {
            let (a, b) = self.common(a, b);
            op(a, b)
        })
    }

    /// Casts both to double if one is a float, else to int64.
    fn common(&self, a: Value, b: Value) -> (Value, Value) {
        let double = [a, b].iter().any(|&v| self.dtype(v).is_float());
        let dtype = if double { DType::F64 } else { DType::I64 };
        (self.cast(a, dtype), self.cast(b, dtype))
    }

    fn arithmetic(&self, a: &Expr, b: &Expr, op: impl Fn(Value, Value) -> Value) -> Value {
        let (a, b) = self.common(self.element(a), self.element(b));
        op(a, b)
    }

    fn double(&self, e: &Expr) -> Value {
        self.cast(self.element(e), DType::F64)
    }

    fn call(&self, func: Func, args: &[Expr]) -> Value {
        use Func::*;
        let int = |v: Value| self.cast(v, DType::I64);
        match (func, args) {
            (Max, _) => self.chain(args, |a, b| self.maximum(a, b)),
            (Min, _) => self.chain(args, |a, b| self.minimum(a, b)),
            (FloorDiv | CleanDiv, [a, b]) => self.floor_div(a, b),
            // -(-a // b)
            (CeilDiv, [a, b]) => self.mul(self.floor_div(&-a, b), -1),
            (Mod | PythonMod, [a, b]) => {
                self.arithmetic(a, b, |a, b| self.mod_(a, b, attrs::Mod::default()))
            }
            (ModularIndexing, [a, b, m]) => {
                self.arithmetic(&a.floor_div(b), m, |a, b| self.mod_(a, b, attrs::Mod::default()))
            }
            (IntTrueDiv | FloatTrueDiv, [a, b]) => self.div(self.double(a), self.double(b)),
            (CeilToInt | Ceiling, [a]) => int(self.ceil(self.double(a))),
            (FloorToInt | Floor, [a]) => int(self.floor(self.double(a))),
            (TruncToInt, [a]) => int(self.double(a)),
            (TruncToFloat, [a]) => self.cast(int(self.double(a)), DType::F64),
            (RoundToInt, [a]) => int(self.round(self.double(a))),
            (ToFloat, [a]) => self.double(a),
            (ToSingle, [a]) => self.cast(self.cast(self.element(a), DType::F32), DType::F64),
            (Abs, [a]) => self.abs(self.element(a)),
            (PowByNatural | FloatPow, [a, b]) => self.arithmetic(a, b, |a, b| self.pow(a, b)),
            (LShift, [a, b]) => self.mul(self.element(a), self.element(&power_of_two(b))),
            (RShift, [a, b]) => self.floor_div(a, &power_of_two(b)),
            (Sqrt, [a]) => self.sqrt(self.double(a)),
            (Exp, [a]) => self.exp(self.double(a)),
            (Log, [a]) => self.log(self.double(a)),
            (Log2, [a]) => self.div(self.log(self.double(a)), std::f64::consts::LN_2),
            (Sin, [a]) => self.sin(self.double(a)),
            (Cos, [a]) => self.cos(self.double(a)),
            (Tanh, [a]) => self.tanh(self.double(a)),
            (Eq, [a, b]) => self.arithmetic(a, b, |a, b| self.equal(a, b)),
            (Ne, [a, b]) => self.not(self.arithmetic(a, b, |a, b| self.equal(a, b))),
            (Lt, [a, b]) => self.arithmetic(a, b, |a, b| self.less(a, b)),
            (Le, [a, b]) => self.arithmetic(a, b, |a, b| self.less_or_equal(a, b)),
            (Gt, [a, b]) => self.arithmetic(a, b, |a, b| self.greater(a, b)),
            (Ge, [a, b]) => self.arithmetic(a, b, |a, b| self.greater_or_equal(a, b)),
            (And, [first, rest @ ..]) => {
                rest.iter().fold(self.truth(first), |all, e| self.and(all, self.truth(e)))
            }
            (Or, [first, rest @ ..]) => {
                rest.iter().fold(self.truth(first), |any, e| self.or(any, self.truth(e)))
            }
            (Not, [a]) => self.not(self.truth(a)),
            (Where, [c, a, b]) => {
                let (a, b) = self.common(self.element(a), self.element(b));
                self.select(self.truth(c), a, b)
            }
            _ => {
                let shown = Expr::call(func, args.to_vec());
                self.report(format!("sizes of the form {shown} are not supported"));
                self.ints(&[1])
            }
        }
    }

    fn truth(&self, e: &Expr) -> Value {
        self.cast(self.element(e), DType::Bool)
    }

    /// `floor(a / b)`. ONNX's `Div` of integers rounds towards zero, so `a` is made a multiple of `b` first, unless neither
    /// can be negative.
    fn floor_div(&self, a: &Expr, b: &Expr) -> Value {
        let nonnegative = {
            let constraints = self.constraints();
            let zero = Expr::int(0);
            constraints.prove_ge(a, &zero) && constraints.prove_ge(b, &zero)
        };
        self.arithmetic(a, b, |a, b| {
            let whole =
                if nonnegative { a } else { self.sub(a, self.mod_(a, b, attrs::Mod::default())) };
            self.div(whole, b)
        })
    }
}

/// `2 ** e`.
fn power_of_two(e: &Expr) -> Expr {
    Expr::call(Func::PowByNatural, vec![Expr::int(2), e.clone()])
}
