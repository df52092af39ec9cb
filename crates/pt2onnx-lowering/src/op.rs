//! Rows of op tables, and functions whose parameters are an op's arguments.

use crate::{
    Cx, Lowered, Schema,
    args::{Args, Claims, FromArg},
    cx::Outputs,
};
use pt2onnx_fx::graph::Argument;
use std::marker::PhantomData;

/// An op and its lowering: a row of a table. [`op!`](crate::op!) makes it.
pub struct AtenOp {
    /// Its schema, exactly as PyTorch writes it.
    pub schema: &'static str,
    #[doc(hidden)]
    pub lowering: &'static Row<dyn Lower>,
    #[doc(hidden)]
    pub complexity: Complexity,
    /// Gives the types of the results where PyTorch did not record them ([`meta`](crate::meta)).
    #[doc(hidden)]
    pub meta: Option<&'static Row<dyn Lower>>,
}

/// Treatment of nodes that take or give complex tensors.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Complexity {
    /// The lowering runs if it has a [`Complex`](crate::Complex) parameter. Otherwise the node is
    /// an error.
    Same,
    /// The lowering runs twice: on the real parts and on the imaginary parts.
    ByParts,
    /// This lowering runs.
    Own(&'static Row<dyn Lower>),
}

impl AtenOp {
    /// A row whose lowering gets complex tensors if it has a parameter for them.
    #[doc(hidden)]
    pub const fn new(schema: &'static str, lowering: &'static Row<dyn Lower>) -> Self {
        Self { schema, lowering, complexity: Complexity::Same, meta: None }
    }

    /// A row whose lowering runs on each part of a complex tensor.
    #[doc(hidden)]
    pub const fn by_parts(schema: &'static str, lowering: &'static Row<dyn Lower>) -> Self {
        Self { schema, lowering, complexity: Complexity::ByParts, meta: None }
    }

    /// A row with another lowering for complex tensors.
    #[doc(hidden)]
    pub const fn with_complex(
        schema: &'static str,
        lowering: &'static Row<dyn Lower>,
        complex: &'static Row<dyn Lower>,
    ) -> Self {
        Self { schema, lowering, complexity: Complexity::Own(complex), meta: None }
    }

    /// The row with a meta function.
    #[doc(hidden)]
    pub const fn with_meta(self, meta: &'static Row<dyn Lower>) -> Self {
        Self { meta: Some(meta), ..self }
    }

    /// The name: `aten::add.Tensor`.
    pub fn name(&self) -> &'static str {
        self.schema.split('(').next().unwrap_or(self.schema)
    }

    /// Whether it takes complex tensors.
    pub fn takes_complex(&self) -> bool {
        !matches!(self.complexity, Complexity::Same) || self.lowering.takes_complex
    }

    /// Checks that the parameters of lowering and meta function fit the schema.
    ///
    /// # Errors
    /// Returns an error if the schema cannot be parsed, or names the first parameter that does not
    /// fit.
    pub fn check(&self) -> Result<(), String> {
        let schema = Schema::parse(self.schema).map_err(|error| error.to_string())?;
        self.lowering.fits(&schema, false)?;
        self.meta.map_or(Ok(()), |meta| meta.fits(&schema, true))
    }
}

impl std::fmt::Debug for AtenOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AtenOp").field(&self.schema).finish()
    }
}

