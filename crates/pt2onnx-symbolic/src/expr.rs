//! The expression type: immutable, shared, in canonical form from the moment it is built.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::func::Func;

/// Name of a symbol, such as `s77` or `batch`.
pub type Symbol = Arc<str>;

/// Largest number of nodes of an expression, shared ones counted at each use.
///
/// What would grow past this limit, or deeper than [`MAX_DEPTH`], becomes one symbol `opaque_HASH` of which nothing
/// is known, so that no input can make the algebra slow.
pub const MAX_SIZE: u32 = 2048;

/// Largest nesting depth of an expression; see [`MAX_SIZE`].
pub const MAX_DEPTH: u32 = 100;

/// A symbolic expression in canonical form: two expressions that are the same polynomial over the same
/// symbols and function applications are `==`.
///
/// Integers are exact. Where a coefficient would leave `i64`, the operation stays unevaluated (`2**100`), where a
/// product would have more than [`MAX_TERMS`](crate::MAX_TERMS) terms, it stays a product: `==` then still only holds of equal
/// expressions, but may miss an equality.
/// Simplification takes for granted that divisors are not zero.
#[derive(Clone, Debug)]
pub struct Expr(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Int(i64),
    Node(Arc<Shared>),
}

#[derive(Debug)]
struct Shared {
    hash: u64,
    size: u32,
    depth: u32,
    node: Node,
}

/// The forms that are not an integer constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Node {
    /// Numerator and denominator, in lowest terms, the denominator above 1.
    Rational(i64, i64),
    /// A float, by its bits.
    Float(u64),
    Symbol(Symbol),
    /// At least two terms, in the order they print.
    Add(Vec<Expr>),
    /// At least two factors, a number first if any.
    Mul(Vec<Expr>),
    Pow(Expr, Expr),
    Call(Func, Vec<Expr>),
}

