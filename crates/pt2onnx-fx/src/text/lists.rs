//! Lists of arguments: finds the kind of list for given items.

use crate::graph::{Argument as A, SymArg};

/// A list of these items, of the first kind that can hold all of them. `None` if there is no such
/// kind.
pub(super) fn list(items: &[A]) -> Option<A> {
    macro_rules! first_of {
        ($($list:ident: $($item:pat $(if $guard:expr)? => $value:expr),+;)*) => {
            None$(.or_else(|| {
                let item = |item: &A| match item {
                    $($item $(if $guard)? => Some($value),)+
                    _ => None,
                };
                items.iter().map(item).collect::<Option<Vec<_>>>().map(A::$list)
            }))*
        };
    }
    first_of! {
        Tensors: A::Tensor(n) => n.clone();
        OptionalTensors: A::Tensor(n) => Some(n.clone()), A::None => None;
        Ints: A::Int(v) => *v;
        Floats: A::Float(v) => *v, A::Int(v) => *v as f64;
        Bools: A::Bool(v) => *v;
        Strings: A::String(v) => v.clone();
        SymInts: A::SymInt(v) => v.clone(), A::Int(v) => SymArg::Value(*v);
        SymFloats: A::SymFloat(v) => v.clone(), A::Float(v) => SymArg::Value(*v),
            A::Int(v) => SymArg::Value(*v as f64);
        SymBools: A::SymBool(v) => v.clone(), A::Bool(v) => SymArg::Value(*v);
        NestedTensors: A::Tensors(v) => v.clone();
        IntLists: A::Ints(v) => v.clone(), A::Tensors(v) if v.is_empty() => Vec::new();
        FloatLists: A::Floats(v) => v.clone(), A::Tensors(v) if v.is_empty() => Vec::new();
    }
}
