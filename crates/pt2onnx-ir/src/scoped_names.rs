//! Names as torch.onnx's exporter of traces gives them: by the modules that a node is part of and
//! its operator.

use crate::{Model, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::format_smolstr;

impl Model {
    /// Names nodes after the calls of modules around them and their operators, and the values that
    /// they compute after them: `/encoder/encoder.0/fc1/Gemm` and
    /// `/encoder/encoder.0/fc1/Gemm_output_0`. Further ones get numbers: `/Add_1`. Outputs of the
    /// main graph keep their names.
    ///
    /// A node that was made from several is named after the first one. The names are unique
    /// together with those of [`Model::assign_names`].
    pub fn name_by_modules(&mut self) {
        let outputs: FxHashSet<Value> = self.output_values().collect();
        let (scopes, mut counts) = (self.module_scopes(), FxHashMap::<String, usize>::default());
        for node in self.all_nodes() {
            let module = self[node].origins.iter().find_map(|origin| self[*origin].module);
            let scope = module.and_then(|module| scopes.get(module.index()));
            let base = format!("{}/{}", scope.map_or("", String::as_str), self[node].op());
            let count = counts.entry(base.clone()).or_default();
            let name = if *count == 0 { base.into() } else { format_smolstr!("{base}_{count}") };
            *count += 1;
            for (at, value) in self[node].outputs().to_vec().into_iter().enumerate() {
                if !outputs.contains(&value) && !self[value].is_left_out() {
                    self[value].name = Some(format_smolstr!("{name}_output_{at}"));
                }
            }
            self[node].name = Some(name);
        }
    }

    /// The scope of each call of a module: `/encoder/encoder.0`, empty for the program itself. A
    /// further call of one module within the same call has its number: `/pool_1`.
    fn module_scopes(&self) -> Vec<String> {
        let (mut scopes, mut calls) = (Vec::<String>::new(), FxHashMap::default());
        for (_, call) in self.modules() {
            let around = call.parent.and_then(|parent| scopes.get(parent.index()));
            let mut scope = around.cloned().unwrap_or_default();
            if !call.path.is_empty() {
                let count = calls.entry((call.parent, &call.path)).or_insert(0);
                scope = format!("{scope}/{}", attribute(&call.path));
                if *count > 0 {
                    scope = format!("{scope}_{count}");
                }
                *count += 1;
            }
            scopes.push(scope);
        }
        scopes
    }
}

/// The last name of a path, with the numbers behind it: `layers.0` of `encoder.layers.0`.
fn attribute(path: &str) -> &str {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mut start = path.len();
    for part in path.rsplit('.') {
        start = start.saturating_sub(part.len());
        if !is_number(part) {
            break;
        }
        start = start.saturating_sub(1);
    }
    path.get(start..).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InsertPoint, ModuleCall, Origin};

    #[test]
    fn attributes_have_the_numbers_behind_them() {
        let paths = ["conv", "layer1.0", "layer1.0.conv1", "cv2.0.0", "0", "0.1", "a.1.b.2"];
        let found = paths.map(attribute);
        assert_eq!(found, ["conv", "layer1.0", "conv1", "cv2.0.0", "0", "0.1", "b.2"]);
    }

    #[test]
    fn names_have_modules_operators_and_numbers() {
        let mut model = Model::new(20);
        let x = model.add_input(Model::MAIN, None);
        let root = model.add_module(ModuleCall::new(None, "", "M"));
        let [layer, again] =
            ["layers.0"; 2].map(|path| model.add_module(ModuleCall::new(Some(root), path, "L")));
        let mut value = x;
        for module in [Some(layer), Some(layer), Some(again), Some(root), None] {
            let at = InsertPoint::End(Model::MAIN);
            let node = model.add_node(at, "Relu", &[Some(value)], Default::default(), 1);
            let origin = model.add_origin(Origin { module, ..Origin::default() });
            model[node].origins.push(origin);
            value = model[node].outputs()[0];
        }
        model[value].name = Some("y".into());
        model.set_outputs(Model::MAIN, &[value]);
        model.name_by_modules();
        model.assign_names();
        let nodes = model.nodes(Model::MAIN).map(|node| &model[node]);
        let names = nodes.flat_map(|node| {
            let output = model[node.outputs()[0]].name.clone();
            [node.name.clone(), output].into_iter().flatten()
        });
        let names: Vec<_> = names.collect();
        let layer = "/layers.0/Relu";
        assert_eq!(names[..2], [layer.to_owned(), format!("{layer}_output_0")]);
        assert_eq!(names[2..4], [format!("{layer}_1"), format!("{layer}_1_output_0")]);
        assert_eq!(names[4..6], ["/layers.0_1/Relu", "/layers.0_1/Relu_output_0"]);
        assert_eq!(names[6..], ["/Relu", "/Relu_output_0", "/Relu_1", "y"]);
    }
}
