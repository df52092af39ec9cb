//! The functions in expressions.
//!
//! Each has a name in both spellings, a number of arguments, and returns an integer, a float or a
//! truth value.

/// Functions of sympy and of `torch.utils._sympy.functions`.
///
/// Arguments and results are Python numbers; booleans are the integers 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Func {
    /// `|x|`.
    Abs,
    /// Logical conjunction of any number of arguments.
    And,
    /// `a & b` on integers.
    BitwiseAnd,
    /// `a | b` on integers.
    BitwiseOr,
    /// `a ^ b` on integers.
    BitwiseXor,
    /// `ceil(a / b)` on integers.
    CeilDiv,
    /// Smallest integer not below a float.
    CeilToInt,
    /// `a // b`, known to have no remainder.
    CleanDiv,
    /// `a == b`.
    Eq,
    /// Float `a ** b`.
    FloatPow,
    /// Float `a / b`.
    FloatTrueDiv,
    /// Python's `a // b` on integers: rounds towards minus infinity.
    FloorDiv,
    /// Largest integer not above a float.
    FloorToInt,
    /// `a >= b`.
    Ge,
    /// `a > b`.
    Gt,
    /// Its argument. [`Expr::call`](crate::Expr::call) removes it.
    Identity,
    /// `a / b` of integers, as a float.
    IntTrueDiv,
    /// 1 if the given sizes and strides (sizes first) describe a dense tensor without overlaps.
    IsNonOverlappingAndDenseIndicator,
    /// `a << b`.
    LShift,
    /// `a <= b`.
    Le,
    /// `a < b`.
    Lt,
    /// `a % b` for arguments that are not negative. It is evaluated as in Python.
    Mod,
    /// `(a // b) % c`.
    ModularIndexing,
    /// `a != b`.
    Ne,
    /// Logical negation.
    Not,
    /// Arc cosine.
    Acos,
    /// Arc sine.
    Asin,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Arc tangent.
    Atan,
    /// Cosine.
    Cos,
    /// Hyperbolic cosine.
    Cosh,
    /// Exponential.
    Exp,
    /// Natural logarithm.
    Log,
    /// Binary logarithm.
    Log2,
    /// Sine.
    Sin,
    /// Hyperbolic sine.
    Sinh,
    /// Square root.
    Sqrt,
    /// Tangent.
    Tan,
    /// Hyperbolic tangent.
    Tanh,
    /// Logical disjunction of any number of arguments.
    Or,
    /// Integer power with an exponent that is not negative.
    PowByNatural,
    /// Python's `a % b`, which has the sign of the divisor.
    PythonMod,
    /// `a >> b`.
    RShift,
    /// `round(x, digits)`.
    RoundDecimal,
    /// `round(x)`: halves go to the even neighbour.
    RoundToInt,
    /// An integer as a float.
    ToFloat,
    /// A float rounded to float32. PyTorch has no such function: sizes that go through tensors of
    /// float32 need it.
    ToSingle,
    /// A float without its fraction, still a float.
    TruncToFloat,
    /// A float without its fraction, as an integer.
    TruncToInt,
    /// `b if a else c`.
    Where,
    /// sympy's `ceiling`.
    Ceiling,
    /// sympy's `floor`.
    Floor,
    /// The largest of any number of arguments.
    Max,
    /// The smallest of any number of arguments.
    Min,
}

