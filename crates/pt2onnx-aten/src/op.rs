//! Rows of op tables, and functions whose parameters are an op's arguments.

use crate::{
    Cx, Lowered, Schema,
    args::{Args, Claims, FromArg},
    cx::Outputs,
};

/// An op and its lowering: a row of a table. [`op!`](crate::op!) makes it.
pub struct AtenOp {
    /// Its schema, exactly as PyTorch writes it.
    pub schema: &'static str,
    #[doc(hidden)]
    pub lower: LowerFn,
    #[doc(hidden)]
    pub complexity: Complexity,
    #[doc(hidden)]
    pub check: fn(&Schema) -> Result<(), String>,
}

#[doc(hidden)]
pub type LowerFn = fn(&Cx, &mut Args) -> Lowered<Outputs>;

/// What happens if a node of the op takes or gives complex tensors.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Complexity {
    /// The node is an error.
    Refused,
    /// The lowering runs twice: on the real parts and on the imaginary parts.
    ByParts,
    /// This lowering runs.
    Own(LowerFn),
}

impl AtenOp {
    /// The name: `aten::add.Tensor`.
    pub fn name(&self) -> &'static str {
        self.schema.split('(').next().unwrap_or(self.schema)
    }

    /// Whether it takes complex tensors.
    pub fn takes_complex(&self) -> bool {
        !matches!(self.complexity, Complexity::Refused)
    }

    /// Checks that the lowering's parameters fit the schema.
    ///
    /// # Errors
    /// Returns an error if the schema cannot be parsed, or names the first parameter that does not fit.
    pub fn check(&self) -> Result<(), String> {
        let schema = Schema::parse(self.schema);
        (self.check)(&schema.ok_or_else(|| format!("`{}` is not a schema", self.schema))?)
    }
}

impl std::fmt::Debug for AtenOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AtenOp").field(&self.schema).finish()
    }
}

/// Makes a row of a table, an [`AtenOp`], from a schema and a lowering.
///
/// The schema is a constant of PyTorch's list, with underscores instead of dots (`aten::add_Tensor` is `aten::add.Tensor(...)`),
/// or a text. The lowering is a [`Function`].
///
/// ```ignore
/// op!(aten::relu, relu),
/// op!(aten::relu6, hardtanh, min_val = 0, max_val = 6),   // arguments that the schema does not have
/// op!(aten::expand, expand, parts),                       // complex tensors: the lowering runs on each part
/// op!(aten::exp, exp, complex = complex_exp),             // complex tensors: another lowering runs
/// op!("mylib::foo(Tensor x) -> Tensor", foo),
/// ```
///
/// A lowering with a [`Complex`](crate::Complex) parameter takes complex tensors, too. For other lowerings they are an error.
#[macro_export]
macro_rules! op {
    ($namespace:ident :: $name:ident, $($row:tt)*) => {
        $crate::op!(@ $crate::table::schemas::$namespace::$name, $($row)*)
    };
    ($schema:literal, $($row:tt)*) => {
        $crate::op!(@ $schema, $($row)*)
    };
    (@ $schema:expr, $function:expr, parts $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::AtenOp {
            complexity: $crate::table::Complexity::ByParts,
            ..$crate::op!(@ $schema, $function $(, $given = $value)*)
        }
    };
    (@ $schema:expr, $function:expr, complex = $complex:expr $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::AtenOp {
            complexity: $crate::table::Complexity::Own(|cx, args| {
                $(args.give(stringify!($given), $value);)*
                $crate::table::call($complex, cx, args)
            }),
            ..$crate::op!(@ $schema, $function $(, $given = $value)*)
        }
    };
    (@ $schema:expr, $function:expr $(, $given:ident = $value:expr)* $(,)?) => {{
        const LOWER: $crate::table::LowerFn = |cx, args| {
            $(args.give(stringify!($given), $value);)*
            $crate::table::call($function, cx, args)
        };
        $crate::AtenOp {
            schema: $schema,
            lower: LOWER,
            complexity: $crate::table::complexity(&$function, LOWER),
            check: |schema| {
                $crate::table::check(&$function, schema, &[$((stringify!($given), $value.into())),*])
            },
        }
    }};
}
pub use op;

/// Defines structs of arguments that are bound by name, for lowerings with many parameters.
///
/// Each field takes the parameter of the same name; a field `input` also takes a parameter `self`. If the op has no such
/// parameter, an optional field is `None`. Any other field then needs a value in the row.
///
/// ```
/// use pt2onnx_aten::{Cx, Lowered, arguments};
/// use pt2onnx_ir::Value;
///
/// arguments! {
///     /// The arguments of `lerp`.
///     pub struct LerpArgs { pub input: Value, pub end: Value, pub weight: f64 }
/// }
///
/// /// `input + weight * (end - input)`.
/// fn lerp(cx: &Cx, args: LerpArgs) -> Lowered {
///     Ok(cx.add(args.input, cx.mul(cx.sub(args.end, args.input), args.weight)))
/// }
/// ```
#[macro_export]
macro_rules! arguments {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    })*) => { $(
        $(#[$meta])* #[derive(Debug, Clone)] $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type),*
        }
        impl $crate::Arguments for $name {
            const TAKES_COMPLEX: bool = false $(|| <$type as $crate::FromArg>::TAKES_COMPLEX)*;
            fn check(claims: &mut $crate::table::Claims) -> Result<(), String> {
                $(claims.named::<$type>(stringify!($field))?;)*
                Ok(())
            }
            fn bind(cx: &$crate::Cx, args: &mut $crate::Args) -> $crate::Lowered<Self> {
                Ok(Self { $($field: args.named(cx, stringify!($field))?),* })
            }
        }
    )* };
}

