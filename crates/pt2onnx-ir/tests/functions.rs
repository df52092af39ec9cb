//! Functions that are copied from one model to another.

use pt2onnx_ir::{Attributes, Function, InsertPoint, Model, verify};

/// A library with the functions `outer`, which calls `inner`.
const LIBRARY: &str = r#"
    <domain: "d", opset_import: ["" : 18, "d" : 1]> outer (x) => (y) { t = d.inner (x) y = Relu (t) }
    <domain: "d", opset_import: ["" : 18]> inner (x) => (y) { y = Abs (x) }
"#;

#[test]
fn functions_are_copied_with_those_that_they_call() {
    let library = Model::parse_functions(LIBRARY).unwrap();
    let mut model = Model::new(18);
    model.copy_function(&library, &library.functions[0]);
    model.copy_function(&library, &library.functions[1]);
    let names: Vec<&str> = model.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["outer", "inner"]);
    model.imports.insert("d".into(), 1);
    verify(&model).unwrap();
}

/// The copy of a function that is not valid is not valid: it uses no value of the other model.
#[test]
fn an_undefined_value_stays_undefined() {
    let mut library = Model::new(18);
    let (body, other) = (library.add_region(), library.add_region());
    let outside = library.add_input(other, None);
    library[outside].name = Some("outside".into());
    let end = InsertPoint::End(body);
    let node = library.add_node(end, "Relu", &[Some(outside)], Attributes::new(), 1);
    let result = library[node].outputs()[0];
    library.set_outputs(body, &[result]);
    let mut model: Model = "g (float[2] x) => (float[2] y) { y = Abs (x) }".parse().unwrap();
    model.copy_function(&library, &Function::new("d", "f", body));
    model.assign_names();
    let errors = verify(&model).unwrap_err();
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["Relu `node_Relu_1`: uses outside before it is defined"]);
}
