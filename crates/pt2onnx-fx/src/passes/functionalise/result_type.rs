//! The element type that a functional operator gives, where it may differ from that of the tensor
//! that the result is written into.

use crate::graph::{Argument, Graph, Name, Node};
use pt2onnx_tensor::{Category, DType, result_type as promote};

/// How an operator's result type follows from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// They are compared or tested: bool.
    Bool,
    /// As `Promote`; float32 for integers.
    Float,
    /// Their common type.
    Promote,
    /// The `dtype` that is given; that of the operand; int64 for integers.
    Sum,
}

use Rule::{Bool, Float, Promote, Sum};

/// Operators that PyTorch lets write into a tensor of another type, and their rules. Sorted.
static RULES: &[(&str, Rule)] = &[
    ("__and__", Promote),
    ("__lshift__", Promote),
    ("__or__", Promote),
    ("__rshift__", Promote),
    ("__xor__", Promote),
    ("acos", Float),
    ("acosh", Float),
    ("add", Promote),
    ("addcdiv", Promote),
    ("addcmul", Promote),
    ("all", Bool),
    ("any", Bool),
    ("arccos", Float),
    ("arccosh", Float),
    ("arcsin", Float),
    ("arcsinh", Float),
    ("arctan", Float),
    ("arctan2", Float),
    ("arctanh", Float),
    ("asin", Float),
    ("asinh", Float),
    ("atan", Float),
    ("atan2", Float),
    ("atanh", Float),
    ("bitwise_and", Promote),
    ("bitwise_left_shift", Promote),
    ("bitwise_not", Promote),
    ("bitwise_or", Promote),
    ("bitwise_right_shift", Promote),
    ("bitwise_xor", Promote),
    ("cat", Promote),
    ("ceil", Promote),
    ("clamp", Promote),
    ("clamp_max", Promote),
    ("clamp_min", Promote),
    ("clip", Promote),
    ("concat", Promote),
    ("concatenate", Promote),
    ("copysign", Float),
    ("cos", Float),
    ("cosh", Float),
    ("cumprod", Sum),
    ("cumsum", Sum),
    ("deg2rad", Float),
    ("digamma", Float),
    ("div", Float),
    ("divide", Float),
    ("eq", Bool),
    ("erf", Float),
    ("erfc", Float),
    ("erfinv", Float),
    ("exp", Float),
    ("exp2", Float),
    ("expm1", Float),
    ("fix", Promote),
    ("floor", Promote),
    ("floor_divide", Promote),
    ("fmax", Promote),
    ("fmin", Promote),
    ("fmod", Promote),
    ("gcd", Promote),
    ("ge", Bool),
    ("greater", Bool),
    ("greater_equal", Bool),
    ("gt", Bool),
    ("hypot", Promote),
    ("i0", Float),
    ("isneginf", Bool),
    ("isposinf", Bool),
    ("lcm", Promote),
    ("le", Bool),
    ("less", Bool),
    ("less_equal", Bool),
    ("lgamma", Float),
    ("log", Float),
    ("log10", Float),
    ("log1p", Float),
    ("log2", Float),
    ("logical_and", Bool),
    ("logical_not", Bool),
    ("logical_or", Bool),
    ("logical_xor", Bool),
    ("logit", Float),
    ("lt", Bool),
    ("maximum", Promote),
    ("minimum", Promote),
    ("mul", Promote),
    ("multiply", Promote),
    ("ne", Bool),
    ("neg", Promote),
    ("negative", Promote),
    ("nextafter", Promote),
    ("not_equal", Bool),
    ("polygamma", Float),
    ("pow", Promote),
    ("prod", Sum),
    ("rad2deg", Float),
    ("reciprocal", Float),
    ("relu", Promote),
    ("remainder", Promote),
    ("round", Promote),
    ("rsqrt", Float),
    ("sigmoid", Float),
    ("sign", Promote),
    ("signbit", Bool),
    ("sin", Float),
    ("sinc", Float),
    ("sinh", Float),
    ("sqrt", Float),
    ("square", Promote),
    ("stack", Promote),
    ("sub", Promote),
    ("subtract", Promote),
    ("sum", Sum),
    ("tan", Float),
    ("tanh", Float),
    ("true_divide", Float),
    ("trunc", Promote),
    ("where", Promote),
    ("xlogy", Float),
];

