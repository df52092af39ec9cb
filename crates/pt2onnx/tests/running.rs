//! Models in ONNX Runtime through the library: fixed and dynamic sizes, values in between,
//! verification.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod bundles;

use pt2onnx::{
    DynamicAxes, Error, Exporter, OnnxProgram, RunError, SessionOptions, Verdict,
    ir::{InsertPoint, Model, Type},
    opt::Level,
    symbolic::Expr,
    tensor::Tensor,
};
use safetensors::SafeTensors;

/// A case of the bundle `interface`: an archive, and inputs with PyTorch's outputs, of up to two
/// sizes.
struct Case {
    archive: tempfile::NamedTempFile,
    samples: Vec<(Vec<Tensor>, Vec<Tensor>)>,
}

fn case(name: &str) -> Case {
    let bundle = bundles::unpack(&bundles::testdata().join("cases/interface.tar.zst"));
    let io = SafeTensors::deserialize(&bundle[name]["io.safetensors"]).unwrap();
    let of = |what: String| bundles::numbered(&io, &what);
    let samples = ["", "alt."].map(|l| (of(format!("{l}input.")), of(format!("{l}output."))));
    Case {
        archive: bundles::temporary(&bundle[name]["model.pt2"]),
        samples: samples.into_iter().filter(|(i, _)| !i.is_empty()).collect(),
    }
}

fn mlp(exporter: Exporter) -> OnnxProgram {
    let archive = bundles::testdata().join("models/mlp.pt2");
    exporter.export(archive).unwrap()
}

/// [`pt2onnx::read_arrays`] reads weights too.
#[test]
fn arrays_that_are_not_of_numpy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let name = "x".to_owned();
    let x = Tensor::vector(&[1f32, 2.0]);
    std::fs::write(&path, pt2onnx::to_safetensors([(&name, &x)]).unwrap()).unwrap();
    assert_eq!(pt2onnx::read_arrays(&path).unwrap()["x"].to_vec(), Some(vec![1f32, 2.0]));
    std::fs::write(&path, "no arrays").unwrap();
    let error = pt2onnx::read_arrays(&path).unwrap_err().to_string();
    assert!(error.contains("neither safetensors nor an archive"), "{error}");
}

/// Three inputs of `n` rows.
fn rows(n: usize, value: f32) -> Vec<Tensor> {
    let of = |x: f32| Tensor::from_slice(vec![n, 8], &vec![x; n * 8]).unwrap();
    vec![of(value), of(2.0 * value), of(3.0 * value)]
}

/// Dimensions that are no numbers, of all values.
fn dynamic_dims(program: &OnnxProgram) -> Vec<String> {
    let mut dims: Vec<String> = Vec::new();
    for (_, data) in program.model().values() {
        let tensor = data.ty.as_ref().and_then(Type::as_tensor);
        let shape = tensor.and_then(|t| t.shape.as_deref()).unwrap();
        dims.extend(shape.iter().filter(|d| !d.is_static()).map(Expr::to_string));
    }
    dims.sort();
    dims.dedup();
    dims
}

/// A ResNet with a batch of 10 or of any size, as in the article behind seed 004.
#[test]
fn fixed_and_dynamic_batch() {
    let named = |exporter: Exporter| exporter.input_names(["input"]).output_names(["output"]);
    let export = |case: &Case, exporter| named(exporter).export(case.archive.path()).unwrap();
    let check = |program: &mut OnnxProgram, samples: &[(Vec<Tensor>, Vec<Tensor>)]| {
        for (inputs, outputs) in samples {
            let verification = program.verify(inputs, outputs).unwrap();
            assert!(verification.passed(), "{verification}");
        }
    };
    let (fixed, dynamic) = (case("resnet_fixed"), case("resnet_dynamic"));
    let ends = |program: &OnnxProgram| {
        let model = program.model();
        let ends = model.inputs().iter().copied().chain(model.output_values());
        let shown = ends.map(|v| model[v].ty.as_ref().unwrap().to_string());
        shown.collect::<Vec<_>>().join(" -> ")
    };

    let mut program = export(&fixed, Exporter::new());
    assert_eq!(ends(&program), "float[10,3,32,32] -> float[10,10]");
    assert!(dynamic_dims(&program).is_empty());
    check(&mut program, &fixed.samples);

    let axes =
        DynamicAxes::default().name("input", 0, "batch_size").name("output", 0, "batch_size");
    let mut program = export(&dynamic, Exporter::new().dynamic_axes(axes.clone()));
    assert_eq!(ends(&program), "float[batch_size,3,32,32] -> float[batch_size,10]");
    assert_eq!(dynamic_dims(&program), ["batch_size"]);
    assert_eq!(dynamic.samples.len(), 2);
    check(&mut program, &dynamic.samples);

    let mut program =
        export(&dynamic, Exporter::new().dynamic_axes(axes).fix_dim("batch_size", 10));
    assert_eq!(ends(&program), "float[10,3,32,32] -> float[10,10]");
    assert!(dynamic_dims(&program).is_empty());
    check(&mut program, &dynamic.samples[..1]);
    let (inputs, _) = &dynamic.samples[1];
    assert!(matches!(program.run(inputs), Err(Error::Run(RunError::Run(_)))));
}

