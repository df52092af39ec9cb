//! Models in ONNX Runtime through the library: fixed and dynamic sizes, values in between, verification.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod bundles;

use pt2onnx::{
    DynamicAxes, Error, Exporter, OnnxProgram, OutputNames, RunError, SessionOptions, Verdict,
    ir::{InsertPoint, Model, Type},
    opt::Level,
    symbolic::Expr,
    tensor::Tensor,
};
use safetensors::SafeTensors;

/// A case of the bundle `interface`: an archive, and inputs with PyTorch's outputs, of up to two sizes.
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

/// What the article behind seed 004 shows of a ResNet: a batch of 10, or one of any size.
#[test]
fn fixed_and_dynamic_batch() {
    let named = |exporter: Exporter| {
        let outputs = OutputNames::List(vec!["output".into()]);
        exporter.input_names(["input"]).output_names(outputs)
    };
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

    let mut program = export(&dynamic, Exporter::new().dynamic_axes(axes).fix("batch_size", 10));
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
        "2 tensors for the 3 inputs tensor_x, input_dict_tensor_x, input_list_0"
    );
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
    let differs = Verdict::Differs { count, elements, first };
    assert_eq!(verdict(&mut program, &expected), differs);
    let error = program.verify(&inputs, &[]).unwrap_err();
    assert_eq!(error.to_string(), "0 tensors are expected of the 1 outputs linear_4");

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
