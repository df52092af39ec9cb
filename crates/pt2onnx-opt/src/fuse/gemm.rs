//! Fuses products of matrices with the sums and transposes around them into `Gemm`.

use super::{Because, Fusion, Match, NoFusion, Pass, Patterns, Run};
use crate::{analysis::known, ort_reserved::is_quantized};
use pt2onnx_ir::{Builder, Value, attrs};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

pub(crate) static GEMM: Pass = Pass {
    name: "gemm",
    description: "Replaces MatMul and Add by Gemm. Merges Transpose of an operand into Gemm.",
    precondition: "The operands are matrices, and the added value does not broadcast the product.",
    run: Run::fusions(fusions),
    ..Pass::FUSION
};

/// `A B + C` of matrices, and transposed operands of it.
fn fusions() -> Patterns {
    Ok(vec![
        Fusion::new("Add(p:MatMul(a, b), c)", |cx, found| {
            let (a, b, c) = (found.get("a")?, found.get("b")?, found.get("c")?);
            let matrices = [a, b].map(|x| matrix(cx, x)) == [Some(true); 2];
            matrices.because("the operands are not matrices of floats")?;
            let quantized = [a, b].iter().all(|&x| is_quantized(&cx.model(), x));
            (!quantized).because("ONNX Runtime makes the product one of integers")?;
            adds(cx, found, c)?;
            Ok(cx.gemm(a, b, c, attrs::Gemm::default()))
        })?,
        Fusion::new("g:Gemm(t:Transpose(x), b)", |cx, found| untransposed(cx, found, 0))?,
        Fusion::new("g:Gemm(a, t:Transpose(x))", |cx, found| untransposed(cx, found, 1))?,
        Fusion::new("Add(p:Gemm(a, b), c)", |cx, found| {
            let (node, c) = (found.get_node(cx, "p")?, found.get("c")?);
            (node.inputs().len() <= 2).because("the Gemm has a bias")?;
            adds(cx, found, c)?;
            let attributes = node.attributes.iter().filter(|(n, _)| n != "beta");
            let inputs = [node.inputs()[0], node.inputs()[1], Some(c)];
            Ok(cx.emit1("Gemm", &inputs, attributes.cloned().collect()))
        })?,
    ])
}

fn matrix(cx: &Builder, x: Value) -> Option<bool> {
    let model = cx.model();
    let (dtype, shape) = model.tensor_type(x)?;
    let float = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    Some(float && shape.len() == 2)
}

/// Whether `c` broadcasts to the shape of the product `p`: each size is 1 or the product's.
fn adds(cx: &Builder, found: &Match, c: Value) -> Result<(), NoFusion> {
    let same = |(a, b): (&Expr, &Expr)| a.as_int() == Some(1) || a == b && known(a);
    let shapes = cx.known_shape(c).zip(cx.known_shape(found.get("p")?));
    let fits = shapes.is_some_and(|(c, product)| {
        let all = c.iter().rev().zip(product.iter().rev()).all(same);
        product.len() == 2 && c.len() <= 2 && all
    });
    fits.because("the added value is not known to have the sizes of the product")
}

/// A `Gemm` that transposes input `i` itself.
fn untransposed(cx: &Builder, found: &Match, i: usize) -> Result<Value, NoFusion> {
    let (mut node, transpose) = (found.get_node(cx, "g")?, found.get_node(cx, "t")?);
    let perm = attrs::Transpose::read(&transpose).map_err(|_| NoFusion::NoMatch)?.perm;
    if perm.is_some_and(|p| p != [1, 0]) {
        return Err(NoFusion::NoEffect);
    }
    let mut inputs = node.inputs().to_vec();
    inputs[i] = transpose.input(0);
    let given = attrs::Gemm::read(&node).map_err(|_| NoFusion::NoMatch)?;
    let (name, transposed) = match i {
        0 => ("transA", given.trans_a),
        _ => ("transB", given.trans_b),
    };
    node.remove_attribute(name);
    node.set_attribute(name, i64::from(!transposed));
    Ok(cx.emit1("Gemm", &inputs, node.attributes))
}
