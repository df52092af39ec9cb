//! Types of what ONNX Runtime's own operators give: those that its quantiser, its optimiser and its
//! model builder write.

use crate::opaque;
use pt2onnx_ir::{Builder, InsertPoint, Node, NodeId, Type, Value, schema::OF_ONNX_RUNTIME};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The domain of most of these operators.
const DOMAIN: &str = "com.microsoft";

/// Whether it is such a node. Those in ONNX's domain are opaque at opsets that lack them.
pub(crate) fn has(node: &Node) -> bool {
    node.domain == DOMAIN || opaque::is_opaque(node) && OF_ONNX_RUNTIME.contains(&node.op())
}

#[derive(Clone, Copy)]
enum Element {
    Of(usize),
    /// The element type of a zero point; without this input, the result is not quantised.
    OfZeroPoint(usize),
    Is(DType),
}
use Element::{Is, Of, OfZeroPoint};

/// An operator, ONNX's operator with the same sizes of some inputs, and the element type.
type Row = (&'static str, &'static str, &'static [usize], Element);

const ALIKE: &[Row] = &[
    ("BiasGelu", "Identity", &[0], Of(0)),
    ("BranchwiseRMSNorm", "Identity", &[0], Of(0)),
    ("CausalConvWithState", "Identity", &[0], Of(0)),
    ("DequantizeLinear", "Identity", &[0], Of(1)),
    ("DynamicQuantizeMatMul", "MatMul", &[0, 1], Is(DType::F32)),
    ("FastGelu", "Identity", &[0], Of(0)),
    ("FusedConv", "Conv", &[0, 1], Of(0)),
    ("FusedGemm", "Gemm", &[0, 1], Of(0)),
    ("Gelu", "Identity", &[0], Of(0)),
    ("LayerNormalization", "Identity", &[0], Of(1)),
    ("MatMulIntegerToFloat", "MatMul", &[0, 1], Is(DType::F32)),
    ("QGemm", "Gemm", &[0, 3], OfZeroPoint(8)),
    ("QLinearAdd", "Add", &[0, 3], Of(0)),
    ("QLinearAveragePool", "AveragePool", &[0], Of(0)),
    ("QLinearGlobalAveragePool", "GlobalAveragePool", &[0], Of(0)),
    ("QLinearLeakyRelu", "Identity", &[0], Of(0)),
    ("QLinearMul", "Mul", &[0, 3], Of(0)),
    ("QLinearSigmoid", "Identity", &[0], Of(0)),
    ("QLinearSoftmax", "Identity", &[0], Of(0)),
    ("QLinearWhere", "Where", &[0, 1, 4], Of(1)),
    ("QuantizeLinear", "Identity", &[0], Of(2)),
    ("QuickGelu", "Identity", &[0], Of(0)),
    ("RotaryEmbedding", "Identity", &[0], Of(0)),
    ("SimplifiedLayerNormalization", "Identity", &[0], Of(1)),
    ("SkipLayerNormalization", "Identity", &[0], Of(0)),
    ("SkipSimplifiedLayerNormalization", "Identity", &[0], Of(0)),
];

/// The type of a node's first output, where it follows from its inputs and attributes.
pub(crate) fn types(cx: &Builder, id: NodeId) -> Vec<Option<Type>> {
    vec![first(cx, id)]
}

fn first(cx: &Builder, id: NodeId) -> Option<Type> {
    let node = cx.model()[id].clone();
    // Sizes in another order, and windows that versions count differently.
    let set = |name| node.read::<i64>(name).is_ok_and(|value| value.is_some_and(|v| v != 0));
    if set("channels_last") || set("ceil_mode") {
        return None;
    }
    match node.op() {
        // Each part comes with its scale and zero point, after those of the result.
        "QLinearConcat" => {
            let parts: Vec<Value> =
                node.inputs().iter().skip(2).step_by(3).copied().collect::<Option<_>>()?;
            let sizes = sizes(cx, id, "Concat", &parts)?;
            Some(Type::tensor(cx.known_dtype(node.input(1)?)?, sizes))
        }
        // `Attention` has packed projections, `MultiHeadAttention` has three tensors.
        "Attention" => {
            let sizes =
                node.read::<&[i64]>("qkv_hidden_sizes").ok()?.map(|all| all.get(2).copied());
            let packed = || Some(cx.known_shape(node.input(1)?)?.last()?.as_int()? / 3);
            let last = sizes.unwrap_or_else(packed)?;
            wide(cx, node.input(0)?, Expr::int(last))
        }
        "MultiHeadAttention" => {
            let values = cx.known_shape(node.input(2)?).filter(|values| values.len() == 3)?;
            wide(cx, node.input(0)?, values.last()?.clone())
        }
        "EmbedLayerNormalization" => {
            let (mut sizes, words) = (cx.known_shape(node.input(0)?)?.to_vec(), node.input(2)?);
            sizes.push(cx.known_shape(words)?.last()?.clone());
            Some(Type::tensor(cx.known_dtype(words)?, sizes))
        }
        // The weight is packed: an attribute specifies its number of rows.
        "MatMulNBits" => wide(cx, node.input(0)?, Expr::int(node.read::<i64>("N").ok()??)),
        op => {
            let (_, alike, inputs, element) = ALIKE.iter().find(|(name, ..)| *name == op)?;
            let taken = inputs.iter().map(|&i| node.input(i)).collect::<Option<Vec<_>>>()?;
            let dtype = match *element {
                Is(dtype) => dtype,
                OfZeroPoint(i) if node.input(i).is_none() => DType::F32,
                Of(i) | OfZeroPoint(i) => cx.known_dtype(node.input(i)?)?,
            };
            Some(Type::tensor(dtype, sizes(cx, id, alike, &taken)?))
        }
    }
}

/// The type of a tensor whose last size is another one.
fn wide(cx: &Builder, x: Value, last: Expr) -> Option<Type> {
    let mut sizes = cx.known_shape(x)?.to_vec();
    *sizes.last_mut()? = last;
    Some(Type::tensor(cx.known_dtype(x)?, sizes))
}

/// The sizes that one of ONNX's operators gives of these inputs, with the node's attributes.
fn sizes(cx: &Builder, id: NodeId, op: &'static str, inputs: &[Value]) -> Option<Vec<Expr>> {
    let inputs: Vec<Option<Value>> = inputs.iter().copied().map(Some).collect();
    let node = cx.edit(|model| {
        let attributes = model[id].attributes.clone();
        model.add_node(InsertPoint::Before(id), op, &inputs, attributes, 1)
    });
    let types = cx.inferred(node);
    cx.edit(|model| model.erase(node));
    match types.ok()?.into_iter().next()?? {
        Type::Tensor(tensor) => tensor.shape,
        _ => None,
    }
}
