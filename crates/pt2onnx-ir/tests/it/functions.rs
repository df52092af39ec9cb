//! Functions that are copied from one model to another.

use super::{errors, model};
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
    let mut model = model("g (float[2] x) => (float[2] y) { y = Abs (x) }");
    model.copy_function(&library, &Function::new("d", "f", body));
    model.assign_names();
    assert_eq!(errors(&model), "Relu `node_Relu_1`: uses outside before it is defined");
}

/// A body that is given to a function stands wherever the function has it, also twice.
#[test]
fn bodies_as_attributes() {
    let text = r#"<ir_version: 9, opset_import: ["" : 17, "l" : 1]>
        g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
            y = l.f <b = t () => (float[2] r) { s = Neg (x) r = Add (s, w) }> (x, c)
        }
        <domain: "l", opset_import: ["" : 17]> f <b> (a, c) => (y) {
            q = If (c) <then_branch: graph = @b, else_branch: graph = @b> ()
            y = Add (q, a)
        }"#;
    let mut model = model(&text.replace("> ()", "> (c)").replace("If (c) <", "If <"));
    model.inline_functions().unwrap();
    model.assign_names();
    verify(&model).unwrap();
    assert_eq!(model.to_string().matches("= Neg (x)").count(), 2, "{model}");
}
