//! The element type that a functional operator gives, where it may differ from that of the tensor
//! that the result is written into.

use crate::graph::{Argument, Graph, Name, Node};
use pt2onnx_tensor::{Category, DType, result_type as promote};

/// How an operator's result type follows from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The rules, and operators that PyTorch lets write into a tensor of another type.
const RULES: &[(Rule, &str)] = &[
    (
        Bool,
        "all any eq ge greater greater_equal gt isneginf isposinf le less less_equal \
         logical_and logical_not logical_or logical_xor lt ne not_equal signbit",
    ),
    (
        Float,
        "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 \
         atanh copysign cos cosh deg2rad digamma div divide erf erfc erfinv exp exp2 expm1 i0 \
         lgamma log log10 log1p log2 logit polygamma rad2deg reciprocal rsqrt sigmoid sin sinc \
         sinh sqrt tan tanh true_divide xlogy",
    ),
    (
        Promote,
        "__and__ __lshift__ __or__ __rshift__ __xor__ add addcdiv addcmul bitwise_and \
         bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cat ceil \
         clamp clamp_max clamp_min clip concat concatenate fix floor floor_divide fmax fmin \
         fmod gcd hypot lcm maximum minimum mul multiply neg negative nextafter pow relu \
         remainder round sign square stack sub subtract trunc where",
    ),
    (Sum, "cumprod cumsum prod sum"),
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
    let is_this = |operator: &str| *operator == *node.target.name;
    let (rule, _) = RULES.iter().find(|(_, of)| of.split_whitespace().any(is_this))?;
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
