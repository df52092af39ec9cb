//! Weights apart from the model: left out, applied from files of every kind, offered as inputs.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test may fail so")]

mod bundles;

use indexmap::IndexMap;
use pt2onnx::{
    Error, Exporter, Misfit, OnnxProgram, SaveOptions, Weights, ir::Def, read_weights,
    tensor::DType, tensor::Tensor,
};
use safetensors::{Dtype, serialize_to_file, tensor::TensorView};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

fn mlp() -> PathBuf {
    bundles::testdata().join("models/mlp.pt2")
}

/// The outputs for three inputs of two rows.
fn outputs(program: &mut OnnxProgram) -> Vec<f32> {
    let input = |i: usize| {
        let elements: Vec<f32> = (0..16).map(|j| (i + j) as f32 / 16.0 - 0.5).collect();
        Tensor::from_slice(vec![2, 8], &elements).unwrap()
    };
    let inputs: Vec<Tensor> = (0..3).map(input).collect();
    program.run(&inputs).unwrap()[0].to_vec().unwrap()
}

/// Writes weights as safetensors.
fn write<'a>(
    path: &Path,
    weights: impl IntoIterator<Item = (&'a String, &'a Tensor)>,
    metadata: Option<HashMap<String, String>>,
) {
    let views = weights.into_iter().map(|(name, tensor)| {
        assert_eq!(tensor.dtype(), DType::F32);
        let bytes = tensor.to_bytes().into_owned();
        (name.clone(), tensor.shape().to_vec(), bytes)
    });
    let views: Vec<_> = views.collect();
    let views = views.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap();
        (name, view)
    });
    serialize_to_file(views, metadata, path).unwrap();
}

fn scaled(weights: &IndexMap<String, Tensor>, factor: f32) -> IndexMap<String, Tensor> {
    let scale = |tensor: &Tensor| {
        let elements = tensor.to_vec::<f32>().unwrap();
        let elements: Vec<f32> = elements.iter().map(|x| x * factor).collect();
        Tensor::from_slice(tensor.shape(), &elements).unwrap()
    };
    weights.iter().map(|(n, t)| (n.clone(), scale(t))).collect()
}

#[test]
fn a_model_without_weights_is_completed_from_files() {
    let expected = outputs(&mut Exporter::new().export(mlp()).unwrap());
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let program = Exporter::new().weights(Weights::None).export(mlp()).unwrap();
    program.save(at("hollow.onnx")).unwrap();
    let hollow = fs::read(at("hollow.onnx")).unwrap();
    let weights = read_weights(mlp()).unwrap();
    let bytes = weights["fc_combined.weight"].to_bytes().into_owned();
    assert!(!hollow.windows(bytes.len()).any(|w| w == bytes));

    write(&at("all.safetensors"), &weights, None);
    fs::create_dir(at("parts")).unwrap();
    write(&at("parts/1.safetensors"), weights.iter().take(4), None);
    write(&at("parts/2.safetensors"), weights.iter().skip(4), None);
    fs::create_dir(at("shards")).unwrap();
    write(&at("shards/1.safetensors"), weights.iter().take(4), None);
    write(&at("shards/2.safetensors"), weights.iter().skip(4), None);
    // Not in the index: it is not looked at.
    fs::write(at("shards/3.safetensors"), "nothing").unwrap();
    let place = |(i, name): (usize, &String)| {
        format!("\"{name}\": \"{}.safetensors\"", if i < 4 { 1 } else { 2 })
    };
    let places: Vec<String> = weights.keys().enumerate().map(place).collect();
    let index = format!("{{\"metadata\": {{}}, \"weight_map\": {{{}}}}}", places.join(", "));
    fs::write(at("shards/model.safetensors.index.json"), index).unwrap();

    for source in [
        mlp(),
        at("all.safetensors"),
        at("parts"),
        at("shards"),
        at("shards/model.safetensors.index.json"),
    ] {
        let mut program = OnnxProgram::open(at("hollow.onnx")).unwrap();
        let read = read_weights(&source).unwrap();
        program.apply_weights(&read).unwrap();
        let options = SaveOptions { data_file: Some("weights.bin".into()), ..Weights::Auto.into() };
        let saved = program.save_with(at("full.onnx"), options).unwrap();
        // All are smaller than what goes to the data file.
        assert!(saved.data.is_empty());
        let mut full = OnnxProgram::open(at("full.onnx")).unwrap();
        assert_eq!(outputs(&mut full), expected, "{}", source.display());
    }
}