#[test]
fn values_by_name() {
    let mut program = mlp(Exporter::new());
    let inputs = rows(2, 0.5);
    let names = ["linear_4", "cat", "fc0.bias", "tensor_x", "cat"];
    let values = program.compute_values(&names, &inputs).unwrap();
    let outputs = program.run(&inputs).unwrap();
    let floats = |t: &Tensor| t.to_vec::<f32>().unwrap();
    assert_eq!(floats(&values[0]), floats(&outputs[0]));
    let row: Vec<f32> = [0.5, 1.0, 1.5].iter().flat_map(|x| [*x; 8]).collect();
    assert_eq!(values[1].shape(), [2, 24]);
    assert_eq!(floats(&values[1]), [&row[..], &row[..]].concat());
    assert_eq!(values[2].shape(), [8]);
    assert_eq!(floats(&values[3]), floats(&inputs[0]));
    assert_eq!(floats(&values[4]), floats(&values[1]));
    // Not even a session is needed for what is known.
    let known = program.compute_values(&["tensor_x"], &inputs).unwrap();
    assert_eq!(floats(&known[0]), floats(&inputs[0]));

    let wrong = program.compute_values(&["nothing"], &inputs).unwrap_err();
    assert!(matches!(wrong, Error::Run(RunError::NoValue(name)) if name == "nothing"));
    let wrong = program.compute_values(&["cat"], &inputs[1..]).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "the number of tensors is 2, that of the inputs is 3: tensor_x, input_dict_tensor_x, input_list_0"
    );
}

/// A program of a model's text.
fn of_text(text: &str) -> OnnxProgram {
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    let bytes = pt2onnx::writer::to_bytes(&model).unwrap();
    OnnxProgram::from_bytes(bytes, []).unwrap()
}

/// Values of branches, iterations and steps, one inside the other; opsets of different forms.
#[test]
fn values_in_bodies() {
    const TEXT: &str = r#"<ir_version: 8, opset_import: ["" : OPSET]>
        g (float[N] x, int64 times, bool flag) => (float[N] y, float[K,N] all, float[N] z, float[N] last, float[N,M] rows)
        < bool go = {1}, float half = {0.5}, float zero = {0.0}, float one = {1.0}, int64[1] axes = {0} > {
            y, all = Loop (times, go, x) < body = b (int64 i, bool c, float[N] a) => (bool d, float[N] sum, float[N] row) {
                d = Identity (c)
                doubled = Add (a, a)
                total = ReduceSum <keepdims = 0> (doubled, axes)
                high = Greater (total, one)
                sum = If (high) <
                    then_branch = t () => (float[N] p) { less = Mul (doubled, half) p = Sub (less, half) },
                    else_branch = e () => (float[N] q) { more = Add (doubled, one) q = Add (more, one) }
                >
                row = Neg (sum)
            } >
            z = If (flag) <
                then_branch = t2 () => (float[N] r) { taken = Exp (x) r = Neg (taken) },
                else_branch = e2 () => (float[N] s) { refused = Abs (x) s = Neg (refused) }
            >
            last, rows = Scan <num_scan_inputs = 1, scan_output_axes = [1], body = c (float[N] state, float[N] given) => (float[N] next, float[N] out) {
                next = Add (state, given)
                square = Mul (next, next)
                out = Neg (square)
            }> (x, all)
        }"#;
    let inputs = [
        Tensor::from_slice(vec![2], &[0.0_f32, 0.25]).unwrap(),
        Tensor::scalar(3_i64),
        Tensor::scalar(true),
    ];
    let names = ["doubled", "less", "more", "taken", "refused", "i", "square", "y", "a", "less"];
    for opset in ["13", "20"] {
        let program = of_text(&TEXT.replace("OPSET", opset));
        let values = program.compute_values(&names, &inputs).unwrap();
        let shown = |v: &Tensor| match v.to_vec::<f32>() {
            Some(floats) => format!("{:?} {floats:?}", v.shape()),
            None => format!("{:?} {:?}", v.shape(), v.to_vec::<i64>().unwrap()),
        };
        let shown: Vec<String> = values.iter().map(shown).collect();
        // The loop makes (2, 2.5), (1.5, 2) and (1, 1.5) of x. The scan subtracts each of them: its
        // first state is (-2, -2.25).
        let e = 0.25_f32.exp();
        let expected = [
            "[3, 2] [0.0, 0.5, 4.0, 5.0, 3.0, 4.0]".to_owned(),
            "[2, 2] [2.0, 2.5, 1.5, 2.0]".to_owned(),
            "[1, 2] [1.0, 1.5]".to_owned(),
            format!("[1, 2] [1.0, {e:?}]"),
            "[0, 0] []".to_owned(),
            "[3] [0, 1, 2]".to_owned(),
            "[3, 2] [4.0, 5.0625, 12.25, 18.0625, 20.25, 33.0625]".to_owned(),
            "[2] [1.0, 1.5]".to_owned(),
            "[3, 2] [0.0, 0.25, 2.0, 2.5, 1.5, 2.0]".to_owned(),
            "[2, 2] [2.0, 2.5, 1.5, 2.0]".to_owned(),
        ];
        assert_eq!(shown, expected, "opset {opset}");
    }
}

