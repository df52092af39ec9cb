//! Output slots: what passes do to them, and what is written.
use super::{model, node};
use pt2onnx_ir::{InsertPoint, Model, Type, Value, verify};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::{DType, Tensor};

/// The nodes and constants of a model after `change`, finished and verified.
fn changed(text: &str, change: impl FnOnce(&mut Model)) -> String {
    let mut model = model(text);
    change(&mut model);
    model.assign_names();
    verify(&model).unwrap();
    let text = model.to_string();
    let body = text.split_once(">\n").unwrap().1.split_once('\n').unwrap().1;
    let lines = body.lines().map(str::trim).filter(|l| !["{", "}", "<", ">"].contains(l));
    lines.collect::<Vec<_>>().join("; ")
}

/// Edits of a pass that ignores outputs.
fn bypass(model: &mut Model, op: &str, input: usize) {
    let node = node(model, op);
    let (old, new) = (model[node].outputs()[0], model[node].input(input).unwrap());
    model.replace_all_uses(old, new);
    assert!(model.erase(node));
}

#[test]
fn an_input_becomes_an_output() {
    let text = changed("g (float[2] x) => (float[2] y) { y = Relu (x) }", |model| {
        bypass(model, "Relu", 0);
        assert_eq!(model.outputs()[0].value(), model.inputs()[0]);
        assert_eq!(model.outputs()[0].name.as_deref(), Some("y"));
        verify(model).unwrap();
        // As it will be written.
        assert!(model.to_string().contains("y = Identity (x)"), "{model}");
    });
    assert_eq!(text, "y = Identity (x)");
}

#[test]
fn nodes_are_bypassed() {
    for (text, gone, expected) in [
        // A value becomes two outputs.
        (
            "g (float[2] x) => (float[2] y, float[2] z) { y = Relu (x) z = Abs (y) }",
            &["Abs"][..],
            "y = Relu (x); z = Identity (y)",
        ),
        // The node that made the output has a name, a type and a place: the value that takes its
        // part has them after it.
        ("g (float[2] x) => (float[2] y) { t = Relu (x) y = Abs (t) }", &["Abs"], "y = Relu (x)"),
        // A body gives a value around it.
        (
            "g (float[2] x, bool c) => (float[2] y) {
                y = If <then_branch: graph = yes () => (float[2] p) { p = Relu (x) },
                        else_branch: graph = no () => (float[2] q) { q = Abs (x) }> (c)
            }",
            &["Relu"],
            "y = If <then_branch: graph = yes () => (float[2] p); p = Identity (x); \
             }, else_branch: graph = no () => (float[2] q); q = Abs (x); }> (c)",
        ),
        // A copy stands where the node of the output stood, whatever has gone since.
        (
            "g (float[2] x) => (float[2] y, float[2] z) {
                y = Relu (x) t = Neg (x) u = Abs (t) z = Neg (u)
            }",
            &["Relu", "Neg"],
            "y = Identity (x); u = Abs (x); z = Neg (u)",
        ),
        // Also behind one another, and at the end.
        (
            "g (float[2] x) => (float[2] a, float[2] b, float[2] c) {
                t = Neg (x) b = Relu (x) a = Abs (x) c = Exp (t)
            }",
            &["Abs", "Relu", "Exp"],
            "c = Neg (x); b = Identity (x); a = Identity (x)",
        ),
    ] {
        let found = changed(text, |model| gone.iter().for_each(|op| bypass(model, op, 0)));
        assert_eq!(found, expected);
    }
}

#[test]
fn a_constant_becomes_an_output() {
    let graph = |name: &str| {
        format!(
            "g (float[1] x) => (float[1] y) <float[1] {name} = {{2.0}}> {{ y = Mul (x, {name}) }}"
        )
    };
    // A weight keeps its name.
    let text = changed(&graph("w"), |model| bypass(model, "Mul", 1));
    assert!(text.contains("y = Identity (w)"), "{text}");
    // A nameless one becomes the output itself.
    let text = changed(&graph("w"), |model| {
        let (w, _) = model.values().find(|(_, d)| d.constant().is_some()).unwrap();
        model[w].name = None;
        bypass(model, "Mul", 1);
    });
    assert_eq!(text, "float[1] y = {2.0}");
}

