//! The sizes that a builder knows, with a scope for each open region.

use crate::ids::Value;
use pt2onnx_symbolic::{Expr, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

/// Expressions that can be read or were computed. There is a scope for each open region, innermost
/// last: a value of a body is not visible outside.
#[derive(Debug)]
pub(super) struct Sizes {
    scopes: Vec<Scope>,
}

#[derive(Debug, Default)]
struct Scope {
    /// Where expressions can be read without arithmetic.
    sources: FxHashMap<Expr, Source>,
    /// Computed expressions, as vectors of one element: the form that `Shape` returns and `Concat`
    /// takes.
    computed: FxHashMap<Expr, Value>,
    /// Computed expressions, as 0-d values.
    scalars: FxHashMap<Expr, Value>,
    /// The symbols in the sources.
    symbols: FxHashSet<Symbol>,
    /// The symbols that have another value here than outside.
    rebound: FxHashSet<Symbol>,
}

impl Scope {
    fn rebinds(&self, e: &Expr) -> bool {
        !self.rebound.is_empty() && !e.all_symbols(|s| !self.rebound.contains(s))
    }
}

/// Where an expression can be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// The size of a dimension.
    Dim(Value, usize),
    /// A value with one element.
    Scalar(Value),
}

impl Default for Sizes {
    fn default() -> Self {
        Self { scopes: vec![Scope::default()] }
    }
}

impl Sizes {
    /// Whether a symbol occurs in an expression that can be read.
    pub(super) fn is_bound(&self, symbol: &Symbol) -> bool {
        self.scopes.iter().any(|s| s.symbols.contains(symbol))
    }

    /// The expressions that can be read without arithmetic.
    pub(super) fn readable(&self) -> impl Iterator<Item = &Expr> {
        self.scopes.iter().flat_map(|scope| scope.sources.keys())
    }

    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// The innermost scope's value of an expression. A scope that rebinds symbols hides outer
    /// values of expressions over them.
    fn find<T: Copy>(&self, e: &Expr, within: impl Fn(&Scope) -> Option<&T>) -> Option<T> {
        for scope in self.scopes.iter().rev() {
            let found = within(scope).copied();
            if found.is_some() || scope.rebinds(e) {
                return found;
            }
        }
        None
    }

    pub(super) fn get(&self, e: &Expr) -> Option<Value> {
        self.find(e, |s| s.computed.get(e))
    }

    pub(super) fn put(&mut self, e: &Expr, value: Value) {
        if let Some(innermost) = self.scopes.last_mut() {
            innermost.computed.insert(e.clone(), value);
        }
    }

    pub(super) fn get_scalar(&self, e: &Expr) -> Option<Value> {
        self.find(e, |s| s.scalars.get(e))
    }

    pub(super) fn put_scalar(&mut self, e: &Expr, value: Value) {
        if let Some(innermost) = self.scopes.last_mut() {
            innermost.scalars.insert(e.clone(), value);
        }
    }

    pub(super) fn source(&self, e: &Expr) -> Option<Source> {
        self.find(e, |s| s.sources.get(e))
    }

    pub(super) fn bind(&mut self, e: Expr, source: Source) {
        if e.is_static() || self.source(&e).is_some() {
            return;
        }
        if let Some(innermost) = self.scopes.last_mut() {
            innermost.symbols.extend(e.symbols());
            innermost.sources.insert(e, source);
        }
    }

    /// Binds a symbol in the innermost scope, also if it has another value outside.
    pub(super) fn rebind(&mut self, symbol: Symbol, source: Source) {
        if let Some(innermost) = self.scopes.last_mut() {
            let e = Expr::symbol(&symbol);
            innermost.symbols.insert(symbol.clone());
            innermost.rebound.insert(symbol);
            innermost.sources.insert(e, source);
        }
    }
}
