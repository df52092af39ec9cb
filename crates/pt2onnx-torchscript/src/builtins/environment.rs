//! Exceptions, devices, the state in which PyTorch runs, and operators that are refused.

use crate::{
    builtins::{Call, Found},
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    value::Value,
};

pub(crate) fn raise(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let text = call.args.first().map(|value| ev.text_of(value).text).unwrap_or_default();
    let class = call.get(1);
    let class = class.as_str().unwrap_or("an exception").trim_start_matches("builtins.");
    Err(Problem::Raises(format!("{class}: {text}")))
}

pub(crate) fn mkldnn(_: &mut Evaluator<'_>, _: Call<'_>) -> Found {
    unsupported(
        "a module after torch.jit.optimize_for_inference, whose archive has no weights (save it before),",
    )
}

pub(crate) fn upsample(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    unsupported(format!("aten::{} of old archives", call.name))
}

/// `_nested_tensor_from_mask_left_aligned`.
pub(crate) fn nested_tensor(ev: &mut Evaluator<'_>, _: Call<'_>) -> Step<Value> {
    let text = "padded steps are computed like others, as while gradients are enabled; without these, PyTorch sets them to 0";
    ev.note(text.to_owned());
    Ok(false.into())
}

pub(crate) fn device(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    Ok(match call.args {
        [] | [Value::Tensor(_), ..] => None,
        _ => Some(Value::cpu()),
    })
}

pub(crate) fn device_type(_: &mut Evaluator<'_>, device: &Value) -> Step<Value> {
    match device {
        Value::Device(device) => Ok(Value::str(&device.kind)),
        other => crate::eval::expected("a device", other),
    }
}

/// The type that autocast computes in: bfloat16 on the CPU, otherwise float16.
pub(crate) fn autocast_dtype(_: &mut Evaluator<'_>, device: &Value) -> Step<Value> {
    Ok(if device.as_str() == Some("cpu") { 15 } else { 5 }.into())
}
