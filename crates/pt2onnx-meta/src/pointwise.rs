//! Arithmetic and losses: the promoted type, and the sizes to which the operands broadcast.

use crate::stand_ins::{broadcast, typed, unknown};
use pt2onnx_ir::Value;
use pt2onnx_lowering::{AtenOp, Cx, Lowered, TensorOrScalar, arguments, op};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, promote_types};

pub(crate) static RULES: &[AtenOp] = &[
    op!(aten::add_Scalar, promoted),
    op!(aten::add_Tensor, promoted),
    op!(aten::addcdiv, three),
    op!(aten::addcmul, three),
    op!(aten::binary_cross_entropy, loss),
    op!(aten::binary_cross_entropy_with_logits, loss_of_logits),
    op!(aten::cross, cross),
    op!(aten::div_Scalar, divided),
    op!(aten::div_Tensor, divided),
    op!(aten::divide_Scalar, divided),
    op!(aten::divide_Tensor, divided),
    op!(aten::float_power_Scalar, doubled),
    op!(aten::float_power_Tensor_Scalar, doubled),
    op!(aten::float_power_Tensor_Tensor, doubled),
    op!(aten::hinge_embedding_loss, loss),
    op!(aten::l1_loss, loss_of_distances),
    op!(aten::ldexp_Tensor, divided),
    op!(aten::lerp_Scalar, promoted),
    op!(aten::lerp_Tensor, three),
    op!(aten::linalg_cross, cross),
    op!(aten::logaddexp, divided),
    op!(aten::margin_ranking_loss, ranking_loss),
    op!(aten::mul_Scalar, promoted),
    op!(aten::mul_Tensor, promoted),
    op!(aten::multiply_Scalar, promoted),
    op!(aten::multiply_Tensor, promoted),
    op!(aten::poisson_nll_loss, poisson_loss),
    op!(aten::pow_Scalar, promoted),
    op!(aten::pow_Tensor_Scalar, promoted),
    op!(aten::pow_Tensor_Tensor, promoted),
    op!(aten::rsub_Scalar, promoted),
    op!(aten::rsub_Tensor, promoted),
    op!(aten::sub_Scalar, promoted),
    op!(aten::sub_Tensor, promoted),
    op!(aten::subtract_Scalar, promoted),
    op!(aten::subtract_Tensor, promoted),
    op!(aten::true_divide_Scalar, divided),
    op!(aten::true_divide_Tensor, divided),
    op!(aten::where_ScalarOther, chosen),
    op!(aten::where_ScalarSelf, chosen),
    op!(aten::where_self, chosen),
];

arguments! {
    struct Loss { input: Value, target: Value, reduction: i64 }
    struct LogitLoss { input: Value, target: Value, weight: Option<Value>, pos_weight: Option<Value>, reduction: i64 }
    struct RankingLoss { input1: Value, input2: Value, target: Value, reduction: i64 }
}

/// The sizes of all operands together.
fn sizes(cx: &Cx, operands: &[TensorOrScalar]) -> Vec<Expr> {
    let shape = |o: &TensorOrScalar| match o {
        TensorOrScalar::Tensor(v) => cx.shape(*v).into_iter().collect(),
        _ => Vec::new(),
    };
    broadcast(cx, &operands.iter().map(shape).collect::<Vec<_>>())
}

fn promoted(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let operands = [a, b];
    Ok(typed(cx, cx.result_type(&operands), &sizes(cx, &operands)))
}

fn three(cx: &Cx, a: Value, b: Value, c: Value) -> Lowered {
    let operands = [a.into(), b.into(), c.into()];
    Ok(typed(cx, cx.result_type(&operands), &sizes(cx, &operands)))
}

/// Integers become floats.
fn divided(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let operands = [a, b];
    Ok(typed(cx, cx.float_type(cx.result_type(&operands)), &sizes(cx, &operands)))
}

/// float64 or its complex type.
fn doubled(cx: &Cx, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let operands = [a, b];
    Ok(typed(cx, promote_types(cx.result_type(&operands), DType::F64), &sizes(cx, &operands)))
}

fn cross(cx: &Cx, a: Value, b: Value) -> Lowered {
    promoted(cx, a.into(), b.into())
}

fn chosen(cx: &Cx, condition: Value, a: TensorOrScalar, b: TensorOrScalar) -> Lowered {
    let dtype = cx.result_type(&[a.clone(), b.clone()]);
    Ok(typed(cx, dtype, &sizes(cx, &[condition.into(), a, b])))
}

/// Reduction 0 leaves all elements.
fn reduced(cx: &Cx, operands: &[TensorOrScalar], reduction: i64) -> Lowered {
    let size = if reduction == 0 { sizes(cx, operands) } else { Vec::new() };
    Ok(typed(cx, cx.result_type(operands), &size))
}

fn loss(cx: &Cx, args: Loss) -> Lowered {
    reduced(cx, &[args.input.into(), args.target.into()], args.reduction)
}

/// As [`loss`]. Distances of complex numbers are real.
fn loss_of_distances(cx: &Cx, args: Loss) -> Lowered {
    let found = loss(cx, args)?;
    Ok(typed(cx, cx.dtype(found).to_real(), &cx.shape(found)))
}

/// As [`loss`], and integers become floats.
fn poisson_loss(cx: &Cx, args: Loss) -> Lowered {
    let found = loss(cx, args)?;
    Ok(typed(cx, cx.float_type(cx.dtype(found)), &cx.shape(found)))
}

fn loss_of_logits(cx: &Cx, args: LogitLoss) -> Lowered {
    let weights = [args.weight, args.pos_weight].into_iter().flatten();
    let operands: Vec<Value> = [args.input, args.target].into_iter().chain(weights).collect();
    if cx.dtype(args.input) != cx.dtype(args.target) {
        return unknown("its operands have several types");
    }
    let found =
        reduced(cx, &operands.into_iter().map(Into::into).collect::<Vec<_>>(), args.reduction)?;
    Ok(typed(cx, cx.dtype(args.input), &cx.shape(found)))
}

fn ranking_loss(cx: &Cx, args: RankingLoss) -> Lowered {
    let operands = [args.input1, args.input2, args.target].map(Into::into);
    let found = reduced(cx, &operands, args.reduction)?;
    Ok(typed(cx, cx.float_type(cx.dtype(found)), &cx.shape(found)))
}
