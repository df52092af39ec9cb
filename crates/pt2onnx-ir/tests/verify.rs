//! Problems that the verifier finds.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx_ir::{Attribute, Function, InsertPoint, Model, Type, verify};
use pt2onnx_tensor::DType;

fn errors(model: &Model) -> String {
    let errors: Vec<String> = verify(model).unwrap_err().iter().map(|e| e.to_string()).collect();
    errors.join("\n")
}

/// Also of inputs that nothing uses: here the number of the iteration.
#[test]
fn names_of_body_inputs_are_unique() {
    let model = |number: &str| -> Model {
        let text = format!(
            "g (int64 n, bool c, float[2] x) => (float[2] y, float[2] z) {{
                y = Loop <body: graph = first (int64 i, bool c1, float[2] a1) => (bool d1, float[2] b1) {{
                    d1 = Identity (c1)
                    b1 = Relu (a1)
                }}> (n, c, x)
                z = Loop <body: graph = second (int64 {number}, bool c2, float[2] a2) => (bool d2, float[2] b2) {{
                    d2 = Identity (c2)
                    b2 = Abs (a2)
                }}> (n, c, x)
            }}"
        );
        text.parse().unwrap()
    };
    verify(&model("j")).unwrap();
    assert_eq!(errors(&model("i")), "value `i`: two values have this name");
    // A body that is gone does not count.
    let mut model = model("i");
    let (y, z) = (model.outputs()[0].value(), model.outputs()[1].value());
    model.set_outputs(Model::MAIN, &[y]);
    assert!(model.erase(model.producer(z).unwrap()));
    verify(&model).unwrap();
}

#[test]
fn interfaces_are_verified() {
    let wrong = |change: &dyn Fn(&mut Model)| {
        let graph = "g (float[2] x) => (float[2] y, float[2] z) { y = Relu (x) z = Abs (x) }";
        let mut model: Model = graph.parse().unwrap();
        change(&mut model);
        errors(&model)
    };
    assert_eq!(
        wrong(&|m| _ = m.set_output_name(Model::MAIN, 1, "y")),
        "output 1 of the graph: another output has the name `y`"
    );
    let value = |m: &Model| m.outputs()[1].value();
    assert_eq!(
        wrong(&|m| {
            let z = value(m);
            m[z].name = None;
        }),
        "output 1 of the graph: it has no name"
    );
    assert_eq!(
        wrong(&|m| {
            let z = value(m);
            m[z].ty = None;
        }),
        "output 1 of the graph: its type is not known"
    );
    assert_eq!(
        wrong(&|m| {
            let x = m.inputs()[0];
            m[x].ty = None;
        }),
        "input 0 of the graph: its type is not known"
    );
}

/// No tensor has such shapes, and numbers made of them would overflow.
#[test]
fn shapes_are_possible() {
    let model = |shape: &str| -> Model {
        format!("g (float[{shape}] x) => (float[{shape}] y) {{ y = Relu (x) }}").parse().unwrap()
    };
    verify(&model("16777216,16777216")).unwrap();
    verify(&model("0,281474976710656")).unwrap();
    let wrong =
        "value `x`: no tensor has that many elements\nvalue `y`: no tensor has that many elements";
    for shape in
        ["16777216,16777217", "0,281474976710657", "9223372036854775807,2", "n,4611686018427387904"]
    {
        assert_eq!(errors(&model(shape)), wrong, "{shape}");
    }
}

/// Attributes that count something are not larger than what can be counted; bounds of slices may
/// be. Element types exist.
#[test]
fn numbers_of_attributes_make_sense() {
    let wrong = |node: &str| {
        let text =
            format!("g (float[1,2,4] x, float[2,2,1] w) => (float[a,b,c] y) {{ y = {node} }}");
        errors(&text.parse().unwrap())
    };
    for (node, wanted) in [
        (
            "Conv <pads: ints = [0, 9223372036854775807]> (x, w)",
            "pads of Conv is 9223372036854775807, which is out of range",
        ),
        (
            "Conv <strides: ints = [-4294967296]> (x, w)",
            "strides of Conv is -4294967296, which is out of range",
        ),
        (
            "Softmax <axis: int = 4294967296> (x)",
            "axis of Softmax is 4294967296, which is out of range",
        ),
        ("Cast <to: int = 0> (x)", "to of Cast is 0, which is no element type"),
        (
            "RandomNormalLike <dtype: int = 99> (x)",
            "dtype of RandomNormalLike is 99, which is no element type",
        ),
    ] {
        let errors = wrong(node);
        assert!(errors.ends_with(&format!(": attribute {wanted}")), "{errors}");
    }
    let text = "g (float[2] x) => (int64[1] y) { y = Shape <end: int = 9223372036854775807> (x) }";
    verify(&text.parse().unwrap()).unwrap();
}

