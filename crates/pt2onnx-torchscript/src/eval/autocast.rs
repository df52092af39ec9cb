//! `with torch.autocast("cpu")` in a script: the operators within cast their tensors, as PyTorch's
//! executor makes them (its pass `Autocast`). Traces have these casts already. Autocast on other
//! devices does not concern the model.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, unsupported},
    value::Value,
};
use pt2onnx_fx::archive::{c10_number, dtype_of_c10};
use pt2onnx_tensor::DType;

/// Operators that compute in the type of the region, in float32, and in float32 unless a type is
/// given.
const POLICIES: &str = include_str!("autocast.txt");

impl Evaluator<'_> {
    /// The type that operators within a `with` compute in; only autocast on the CPU changes it.
    pub(crate) fn autocast_within(&self, manager: &Value) -> Step<Option<DType>> {
        let Value::Object(object) = manager else { return Ok(self.state.calls.autocast) };
        let (class, attributes, _) = self.object_at(*object)?;
        let device = attributes.get("device").and_then(Value::as_str);
        if !class.python_name().ends_with("autocast_mode.autocast") || device != Some("cpu") {
            return Ok(self.state.calls.autocast);
        }
        let dtype = attributes.get("fast_dtype").and_then(Value::as_int).and_then(dtype_of_c10);
        match (attributes.get("_enabled").and_then(Value::as_bool), dtype) {
            (Some(false), _) => Ok(None),
            (Some(true), Some(dtype)) => Ok(Some(dtype)),
            _ => unsupported("autocast whose arguments are not known"),
        }
    }

    /// Casts the arguments of an operator.
    pub(crate) fn autocast_arguments(
        &mut self,
        namespace: &str,
        name: &str,
        args: &mut [Value],
        kwargs: &mut Kwargs,
    ) -> Step<()> {
        let Some(reduced) = self.state.calls.autocast.filter(|_| namespace == "aten") else {
            return Ok(());
        };
        let given = |key: &str| {
            kwargs.iter().any(|(name, value)| name == key && !matches!(value, Value::None))
        };
        let mut policies = POLICIES.lines().filter_map(|line| line.split_once(' '));
        let policy = policies.find(|(_, ops)| ops.split(' ').any(|op| op == name));
        let (from, to): (&[DType], DType) = match policy {
            Some(("lower", _)) => (&[DType::F32], reduced),
            Some(("sum", _)) if given("dtype") => return Ok(()),
            Some(_) => (&[DType::F16, DType::BF16], DType::F32),
            None => return Ok(()),
        };
        if given("out") {
            return Ok(());
        }
        let dtype = c10_number(to).map_or(Value::None, Value::int);
        for value in args.iter_mut().chain(kwargs.iter_mut().map(|(_, value)| value)) {
            if let Value::Tensor(tensor) = value
                && self.meta(tensor).is_ok_and(|meta| from.contains(&meta.dtype))
            {
                let cast = vec![value.clone(), dtype.clone()];
                *value = self.operator("aten", "to", cast, Kwargs::new())?;
            }
        }
        Ok(())
    }
}
