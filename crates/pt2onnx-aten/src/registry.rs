//! The registry: from an op's name to the function that lowers it.

use crate::{
    Cx, Lowered, Schema,
    args::{Args, FromArg},
    cx::Outputs,
    ops,
};
use pt2onnx_ir::{Model, ParseError, schema};
use rustc_hash::FxHashMap;

/// An op and its lowering: an entry of a table, which [`aten!`](crate::aten) makes.
pub struct AtenOp {
    /// Its schema, letter for letter as PyTorch has it.
    pub schema: &'static str,
    #[doc(hidden)]
    pub lower: LowerFn,
    #[doc(hidden)]
    pub complex: Complexity,
}

#[doc(hidden)]
pub type LowerFn = fn(&Cx, &mut Args) -> Lowered<Outputs>;

/// What an op does when complex tensors come in or go out.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Complexity {
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
#[macro_export]
macro_rules! aten {
    ($schema:literal, $function:expr) => {
        $crate::aten!(@ $schema, $function, $crate::table::Complexity::Refused)
    };
    ($schema:literal, $function:expr, parts) => {
        $crate::aten!(@ $schema, $function, $crate::table::Complexity::ByParts)
    };
    ($schema:literal, $function:expr, complex: $complex:expr) => {
        $crate::aten!(@ $schema, $function, $crate::table::Complexity::Own(|cx, args| {
            $crate::table::call($complex, cx, args)
        }))
    };
    (@ $schema:literal, $function:expr, $complexity:expr) => {
        $crate::AtenOp {
            schema: $schema,
            lower: |cx, args| $crate::table::call($function, cx, args),
            complex: $complexity,
        }
    };
}
pub(crate) use aten;

/// Binds the arguments to the function's parameters and calls it.
#[doc(hidden)]
pub fn call<P, F: Function<P>>(function: F, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
    function.call(cx, args)
}

/// A function whose parameters are arguments of an op: `Fn(&Cx, A, B, ..) -> Lowered<impl Into<Outputs>>`, where the parameters
/// are [`FromArg`], or `Fn(&Cx, &mut Args)`.
pub trait Function<P> {
    /// Binds the arguments to the parameters, and calls the function.
    ///
    /// # Errors
    /// Its own, and arguments that do not fit or that it does not take.
    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs>;
}

macro_rules! function {
    ($($p:ident),*) => {
        impl<Func, Out, $($p),*> Function<($($p,)*)> for Func
        where
            Func: Fn(&Cx, $($p),*) -> Lowered<Out>,
            Out: Into<Outputs>,
            $($p: FromArg,)*
        {
            #[expect(non_snake_case, reason = "the type parameters' names serve as variables")]
            fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
                $(let $p = args.next(cx)?;)*
                args.finish()?;
                Ok(self(cx, $($p),*)?.into())
            }
        }
    };
}
/// Marks functions that take [`Args`] as they are.
pub struct Unbound;

impl<Func, Out> Function<Unbound> for Func
where
    Func: Fn(&Cx, &mut Args) -> Lowered<Out>,
    Out: Into<Outputs>,
{
    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
        let outputs = self(cx, args)?.into();
        args.finish()?;
        Ok(outputs)
    }
}

