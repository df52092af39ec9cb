//! Operators that compute each element of the result from one element of each input.

/// Those with one input; others, as the bounds of `Clip`, are scalars.
const UNARY: &[&str] = &[
    "Abs",
    "Cast",
    "Ceil",
    "Clip",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tanh",
];

/// Those whose inputs broadcast.
const BROADCASTING: &[&str] = &[
    "Add",
    "And",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Sum",
    "Where",
    "Xor",
];

pub(crate) fn is_unary(op: &str) -> bool {
    UNARY.contains(&op)
}

pub(crate) fn is_broadcasting(op: &str) -> bool {
    BROADCASTING.contains(&op)
}