#[test]
fn a_name_that_only_the_metadata_has() {
    let weights = read_weights(mlp()).unwrap();
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.safetensors");
    let alias = HashMap::from([
        ("tied.bias".to_owned(), "fc0.bias".to_owned()),
        ("format".to_owned(), "pt".to_owned()),
    ]);
    write(&file, &weights, Some(alias));
    let read = read_weights(&file).unwrap();
    assert_eq!(read.len(), weights.len() + 1);
    assert!(read["tied.bias"].same(&read["fc0.bias"]));
}

#[test]
fn all_that_is_wrong_is_told_and_nothing_changes() {
    let mut program = Exporter::new().weights(Weights::None).export(mlp()).unwrap();
    let mut weights = read_weights(mlp()).unwrap();
    weights.shift_remove("fc0.bias");
    let wrong = Tensor::from_slice(vec![8], &[0i32; 8]).unwrap();
    weights.insert("fc_combined.bias".into(), wrong);
    let wrong = Tensor::from_slice(vec![4], &[0f32; 4]).unwrap();
    weights.insert("fc2.weight".into(), wrong);
    let Err(Error::Weights(misfits)) = program.apply_weights(&weights) else {
        panic!("applied");
    };
    let texts: Vec<String> = misfits.iter().map(Misfit::to_string).collect();
    assert_eq!(
        texts,
        [
            "weight `fc0.bias`, float32[8]: was not given",
            "weight `fc2.weight`: the model needs float32[2, 4], but float32[4] was given",
            "weight `fc_combined.bias`: the model needs float32[8], but int32[8] was given",
        ]
    );
    let constants = program.model().values();
    let filled =
        constants.filter(|(_, d)| d.name.is_some() && d.constant().is_some_and(Tensor::has_data));
    assert_eq!(filled.count(), 0);
}

/// Weights of a program that was exported without can be replaced as long as nothing was computed
/// from them.
#[test]
fn weights_are_replaced() {
    let export = |exporter: Exporter| exporter.export(mlp()).unwrap();
    let weights = read_weights(mlp()).unwrap();
    let other = scaled(&weights, 0.5);
    let expected = outputs(&mut export(Exporter::new()));
    let mut program = export(Exporter::new().weights(Weights::None));
    program.apply_weights(&other).unwrap();
    assert_ne!(outputs(&mut program), expected);
    program.apply_weights(&weights).unwrap();
    assert_eq!(outputs(&mut program), expected);
    program.optimize(pt2onnx::opt::Level::Fuse);
    assert!(matches!(program.apply_weights(&other), Err(Error::Weights(_))));
    // Equal values are accepted again.
    program.apply_weights(&weights).unwrap();
    assert_eq!(outputs(&mut program), expected);
    let mut usual = export(Exporter::new());
    assert!(matches!(usual.apply_weights(&other), Err(Error::Weights(_))));
}

#[test]
fn weights_as_inputs() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    let weights = read_weights(mlp()).unwrap();
    let expected = outputs(&mut Exporter::new().export(mlp()).unwrap());
    let kept = || Exporter::new().keep_initializers_as_inputs(true);
    let names = |program: &OnnxProgram| -> Vec<String> {
        let model = program.model();
        let inputs = model.inputs().iter();
        inputs.map(|v| model[*v].name.as_deref().unwrap().to_owned()).collect()
    };

    let mut program = kept().export(mlp()).unwrap();
    let own = ["tensor_x", "input_dict_tensor_x", "input_list_0"];
    assert_eq!(names(&program)[..3], own);
    assert!(names(&program)[3..].iter().eq(weights.keys()));
    assert_eq!(outputs(&mut program), expected);
    program.save(&file).unwrap();
    let mut read = OnnxProgram::open(&file).unwrap();
    assert_eq!((names(&read), outputs(&mut read)), (names(&program), expected.clone()));

    let program = kept().weights(Weights::None).export(mlp()).unwrap();
    let model = program.model();
    let constants = model.values().filter(|(_, d)| d.uses().len() > 0);
    assert_eq!(constants.filter(|(_, d)| matches!(d.def(), Def::Constant(_))).count(), 0);
    program.save(&file).unwrap();
    let mut read = OnnxProgram::open(&file).unwrap();
    assert_eq!(names(&read), names(&program));
    let missing = read.apply_weights(&IndexMap::new());
    assert!(matches!(missing, Err(Error::Weights(m)) if m.len() == weights.len()));
    read.apply_weights(&weights).unwrap();
    assert_eq!(outputs(&mut read), expected);
}

