//! Problems that the verifier finds.
use super::{errors, model};
use pt2onnx_ir::{
    Attribute, Function, InsertPoint, Model, Type, Value, VerifyError, verify, verify_imported,
};
use pt2onnx_tensor::DType;

#[test]
fn interfaces_are_verified() {
    type Change<'a> = &'a dyn Fn(&mut Model, Value, Value);
    let changes: [(Change, &str); 4] = [
        (&|m, _, _| _ = m.set_output_name(Model::MAIN, 1, "y"), "another output has the name `y`"),
        (&|m, _, z| m[z].name = None, "it has no name"),
        (&|m, _, z| m[z].ty = None, "its type is not known"),
        (&|m, x, _| m[x].ty = None, "its type is not known"),
    ];
    for (change, expected) in changes {
        let mut model =
            model("g (float[2] x) => (float[2] y, float[2] z) { y = Relu (x) z = Abs (x) }");
        let (x, z) = (model.inputs()[0], model.outputs()[1].value());
        change(&mut model, x, z);
        let errors = verify(&model).unwrap_err();
        assert_eq!((errors.len(), errors[0].what.as_str()), (1, expected));
    }
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
    let elsewhere = "its body is in another place, too";
    let cases: [(Change, &str); 5] = [
        (&|m| _ = branch(m, main, Attribute::Region(Model::MAIN)), elsewhere),
        (
            &|m| {
                let body = Attribute::Region(m.add_region());
                branch(m, main, body.clone());
                branch(m, main, body);
            },
            elsewhere,
        ),
        (
            &|m| {
                let body = m.add_region();
                branch(m, main, Attribute::Region(body));
                branch(m, InsertPoint::End(body), Attribute::Region(body));
            },
            elsewhere,
        ),
        (&|m| m.functions.push(Function::new("d", "f", Model::MAIN)), elsewhere),
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

/// Values of erased nodes are errors, wherever they are used.
#[test]
fn values_of_erased_nodes() {
    let mut model = model("g (float[2] x) => (float[2] y) { y = Relu (x) }");
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
    let mut model = model(text);
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
    let mut model = model(text);
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
    let again = super::model(&model.to_string());
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
    let model = model(text);
    let header = "() => (float a, int64[2] b, string c, int8[2,1] d)";
    assert!(model.to_string().contains(header), "{model}");
}

#[test]
fn opsets_are_known() {
    let errors = |model: &Model| {
        let of = |result: Result<(), Vec<VerifyError>>| {
            result.err().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        [of(verify(model)), of(verify_imported(model))]
    };
    let none = [const { Vec::<String>::new() }; 2];
    let nothing = "the model: it imports no operators, neither an opset nor another domain";
    assert_eq!(errors(&Model::new(0)), [[nothing], [nothing]]);
    let newer = "the model: opset 999 is not known; the newest is 28".to_owned();
    assert_eq!(errors(&Model::new(999)), [vec![newer], vec![]]);
    assert_eq!(errors(&Model::new(20)), none);
    let mut other = Model::new(0);
    other.imports.insert("my".into(), 1);
    assert_eq!(errors(&other), none);
}
