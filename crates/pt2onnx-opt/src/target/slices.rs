//! Names for the sizes of slices, where ONNX Runtime would give them wrong ones.

use crate::analysis::known;
use pt2onnx_ir::{Model, Type, Value};
use pt2onnx_symbolic::Expr;
use rustc_hash::FxHashSet;

/// The only opset at which shape inference keeps the name of a dimension that is sliced.
const KEEPS_NAMES: u32 = 10;

/// At that opset, names the unknown sizes of slices: ONNX Runtime takes two tensors whose
/// dimensions have the same names for equally large, and lets them share memory. A name in the file
/// goes before an inferred one.
pub(super) fn name_sizes(model: &mut Model) {
    if model.opset != KEEPS_NAMES {
        return;
    }
    let slices = model.graph_nodes().into_iter().filter(|&id| model[id].is("Slice"));
    let results = slices.filter_map(|id| model[id].outputs().first().copied());
    let unnamed = |v: &Value| model.shape(*v).is_some_and(|s| !s.iter().all(known));
    let unnamed: Vec<Value> = results.filter(|v| unnamed(v) && !model[*v].is_output()).collect();
    if unnamed.is_empty() {
        return;
    }
    let shapes = model.values().filter_map(|(value, _)| model.shape(value));
    let mut taken: FxHashSet<String> =
        shapes.flatten().flat_map(Expr::symbols).map(|s| s.to_string()).collect();
    let mut names = (0..).map(|i| format!("slice_{i}"));
    for value in unnamed {
        let Some(Type::Tensor(tensor)) = &mut model[value].ty else { continue };
        for dim in tensor.shape.iter_mut().flatten().filter(|dim| !known(dim)) {
            if let Some(name) = names.find(|name| taken.insert(name.clone())) {
                *dim = Expr::symbol(&name);
            }
        }
    }
}