/// Makes a row of a table, an [`AtenOp`], from a schema and a lowering.
///
/// The schema is a constant of PyTorch's list, with underscores instead of dots (`aten::add_Tensor`
/// is `aten::add.Tensor(...)`), or a text. The lowering is a [`Function`].
///
/// ```ignore
/// op!(aten::relu, relu),
/// // Arguments that the schema does not have.
/// op!(aten::relu6, hardtanh, min_val = 0, max_val = 6),
/// // Complex tensors: the lowering runs on each part, or another lowering runs.
/// op!(aten::flip, flip, parts),
/// op!(aten::rms_norm, rms_norm, complex = complex_rms_norm),
/// // Types of results that PyTorch did not record.
/// op!(aten::abs, abs, meta = meta::real),
/// op!("mylib::foo(Tensor x) -> Tensor", foo),
/// ```
///
/// A lowering with a [`Complex`](crate::Complex) parameter takes complex tensors, too. For other
/// lowerings they are an error. A [meta function](crate::meta) is needed by lowerings that read
/// the record, or give a list.
#[macro_export]
macro_rules! op {
    ($namespace:ident :: $name:ident, $function:ident $(,)?) => {
        $crate::AtenOp::new($crate::table::schemas::$namespace::$name, &$crate::table::Row::new($function, &[]))
    };
    ($namespace:ident :: $name:ident, $($row:tt)*) => {
        $crate::op!(@ $crate::table::schemas::$namespace::$name, $($row)*)
    };
    ($schema:literal, $($row:tt)*) => {
        $crate::op!(@ $schema, $($row)*)
    };
    (@ $schema:expr, $function:expr, parts, meta = $meta:expr $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::op!(@ $schema, $function, parts $(, $given = $value)*)
            .with_meta(&$crate::table::Row::new($meta, &[$((stringify!($given), &$value)),*]))
    };
    (@ $schema:expr, $function:expr, complex = $complex:expr, meta = $meta:expr $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::op!(@ $schema, $function, complex = $complex $(, $given = $value)*)
            .with_meta(&$crate::table::Row::new($meta, &[$((stringify!($given), &$value)),*]))
    };
    (@ $schema:expr, $function:expr, meta = $meta:expr $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::op!(@ $schema, $function $(, $given = $value)*)
            .with_meta(&$crate::table::Row::new($meta, &[$((stringify!($given), &$value)),*]))
    };
    (@ $schema:expr, $function:expr, parts $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::AtenOp::by_parts($schema, &$crate::table::Row::new($function, &[$((stringify!($given), &$value)),*]))
    };
    (@ $schema:expr, $function:expr, complex = $complex:expr $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::AtenOp::with_complex(
            $schema,
            &$crate::table::Row::new($function, &[$((stringify!($given), &$value)),*]),
            &$crate::table::Row::new($complex, &[$((stringify!($given), &$value)),*]),
        )
    };
    (@ $schema:expr, $function:expr $(, $given:ident = $value:expr)* $(,)?) => {
        $crate::AtenOp::new($schema, &$crate::table::Row::new($function, &[$((stringify!($given), &$value)),*]))
    };
}

/// Defines structs of arguments that are bound by name, for lowerings with many parameters.
///
/// Each field takes the parameter of the same name; a field `input` also takes a parameter `self`.
/// If the op has no such parameter, an optional field is `None`. Any other field then needs a value
/// in the row.
///
/// ```
/// use pt2onnx_lowering::{Cx, Lowered, arguments};
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

/// A lowering with the values of its row. Code that depends on its parameters only is compiled
/// once.
#[doc(hidden)]
pub struct Row<L: ?Sized> {
    pub takes_complex: bool,
    check: fn(Claims) -> Result<(), String>,
    given: &'static [(&'static str, &'static dyn Given)],
    lowering: L,
}

/// A [`Function`], whatever its parameters are.
#[doc(hidden)]
pub trait Lower: Sync {
    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs>;
}

/// A function with the parameters `P`.
#[doc(hidden)]
pub struct Bound<F, P>(F, PhantomData<fn(P)>);

impl<P: Parameters, F: Function<P> + Sync> Lower for Bound<F, P> {
    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
        self.0.call(cx, args)
    }
}

impl<P: Parameters, F: Function<P>> Row<Bound<F, P>> {
    /// A row that gives these values.
    pub const fn new(function: F, given: &'static [(&'static str, &'static dyn Given)]) -> Self {
        let lowering = Bound(function, PhantomData);
        Self { takes_complex: P::TAKES_COMPLEX, check: P::check, given, lowering }
    }
}

impl Row<dyn Lower> {
    /// Checks that the parameters fit a schema and the values that the row gives. If `partial`, it
    /// need not take all of them.
    fn fits(&self, schema: &Schema, partial: bool) -> Result<(), String> {
        (self.check)(Claims::new(schema, &self.arguments(), partial)?)
    }

    /// Binds the arguments and the values that the row gives to the parameters, and calls the
    /// function.
    pub fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
        args.give(self.arguments());
        self.lowering.call(cx, args)
    }

    fn arguments(&self) -> Vec<(&'static str, Argument)> {
        self.given.iter().map(|(name, value)| (*name, value.argument())).collect()
    }
}

