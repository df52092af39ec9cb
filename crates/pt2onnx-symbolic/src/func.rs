//! The functions in expressions.
//!
//! Each has a name in both spellings, a number of arguments, and returns an integer, a float or a
//! truth value.

/// The kind of result that a function returns.
#[derive(PartialEq)]
enum Kind {
    Int,
    /// 0 or 1.
    Truth,
    Float,
    /// An integer if all arguments are integers; it may be a float otherwise.
    Same,
}

/// Defines [`Func`]. A row is a function, what it returns, how many arguments it takes, and its
/// names: the first is printed, all are read.
macro_rules! functions {
    ($($(#[$doc:meta])* $func:ident: $kind:ident, $takes:pat, $names:expr;)*) => {
        /// Functions of sympy and of `torch.utils._sympy.functions`.
        ///
        /// Arguments and results are Python numbers; booleans are the integers 0 and 1.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "most names are the documentation")]
        pub enum Func { $($(#[$doc])* $func,)* }

        impl Func {
            const ALL: &[Func] = &[$(Func::$func),*];

            fn kind(self) -> Kind {
                match self { $(Func::$func => Kind::$kind,)* }
            }

            fn names(self) -> &'static [&'static str] {
                match self { $(Func::$func => &$names,)* }
            }

            /// Whether the function takes this number of arguments.
            pub fn takes(self, arguments: usize) -> bool {
                match (self, arguments) {
                    (Func::IsNonOverlappingAndDenseIndicator, odd) if odd % 2 == 1 => false,
                    $((Func::$func, $takes) => true,)*
                    _ => false,
                }
            }
        }
    };
}

functions! {
    Abs: Same, 1, ["Abs", "abs"];
    And: Truth, _, ["And"];
    BitwiseAnd: Int, 2, ["BitwiseFn_bitwise_and", "bitwise_and", "BitwiseAnd"];
    BitwiseOr: Int, 2, ["BitwiseFn_bitwise_or", "bitwise_or", "BitwiseOr"];
    BitwiseXor: Int, 2, ["BitwiseFn_bitwise_xor", "bitwise_xor", "BitwiseXor"];
    /// `ceil(a / b)` on integers.
    CeilDiv: Int, 2, ["CeilDiv"];
    /// Smallest integer not below a float.
    CeilToInt: Int, 1, ["CeilToInt"];
    /// `a // b`, known to have no remainder.
    CleanDiv: Int, 2, ["CleanDiv"];
    Eq: Truth, 2, ["Eq", "Equality"];
    FloatPow: Float, 2, ["FloatPow"];
    FloatTrueDiv: Float, 2, ["FloatTrueDiv", "TrueDiv"];
    /// Python's `a // b` on integers: rounds towards minus infinity.
    FloorDiv: Int, 2, ["FloorDiv"];
    /// Largest integer not above a float.
    FloorToInt: Int, 1, ["FloorToInt"];
    Ge: Truth, 2, ["Ge", "GreaterThan"];
    Gt: Truth, 2, ["Gt", "StrictGreaterThan"];
    /// Its argument. [`Expr::call`](crate::Expr::call) removes it.
    Identity: Int, 1, ["Identity"];
    /// `a / b` of integers, as a float.
    IntTrueDiv: Float, 2, ["IntTrueDiv"];
    /// 1 if the given sizes and strides (sizes first) describe a dense tensor without overlaps.
    IsNonOverlappingAndDenseIndicator: Int, _, ["IsNonOverlappingAndDenseIndicator"];
    LShift: Int, 2, ["LShift"];
    Le: Truth, 2, ["Le", "LessThan"];
    Lt: Truth, 2, ["Lt", "StrictLessThan"];
    /// `a % b` for arguments that are not negative. It is evaluated as in Python.
    Mod: Int, 2, ["Mod"];
    /// `(a // b) % c`.
    ModularIndexing: Int, 3, ["ModularIndexing"];
    Ne: Truth, 2, ["Ne", "Unequality", "Xor"];
    Not: Truth, 1, ["Not"];
    Acos: Float, 1, ["OpaqueUnaryFn_acos", "acos"];
    Asin: Float, 1, ["OpaqueUnaryFn_asin", "asin"];
    Asinh: Float, 1, ["OpaqueUnaryFn_asinh", "asinh"];
    Atan: Float, 1, ["OpaqueUnaryFn_atan", "atan"];
    Cos: Float, 1, ["OpaqueUnaryFn_cos", "cos"];
    Cosh: Float, 1, ["OpaqueUnaryFn_cosh", "cosh"];
    Exp: Float, 1, ["OpaqueUnaryFn_exp", "exp"];
    Log: Float, 1, ["OpaqueUnaryFn_log", "log"];
    Log2: Float, 1, ["OpaqueUnaryFn_log2", "log2"];
    Sin: Float, 1, ["OpaqueUnaryFn_sin", "sin"];
    Sinh: Float, 1, ["OpaqueUnaryFn_sinh", "sinh"];
    Sqrt: Float, 1, ["OpaqueUnaryFn_sqrt"];
    Tan: Float, 1, ["OpaqueUnaryFn_tan", "tan"];
    Tanh: Float, 1, ["OpaqueUnaryFn_tanh", "tanh"];
    Or: Truth, _, ["Or"];
    /// Integer power with an exponent that is not negative.
    PowByNatural: Int, 2, ["PowByNatural"];
    /// Python's `a % b`, which has the sign of the divisor.
    PythonMod: Int, 2, ["PythonMod"];
    RShift: Int, 2, ["RShift"];
    /// `round(x, digits)`.
    RoundDecimal: Float, 2, ["RoundDecimal"];
    /// `round(x)`: halves go to the even neighbour.
    RoundToInt: Int, 1, ["RoundToInt", "round"];
    ToFloat: Float, 1, ["ToFloat"];
    /// A float rounded to float32. PyTorch has no such function: sizes that go through tensors of
    /// float32 need it.
    ToSingle: Float, 1, ["ToSingle"];
    /// A float without its fraction, still a float.
    TruncToFloat: Float, 1, ["TruncToFloat"];
    /// A float without its fraction, as an integer.
    TruncToInt: Int, 1, ["TruncToInt", "Trunc"];
    Where: Same, 3, ["Where"];
    Ceiling: Int, 1, ["ceiling"];
    Floor: Int, 1, ["floor"];
    Max: Same, 1.., ["Max", "max"];
    Min: Same, 1.., ["Min", "min"];
}

impl Func {
    /// The name PyTorch prints.
    pub fn name(self) -> &'static str {
        self.names().first().copied().unwrap_or_default()
    }

    /// The function with this name in sympy's `str` or `srepr`.
    pub fn from_name(name: &str) -> Option<Func> {
        Func::ALL.iter().copied().find(|func| func.names().contains(&name))
    }

    /// Whether the result is a truth value, 0 or 1.
    pub fn is_boolean(self) -> bool {
        self.kind() == Kind::Truth
    }

    /// Whether the result is a float for all arguments.
    pub(crate) fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// Whether the result is an integer if all arguments are integers, and may be a float
    /// otherwise.
    pub(crate) fn keeps_kind(self) -> bool {
        self.kind() == Kind::Same
    }
}