/// Bodies that no file can have: models of the public API, which need not be trees.
#[test]
fn bodies_are_trees() {
    let branch = |model: &mut Model, at, body| {
        let c = model.inputs()[0];
        model.add_node(at, "If", &[Some(c)], vec![("then_branch".into(), body)], 1)
    };
    let main = InsertPoint::End(Model::MAIN);
    type Change<'a> = &'a dyn Fn(&mut Model);
    let cases: [(Change, &str); 5] = [
        (
            &|m| _ = branch(m, main, Attribute::Region(Model::MAIN)),
            "its body is in another place, too",
        ),
        (
            &|m| {
                let body = Attribute::Region(m.add_region());
                branch(m, main, body.clone());
                branch(m, main, body);
            },
            "its body is in another place, too",
        ),
        (
            &|m| {
                let body = m.add_region();
                branch(m, main, Attribute::Region(body));
                branch(m, InsertPoint::End(body), Attribute::Region(body));
            },
            "its body is in another place, too",
        ),
        (
            &|m| m.functions.push(Function::new("d", "f", Model::MAIN)),
            "its body is in another place, too",
        ),
        (
            &|m| {
                let mut at = main;
                for _ in 0..10_000 {
                    let body = m.add_region();
                    branch(m, at, Attribute::Region(body));
                    at = InsertPoint::End(body);
                }
            },
            "its body is within 32 others",
        ),
    ];
    for (i, (change, expected)) in cases.into_iter().enumerate() {
        let mut model = Model::new(20);
        model.add_input(Model::MAIN, Some(Type::tensor(DType::Bool, [])));
        change(&mut model);
        let found = verify(&model).unwrap_err();
        assert_eq!((found.len(), found[0].what.as_str()), (1, expected), "case {i}");
    }
}

#[test]
fn axes_are_those_of_the_input() {
    for (node, expected) in [
        (
            "Gather <axis: int = 2147483648> (x, i)",
            "attribute axis of Gather is 2147483648, but its input has 3 dimensions",
        ),
        (
            "Gather <axis: int = -4> (x, i)",
            "attribute axis of Gather is -4, but its input has 3 dimensions",
        ),
        ("Gather <axis: int = -3> (x, i)", ""),
        ("Gather <axis: int = 7> (u, i)", ""),
        (
            "Concat <axis: int = 3> (x, x)",
            "attribute axis of Concat is 3, but its input has 3 dimensions",
        ),
        ("Flatten <axis: int = 3> (x)", ""),
        (
            "Flatten <axis: int = 4> (x)",
            "attribute axis of Flatten is 4, but its input has 3 dimensions",
        ),
        ("Transpose <perm: ints = [0, 2, 1]> (x)", ""),
        (
            "Transpose <perm: ints = [0, 0, 1]> (x)",
            "attribute perm of Transpose is [0, 0, 1], but its input has 3 dimensions",
        ),
        (
            "Transpose <perm: ints = [1, 0]> (x)",
            "attribute perm of Transpose is [1, 0], but its input has 3 dimensions",
        ),
        (
            "Resize <axes: ints = [1, 3]> (x, \"\", s)",
            "attribute axes of Resize is [1, 3], but its input has 3 dimensions",
        ),
        ("Softmax <axis: int = 0> (scalar)", ""),
    ] {
        let text = format!(
            "g (float[2,3,4] x, float[] u, float scalar, int64[1] i, float[2] s) => (float y) {{ y = {node} }}"
        );
        let model: Model = text.parse().unwrap();
        let found = match verify(&model) {
            Ok(()) => String::new(),
            Err(errors) => errors[0].what.clone(),
        };
        assert_eq!(found, expected, "{node}");
    }
}

