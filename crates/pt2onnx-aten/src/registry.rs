//! The registry: from an op's name to the function that lowers it.

use crate::{
    Cx, Lowered,
    args::{Args, FromArg},
    cx::Outputs,
    ops,
};
use rustc_hash::FxHashMap;

/// An op and its lowering.
pub struct AtenOp {
    /// Its schema, letter for letter as PyTorch has it.
    pub schema: &'static str,
    pub(crate) lower: LowerFn,
    pub(crate) complex: Complexity,
}

pub(crate) type LowerFn = fn(&Cx, &mut Args) -> Lowered<Outputs>;

/// What an op does when complex tensors come in or go out.
#[derive(Clone, Copy)]
pub(crate) enum Complexity {
    /// Nothing: an error.
    Refused,
    /// The same on real and imaginary parts.
    ByParts,
    /// A lowering of its own.
    Own(LowerFn),
}

impl AtenOp {
    /// `aten::add.Tensor`.
    pub fn name(&self) -> &'static str {
        self.schema.split('(').next().unwrap_or(self.schema)
    }

    /// Whether it takes complex tensors.
    pub fn takes_complex(&self) -> bool {
        !matches!(self.complex, Complexity::Refused)
    }
}

/// An [`AtenOp`]: schema and function. The function takes the schema's parameters in order, without those that mean nothing
/// to ONNX (`device`, `pin_memory`, ...); trailing ones that it does not take must be at their defaults.
///
/// With complex tensors: `aten!(schema, f)` is an error, `aten!(schema, f, parts)` runs `f` on the real and on the imaginary
/// parts, `aten!(schema, f, complex: g)` runs `g`, whose [`Complex`](crate::Complex) parameters come as two tensors.
macro_rules! aten {
    ($schema:literal, $function:expr) => {
        aten!(@ $schema, $function, $crate::registry::Complexity::Refused)
    };
    ($schema:literal, $function:expr, parts) => {
        aten!(@ $schema, $function, $crate::registry::Complexity::ByParts)
    };
    ($schema:literal, $function:expr, complex: $complex:expr) => {
        aten!(@ $schema, $function, $crate::registry::Complexity::Own(|cx, args| {
            $crate::registry::call($complex, cx, args)
        }))
    };
    (@ $schema:literal, $function:expr, $complexity:expr) => {
        $crate::registry::AtenOp {
            schema: $schema,
            lower: |cx, args| $crate::registry::call($function, cx, args),
            complex: $complexity,
        }
    };
}
pub(crate) use aten;

/// Binds the arguments to the function's parameters and calls it.
pub(crate) fn call<P, F: Function<P>>(function: F, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
    function.call(cx, args)
}

/// A function over bindable parameters.
pub(crate) trait Function<P> {
    fn call(self, cx: &Cx, args: &mut Args) -> Lowered<Outputs>;
}

macro_rules! function {
    ($($p:ident),*) => {
        impl<Func, Out, $($p),*> Function<($($p,)*)> for Func
        where
            Func: FnOnce(&Cx, $($p),*) -> Lowered<Out>,
            Out: Into<Outputs>,
            $($p: FromArg,)*
        {
            #[expect(non_snake_case, reason = "the type parameters' names serve as variables")]
            fn call(self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
                $(let $p = args.next(cx)?;)*
                args.finish()?;
                Ok(self(cx, $($p),*)?.into())
            }
        }
    };
}
impl<Func, Out> Function<()> for Func
where
    Func: FnOnce(&Cx) -> Lowered<Out>,
    Out: Into<Outputs>,
{
    fn call(self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
        args.finish()?;
        Ok(self(cx)?.into())
    }
}
function!(A);
function!(A, B);
function!(A, B, C);
function!(A, B, C, D);
function!(A, B, C, D, E);
function!(A, B, C, D, E, F);
function!(A, B, C, D, E, F, G);
function!(A, B, C, D, E, F, G, H);
function!(A, B, C, D, E, F, G, H, I);
function!(A, B, C, D, E, F, G, H, I, J);
function!(A, B, C, D, E, F, G, H, I, J, K);
function!(A, B, C, D, E, F, G, H, I, J, K, L);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M, N);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S);
function!(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T);

/// All ops that can be lowered.
pub struct Registry {
    ops: FxHashMap<&'static str, &'static AtenOp>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Registry {
    /// The built-in ops and `more`, which replace built-in ones of the same name.
    pub fn with(more: &'static [AtenOp]) -> Self {
        let all = ops::FAMILIES.iter().copied().chain([more]).flatten();
        Self {
            ops: all.map(|op| (op.name(), op)).collect(),
        }
    }

    /// The op of that name (`aten::add.Tensor`).
    pub fn get(&self, name: &str) -> Option<&'static AtenOp> {
        self.ops.get(name).copied()
    }

    /// All ops, by name.
    pub fn ops(&self) -> Vec<&'static AtenOp> {
        let mut all: Vec<_> = self.ops.values().copied().collect();
        all.sort_by_key(|op| op.name());
        all
    }

    /// The registered op whose name is most like `name`: another overload first, then few letters apart.
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        let base = |n: &str| n.split('.').next().unwrap_or(n).to_owned();
        let wanted = base(name);
        let distance = |op: &&&'static str| match base(op) == wanted {
            true => 0,
            false => edit_distance(&base(op), &wanted),
        };
        let mut names: Vec<_> = self.ops.keys().collect();
        names.sort();
        names
            .into_iter()
            .min_by_key(distance)
            .filter(|op| distance(op) <= name_of(&wanted).len() / 3)
            .copied()
    }
}

/// A name without its namespace.
fn name_of(qualified: &str) -> &str {
    qualified.rsplit("::").next().unwrap_or(qualified)
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;

    #[test]
    fn tables_are_sorted_and_unique() {
        let mut seen = std::collections::HashSet::new();
        for family in ops::FAMILIES {
            for pair in family.windows(2) {
                assert!(
                    pair[0].name() < pair[1].name(),
                    "{} before {}",
                    pair[0].name(),
                    pair[1].name()
                );
            }
            for op in *family {
                assert!(Schema::parse(op.schema).is_some(), "{}", op.schema);
                assert!(seen.insert(op.name()), "{} stands twice", op.name());
            }
        }
    }

    #[test]
    fn nearest_names() {
        let registry = Registry::default();
        assert_eq!(registry.nearest("aten::relu.out"), Some("aten::relu"));
        assert_eq!(registry.nearest("aten::reluu"), Some("aten::relu"));
        assert_eq!(registry.nearest("mylib::whatever"), None);
    }
}