/// A struct of arguments that are bound by name. [`arguments!`](crate::arguments!) implements it.
pub trait Arguments: Sized {
    /// Whether a field takes complex tensors.
    const TAKES_COMPLEX: bool;

    /// Checks that the fields fit the schema's parameters.
    ///
    /// # Errors
    /// Returns an error that names the first field that does not fit.
    fn check(claims: &mut Claims) -> Result<(), String>;

    /// Takes the fields' arguments.
    ///
    /// # Errors
    /// Returns an error if an argument does not fit its field.
    fn bind(cx: &Cx, args: &mut Args) -> Lowered<Self>;
}

/// Binds the arguments to the function's parameters, and calls the function.
#[doc(hidden)]
pub fn call<P, F: Function<P>>(function: F, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
    function.call(cx, args)
}

/// What happens to complex tensors if the op has this lowering.
#[doc(hidden)]
pub const fn complexity<P, F: Function<P>>(_: &F, lower: LowerFn) -> Complexity {
    if F::TAKES_COMPLEX { Complexity::Own(lower) } else { Complexity::Refused }
}

/// Checks a function's parameters against a schema and the values that a row gives.
#[doc(hidden)]
pub fn check<P, F: Function<P>>(
    _: &F,
    schema: &Schema,
    given: &[(&str, pt2onnx_fx::graph::Argument)],
) -> Result<(), String> {
    F::check(Claims::new(schema, given)?)
}

/// A lowering: a function whose parameters are arguments of an op.
///
/// It has one of these forms:
/// - `Fn(&Cx, A, B, ..) -> Lowered<impl Into<Outputs>>`, where each parameter is [`FromArg`]: the schema's parameters in order,
///   without those that mean nothing to ONNX (`device`, `pin_memory`, ...);
/// - `Fn(&Cx, S) -> Lowered<impl Into<Outputs>>`, where `S` is a struct of [`arguments!`](crate::arguments!), bound by name;
/// - `Fn(&Cx, &mut Args) -> Lowered<impl Into<Outputs>>`, which takes the arguments itself.
///
/// Parameters of the schema that it does not take must be at their defaults.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lowering of an op",
    label = "expected `fn(&Cx, ..) -> Lowered<..>` whose parameters are arguments of an op",
    note = "the parameters must implement `FromArg` (`Value`, `Option<Value>`, `i64`, `f64`, `bool`, `Expr`, `Scalar`, `DType`, `String`, lists of these, ...), \
            or be one struct made by `arguments!`; annotate the types of a closure's parameters and its result"
)]
pub trait Function<P> {
    /// Whether a parameter takes complex tensors.
    const TAKES_COMPLEX: bool;

    /// Checks that the parameters fit a schema.
    ///
    /// # Errors
    /// Returns an error that names the first parameter that does not fit.
    fn check(claims: Claims) -> Result<(), String>;

    /// Binds the arguments to the parameters, and calls the function.
    ///
    /// # Errors
    /// Returns the function's error, or an error if an argument does not fit its parameter, or is not taken and not at its default.
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
            const TAKES_COMPLEX: bool = false $(|| $p::TAKES_COMPLEX)*;

            fn check(mut claims: Claims) -> Result<(), String> {
                $(claims.next::<$p>()?;)*
                claims.finish()
            }

            #[expect(non_snake_case, reason = "the names of the type parameters are also those of the variables")]
            fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
                $(let $p = args.next(cx)?;)*
                args.finish()?;
                Ok(self(cx, $($p),*)?.into())
            }
        }
    };
}

/// Marks functions that take one struct of arguments.
#[derive(Debug)]
pub struct ByName<S>(std::marker::PhantomData<S>);

impl<Func, Out, S> Function<ByName<S>> for Func
where
    Func: Fn(&Cx, S) -> Lowered<Out>,
    Out: Into<Outputs>,
    S: Arguments,
{
    const TAKES_COMPLEX: bool = S::TAKES_COMPLEX;

    fn check(mut claims: Claims) -> Result<(), String> {
        S::check(&mut claims)?;
        claims.finish()
    }

    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
        let taken = S::bind(cx, args)?;
        args.finish()?;
        Ok(self(cx, taken)?.into())
    }
}

/// Marks functions that take [`Args`].
#[derive(Debug)]
pub struct Unbound;

impl<Func, Out> Function<Unbound> for Func
where
    Func: Fn(&Cx, &mut Args) -> Lowered<Out>,
    Out: Into<Outputs>,
{
    const TAKES_COMPLEX: bool = false;

    fn check(_: Claims) -> Result<(), String> {
        Ok(())
    }

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
    const TAKES_COMPLEX: bool = false;

    fn check(claims: Claims) -> Result<(), String> {
        claims.finish()
    }

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
