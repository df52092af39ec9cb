//! Devices, and the state in which PyTorch runs.

use crate::{
    builtins::Call,
    eval::{Evaluator, Step},
    value::Value,
};
use pt2onnx_fx::Device;
use std::sync::Arc;

type Found = Step<Option<Value>>;

/// An operator without effect on the program.
pub(crate) fn nothing(_: &mut Evaluator<'_>, _: Call<'_>) -> Found {
    Ok(Some(Value::None))
}

pub(crate) fn yes(_: &mut Evaluator<'_>, _: Call<'_>) -> Found {
    Ok(Some(Value::bool(true)))
}

pub(crate) fn no(_: &mut Evaluator<'_>, _: Call<'_>) -> Found {
    Ok(Some(Value::bool(false)))
}

pub(crate) fn device(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    Ok(match call.args {
        [] | [Value::Tensor(_), ..] => None,
        _ => Some(Value::Device(Arc::new(Device { kind: "cpu".into(), index: None }))),
    })
}

pub(crate) fn device_type(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    match call.args {
        [Value::Device(device)] => Ok(Some(Value::str(&device.kind))),
        _ => Ok(None),
    }
}

pub(crate) fn device_index(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [_] = call.args else { return Ok(None) };
    Ok(Some(Value::None))
}

/// The type that autocast computes in: bfloat16 on the CPU, otherwise float16.
pub(crate) fn autocast_dtype(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [device] = call.args else { return Ok(None) };
    Ok(Some(Value::int(if device.as_str() == Some("cpu") { 15 } else { 5 })))
}
