//! What the verifier finds.
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx_ir::{Model, verify};

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

/// Attributes that count something are not larger than what can be counted. Bounds of slices may be.
#[test]
fn attributes_are_in_range() {
    let model = |node: &str| -> Model {
        format!("g (float[1,2,4] x, float[2,2,1] w) => (float[a,b,c] y) {{ y = {node} }}")
            .parse()
            .unwrap()
    };
    for (node, attribute, number) in [
        (
            "Conv <pads: ints = [0, 9223372036854775807]> (x, w)",
            "pads of Conv",
            "9223372036854775807",
        ),
        (
            "Conv <strides: ints = [-4611686018427387904]> (x, w)",
            "strides of Conv",
            "-4611686018427387904",
        ),
        ("Softmax <axis: int = 4294967296> (x)", "axis of Softmax", "4294967296"),
    ] {
        let wanted = format!("attribute {attribute} is {number}, which is out of range");
        assert!(errors(&model(node)).ends_with(&wanted), "{}", errors(&model(node)));
    }
    let text = "g (float[2] x) => (int64[1] y) { y = Shape <end: int = 9223372036854775807> (x) }";
    verify(&text.parse().unwrap()).unwrap();
}