impl<Func, Out> Function<()> for Func
where
    Func: Fn(&Cx) -> Lowered<Out>,
    Out: Into<Outputs>,
{
    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
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

/// All ops that can be translated. Where an op has several translations, the one that was given last is used.
#[derive(Default)]
pub struct Registry {
    ops: Ops,
    /// By name of the op, in the order they were registered.
    custom: FxHashMap<String, Vec<Custom>>,
    /// Of each text that was given.
    functions: Vec<Model>,
}

struct Ops(FxHashMap<&'static str, &'static AtenOp>);

impl Default for Ops {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Ops {
    fn with(more: &'static [AtenOp]) -> Self {
        let all = ops::tables().chain([more]).flatten();
        Self(all.map(|op| (op.name(), op)).collect())
    }
}

type Closure = Box<dyn Fn(&Cx, &mut Args) -> Lowered<Outputs> + Send + Sync>;

/// A translation that came at run time.
pub(crate) enum Custom {
    /// A function of Rust.
    Closure { schema: Schema, lower: Closure, complex: bool },
    /// A function of ONNX: that of that number, of the model of that number.
    Function(usize, usize),
}

/// A translation of an op.
#[derive(Clone, Copy)]
pub enum Translation<'a> {
    /// An entry of a table.
    Table(&'static AtenOp),
    /// A function of Rust that was registered.
    Registered {
        /// The op's schema.
        schema: &'a Schema,
        /// Whether it is for complex tensors.
        is_complex: bool,
    },
    /// A function of ONNX: the op's nodes call it.
    Function(&'a pt2onnx_ir::Function),
}

/// A registered translation that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The text is no schema of an op.
    #[error("`{0}` is no schema of an op, as `mylib::foo(Tensor x, int n=2) -> Tensor` is one")]
    Schema(String),
}

impl Registry {
    /// The built-in ops and `more`, which replace built-in ones of the same name.
    pub fn with(more: &'static [AtenOp]) -> Self {
        Self { ops: Ops::with(more), ..Self::default() }
    }

    /// Registers a translation of the op with that schema, for real tensors. It takes the place of others of the op.
    ///
    /// The schema is as PyTorch prints it (`torch.ops.mylib.foo.default._schema`). Arguments that a program does not give are
    /// at the schema's defaults. The function is what [`Function`] says: its parameters are the schema's, in order, without
    /// those that mean nothing to ONNX (`device`, `pin_memory`, ...); trailing ones that it does not take must be at their
    /// defaults. It emits operators of opset [`opset_version`](Self::opset_version).
    ///
    /// # Errors
    /// Where the schema is none.
    pub fn register<P>(
        &mut self,
        schema: &str,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.add(schema, false, function)
    }

    /// As [`register`](Self::register), for nodes that take or give complex tensors: parameters of type
    /// [`Complex`](crate::Complex) come as two tensors.
    ///
    /// # Errors
    /// Where the schema is none.
    pub fn register_complex<P>(
        &mut self,
        schema: &str,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.add(schema, true, function)
    }

    fn add<P>(
        &mut self,
        schema: &str,
        complex: bool,
        function: impl Function<P> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let parsed = Schema::parse(schema).filter(|s| s.name.contains("::"));
        let schema = parsed.ok_or_else(|| RegisterError::Schema(schema.to_owned()))?;
        let custom = self.custom.entry(schema.name.clone()).or_default();
        custom.push(Custom::Closure {
            schema,
            lower: Box::new(move |cx, args| function.call(cx, args)),
            complex,
        });
        Ok(())
    }

    /// Registers functions in ONNX's textual syntax as translations of the ops that they are called after: domain `mylib`, name
    /// `foo` and overload `Tensor` are those of `mylib::foo.Tensor`, for which the name may also be `"mylib::foo.Tensor"`.
    /// The op's nodes become calls. Inputs of the function are called as the tensors among the op's parameters (`xs_0`, `xs_1` for
    /// a list `xs`), its attributes as the others.
    ///
    /// # Errors
    /// Where the text is wrong, or a function is not what its opset allows.
    pub fn add_functions(&mut self, text: &str) -> Result<(), ParseError> {
        let model = Model::parse_functions(text)?;
        for (i, function) in model.functions.iter().enumerate() {
            let mut op = format!("{}::{}", function.domain, function.name);
            if !matches!(function.overload.as_str(), "" | "default") {
                op = format!("{op}.{}", function.overload);
            }
            let custom = self.custom.entry(op).or_default();
            custom.push(Custom::Function(self.functions.len(), i));
        }
        self.functions.push(model);
        Ok(())
    }

    /// Copies the functions that a model's nodes call, of those that were registered, into the model.
    pub fn copy_functions(&self, model: &mut Model) {
        for node in model.graph_nodes() {
            let find =
                |library: &&Model| library.functions.iter().any(|f| f.is_called_by(&model[node]));
            let Some(library) = self.functions.iter().rev().find(find) else {
                continue;
            };
            let called = library.functions.iter().find(|f| f.is_called_by(&model[node]));
            if let Some(function) = called {
                model.copy_function(library, function);
            }
        }
    }

    /// Whether the op of that name (`aten::add.Tensor`) has a translation.
    pub fn is_registered(&self, op: &str) -> bool {
        self.custom.contains_key(op) || self.get(op).is_some()
    }

    /// The translations of an op, in the order they were registered: the last one is used.
    pub fn functions(&self, op: &str) -> Vec<Translation<'_>> {
        let table = self.get(op).map(Translation::Table);
        let custom = self.custom.get(op).into_iter().flatten();
        let custom = custom.filter_map(|c| {
            Some(match c {
                Custom::Closure { schema, complex, .. } => {
                    Translation::Registered { schema, is_complex: *complex }
                }
                Custom::Function(library, i) => {
                    Translation::Function(self.function(*library, *i)?.1)
                }
            })
        });
        table.into_iter().chain(custom).collect()
    }

    /// The opset whose operators translations emit; what is written may be of an older one.
    pub fn opset_version(&self) -> u32 {
        schema::CANONICAL_OPSET
    }

    /// The custom translation that an op's nodes use.
    pub(crate) fn custom(&self, op: &str, complex: impl Fn() -> bool) -> Option<&Custom> {
        let (mut custom, complex) = (self.custom.get(op)?.iter().rev(), complex());
        custom.find(|c| match c {
            Custom::Closure { complex: c, .. } => *c == complex,
            Custom::Function(..) => !complex,
        })
    }

    pub(crate) fn function(
        &self,
        library: usize,
        i: usize,
    ) -> Option<(&Model, &pt2onnx_ir::Function)> {
        let library = self.functions.get(library)?;
        Some((library, library.functions.get(i)?))
    }

    /// The op of that name (`aten::add.Tensor`) in the tables.
    pub fn get(&self, name: &str) -> Option<&'static AtenOp> {
        self.ops.0.get(name).copied()
    }

    /// All ops of the tables, by name.
    pub fn ops(&self) -> Vec<&'static AtenOp> {
        let mut all: Vec<_> = self.ops.0.values().copied().collect();
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
        let mut names: Vec<_> = self.ops.0.keys().collect();
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