/// A value that a row gives.
#[doc(hidden)]
pub trait Given: Sync {
    fn argument(&self) -> Argument;
}

impl<T: Clone + Into<Argument> + Sync> Given for T {
    fn argument(&self) -> Argument {
        self.clone().into()
    }
}

/// The parameters of a [`Function`]: a tuple of [`FromArg`], [`ByName`] or [`Unbound`].
pub trait Parameters {
    /// Whether a parameter takes complex tensors.
    const TAKES_COMPLEX: bool;

    /// Checks that the parameters fit a schema.
    ///
    /// # Errors
    /// Returns an error that names the first parameter that does not fit.
    fn check(claims: Claims) -> Result<(), String>;
}

/// A lowering: a function whose parameters are arguments of an op.
///
/// It has one of these forms:
/// - `Fn(&Cx, A, B, ..) -> Lowered<impl Into<Outputs>>`, where each of up to six parameters is
///   [`FromArg`]: the schema's parameters in order, without those that mean nothing to ONNX
///   (`device`, `pin_memory`, ...). Optional ones beyond the schema's are `None`;
/// - `Fn(&Cx, S) -> Lowered<impl Into<Outputs>>`, where `S` is a struct of
///   [`arguments!`](crate::arguments!), bound by name;
/// - `Fn(&Cx, &mut Args) -> Lowered<impl Into<Outputs>>`, which takes the arguments itself.
///
/// Parameters of the schema that it does not take must be at their defaults.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lowering of an op",
    label = "expected `fn(&Cx, ..) -> Lowered<..>` whose parameters are arguments of an op",
    note = "up to six parameters must implement `FromArg` (`Value`, `Option<Value>`, `i64`, `f64`, `bool`, `Expr`, `Scalar`, `DType`, `String`, lists of these, ...), \
            or be one struct made by `arguments!`; annotate the types of a closure's parameters and its result"
)]
pub trait Function<P: Parameters> {
    /// Binds the arguments to the parameters, and calls the function.
    ///
    /// # Errors
    /// Returns the function's error, or an error if an argument does not fit its parameter, or is
    /// not taken and not at its default.
    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs>;
}

macro_rules! function {
    ($($p:ident),*) => {
        impl<$($p: FromArg),*> Parameters for ($($p,)*) {
            const TAKES_COMPLEX: bool = false $(|| $p::TAKES_COMPLEX)*;

            #[allow(unused_mut, reason = "a function may have no parameters")]
            fn check(mut claims: Claims) -> Result<(), String> {
                $(claims.next::<$p>()?;)*
                claims.finish()
            }
        }

        impl<Func, Out, $($p: FromArg),*> Function<($($p,)*)> for Func
        where
            Func: Fn(&Cx, $($p),*) -> Lowered<Out>,
            Out: Into<Outputs>,
        {
            #[allow(non_snake_case, reason = "the names of the type parameters are also those of the variables")]
            fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
                $(let $p = args.next(cx)?;)*
                args.finish()?;
                Ok(self(cx, $($p),*)?.into())
            }
        }
    };
}
function!();
function!(A);
function!(A, B);
function!(A, B, C);
function!(A, B, C, D);
function!(A, B, C, D, E);
function!(A, B, C, D, E, F);

/// Marks functions that take one struct of arguments.
#[derive(Debug)]
pub struct ByName<S>(PhantomData<S>);

impl<S: Arguments> Parameters for ByName<S> {
    const TAKES_COMPLEX: bool = S::TAKES_COMPLEX;

    fn check(mut claims: Claims) -> Result<(), String> {
        S::check(&mut claims)?;
        claims.finish()
    }
}

impl<Func, Out, S> Function<ByName<S>> for Func
where
    Func: Fn(&Cx, S) -> Lowered<Out>,
    Out: Into<Outputs>,
    S: Arguments,
{
    fn call(&self, cx: &Cx, args: &mut Args) -> Lowered<Outputs> {
        let taken = S::bind(cx, args)?;
        args.finish()?;
        Ok(self(cx, taken)?.into())
    }
}

/// Marks functions that take [`Args`].
#[derive(Debug)]
pub struct Unbound;

impl Parameters for Unbound {
    const TAKES_COMPLEX: bool = false;

    fn check(_: Claims) -> Result<(), String> {
        Ok(())
    }
}

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
