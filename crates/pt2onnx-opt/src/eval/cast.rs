//! Evaluates `Cast`, `CastLike` and `Identity`.

use super::{
    Call, Eval, Row,
    elements::{Elements, Power, Rounding, tensor_of},
};
use pt2onnx_ir::{attrs, schema};
use pt2onnx_tensor::{DType, Tensor};

pub(super) static OPS: &[Row] = &[
    ("Cast", Eval::One(|c| cast(c, schema::dtype(attrs::Cast::to(c.node).ok()?)?))),
    ("CastLike", Eval::One(|c| cast(c, c.input(1)?.dtype()))),
    ("Identity", Eval::One(|c| c.input(0).cloned())),
];

fn cast(call: &Call, to: DType) -> Option<Tensor> {
    let x = call.input(0)?;
    if x.dtype() == to {
        return Some(x.clone());
    }
    call.room(to, x.shape())?;
    // Both operators have the same attributes.
    let given = attrs::Cast::read(call.node).ok()?;
    let power = match given.round_mode {
        "up" => Power::Up,
        "down" => Power::Down,
        "nearest" => Power::Nearest,
        _ => return None,
    };
    let rounding = Rounding { saturate: given.saturate, power };
    tensor_of(to, x.shape(), Elements::of(x)?.iter().map(Some), rounding)
}