/// ONNX Runtime itself reads the archive, and data files in parts.
#[test]
fn onnx_runtime_finds_the_weights() {
    use pt2onnx::ort::{session::Session, value::TensorRef};
    let environment = pt2onnx::ort_environment().unwrap();
    let expected = outputs(&mut Exporter::new().export(mlp()).unwrap());
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("below")).unwrap();
    fs::copy(mlp(), at("below/archive.pt2")).unwrap();
    let external = Exporter::new().weights(Weights::External).shard_size(500);
    for exporter in [external, Exporter::new().weights(Weights::Link)] {
        let exporter = exporter.external_threshold(1);
        let link = exporter.options().weights == Weights::Link;
        let program = exporter.export(at("below/archive.pt2")).unwrap();
        let saved = program.save(at("m.onnx")).unwrap();
        assert_eq!(saved.data.is_empty(), link);
        assert_eq!(outputs(&mut OnnxProgram::open(at("m.onnx")).unwrap()), expected);
        let mut session =
            Session::builder(&environment).unwrap().commit_from_file(at("m.onnx")).unwrap();
        let elements: Vec<Vec<f32>> =
            (0..3).map(|i| (0..16).map(|j| (i + j) as f32 / 16.0 - 0.5).collect()).collect();
        let input = |i: usize| TensorRef::from_array_view(([2usize, 8], &*elements[i])).unwrap();
        let given = pt2onnx::ort::inputs![input(0), input(1), input(2)];
        let run = session.run(given).unwrap();
        let (_, got) = run[0].try_extract_tensor::<f32>().unwrap();
        assert_eq!(got, expected);
    }
    // Without its archive the linked model is nothing.
    fs::remove_file(at("below/archive.pt2")).unwrap();
    assert!(Session::builder(&environment).unwrap().commit_from_file(at("m.onnx")).is_err());
}

/// The weights of the file: names and whether they have values.
fn held(file: &Path) -> Vec<(String, bool)> {
    let program = OnnxProgram::open(file).unwrap();
    let model = program.model();
    let all = model.values().filter_map(|(_, data)| match data.def() {
        Def::Constant(tensor) if data.uses().len() > 0 => Some((data, tensor.has_data())),
        Def::Input(..) => Some((data, data.default.is_some())),
        _ => None,
    });
    all.map(|(data, has)| (data.name.as_deref().unwrap().to_owned(), has)).collect()
}

/// As `include_initializers=False` and `keep_initializers_as_inputs=True` of `ONNXProgram.save` in
/// torch.onnx.
#[test]
fn weights_are_left_out_when_a_model_is_saved() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    let weights = read_weights(mlp()).unwrap();
    for detail in [pt2onnx::Provenance::Full, pt2onnx::Provenance::None] {
        let mut program = Exporter::new().provenance(detail).export(mlp()).unwrap();
        let expected = outputs(&mut program);
        program.save_with(&file, Weights::None).unwrap();
        assert!(held(&file).iter().all(|(name, has)| !has || !weights.contains_key(name)));
        let mut read = OnnxProgram::open(&file).unwrap();
        assert_eq!(read.model().inputs().len(), 3);
        // The graph is the same, so that the same values make it whole.
        read.apply_weights(&weights).unwrap();
        assert_eq!(outputs(&mut read), expected);

        let kept =
            |weights: Weights| SaveOptions { keep_initializers_as_inputs: true, ..weights.into() };
        program.save_with(&file, kept(Weights::Embed)).unwrap();
        let mut read = OnnxProgram::open(&file).unwrap();
        assert_eq!(read.model().inputs().len(), 3 + weights.len());
        assert_eq!(outputs(&mut read), expected);
        program.save_with(&file, kept(Weights::None)).unwrap();
        let read = OnnxProgram::open(&file).unwrap();
        assert_eq!(read.model().inputs().len(), 3 + weights.len());
        assert!(held(&file).iter().all(|(name, has)| !has || !weights.contains_key(name)));
        // Nothing of this changed the program.
        program.save(&file).unwrap();
        assert_eq!(outputs(&mut OnnxProgram::open(&file).unwrap()), expected);
    }
    // A program that was exported without weights, and got some.
    let mut program = Exporter::new().weights(Weights::None).export(mlp()).unwrap();
    program.save(&file).unwrap();
    let hollow = held(&file);
    program.apply_weights(&weights).unwrap();
    program.save_with(&file, Weights::None).unwrap();
    assert_eq!(held(&file), hollow);
    program.save(&file).unwrap();
    assert!(held(&file).iter().filter(|(name, _)| weights.contains_key(name)).all(|(_, has)| *has));
}

