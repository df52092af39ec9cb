//! Two models as one.

use pt2onnx::{
    OnnxProgram,
    ir::{Metadata, Model, Origin},
    writer,
};

/// Metadata of nodes, values, bodies and models stay, from both.
#[test]
fn joined_models_keep_the_metadata_of_both() {
    let told = |name: &str, op: &str| {
        let text = format!(
            r#"<ir_version: 10, opset_import: ["" : 20]> {name} (float[2] x) => (float[2] y) <float[2] w = {{1, 2}}> {{ y = {op} (x, w) }}"#
        );
        let mut model: Model = text.parse().unwrap();
        let entry = |key: &'static str, text: &str| vec![(key.into(), text.into())];
        model.metadata = entry("by", name);
        model.metadata.extend(entry("license", "MIT"));
        model.graph_metadata = entry("graph", name);
        model.doc_string = Some(format!("It is {name}."));
        let node = model.nodes(Model::MAIN).next().unwrap();
        let origin = Origin {
            metadata: vec![("node".into(), name.into())],
            doc_string: Some(name.into()),
            ..Origin::default()
        };
        let origin = model.add_origin(origin);
        model[node].origins.push(origin);
        for value in [model[node].inputs()[1].unwrap(), model[node].outputs()[0]] {
            model[value].metadata = entry("value", name);
        }
        OnnxProgram::from_bytes(writer::to_bytes(&model).unwrap(), []).unwrap()
    };
    let mut both = told("one", "Add");
    both.join(&told("two", "Mul"), &[("y".to_owned(), "x".to_owned())]).unwrap();
    let both = OnnxProgram::from_bytes(both.to_bytes().unwrap(), []).unwrap();
    let model = both.model();
    let entries = |metadata: &Metadata| {
        let texts = metadata.iter().map(|(key, text)| format!("{key}: {text}"));
        texts.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(entries(&model.metadata), "by: one, license: MIT, by_2: two");
    assert_eq!(entries(&model.graph_metadata), "graph: one, graph_2: two");
    assert_eq!(model.doc_string.as_deref(), Some("It is one.\nIt is two."));
    for (node, name) in model.nodes(Model::MAIN).zip(["one", "two"]) {
        let origins: Vec<_> = model[node].origins.iter().map(|o| &model[*o]).collect();
        assert_eq!(origins.len(), 1);
        assert_eq!(origins[0].metadata, [("node".into(), name.into())]);
        assert_eq!(origins[0].doc_string.as_deref(), Some(name));
        let weight = model[node].inputs()[1].unwrap();
        assert_eq!(entries(&model[weight].metadata), format!("value: {name}"));
    }
    let output = model.output_values().next().unwrap();
    assert_eq!(entries(&model[output].metadata), "value: two");
}