/// The names of each function. The first is printed; all are read.
const NAMES: &[(Func, &[&str])] = &[
    (Func::Abs, &["Abs", "abs"]),
    (Func::And, &["And"]),
    (Func::BitwiseAnd, &["BitwiseFn_bitwise_and", "bitwise_and", "BitwiseAnd"]),
    (Func::BitwiseOr, &["BitwiseFn_bitwise_or", "bitwise_or", "BitwiseOr"]),
    (Func::BitwiseXor, &["BitwiseFn_bitwise_xor", "bitwise_xor", "BitwiseXor"]),
    (Func::CeilDiv, &["CeilDiv"]),
    (Func::CeilToInt, &["CeilToInt"]),
    (Func::CleanDiv, &["CleanDiv"]),
    (Func::Eq, &["Eq", "Equality"]),
    (Func::FloatPow, &["FloatPow"]),
    (Func::FloatTrueDiv, &["FloatTrueDiv", "TrueDiv"]),
    (Func::FloorDiv, &["FloorDiv"]),
    (Func::FloorToInt, &["FloorToInt"]),
    (Func::Ge, &["Ge", "GreaterThan"]),
    (Func::Gt, &["Gt", "StrictGreaterThan"]),
    (Func::Identity, &["Identity"]),
    (Func::IntTrueDiv, &["IntTrueDiv"]),
    (Func::IsNonOverlappingAndDenseIndicator, &["IsNonOverlappingAndDenseIndicator"]),
    (Func::LShift, &["LShift"]),
    (Func::Le, &["Le", "LessThan"]),
    (Func::Lt, &["Lt", "StrictLessThan"]),
    (Func::Mod, &["Mod"]),
    (Func::ModularIndexing, &["ModularIndexing"]),
    (Func::Ne, &["Ne", "Unequality", "Xor"]),
    (Func::Not, &["Not"]),
    (Func::Acos, &["OpaqueUnaryFn_acos", "acos"]),
    (Func::Asin, &["OpaqueUnaryFn_asin", "asin"]),
    (Func::Asinh, &["OpaqueUnaryFn_asinh", "asinh"]),
    (Func::Atan, &["OpaqueUnaryFn_atan", "atan"]),
    (Func::Cos, &["OpaqueUnaryFn_cos", "cos"]),
    (Func::Cosh, &["OpaqueUnaryFn_cosh", "cosh"]),
    (Func::Exp, &["OpaqueUnaryFn_exp", "exp"]),
    (Func::Log, &["OpaqueUnaryFn_log", "log"]),
    (Func::Log2, &["OpaqueUnaryFn_log2", "log2"]),
    (Func::Sin, &["OpaqueUnaryFn_sin", "sin"]),
    (Func::Sinh, &["OpaqueUnaryFn_sinh", "sinh"]),
    (Func::Sqrt, &["OpaqueUnaryFn_sqrt"]),
    (Func::Tan, &["OpaqueUnaryFn_tan", "tan"]),
    (Func::Tanh, &["OpaqueUnaryFn_tanh", "tanh"]),
    (Func::Or, &["Or"]),
    (Func::PowByNatural, &["PowByNatural"]),
    (Func::PythonMod, &["PythonMod"]),
    (Func::RShift, &["RShift"]),
    (Func::RoundDecimal, &["RoundDecimal"]),
    (Func::RoundToInt, &["RoundToInt", "round"]),
    (Func::ToFloat, &["ToFloat"]),
    (Func::ToSingle, &["ToSingle"]),
    (Func::TruncToFloat, &["TruncToFloat"]),
    (Func::TruncToInt, &["TruncToInt", "Trunc"]),
    (Func::Where, &["Where"]),
    (Func::Ceiling, &["ceiling"]),
    (Func::Floor, &["floor"]),
    (Func::Max, &["Max", "max"]),
    (Func::Min, &["Min", "min"]),
];

impl Func {
    /// The name PyTorch prints.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(func, _)| *func == self)
            .and_then(|(_, names)| names.first())
            .map_or("", |name| *name)
    }

    /// The function with this name in sympy's `str` or `srepr`.
    pub fn from_name(name: &str) -> Option<Func> {
        NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(func, _)| *func)
    }

    /// Whether the function takes this number of arguments.
    pub fn takes(self, arguments: usize) -> bool {
        use Func::*;
        match self {
            And | Or => true,
            Max | Min => arguments > 0,
            IsNonOverlappingAndDenseIndicator => arguments.is_multiple_of(2),
            Where | ModularIndexing => arguments == 3,
            BitwiseAnd | BitwiseOr | BitwiseXor | CeilDiv | CleanDiv | Eq | FloatPow
            | FloatTrueDiv | FloorDiv | Ge | Gt | IntTrueDiv | LShift | Le | Lt | Mod | Ne
            | PowByNatural | PythonMod | RShift | RoundDecimal => arguments == 2,
            _ => arguments == 1,
        }
    }

    /// Whether the result is a truth value, 0 or 1.
    pub fn is_boolean(self) -> bool {
        use Func::*;
        matches!(self, And | Or | Not | Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// Whether the result is a float for all arguments.
    pub(crate) fn is_float(self) -> bool {
        use Func::*;
        matches!(
            self,
            FloatPow
                | FloatTrueDiv
                | IntTrueDiv
                | RoundDecimal
                | ToFloat
                | ToSingle
                | TruncToFloat
                | Acos
                | Asin
                | Asinh
                | Atan
                | Cos
                | Cosh
                | Exp
                | Log
                | Log2
                | Sin
                | Sinh
                | Sqrt
                | Tan
                | Tanh
        )
    }

    /// Whether the result is an integer if all arguments are integers, and may be a float
    /// otherwise.
    pub(crate) fn keeps_kind(self) -> bool {
        matches!(self, Func::Abs | Func::Max | Func::Min | Func::Where)
    }
}