#[test]
fn values_in_bodies_that_cannot_be_put_together() {
    let growing = of_text(
        r#"<ir_version: 8, opset_import: ["" : 20]>
        g (float[1] x, int64 times) => (float[K] y) < bool go = {1} > {
            y = Loop (times, go, x) < body = b (int64 i, bool c, float[L] a) => (bool d, float[M] more) {
                d = Identity (c)
                more = Concat <axis = 0> (a, x)
            } >
        }"#,
    );
    let inputs = [Tensor::from_slice(vec![1], &[1.0_f32]).unwrap(), Tensor::scalar(2_i64)];
    let error = growing.compute_values(&["more"], &inputs).unwrap_err();
    assert_eq!(error.to_string(), "output more: its sizes change from time to time: [2] and [3]");
    let inside = of_text(
        r#"<ir_version: 8, opset_import: ["" : 20, "my" : 1]>
        g (float[2] x, float[3,2] steps, bool flag) => (float[2] y, float[3,2] all) {
            y, all = Scan <num_scan_inputs = 1, body = c (float[2] state, float[2] given) => (float[2] next, float[2] out) {
                next = If (flag) <
                    then_branch = t () => (float[2] p) { deep = Add (state, given) p = Neg (deep) },
                    else_branch = e () => (float[2] q) { q = Neg (given) }
                >
                out = my.f (next)
            }> (x, steps)
        }
        <domain: "my", opset_import: ["" : 20]> f (a) => (b) { hidden = Exp (a) b = Neg (hidden) }"#,
    );
    let zeros = |shape: Vec<usize>| {
        let elements = vec![0.0_f32; shape.iter().product()];
        Tensor::from_slice(shape, &elements).unwrap()
    };
    let inputs = [zeros(vec![2]), zeros(vec![3, 2]), Tensor::scalar(true)];
    for (name, expected) in [
        (
            "deep",
            "output deep: it is in a branch or loop inside of a Scan, whose steps must all give equally many elements",
        ),
        (
            "hidden",
            "the model computes no value hidden; values in functions cannot be computed: inline them",
        ),
    ] {
        assert_eq!(inside.compute_values(&[name], &inputs).unwrap_err().to_string(), expected);
    }
}

#[test]
fn verification_and_sessions() {
    let mut program = mlp(Exporter::new());
    let inputs = rows(3, 0.25);
    let options = SessionOptions::new().threads(1).optimize(false);
    let session = program.session(&options, &[]).unwrap();
    assert_eq!(session.output_names().collect::<Vec<_>>(), ["linear_4"]);
    let outputs = session.run(&inputs).unwrap();
    let verified = program.verify(&inputs, &outputs).unwrap();
    assert!(verified.passed(), "{verified}");
    program.release();
    assert!(program.verify(&inputs, &outputs).unwrap().passed());

    let verdict = |program: &mut OnnxProgram, expected: &Tensor| {
        let verification = program.verify(&inputs, std::slice::from_ref(expected));
        verification.unwrap().outputs.remove(0).verdict
    };
    let mut numbers = outputs[0].to_vec::<f32>().unwrap();
    numbers[4] += 1.0;
    let expected = Tensor::from_slice(vec![3, 2], &numbers).unwrap();
    let (count, elements, first) = (1, 6, 4);
    let differs = Verdict::Differs { count, elements, first, not_finite: 0 };
    assert_eq!(verdict(&mut program, &expected), differs);
    let error = program.verify(&inputs, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the number of expected tensors is 0, that of the outputs is 1: linear_4"
    );

    // NaN where NaN is expected shows nothing.
    let inputs = rows(1, f32::NAN);
    let nothing = program.run(&inputs).unwrap();
    let verification = program.verify(&inputs, &nothing).unwrap();
    assert!(!verification.passed());
    assert_eq!(verification.outputs[0].verdict, Verdict::OnlyNan);
}

#[test]
fn optimised_after_a_change() {
    let mut program = mlp(Exporter::new());
    let (text, inputs) = (program.to_text(), rows(2, 1.0));
    let outputs = program.run(&inputs).unwrap();
    // An Identity between input and Concat.
    let model = program.model_mut();
    let (concat, x) = (model.nodes(Model::MAIN).next().unwrap(), model.inputs()[0]);
    let at = InsertPoint::Before(concat);
    let identity = model.add_node(at, "Identity", &[Some(x)], Default::default(), 1);
    let copy = model[identity].outputs()[0];
    model[copy].ty = model[x].ty.clone();
    model.replace_input(concat, 0, Some(copy));
    model.assign_names();
    assert!(program.to_text().contains("Identity"));
    assert!(program.verify(&inputs, &outputs).unwrap().passed());
    program.optimize(Level::default());
    assert_eq!(program.to_text(), text);
    assert!(program.verify(&inputs, &outputs).unwrap().passed());
}
