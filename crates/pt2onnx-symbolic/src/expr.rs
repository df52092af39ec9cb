//! The expression type [`Expr`]: immutable, shared, and always in canonical form.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::func::Func;

/// Name of a symbol, such as `s77` or `batch`.
pub type Symbol = Arc<str>;

/// Largest number of nodes of an expression. A shared node counts once for each use.
///
/// An expression that would exceed this limit or [`MAX_DEPTH`] becomes a symbol `opaque_HASH`,
/// about which nothing is known. So no input can make the algebra slow.
pub const MAX_SIZE: u32 = 2048;

/// Largest nesting depth of an expression; see [`MAX_SIZE`].
pub const MAX_DEPTH: u32 = 100;

/// A symbolic expression in canonical form. Two expressions are `==` if they are the same
/// polynomial over the same symbols and function applications.
///
/// Integers are exact. If a coefficient does not fit in `i64`, the operation stays unevaluated
/// (`2**100`). If a product has more than [`MAX_TERMS`](crate::MAX_TERMS) terms, it is not
/// multiplied out. In both cases `==` may miss an equality, but it never holds for different
/// expressions.
///
/// Simplification assumes that divisors are not zero.
#[derive(Clone)]
pub struct Expr(Repr);

/// As it prints: `Expr(2*s0 + 1)`.
impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr({self})")
    }
}

#[derive(Clone)]
enum Repr {
    Int(i64),
    Node(Arc<Shared>),
}

struct Shared {
    hash: u64,
    size: u32,
    depth: u32,
    node: Node,
}

/// Every form of an expression except an integer constant, which [`Repr`] holds itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// Numerator and denominator, in lowest terms, the denominator above 1.
    Rational(i64, i64),
    /// The bits of a float.
    Float(u64),
    Symbol(Symbol),
    /// At least two terms, in the order they print.
    Add(Vec<Expr>),
    /// At least two factors. If one is a number, it is first.
    Mul(Vec<Expr>),
    Pow(Expr, Expr),
    Call(Func, Vec<Expr>),
}

/// The outermost operation of an expression, for matching. The enum is exhaustive, so a match needs
/// no `_` arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View<'a> {
    /// An integer constant.
    Int(i64),
    /// A fraction in lowest terms: numerator and denominator. The denominator is at least 2.
    Rational(i64, i64),
    /// A float constant. sympy's infinities are floats too.
    Float(f64),
    /// A symbol.
    Symbol(&'a str),
    /// A sum of at least two terms.
    Add(&'a [Expr]),
    /// A product of at least two factors. If one is a number, it is first.
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

    /// A symbol. It is an integer unless its name has PyTorch's prefix for float symbols (`zf0`,
    /// `zuf0`).
    pub fn symbol(name: &str) -> Expr {
        Expr::from_node(Node::Symbol(name.into()))
    }

    /// Makes an expression of `node` as it is. The caller has put it in canonical form.
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
            let (more, below) = match &child.0 {
                Repr::Int(_) => (1, 1),
                Repr::Node(shared) => (shared.size, shared.depth),
            };
            size = size.saturating_add(more);
            depth = depth.max(below);
        }
        let depth = depth + 1;
        if size > MAX_SIZE || depth > MAX_DEPTH {
            return Expr::symbol(&format!("{OPAQUE}{hash:016x}"));
        }
        Expr(Repr::Node(Arc::new(Shared { hash, size, depth, node })))
    }

    /// Whether a symbol stands for an expression that would exceed [`MAX_SIZE`] or [`MAX_DEPTH`].
    pub fn is_opaque(symbol: &str) -> bool {
        symbol.starts_with(OPAQUE)
    }

    /// The outermost operation, for matching.
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

    /// Whether the value is an integer for all values of the symbols.
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
                // The first argument of `Where` is a condition, which is an integer too.
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

    /// All symbols in the expression, sorted by name.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let mut found = BTreeSet::new();
        self.all_symbols(|symbol| {
            if !found.contains(symbol) {
                found.insert(Arc::clone(symbol));
            }
            true
        });
        found
    }

    /// Whether something holds for every symbol in the expression. Some are asked for more than
    /// once.
    pub fn all_symbols(&self, mut holds: impl FnMut(&Symbol) -> bool) -> bool {
        fn walk(expr: &Expr, holds: &mut dyn FnMut(&Symbol) -> bool) -> bool {
            match &expr.0 {
                Repr::Node(shared) => match &shared.node {
                    Node::Symbol(name) => holds(name),
                    _ => expr.children().all(|child| walk(child, holds)),
                },
                _ => true,
            }
        }
        walk(self, &mut holds)
    }

    /// Whether the expression contains the symbol.
    pub fn contains_symbol(&self, name: &str) -> bool {
        !self.all_symbols(|symbol| **symbol != *name)
    }

    /// The direct operands. Constants and symbols have none.
    pub fn children(&self) -> impl Iterator<Item = &Expr> {
        let (slice, pair): (&[Expr], Option<[&Expr; 2]>) = match self.view() {
            View::Add(args) | View::Mul(args) | View::Call(_, args) => (args, None),
            View::Pow(base, exponent) => (&[], Some([base, exponent])),
            _ => (&[], None),
        };
        slice.iter().chain(pair.into_iter().flatten())
    }
}

/// Prefix of the symbols that replace expressions beyond the limits.
const OPAQUE: &str = "opaque_";

/// Whether a symbol of this name is an integer. PyTorch's float symbols are `zf0`, `zuf0`, ...
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

impl Expr {
    /// The place of an expression in sorted lists, by its form: numbers first. It does not say
    /// which value is larger, so `Expr` is not `Ord`: [`Expr::max`] and [`Expr::min`] have no
    /// others beside them.
    pub fn cmp_form(&self, other: &Expr) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Int(a), Repr::Int(b)) => a.cmp(b),
            (Repr::Int(_), Repr::Node(_)) => Ordering::Less,
            (Repr::Node(_), Repr::Int(_)) => Ordering::Greater,
            (Repr::Node(a), Repr::Node(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Repr::Node(a), Repr::Node(b)) => a.node.cmp_form(&b.node),
        }
    }
}

impl Node {
    fn cmp_form(&self, other: &Node) -> Ordering {
        use Node::*;
        fn all(a: &[Expr], b: &[Expr]) -> Ordering {
            let pairs = a.iter().zip(b).map(|(a, b)| a.cmp_form(b));
            let mut unequal = pairs.filter(|order| order.is_ne());
            unequal.next().unwrap_or(a.len().cmp(&b.len()))
        }
        match (self, other) {
            (Rational(a, b), Rational(c, d)) => (a, b).cmp(&(c, d)),
            (Float(a), Float(b)) => a.cmp(b),
            (Symbol(a), Symbol(b)) => a.cmp(b),
            (Add(a), Add(b)) | (Mul(a), Mul(b)) => all(a, b),
            (Pow(a, b), Pow(c, d)) => a.cmp_form(c).then_with(|| b.cmp_form(d)),
            (Call(f, a), Call(g, b)) => f.cmp(g).then_with(|| all(a, b)),
            _ => self.kind().cmp(&other.kind()),
        }
    }

    /// The place of the operation among all.
    fn kind(&self) -> u8 {
        match self {
            Node::Rational(..) => 0,
            Node::Float(_) => 1,
            Node::Symbol(_) => 2,
            Node::Add(_) => 3,
            Node::Mul(_) => 4,
            Node::Pow(..) => 5,
            Node::Call(..) => 6,
        }
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
