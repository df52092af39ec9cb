//! The textual syntax: printed models are read back, and errors give a position.
use super::model;
use pt2onnx_ir::{Model, verify};

/// All that the printer writes.
const ALL: &str = include_str!("all.txt");

#[test]
fn what_is_printed_is_read_back() {
    assert_eq!(model(ALL).to_string(), ALL);
}

/// A line break is not printed as one, and not as `\n`, which ONNX's parser reads as `n`.
#[test]
fn names_with_line_breaks() {
    let text = "<\n  ir_version: 10,\n  opset_import: [\"\" : 21]\n>\ng (float[2] \"x\\u{a}\\\\n\") => (float[2] y)\n{\n  y = Neg (\"x\\u{a}\\\\n\")\n}\n";
    let mut model = model(text);
    assert_eq!(model[model.inputs()[0]].name.as_deref(), Some("x\n\\n"));
    model.assign_names();
    assert_eq!(model.to_string(), text);
}

/// Forms that `onnx.parser` reads, and the printer does not write.
#[test]
fn other_forms() {
    let text = r#"
      # A comment.
      <ir_version: 8, opset_import: ["": 18], producer_name: "me", producer_version: "1", model_version: 7,
       domain: "org", doc_string: "words", metadata_props: ["k": "v"]>
      g (float[2] x) => (float[2] y) <float[2] t> {
        [first] t = LeakyRelu <alpha = 0.5> (x)
        u = Sum (t) <> 
        v, w = Split (u) <axis = 0, num_outputs = 2>
        y = Concat <axis = 0> (v, w)
      }
    "#;
    let model = model(text);
    let nodes = model.all_nodes();
    assert_eq!(model[nodes[0]].name.as_deref(), Some("first"));
    assert_eq!((model.opset, model.model_version), (18, Some(7)));
    assert_eq!(model.producer.as_deref(), Some("me"));
    assert_eq!(model.metadata, [("k".into(), "v".into())]);
    let text = model.to_string();
    assert!(text.contains("LeakyRelu <alpha: float = 0.5> (x)"), "{text}");
    assert!(text.contains("Split <axis: int = 0, num_outputs: int = 2> (u)"), "{text}");
    let types: Vec<String> = { model.values() }
        .filter(|(_, d)| d.name.as_deref() == Some("v"))
        .map(|(_, d)| d.ty.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(types, ["float[1]"], "inferred");
    verify(&model).unwrap();
}

#[test]
fn functions_alone() {
    let text = r#"
        <opset_import: ["" : 18]> "mylib::foo.Tensor" <alpha: float = 1.0> (x) => (y) {
            y = LeakyRelu <alpha: float = @alpha> (x)
        }
        <domain: "other", opset_import: ["" : 18, "mylib" : 1]> bar (x) => (y) { y = mylib.foo (x) }
    "#;
    let model = Model::parse_functions(text).unwrap();
    let names: Vec<_> = { model.functions.iter() }
        .map(|f| (f.domain.as_str(), f.name.as_str(), f.overload.as_str(), f.imports[""]))
        .collect();
    assert_eq!(names, [("mylib", "foo", "Tensor", 18), ("other", "bar", "", 18)]);
}

#[test]
fn the_lowest_ir_version_that_serves() {
    let pass = |ty: &str| format!("g ({ty}[N] x) => ({ty}[N] y) {{ y = Identity (x) }}");
    let function = "g (float[N] x) => (float[N] y) { y = own.f (x) }
        <domain: \"own\", opset_import: [\"\" : 9]> f (x) => (y) { y = Relu (x) }";
    for (opset, imports, graph, expected) in [
        (9, "", pass("float"), 4),
        (10, "", pass("float"), 5),
        (13, "", pass("float"), 7),
        (18, "", pass("float"), 8),
        (26, "", pass("float"), 13),
        (13, "", pass("float8e5m2"), 9),
        (9, "", pass("uint4"), 10),
        (24, "", pass("uint4"), 12),
        (9, ", \"own\" : 1", function.to_owned(), 8),
    ] {
        let head = format!("<ir_version: 99, opset_import: [\"\" : {opset}{imports}]>\n");
        let mut model = model(&(head + &graph));
        assert_eq!(model.ir_version(), 99);
        model.ir_version = None;
        assert_eq!(model.ir_version(), expected, "{model}");
    }
}
