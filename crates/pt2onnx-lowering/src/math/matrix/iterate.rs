//! `Loop` over steps with a state of real and complex tensors.

use crate::{Complex, Cx};
use pt2onnx_ir::{Type, Value};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The results of a step.
pub struct Step {
    /// The state after it.
    pub state: Vec<Complex>,
    /// Values of this step, which are collected over all steps.
    pub collected: Vec<Complex>,
    /// Whether to go on. `None` means yes.
    pub go_on: Option<Value>,
}

impl Step {
    /// A step that only changes the state.
    pub fn state(state: Vec<Complex>) -> Self {
        Self { state, collected: Vec::new(), go_on: None }
    }
}

/// Runs `body` up to `count` times, by `Loop`. The body gets the number of the step (a vector of
/// one index) and the state, whose shapes and types must not change. Returns the last state, and
/// the collected values of all steps, stacked in a new last dimension.
pub fn iterate(
    cx: &Cx,
    count: &Expr,
    start: &[Complex],
    body: impl FnOnce(Value, &[Complex]) -> Step,
) -> (Vec<Complex>, Vec<Complex>) {
    let initial: Vec<Value> = start.iter().flat_map(|n| n.parts()).collect();
    let types: Vec<Type> =
        initial.iter().map(|&v| Type::tensor(cx.dtype(v), cx.shape(v))).collect();
    let mut inputs = vec![Type::tensor(DType::I64, []), Type::tensor(DType::Bool, [])];
    inputs.extend(types.iter().cloned());
    let mut collected: Vec<(bool, Vec<Type>)> = Vec::new();
    let region = cx.region(&inputs, |values| {
        let [number, _, state @ ..] = values else {
            return Vec::new();
        };
        let step = body(cx.unsqueeze(*number, &[0]), &regroup(start, state));
        let go_on = step.go_on.unwrap_or_else(|| cx.scalar(true, DType::Bool));
        let mut outputs = vec![go_on];
        outputs.extend(step.state.iter().flat_map(|n| n.parts()));
        // The outputs of a region must be values that it computes.
        for (output, ty) in outputs.iter_mut().zip(&inputs[1..]) {
            let own = cx.model().producer(*output).is_some() && !values.contains(output);
            if !own {
                *output = cx.identity(*output);
            }
            cx.set_type(*output, ty.clone());
        }
        for n in &step.collected {
            let parts = n.parts();
            let types = parts.iter().map(|&v| Type::tensor(cx.dtype(v), cx.shape(v)));
            collected.push((n.im.is_some(), types.collect()));
            outputs.extend(parts);
        }
        outputs
    });
    let scanned: Vec<&Type> = collected.iter().flat_map(|(_, types)| types).collect();
    let results = cx.loop_op(
        initial.len() + scanned.len(),
        cx.size(count),
        cx.scalar(true, DType::Bool),
        &initial,
        region,
    );
    for (&value, ty) in results.iter().zip(&types) {
        cx.set_type(value, ty.clone());
    }
    let (last, stacks) = results.split_at(initial.len());
    let turned = stacks.iter().zip(&scanned).map(|(&stack, ty)| steps_last(cx, stack, ty, count));
    let mut turned = turned.collect::<Vec<Value>>().into_iter();
    let collected = collected
        .iter()
        .filter_map(|(complex, _)| {
            Some(Complex::new(turned.next()?, if *complex { turned.next() } else { None }))
        })
        .collect();
    (regroup(start, last), collected)
}

/// The values of type `ty` that `count` steps of a `Loop` gave, with the dimension of the steps as
/// the last one instead of the first.
fn steps_last(cx: &Cx, stack: Value, ty: &Type, count: &Expr) -> Value {
    let inner = ty.as_tensor().and_then(|t| t.shape.clone()).unwrap_or_default();
    let rank = inner.len();
    let mut shape = vec![count.clone()];
    shape.extend(inner);
    let dtype = ty.as_tensor().map_or(DType::F32, |t| t.dtype);
    let stack = match count.as_int() {
        // A `Loop` without steps does not know the dynamic sizes.
        Some(0) => cx.full(&shape, 0, dtype),
        _ => {
            cx.set_type(stack, Type::tensor(dtype, shape));
            stack
        }
    };
    let perm: Vec<usize> = (1..=rank).chain([0]).collect();
    cx.transpose(stack, &perm)
}

/// Numbers from a list of their parts. Each is real or complex as the one of `like`.
fn regroup(like: &[Complex], parts: &[Value]) -> Vec<Complex> {
    let mut parts = parts.iter().copied();
    like.iter()
        .filter_map(|n| Some(Complex::new(parts.next()?, n.im.and_then(|_| parts.next()))))
        .collect()
}
