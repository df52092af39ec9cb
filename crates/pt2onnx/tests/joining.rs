//! Two models as one, in ONNX Runtime.

#![expect(clippy::unwrap_used, reason = "tests")]

use pt2onnx::{
    OnnxProgram, Options,
    ir::{Metadata, Model, Origin},
    tensor::Tensor,
    writer,
};

fn program(text: &str) -> OnnxProgram {
    let model: Model = text.parse().unwrap();
    OnnxProgram::from_bytes(writer::to_bytes(&model).unwrap(), []).unwrap()
}

fn links(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn ends(program: &OnnxProgram) -> [Vec<String>; 2] {
    let model = program.model();
    let name = |v: pt2onnx::ir::Value| {
        let data = &model[v];
        format!("{}: {}", data.name.as_deref().unwrap(), data.ty.as_ref().unwrap())
    };
    [model.inputs().iter().map(|v| name(*v)).collect(), model.output_values().map(name).collect()]
}

/// Names of weights, values and inputs clash, opsets differ, and `n` is another size in each model.
#[test]
fn names_opsets_and_sizes() {
    let mut both = program(
        r#"<ir_version: 4, opset_import: ["" : 9]>
        a (float[n, 2] x, float[n] k) => (float[n, 1, 2] y, float[n, 2] left) <float[2] w = {1, 2}> {
            left = Add (x, w)
            y = Unsqueeze <axes = [1]> (left)
        }"#,
    );
    let second = program(
        r#"<ir_version: 10, opset_import: ["" : 21]>
        b (float[m, 1, 2] y, float[n] x) => (float[m, 1, 2] z, float[n] left) <float[2] w = {10, 20}> {
            z = Mul (y, w)
            left = Neg (x)
        }"#,
    );
    both.join(&second, &[]).unwrap();
    assert_eq!(both.model().opset, 21);
    let [inputs, outputs] = ends(&both);
    assert_eq!(inputs, ["x: float[n,2]", "k: float[n]", "x_1: float[n_2]"]);
    assert_eq!(outputs, ["left: float[n,2]", "z: float[n,1,2]", "left_1: float[n_2]"]);
    let x = Tensor::from_slice(vec![1, 2], &[3f32, 4.0]).unwrap();
    let given = [x, Tensor::vector(&[0f32]), Tensor::vector(&[5f32, 6.0, 7.0])];
    let results = both.run(&given).unwrap();
    let numbers: Vec<Vec<f32>> = results.iter().map(|t| t.to_vec().unwrap()).collect();
    assert_eq!(numbers, [vec![4.0, 6.0], vec![40.0, 120.0], vec![-5.0, -6.0, -7.0]]);
}

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
    both.join(&told("two", "Mul"), &links(&[("y", "x")])).unwrap();
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

/// Bodies and functions come along, and one output may become several inputs.
#[test]
fn bodies_and_functions() {
    let mut both = program(
        r#"<ir_version: 9, opset_import: ["" : 20]> a (float[2] x) => (float[2] y) { y = Neg (x) }"#,
    );
    let second = program(
        r#"<ir_version: 9, opset_import: ["" : 20, "my" : 3]>
        b (bool c, float[2] u, float[2] v) => (float[2] z) <float[1] w = {3}> {
            z = If (c) <
                then_branch = t () => (float[2] p) { p = my.twice (u) },
                else_branch = e () => (float[2] q) { q = Mul (v, w) }
            >
        }
        <domain: "my", opset_import: ["" : 20]> twice (x) => (y) { y = Add (x, x) }"#,
    );
    both.join(&second, &links(&[("y", "u"), ("y", "v")])).unwrap();
    for (choice, expected) in [(true, [-2f32, -4.0]), (false, [-3.0, -6.0])] {
        let given = [Tensor::vector(&[1f32, 2.0]), Tensor::scalar(choice)];
        assert_eq!(both.run(&given).unwrap()[0].to_vec::<f32>().unwrap(), expected);
    }
}

/// The only output becomes the only input, whatever their names; types must fit.
#[test]
fn fitting_ends() {
    let of = |ty: &str| program(&format!("a ({ty} x) => ({ty} y) {{ y = Identity (x) }}"));
    let mut both = of("float[n, 3]");
    both.join(&of("float[4, k]"), &[]).unwrap();
    assert_eq!(ends(&both), [["x: float[n,3]"], ["y: float[4,3]"]]);
    for ty in ["float[n, 2]", "float[n]", "int64[n, 3]"] {
        let error = of(ty).join(&of("float[4, 3]"), &[]).unwrap_err().to_string();
        assert!(error.contains("but the input `x` takes float[4,3]"), "{error}");
    }
    let older = program(
        r#"<ir_version: 9, opset_import: ["" : 20, "d" : 1]> a (float x) => (float y) { y = d.op (x) }"#,
    );
    let newer = program(
        r#"<ir_version: 9, opset_import: ["" : 20, "d" : 2]> a (float x) => (float y) { y = d.op (x) }"#,
    );
    let mut both = older;
    let error = both.join(&newer, &[]).unwrap_err().to_string();
    assert_eq!(error, "the models import the domain d at the versions 1 and 2");
}

/// Shapes of whole inputs: sizes, names, and dimensions that stay; also of an unknown rank.
#[test]
fn shapes_of_inputs() {
    let shaped = |ty: &str, shape: &str| {
        let mut program = program(&format!("a ({ty} x) => ({ty} y) {{ y = Relu (x) }}"));
        let mut options = Options::default();
        options.input_shape = links(&[("x", shape)]);
        let done = program.set_interface(&options).map_err(|e| e.to_string());
        done.map(|()| ends(&program)[0][0].clone())
    };
    for (ty, shape, expected) in [
        ("float[n, 3, h]", "2,3,height", "x: float[2,3,height]"),
        ("float[n, 3, h]", "?, ?, 7", "x: float[n,3,7]"),
        ("float", "", "x: float"),
        ("float[]", "2,n", "x: float[2,n]"),
    ] {
        assert_eq!(shaped(ty, shape).as_deref(), Ok(expected), "{ty} {shape}");
    }
    let error = shaped("float[n, 3]", "2,4").unwrap_err();
    assert_eq!(error, "`x.1` cannot be 4: the program allows 3 only");
    let error = shaped("float[n, 3]", "2").unwrap_err();
    assert!(error.contains("of 1 dimensions is given for the input `x`, which has 2"), "{error}");
}

/// Symbols `n` and `n_2` of one model, and sizes that share a name.
#[test]
fn sizes_stay_apart() {
    let mut both = program("a (float[n] x) => (float[n] y) { y = Neg (x) }");
    let second = "b (float[k] y, float[n] q, float[n_2] r) => (float[k] z, int64 s) { z = Abs (y) o = Add (q, q) s = Size (r) }";
    both.join(&program(second), &[]).unwrap();
    let [inputs, _] = ends(&both);
    assert_eq!(inputs, ["x: float[n]", "q: float[n_3]", "r: float[n_2]"]);
    let refused = |first: &str, second: &str| {
        program(first).join(&program(second), &[]).unwrap_err().to_string()
    };
    for (first, second, error) in [
        (
            "a (float[2,3] x) => (float[2,3] y, float[4] q) <float[4] w = {1, 2, 3, 4}> { y = Neg (x) q = Neg (w) }",
            "b (float[2,n] y, float[n] q) => (float[2,n] z) { z = Add (y, q) }",
            "the output `q` is float[4], but the input `q` takes float[3]",
        ),
        (
            "a (float[2] x) => (seq(float[2]) y) { y = SequenceConstruct (x) }",
            "b (seq(int64[2]) y, int64 i) => (int64[2] z) { z = SequenceAt (y, i) }",
            "the output `y` is seq(float[2]), but the input `y` takes seq(int64[2])",
        ),
        (
            "a (float[2] x) => (optional(float[2]) y) { y = Optional (x) }",
            "b (optional(int64[2]) y) => (int64[2] z) { z = OptionalGetElement (y) }",
            "the output `y` is optional(float[2]), but the input `y` takes optional(int64[2])",
        ),
    ] {
        assert_eq!(refused(first, second), error);
    }
}

/// A name stands for one function, or for one operator of the runtime.
#[test]
fn functions_of_both() {
    let of = |input: &str, output: &str, function: &str| {
        program(&format!(
            r#"<ir_version: 8, opset_import: ["" : 17, "l" : 1]>
            a (float[2] {input}) => (float[2] {output}) {{ {output} = l.f ({input}) }} {function}"#
        ))
    };
    let exp = r#"<domain: "l", opset_import: ["" : 17]> f (x) => (a) { b = Exp (x) a = Neg (b) }"#;
    let mut both = of("x", "y", exp);
    both.join(&of("y", "z", exp), &[]).unwrap();
    assert_eq!(both.model().functions.len(), 1);
    let error = |first: &str, second: &str| {
        of("x", "y", first).join(&of("y", "z", second), &[]).unwrap_err().to_string()
    };
    assert!(error(exp, &exp.replace("Exp", "Abs")).starts_with("both models have a function l.f"));
    for (first, second) in [(exp, ""), ("", exp)] {
        let error = error(first, second);
        assert!(error.starts_with("l.f is a function in one model and an operator"), "{error}");
    }
}

/// Models of one opset are joined also where none can be rewritten, with the warnings of both.
#[test]
fn opsets_and_warnings() {
    for (ir, opset) in [(3, 6), (13, 27)] {
        let of = |input: &str, output: &str| {
            program(&format!(
                r#"<ir_version: {ir}, opset_import: ["" : {opset}]>
                a (float[2] {input}) => (float[2] {output}) {{ {output} = Neg ({input}) }}"#
            ))
        };
        let mut both = of("x", "y");
        both.join(&of("y", "z"), &[]).unwrap();
        assert_eq!(both.model().opset, opset);
    }
    let other: Model = "b (float[2] y) => (float[2] z) { z = Exp (y) }".parse().unwrap();
    let mut bytes = writer::to_bytes(&other).unwrap().to_vec();
    bytes.extend([0xA2, 0x01, 0x00]); // An empty `training_info`.
    let other = OnnxProgram::from_bytes(bytes, []).unwrap();
    let mut both = program("a (float[2] x) => (float[2] y) { y = Neg (x) }");
    both.join(&other, &[]).unwrap();
    assert_eq!(both.warnings().len(), 1);
}

/// A name of a size means the same in the graph and in the branches of `If`; bodies of loops have
/// separate sizes, which may grow.
#[test]
fn sizes_in_bodies() {
    let mut grows = program(
        r#"<ir_version: 8, opset_import: ["" : 16]>
        g (float[N] x, int64 n) => (float[k] y, int64[m,1] s) <bool t = {1}> {
            y, s = Loop (n, t, x) <body = b (int64 i, bool c, float[N] v) => (bool d, float[M] w, int64[1] size) {
                size = Shape (v) w = Concat <axis = 0> (v, x) d = Identity (c)
            }>
        }"#,
    );
    let mut options = Options::default();
    options.fix_dim = vec![("N".to_owned(), 2)];
    grows.rewrite(&options, None, None).unwrap();
    let given = [Tensor::vector(&[1f32, 2.0]), Tensor::scalar(3i64)];
    let sizes = grows.run(&given).unwrap()[1].to_vec::<i64>();
    assert_eq!(sizes.unwrap(), [2, 4, 6]);
    let mut branches = program(
        r#"<ir_version: 8, opset_import: ["" : 16]>
        g (float[N] x, bool c) => (float[N] y) {
            y = If (c) <then_branch = t () => (float[N] p) { p = Neg (x) }, else_branch = e () => (float[N] q) { q = Exp (x) }>
        }"#,
    );
    branches.set_interface(&options).unwrap();
    assert!(!branches.to_text().contains("[N]"), "{}", branches.to_text());
    options.fix_dim = vec![("M".to_owned(), 2)];
    let error = grows.set_interface(&options).unwrap_err().to_string();
    assert!(error.contains('M'), "{error}");
}

/// Cut points are described as in the file, get the names that are asked for, and take what has a
/// default along.
#[test]
fn extracted_parts_have_the_names_and_types_of_their_cut_points() {
    let cut = |text: &str, inputs: &str, outputs: &str| {
        let names = |all: &str| all.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut part = program(text);
        part.extract(&names(inputs), &names(outputs)).map_err(|e| e.to_string())?;
        let part = OnnxProgram::from_bytes(part.to_bytes().unwrap(), []).unwrap();
        Ok::<_, String>(ends(&part).map(|ends| ends.join(", ")).join(" -> "))
    };
    let shaped = "g (float[2,3] x, int64[2] s) => (float[6,1] y) <float[M,1] v> { v = Reshape (x, s) y = Neg (v) }";
    let plain = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { t = Exp (x) s = Add (t, w) y = Abs (s) }";
    let body = "g (float[2] x, bool c) => (float[2] y) { y = If (c) <
        then_branch = a () => (float[2] p) <float[2] inner = {1, 2}> { p = Add (x, inner) },
        else_branch = b () => (float[2] q) { q = Neg (x) }> }";
    let sequence = "g (float[2] x) => (float[2] y) <int64 i = {0}> { s = SequenceConstruct (x, x) y = SequenceAt (s, i) }";
    let function = r#"<ir_version: 8, opset_import: ["" : 17, "l" : 1]> g (float[2] x) => (float[2] y) { t = l.f (x) y = Neg (t) }
        <domain: "l", opset_import: ["" : 17]> f (x) => (a) { a = Exp (x) }"#;
    let old = "<ir_version: 3, opset_import: [\"\" : 9]> g (float[2] x) => (float[1,2] y) { t, m = Dropout (x) u = Unsqueeze <axes = [0]> (t) y = Neg (u) }";
    let default = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { t = Exp (x) y = Add (t, w) }";
    for (text, inputs, outputs, expected) in [
        (shaped, "v", "y", Ok("v: float[M,1] -> y: float[6,1]")),
        (shaped, "x,s", "v", Ok("x: float[2,3], s: int64[2] -> v: float[M,1]")),
        (plain, "t", "t,y", Ok("t: float[2] -> t: float[2], y: float[2]")),
        (plain, "x", "w", Ok("x: float[2] -> w: float[2]")),
        (plain, "t,t", "y", Err("`t` is given twice")),
        (plain, "t", "y,y", Err("`y` is given twice")),
        (body, "x", "inner", Err("the main graph has no value `inner`")),
        (sequence, "s", "y", Ok("s: seq(float[2]) -> y: float[2]")),
        (function, "x", "t", Ok("x: float[2] -> t: float[2]")),
        (function, "t", "y", Ok("t: float[2] -> y: float[2]")),
        (old, "x", "t", Ok("x: float[2] -> t: float[2]")),
        (old, "u", "y", Ok("u: float[1,2] -> y: float[1,2]")),
        (default, "t", "y", Ok("t: float[2], w: float[2] -> y: float[2]")),
    ] {
        let found = cut(text, inputs, outputs);
        assert_eq!(
            found.as_deref(),
            expected.map_err(str::to_owned).as_deref(),
            "{inputs}:{outputs}"
        );
    }
}
