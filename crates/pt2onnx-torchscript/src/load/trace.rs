//! The module of a trace of pt2onnx's Python package: one object, whose attributes are all tensors
//! of the module, by path.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    load::pickle::Role,
    value::{Item, Value},
};
use pt2onnx_fx::Name;
use pt2onnx_torchscript_archive::{GraphState, GraphTensor, TensorKind};
use rustc_hash::FxHashMap;

impl Evaluator<'_> {
    /// The module, and the constants of the code.
    pub(crate) fn load_trace(&mut self, trace: &GraphState) -> Step<Value> {
        let archive = self.cx.archive;
        let class = archive.root_class().map_err(|error| Problem::Unbound(error.to_string()))?;
        let module = self.new_object(class, "".into())?;
        let mut pool = Vec::new();
        let mut made = FxHashMap::<&Name, (Value, Role)>::default();
        for GraphTensor { kind, path, dtype, stored } in &trace.tensors {
            let role = match kind {
                TensorKind::Parameter => Role::Parameter,
                TensorKind::Buffer => Role::Buffer,
                TensorKind::Attribute => Role::Attribute,
                TensorKind::Constant => Role::Constant,
            };
            let view = stored.clone().view(archive.records(), "data", *dtype);
            let Some(Ok(tensor)) = view else {
                return unsupported(format!("the tensor `{path}`, which is not a plain one,"));
            };
            if role == Role::Constant {
                let value = self.tensor(tensor, &pool.len().to_string(), role)?;
                pool.push(value);
                continue;
            }
            let value = self.tensor(tensor, path, role)?;
            made.insert(path, (value.clone(), role));
            if let Value::Object(object) = &module
                && let Some(Item::Object { attributes, .. }) = self.state.heap.get_mut(object.0)
            {
                attributes.insert(path.clone(), value);
            }
        }
        for (path, first) in &trace.tied {
            if let Some((value, role)) = made.get(first) {
                self.tied(value, path, *role);
            }
        }
        self.cx.pool = pool;
        Ok(module)
    }
}