/// Values of erased nodes are errors, wherever they are used.
#[test]
fn values_of_erased_nodes() {
    let mut model: Model = "g (float[2] x) => (float[2] y) { y = Relu (x) }".parse().unwrap();
    let gone =
        model.add_node(InsertPoint::End(Model::MAIN), "Exp", &[Some(model.inputs()[0])], vec![], 1);
    let value = model[gone].outputs()[0];
    assert!(model.erase(gone));
    let said = model.build(InsertPoint::End(Model::MAIN), |cx| cx.describe(value)).unwrap();
    assert_eq!(said, "an output of an erased node");
    model.set_outputs(Model::MAIN, &[value]);
    model.assign_names();
    assert!(errors(&model).contains("before it is defined"));
}

#[test]
fn bodies_that_a_node_loses_use_nothing() {
    let text = "g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <
            then_branch = t () => (float[2] a) { a = Relu (x) },
            else_branch = e () => (float[2] b) { b = Exp (x) }
        >
    }";
    let mut model: Model = text.parse().unwrap();
    let (node, x) = (model.nodes(Model::MAIN).next().unwrap(), model.inputs()[1]);
    assert_eq!(model[x].uses().len(), 2);
    let kept = model[node].attributes[..1].to_vec();
    model.set_attributes(node, kept);
    assert_eq!(model[x].uses().len(), 1);
    model.set_attributes(node, vec![]);
    assert_eq!(model[x].uses().len(), 0);
}

/// Its runtime may go by the names of inputs and outputs, as ONNX Runtime does in the bodies of
/// `BeamSearch`.
#[test]
fn bodies_of_other_domains_have_their_own_names() {
    let text = "g (float[2] x) => (float[2] y)
        <float[2] w = {1, 2}>
        {
            a = Relu (x)
            y = other.Search <
                first: graph = first (float[2] x, float[2] v) => (float[2] b) { b = Add (x, a) },
                second: graph = second (float[2] x, float[2] w) => (float[2] a) { a = Mul (x, w) }
            > (x, w)
        }";
    let mut model: Model = text.parse().unwrap();
    model.imports.insert("other".into(), 1);
    verify(&model).unwrap();
    let names = |model: &Model| -> Vec<Vec<String>> {
        let search = model.nodes(Model::MAIN).nth(1).unwrap();
        let bodies = model[search].regions().map(|body| &model[body]);
        let values = bodies.map(|b| b.inputs().iter().copied().chain(b.output_values()));
        values
            .map(|all| all.map(|v| model[v].name.as_ref().unwrap().to_string()).collect())
            .collect()
    };
    model.assign_names();
    verify(&model).unwrap();
    let kept = [["x", "v", "b"], ["x", "w", "a"]].map(|body| body.map(str::to_owned).to_vec());
    assert_eq!(names(&model), kept);
    // A constant may be used in any body: it gives way.
    assert!(model.to_string().contains("float[2] w_1 = {1.0, 2.0}"), "{model}");
    // A value that the first body uses may not have the name of another one there.
    let relu = model.nodes(Model::MAIN).next().unwrap();
    let a = model[relu].outputs()[0];
    model[a].name = Some("v".into());
    assert_eq!(errors(&model), "value `v`: two values in a body have this name");
    model.assign_names();
    verify(&model).unwrap();
    assert_eq!(names(&model), kept);
    let again: Model = model.to_string().parse().unwrap();
    assert_eq!(again.to_string(), model.to_string());
}

#[test]
fn constants_of_all_types() {
    let text = "g () => (a, b, c, d) {
        a = Constant <value_float = 1.5> ()
        b = Constant <value_ints = [1, 2]> ()
        c = Constant <value_string = \"s\"> ()
        d = Constant <value = int8[2,1] {1, 2}> ()
    }";
    let model: Model = text.parse().unwrap();
    let header = "() => (float a, int64[2] b, string c, int8[2,1] d)";
    assert!(model.to_string().contains(header), "{model}");
    // The first form was only for floats.
    let old = "<ir_version: 3, opset_import: [\"\" : 7]>
        g () => (int8[1] a) { a = Constant <value = int8[1] {1}> () }";
    verify(&old.parse().unwrap()).unwrap();
}