/// Parameters that take part in type promotion. `alpha`, `value` and `dim` do not.
const OPERANDS: &[&str] =
    &["self", "other", "tensor1", "tensor2", "exponent", "min", "max", "tensors"];

/// The type of the result of `node`, which must be a functional operator; `None` if there is no
/// rule for it: the result has the type of what it is written into then.
pub(super) fn result_type(node: &Node, graph: &Graph) -> Option<DType> {
    if &*node.target.namespace != "aten" {
        return None;
    }
    let at = RULES.binary_search_by_key(&&*node.target.name, |(name, _)| name).ok()?;
    let (_, rule) = RULES.get(at)?;
    if *rule == Bool {
        // uint8 was PyTorch's truth value before it had one.
        let keeps = matches!(&*node.target.name, "all" | "any");
        let of = operands(node, graph).next().map(|(dtype, _)| dtype);
        return Some(if keeps && of == Some(DType::U8) { DType::U8 } else { DType::Bool });
    }
    if let (Sum, Some(Argument::DType(dtype))) = (rule, node.arg("dtype")) {
        return Some(*dtype);
    }
    let common = promote(operands(node, graph))?;
    let whole = !common.is_float() && !common.is_complex();
    let rounds = matches!(node.arg("rounding_mode"), Some(Argument::String(_)));
    Some(match rule {
        Float if whole && !rounds => DType::F32,
        Sum if whole => DType::I64,
        _ => common,
    })
}

/// The element types of the operands, and how much each counts.
fn operands<'a>(
    node: &'a Node,
    graph: &'a Graph,
) -> impl Iterator<Item = (DType, Category)> + use<'a> {
    let args = node.args.iter().filter(|a| OPERANDS.contains(&&*a.name));
    let tensor = |name: &Name| {
        let meta = graph.tensor(name)?;
        let category = if meta.sizes.is_empty() { Category::Zero } else { Category::Dim };
        Some((meta.dtype, category))
    };
    args.flat_map(move |arg| -> Vec<(DType, Category)> {
        let number = |dtype| vec![(dtype, Category::Number)];
        match &arg.value {
            Argument::Bool(_) | Argument::SymBool(_) => number(DType::Bool),
            Argument::Int(_) | Argument::SymInt(_) => number(DType::I64),
            Argument::Float(_) | Argument::SymFloat(_) => number(DType::F32),
            Argument::Complex(..) => number(DType::C64),
            Argument::Tensors(names) => names.iter().filter_map(tensor).collect(),
            value => value.name().and_then(tensor).into_iter().collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_call;

    #[test]
    fn the_rules_are_sorted() {
        assert!(RULES.is_sorted());
    }

    #[test]
    fn types_of_results() {
        for (call, expected) in [
            ("add.Tensor(self = x: f16[2], other = y: f32[2], alpha = 2.5)", "float32"),
            ("add.Tensor(self = x: i64[2], other = 1.5)", "float32"),
            ("add.Tensor(self = x: f16[2], other = y: f64[])", "float16"),
            ("div.Tensor(self = x: i32[2], other = 2)", "float32"),
            ("div.Tensor_mode(self = x: i32[2], other = 2, rounding_mode = 'floor')", "int32"),
            ("gt.Scalar(self = x: f16[2], other = 0)", "bool"),
            ("all.default(self = x: u8[2])", "uint8"),
            ("cumsum.default(self = x: i32[2], dim = 0)", "int64"),
            ("cumsum.default(self = x: i32[2], dim = 0, dtype = torch.int32)", "int32"),
            ("addcmul.default(self = x: f32[2], tensor1 = y: f64[2], tensor2 = x)", "float64"),
            ("cat.default(tensors = [x: f16[2], y: f32[2]])", "float32"),
            ("sqrt.default(self = x: i64[2])", "float32"),
            ("sqrt.default(self = x: f64[2])", "float64"),
            ("mm.default(self = x: f64[2, 2], mat2 = x)", "no rule"),
        ] {
            let text = format!("aten.{call} -> f32[2]");
            let program = parse_call(&text).unwrap_or_else(|e| panic!("{e}"));
            let found = result_type(&program.graph.nodes[0], &program.graph);
            let found = found.map_or("no rule", DType::name);
            assert_eq!(found, expected, "{text}");
        }
    }
}
