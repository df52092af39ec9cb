//! Where nodes come from is kept: a node that does the work of several lists the origins of all.

use pt2onnx_ir::{Attribute, Attributes, InsertPoint, Model, Origin, Type};
use pt2onnx_opt::{Options, legalise, optimize};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

/// The model, and of each node the operator and the sources it comes from.
fn chain(ops: &[(&'static str, &'static str, Attribute)], sizes: [i64; 3]) -> Model {
    let mut model = Model::new(26);
    let ty = |sizes: [i64; 3]| Type::tensor(DType::F32, sizes.map(Expr::int).to_vec());
    let mut x = model.add_input(Model::MAIN, Some(ty(sizes)));
    model[x].name = Some("x".into());
    for (source, (op, attribute, value)) in ["a", "b", "c"].into_iter().zip(ops) {
        let attributes = Attributes::from_iter([((*attribute).into(), value.clone())]);
        let at = InsertPoint::End(Model::MAIN);
        let node = model.add_node(at, *op, &[Some(x)], attributes, 1);
        x = model[node].outputs()[0];
        model[x].ty = Some(ty(sizes));
        let origin = model.add_origin(Origin { node: source.into(), ..Origin::default() });
        model[node].origins.push(origin);
    }
    model.set_outputs(Model::MAIN, &[x]);
    model
}

fn origins(model: &Model) -> Vec<(String, String)> {
    let nodes = model.all_nodes().into_iter().map(|n| &model[n]);
    nodes
        .map(|n| {
            let sources = n.origins.iter().map(|o| &*model[*o].node);
            (n.op().to_string(), sources.collect::<Vec<_>>().join(" "))
        })
        .collect()
}

#[test]
fn joined_transposes_come_from_both() {
    let perm = |p: [i64; 3]| ("Transpose", "perm", Attribute::Ints(p.to_vec()));
    let mut model = chain(&[perm([1, 0, 2]), perm([0, 2, 1])], [4, 4, 4]);
    optimize(&mut model, &Options::default());
    assert_eq!(origins(&model), [("Transpose".into(), "b a".into())]);
}

#[test]
fn older_forms_come_from_all_that_the_newer_one_did() {
    let mut model = chain(&[("Gelu", "approximate", "none".to_owned().into())], [2, 3, 4]);
    let node = model.nodes(Model::MAIN).next().unwrap();
    let other = model.add_origin(Origin { node: "z".into(), ..Origin::default() });
    model[node].origins.push(other);
    legalise(&mut model, 18).unwrap();
    let found = origins(&model);
    assert!(found.len() > 1, "{found:?}");
    assert!(found.iter().all(|(_, from)| from == "a z"), "{found:?}");
}
