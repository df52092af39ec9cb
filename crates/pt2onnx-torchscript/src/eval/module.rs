//! Finds items of containers of modules, and runs the root module with its hooks.

use crate::{
    archive::ClassDef,
    eval::{Evaluator, Step, expected, raises, unsupported},
    value::{Item, Ref, Value},
};
use pt2onnx_fx::Name;
use std::sync::Arc;

impl Evaluator<'_> {
    /// The class of an object.
    pub(crate) fn class_of(&self, object: Ref) -> Step<Arc<ClassDef>> {
        match self.state.heap.get(object.0) {
            Some(Item::Object { class, .. }) => Ok(class.clone()),
            _ => unsupported("this object"),
        }
    }

    /// The submodules of a ModuleList, ModuleDict or Sequential, by name.
    fn children(&self, object: Ref) -> Vec<(Name, Value)> {
        let Some(Item::Object { attributes, .. }) = self.state.heap.get(object.0) else {
            return Vec::new();
        };
        let modules = attributes.iter().filter(|(_, value)| matches!(value, Value::Object(_)));
        modules.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// `modules[index]`.
    pub(crate) fn module_item(&mut self, object: Ref, index: &Value) -> Step<Value> {
        if self.has_method(&Value::Object(object), "__getitem__") {
            let args = vec![index.clone()];
            return self.method(&Value::Object(object), "__getitem__", args, Vec::new());
        }
        let children = self.children(object);
        let found = match index {
            Value::Str(name) => children.iter().find(|(n, _)| **n == **name),
            _ => match index.as_int() {
                Some(at) => pt2onnx_symbolic::axis(at, children.len()).map(|at| &children[at]),
                None => return expected("a known index", index),
            },
        };
        match found {
            Some((_, value)) => Ok(value.clone()),
            None => raises("IndexError: no such module"),
        }
    }

    /// Calls a method of the root module, with its hooks.
    pub(crate) fn run_root(
        &mut self,
        root: &Value,
        method: &str,
        mut args: Vec<Value>,
    ) -> Step<Value> {
        let Value::Object(object) = root else {
            return expected("a module", root);
        };
        let class = self.class_of(*object)?;
        let hooks =
            |list: &str| if method == "forward" { class.class.names(list) } else { Vec::new() };
        for hook in hooks("__forward_pre_hooks__") {
            let given = self.tuple(args.clone(), None)?;
            match self.method(root, hook, vec![given], Vec::new())? {
                Value::None => {}
                Value::Tuple(tuple) => args = tuple.items.clone(),
                other => args = vec![other],
            }
        }
        let mut result = self.method(root, method, args.clone(), Vec::new())?;
        for hook in hooks("__forward_hooks__") {
            let given = self.tuple(args.clone(), None)?;
            match self.method(root, hook, vec![given, result.clone()], Vec::new())? {
                Value::None => {}
                other => result = other,
            }
        }
        Ok(result)
    }
}