/// What an expression is at its top, for matching.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View<'a> {
    /// An integer constant.
    Int(i64),
    /// A fraction in lowest terms: numerator, denominator above 1.
    Rational(i64, i64),
    /// A float constant; sympy's infinities are floats too.
    Float(f64),
    /// A symbol.
    Symbol(&'a str),
    /// A sum of at least two terms.
    Add(&'a [Expr]),
    /// A product of at least two factors, its number (if any) first.
    Mul(&'a [Expr]),
    /// A power: base and exponent.
    Pow(&'a Expr, &'a Expr),
    /// A function application.
    Call(Func, &'a [Expr]),
}

impl Expr {
    /// The constant 0.
    pub const ZERO: Expr = Expr(Repr::Int(0));
    /// The constant 1.
    pub const ONE: Expr = Expr(Repr::Int(1));

    /// A constant.
    pub const fn int(value: i64) -> Expr {
        Expr(Repr::Int(value))
    }

    /// A truth value: 0 or 1.
    pub const fn bool(value: bool) -> Expr {
        Expr(Repr::Int(value as i64))
    }

    /// A float constant.
    pub fn float(value: f64) -> Expr {
        let value = if value.is_nan() { f64::NAN } else { value };
        Expr::from_node(Node::Float(value.to_bits()))
    }

    /// A symbol, taken for an integer unless its name has PyTorch's prefix of float symbols (`zf0`, `zuf0`).
    pub fn symbol(name: &str) -> Expr {
        Expr::from_node(Node::Symbol(name.into()))
    }

    /// Shares `node`, which the caller has put in canonical form.
    pub(crate) fn from_node(node: Node) -> Expr {
        let mut hasher = FxHasher::default();
        node.hash(&mut hasher);
        let hash = hasher.finish();
        let (mut size, mut depth) = (1u32, 0u32);
        let children: &[Expr] = match &node {
            Node::Add(args) | Node::Mul(args) | Node::Call(_, args) => args,
            Node::Pow(base, exponent) => &[base.clone(), exponent.clone()],
            Node::Rational(..) | Node::Float(_) | Node::Symbol(_) => &[],
        };
        for child in children {
            size = size.saturating_add(child.size());
            depth = depth.max(child.depth());
        }
        let depth = depth + 1;
        if size > MAX_SIZE || depth > MAX_DEPTH {
            return Expr::symbol(&format!("{OPAQUE}{hash:016x}"));
        }
        Expr(Repr::Node(Arc::new(Shared { hash, size, depth, node })))
    }

    fn size(&self) -> u32 {
        match &self.0 {
            Repr::Int(_) => 1,
            Repr::Node(shared) => shared.size,
        }
    }

    fn depth(&self) -> u32 {
        match &self.0 {
            Repr::Int(_) => 1,
            Repr::Node(shared) => shared.depth,
        }
    }

    /// What the expression is at its top.
    pub fn view(&self) -> View<'_> {
        match &self.0 {
            Repr::Int(value) => View::Int(*value),
            Repr::Node(shared) => match &shared.node {
                Node::Rational(num, den) => View::Rational(*num, *den),
                Node::Float(bits) => View::Float(f64::from_bits(*bits)),
                Node::Symbol(name) => View::Symbol(name),
                Node::Add(args) => View::Add(args),
                Node::Mul(args) => View::Mul(args),
                Node::Pow(base, exponent) => View::Pow(base, exponent),
                Node::Call(func, args) => View::Call(*func, args),
            },
        }
    }

    /// The value of an integer constant.
    pub fn as_int(&self) -> Option<i64> {
        match self.0 {
            Repr::Int(value) => Some(value),
            Repr::Node(_) => None,
        }
    }

    /// The name, if this is a single symbol.
    pub fn as_symbol(&self) -> Option<&str> {
        match self.view() {
            View::Symbol(name) => Some(name),
            _ => None,
        }
    }

    /// Whether this is an integer constant.
    pub fn is_static(&self) -> bool {
        self.as_int().is_some()
    }

    /// Whether the value is surely an integer, whatever the symbols' values.
    pub fn is_integer(&self) -> bool {
        match self.view() {
            View::Int(_) => true,
            View::Rational(..) | View::Float(_) => false,
            View::Symbol(name) => symbol_is_integer(name),
            View::Add(args) | View::Mul(args) => args.iter().all(Expr::is_integer),
            View::Pow(base, exponent) => {
                base.is_integer() && exponent.as_int().is_some_and(|n| n >= 0)
            }
            View::Call(func, args) => {
                // The first argument of `Where` is a condition: an integer as well.
                !func.is_float() && (!func.keeps_kind() || args.iter().all(Expr::is_integer))
            }
        }
    }

    /// Whether the value is a truth value: 0, 1, a relation or a logical connective.
    pub fn is_boolean(&self) -> bool {
        match self.view() {
            View::Int(value) => value == 0 || value == 1,
            View::Call(func, _) => func.is_boolean(),
            _ => false,
        }
    }

    /// All symbols that occur, sorted by name.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        fn walk(expr: &Expr, found: &mut BTreeSet<Symbol>) {
            if let Repr::Node(shared) = &expr.0
                && let Node::Symbol(name) = &shared.node
            {
                found.insert(Arc::clone(name));
            }
            expr.children().for_each(|child| walk(child, found));
        }
        let mut found = BTreeSet::new();
        walk(self, &mut found);
        found
    }

    /// Whether the symbol occurs.
    pub fn contains_symbol(&self, name: &str) -> bool {
        self.as_symbol() == Some(name) || self.children().any(|child| child.contains_symbol(name))
    }

    /// The direct operands, none for constants and symbols.
    pub fn children(&self) -> impl Iterator<Item = &Expr> {
        let (slice, pair): (&[Expr], Option<[&Expr; 2]>) = match self.view() {
            View::Add(args) | View::Mul(args) | View::Call(_, args) => (args, None),
            View::Pow(base, exponent) => (&[], Some([base, exponent])),
            _ => (&[], None),
        };
        slice.iter().chain(pair.into_iter().flatten())
    }
}

/// Prefix of the names that stand for expressions past the limits.
const OPAQUE: &str = "opaque_";

/// Whether a symbol of this name is an integer: PyTorch's float symbols are `zf0`, `zuf0`, ...
pub(crate) fn symbol_is_integer(name: &str) -> bool {
    let float = name
        .strip_prefix("zuf")
        .or_else(|| name.strip_prefix("zf"))
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    !float && !name.starts_with(OPAQUE)
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        match (&self.0, &other.0) {
            (Repr::Int(a), Repr::Int(b)) => a == b,
            (Repr::Node(a), Repr::Node(b)) => {
                Arc::ptr_eq(a, b) || (a.hash == b.hash && a.node == b.node)
            }
            _ => false,
        }
    }
}

impl Eq for Expr {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Int(value) => value.hash(state),
            Repr::Node(shared) => shared.hash.hash(state),
        }
    }
}

impl Ord for Expr {
    fn cmp(&self, other: &Expr) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Int(a), Repr::Int(b)) => a.cmp(b),
            (Repr::Int(_), Repr::Node(_)) => Ordering::Less,
            (Repr::Node(_), Repr::Int(_)) => Ordering::Greater,
            (Repr::Node(a), Repr::Node(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Repr::Node(a), Repr::Node(b)) => a.node.cmp(&b.node),
        }
    }
}

impl PartialOrd for Expr {
    fn partial_cmp(&self, other: &Expr) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Default for Expr {
    fn default() -> Expr {
        Expr::ZERO
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Expr {
        Expr::int(value)
    }
}

impl From<&str> for Expr {
    fn from(name: &str) -> Expr {
        Expr::symbol(name)
    }
}