/// The weights of a batch normalisation that was folded are not in the model any more.
#[test]
fn weights_that_were_folded() {
    let all = bundles::unpack(&bundles::testdata().join("cases/models.tar.zst"));
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    let mut folded = 0;
    for files in all.values() {
        let archive = bundles::temporary(&files["model.pt2"]);
        let Ok(weights) = read_weights(archive.path()) else { continue };
        if !weights.keys().any(|name| name.ends_with("running_mean")) {
            continue;
        }
        let mut full = Exporter::new().export(archive.path()).unwrap();
        match full.apply_weights(&weights) {
            Err(Error::Weights(misfits)) => {
                assert!(misfits.iter().all(|m| matches!(m, Misfit::Unused(_))), "{misfits:?}");
                folded += 1;
            }
            other => other.unwrap(),
        }
        // Weights that the program itself does not use, such as the count of batches, are no error.
        let hollow = Exporter::new().weights(Weights::None).export(archive.path()).unwrap();
        hollow.save(&file).unwrap();
        OnnxProgram::open(&file).unwrap().apply_weights(&weights).unwrap();
    }
    assert!(folded > 0);
}

#[test]
fn a_program_does_not_write_what_it_reads() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(mlp(), at("m.pt2")).unwrap();
    fs::hard_link(at("m.pt2"), at("hard")).unwrap();
    let program = Exporter::new().export(at("m.pt2")).unwrap();
    let external = |name: &str| SaveOptions {
        data_file: Some(name.into()),
        threshold: 1,
        ..Weights::External.into()
    };
    let overwrites = |result: Result<_, Error>| {
        matches!(result, Err(Error::Write(pt2onnx::writer::Error::Overwrites { .. })))
    };
    for name in ["m.pt2", "hard"] {
        assert!(overwrites(program.save(at(name))), "{name}");
        assert!(overwrites(program.save_with(at("m.onnx"), external(name))), "{name}");
    }
    assert_eq!(fs::read(at("hard")).unwrap(), fs::read(mlp()).unwrap());
    program.save_with(at("m.onnx"), external("m.bin")).unwrap();
    let mut read = OnnxProgram::open(at("m.onnx")).unwrap();
    assert!(overwrites(read.save(at("m.bin"))));
    assert!(overwrites(read.save_with(at("m.onnx"), external("m.bin"))));
    // Under its own name.
    let expected = outputs(&mut read);
    read.save(at("m.onnx")).unwrap();
    assert_eq!(outputs(&mut OnnxProgram::open(at("m.onnx")).unwrap()), expected);
}

/// A program that was captured under `strict=True` may have a constant without values, which stands
/// for `parameter.data`.
#[test]
fn some_weights_without_values() {
    let export = |result: &str| {
        let text = format!(
            "graph(w: f32[2] as PARAMETER('w'), c: f32[2] as CONSTANT_TENSOR('lifted'), x: f32[2]) {{
                clamp_: f32[2] = aten.clamp_.default(self = c, min = 0.0)
                add: f32[2] = aten.add.Tensor(self = x, other = w)
                mul: f32[2] = aten.mul.Tensor(self = add, other = c)
                return ({result},)
            }}"
        );
        let mut program = pt2onnx::fx::text::parse_program(&text).unwrap();
        let w = Tensor::from_slice(vec![2], &[1.0_f32, 2.0]).unwrap();
        program.state.insert("w".to_owned(), w);
        Exporter::new().export(program)
    };
    let mut program = export("add").unwrap();
    let warnings = program.warnings();
    assert!(warnings.len() == 1 && warnings[0].message.contains("`lifted`"), "{warnings:?}");
    let x = Tensor::from_slice(vec![2], &[3.0_f32, 4.0]).unwrap();
    assert_eq!(program.run(&[x]).unwrap()[0].to_vec::<f32>().unwrap(), [4.0, 6.0]);

    let error = export("mul").map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, Error::Write(pt2onnx::writer::Error::NoData(names)) if names == &["lifted"]),
        "{error}"
    );
}