/// Outputs are distinct values.
#[test]
fn a_small_constant_becomes_two_outputs() {
    let text = |size: usize| {
        let graph = "g (float[1] x) => (float[1] y, float[1] z) { y = Relu (x) z = Abs (x) }";
        changed(graph, |model| {
            let constant = model.add_constant(Tensor::vector(&vec![0f32; size]));
            let outputs: Vec<Value> = model.output_values().collect();
            for output in outputs {
                let node = model.producer(output).unwrap();
                model.replace_all_uses(output, constant);
                model.erase(node);
            }
        })
    };
    let small = text(1);
    assert!(small.contains("y = {0.0}") && small.contains("z = {0.0}"), "{small}");
    let large = text(1 << 13);
    assert!(large.contains("z = Identity (y)"), "{large}");
}

#[test]
fn what_was_copied_can_become_an_output_again() {
    let graph = "g (float[2] x) => (float[2] y) { t = Neg (x) y = Abs (x) }";
    let text = changed(graph, |model| {
        let t = model[node(model, "Neg")].outputs()[0];
        bypass(model, "Abs", 0);
        let x: Value = model.inputs()[0];
        let neg = node(model, "Neg");
        model.replace_all_uses(x, t);
        model.replace_input(neg, 0, Some(x));
    });
    assert_eq!(text, "y = Neg (x)");
}

#[test]
fn any_values_can_be_set() {
    let graph = "g (float[2] x) => (float[2] y) { y = Relu (x) }";
    let text = changed(graph, |model| {
        let (x, y) = (model.inputs()[0], model.outputs()[0].value());
        model.set_outputs(Model::MAIN, &[x, y, y]);
        for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
            model.set_output_name(Model::MAIN, i, name);
        }
    });
    assert_eq!(text, "b = Relu (x); a = Identity (x); c = Identity (b)");
}

/// A scan's body gives one value twice. Then a pass inserts a `Cast` after the node of that value,
/// as `fit` does for an element type without a kernel: the copy uses the cast, so it must come
/// after it.
#[test]
fn a_copy_comes_after_its_value() {
    let mut model = model("g (bfloat16[3] init, bfloat16[2,3] x) => () {}");
    let (init, x) = (model.inputs()[0], model.inputs()[1]);
    let row = Type::tensor(DType::BF16, [Expr::int(3)]);
    let outputs = model.build(InsertPoint::End(Model::MAIN), |cx| {
        let body = cx.region(&[row.clone(), row.clone()], |v| {
            let next = cx.mul(v[0], v[1]);
            vec![next, next]
        });
        cx.scan_op(2, &[init, x], body, 1, Default::default()).to_vec()
    });
    model.set_outputs(Model::MAIN, &outputs.unwrap());
    let mul = node(&model, "Mul");
    let (body, product) = (model[mul].region(), model[mul].outputs()[0]);
    let cast = model.add_node(InsertPoint::End(body), "Cast", &[], Default::default(), 1);
    let narrow = model[cast].outputs()[0];
    model[cast].set_attribute("to", 16);
    model[narrow].ty = Some(row);
    model.replace_all_uses(product, narrow);
    model.set_inputs(cast, &[Some(product)]);
    model.assign_names();
    verify(&model).unwrap();
    let ops: Vec<&str> = model.nodes(body).map(|n| model[n].op()).collect();
    assert_eq!(ops, ["Mul", "Cast", "Identity"]);
}

/// The value in the slot may also be made after the place where the copy was planned.
#[test]
fn a_copy_moves_behind_a_later_value() {
    let graph = "g (float[2] x) => (float[2] y, float[2] z) {
        y = Relu (x)
        t = Neg (x)
        z = Abs (t)
    }";
    let text = changed(graph, |model| {
        bypass(model, "Relu", 0);
        let (y, z) = (model.outputs()[0].value(), model.outputs()[1].value());
        let neg = node(model, "Neg");
        model.replace_all_uses(y, z);
        model.set_inputs(neg, &[Some(y)]);
    });
    assert_eq!(text, "t = Neg (x); z = Abs (t); y = Identity (z)");
}
