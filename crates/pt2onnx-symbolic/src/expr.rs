//! The expression type: immutable, shared, in canonical form from the moment it is built.

use std::sync::Arc;

/// Name of a symbol, such as `s77` or `batch`.
pub type Symbol = Arc<str>;

/// A symbolic expression in canonical form: two expressions that are the same polynomial over the same
/// symbols and function applications are `==`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr {
    /// A known integer: the common case, kept inline.
    Int(i64),
    /// Anything else.
    Node(Arc<Node>),
}

/// The non-constant forms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    Symbol(Symbol),
    /// A float constant, by its bits.
    Float(u64),
    /// Sum of at least two terms, in canonical order.
    Add(Vec<Expr>),
    /// Product of at least two factors, the integer coefficient (if any) first.
    Mul(Vec<Expr>),
    Pow(Expr, Expr),
    Call(Func, Vec<Expr>),
}

/// Functions of sympy and of torch.utils._sympy.functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Func {
    FloorDiv,
    // helper: complete this list
}
