//! Dimensions of inputs that have no name, or one that says nothing: each gets a symbol of its own while passes run, so that sizes
//! computed from it are known to be equal.

use pt2onnx_ir::{Model, TensorType, Type, Value, is_unknown};
use pt2onnx_symbolic::Expr;

/// Begins the names of the symbols. No file has such names.
const PREFIX: &str = "\u{1}dim";

/// Names that some exporters give to every dynamic dimension.
const VAGUE: &[&str] = &["", "-1", "?", "None", "dynamic", "unk", "unknown"];

/// The types of the inputs of the main graph, to be given back.
pub(crate) struct Named(Vec<(Value, Option<Type>)>);

/// Names the dimensions of the inputs.
pub(crate) fn name(model: &mut Model) -> Named {
    let inputs = model.inputs().to_vec();
    let before = inputs.iter().map(|&v| (v, model[v].ty.clone())).collect();
    for (i, &value) in inputs.iter().enumerate() {
        if let Some(Type::Tensor(TensorType { shape: Some(shape), .. })) = &mut model[value].ty {
            for (axis, dim) in shape.iter_mut().enumerate() {
                let vague = dim.as_symbol().is_some_and(|name| VAGUE.contains(&name));
                if vague || is_unknown(dim) {
                    *dim = Expr::symbol(&format!("{PREFIX}{i}.{axis}"));
                }
            }
        }
    }
    Named(before)
}

impl Named {
    /// Gives the inputs their types back, and makes sizes that depend on their new names unknown.
    pub fn undo(self, model: &mut Model) {
        let ours = |dim: &Expr| dim.symbols().iter().any(|s| s.starts_with(PREFIX));
        let of_shape = |ty: &Type| {
            let shape = ty.as_tensor().and_then(|t| t.shape.as_ref());
            shape.is_some_and(|shape| shape.iter().any(ours))
        };
        let values = model.values().filter(|(_, d)| d.ty.as_ref().is_some_and(of_shape));
        for value in values.map(|(v, _)| v).collect::<Vec<_>>() {
            let Some(Type::Tensor(TensorType { dtype, shape: Some(shape) })) =
                model[value].ty.take()
            else {
                continue;
            };
            let known = |dim: Expr| if ours(&dim) { model.unknown_dim() } else { dim };
            let shape: Vec<Expr> = shape.into_iter().map(known).collect();
            model[value].ty = Some(Type::tensor(dtype, shape));
        }
        for (value, ty) in self.0 {
            model[value].ty = ty;
        }
    }
}
