//! Fuses products of matrices with the sums and transposes around them into `Gemm`.

use crate::{
    analysis::{known, tensor_type},
    fusion::Fusion,
    pattern::{Match, PatternError},
};
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// `A B + C` of matrices, and transposed operands of it.
pub(crate) fn gemm_fusions() -> Result<Vec<Fusion>, PatternError> {
    Ok(vec![
        Fusion::new("Add(p:MatMul(a, b), c)", |cx, found| {
            let (a, b, c) = (found.value("a")?, found.value("b")?, found.value("c")?);
            (matrix(cx, a)? && matrix(cx, b)? && adds(cx, found, c)?)
                .then(|| cx.gemm(a, b, c, attrs::Gemm::default()))
        })?,
        Fusion::new("g:Gemm(t:Transpose(x), b)", |cx, found| untransposed(cx, found, 0))?,
        Fusion::new("g:Gemm(a, t:Transpose(x))", |cx, found| untransposed(cx, found, 1))?,
        Fusion::new("Add(p:Gemm(a, b), c)", |cx, found| {
            let (node, c) = (found.node(cx, "p")?, found.value("c")?);
            if node.inputs().len() > 2 || !adds(cx, found, c)? {
                return None;
            }
            let attributes = node.attributes.iter().filter(|(n, _)| n != "beta");
            let inputs = [node.inputs()[0], node.inputs()[1], Some(c)];
            Some(cx.emit1("Gemm", &inputs, attributes.cloned().collect()))
        })?,
    ])
}

/// Whether the value is a matrix of floats.
fn matrix(cx: &Builder, x: Value) -> Option<bool> {
    let model = cx.model();
    let (dtype, shape) = tensor_type(&model, x)?;
    let float = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    Some(float && shape.len() == 2)
}

/// Whether `c` broadcasts to the shape of the product `p` and not beyond it: each of its sizes is 1
/// or known to be the product's.
fn adds(cx: &Builder, found: &Match, c: Value) -> Option<bool> {
    let (c, product) = (cx.known_shape(c)?, cx.known_shape(found.value("p")?)?);
    let same = |(a, b): (&Expr, &Expr)| a.as_int() == Some(1) || a == b && known(a);
    Some(product.len() == 2 && c.len() <= 2 && c.iter().rev().zip(product.iter().rev()).all(same))
}

/// A `Gemm` that transposes input `i` itself.
fn untransposed(cx: &Builder, found: &Match, i: usize) -> Option<Value> {
    let (mut node, transpose) = (found.node(cx, "g")?, found.node(cx, "t")?);
    if attrs::Transpose::read(&transpose).ok()?.perm.is_some_and(|p| p != [1, 0]) {
        return None;
    }
    let mut inputs = node.inputs().to_vec();
    inputs[i] = transpose.input(0);
    let given = attrs::Gemm::read(&node).ok()?;
    let (name, transposed) = match i {
        0 => ("transA", given.trans_a),
        _ => ("transB", given.trans_b),
    };
    node.remove_attribute(name);
    node.set_attribute(name, i64::from(!transposed));
    Some(cx.emit1("Gemm", &inputs, node.attributes))
}
