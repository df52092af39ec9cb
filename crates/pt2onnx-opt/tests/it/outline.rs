//! Tests of `outline`: the cases of `cases/outline.txt`.
//!
//! Before the graph, lines say to which call of a module nodes belong: `a b: layer:Layer
//! layer.fc@1:Linear`, the outermost call first. A node that no line names is of unknown origin.
//! The argument of a case lists the classes that become functions.

use crate::{cases::run, graph, parse, valid};
use pt2onnx_ir::{Model, ModuleCall, ModuleId, Origin};
use pt2onnx_opt::{infer_types, outline};
use std::collections::BTreeMap;

fn model(text: &str) -> Model {
    let (lines, graph) = text.split_at(text.find("\ng (").map_or(0, |at| at + 1));
    let mut model = parse::model(graph);
    let root = model.add_module(ModuleCall::new(None, "", "m.Net"));
    let mut known: BTreeMap<String, ModuleId> = BTreeMap::new();
    for line in lines.lines() {
        let (values, calls) = line.split_once(':').unwrap();
        let (mut module, mut key) = (root, String::new());
        for call in calls.split_whitespace() {
            key = format!("{key} {call}");
            let (path, class) = call.split_once(':').unwrap();
            let path = path.split('@').next().unwrap();
            let next = ModuleCall::new(Some(module), path, format!("m.{class}"));
            module = *known.entry(key.clone()).or_insert_with(|| model.add_module(next));
        }
        for name in values.split_whitespace() {
            let named = |n: &pt2onnx_ir::NodeId| {
                let mut outputs = model[*n].outputs().iter();
                outputs.any(|v| model[*v].name.as_deref() == Some(name))
            };
            let node = model.all_nodes().into_iter().find(named).unwrap();
            let origin = Origin { module: Some(module), node: "n".into(), ..Origin::default() };
            let origin = model.add_origin(origin);
            model[node].origins.push(origin);
        }
    }
    infer_types(&mut model);
    model
}

/// How many nodes there are, without constants, by operator.
fn nodes(model: &Model) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for node in model.all_nodes() {
        if !model[node].is("Constant") {
            *all.entry(model[node].op().to_owned()).or_default() += 1;
        }
    }
    all
}

#[test]
fn outlined() {
    run("outline", |text, classes| {
        let flat = model(text);
        let mut model = flat.clone();
        let chosen = |module: ModuleId| {
            let class = flat[module].class.rsplit('.').next().unwrap();
            classes == "all" || classes.split(' ').any(|chosen| chosen == class)
        };
        let calls = outline(&mut model, chosen);
        model.assign_names();
        valid(&model);
        let mut inlined = model.clone();
        inlined.inline_functions().unwrap();
        inlined.assign_names();
        valid(&inlined);
        assert_eq!(nodes(&inlined), nodes(&flat), "{model}");
        format!("{calls} calls\n{}", graph(&model))
    });
}
