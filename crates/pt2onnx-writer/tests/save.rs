//! Files: external data, and that a failure changes nothing.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use prost::Message;
use pt2onnx_ir::{InsertPoint, Model, Type};
use pt2onnx_proto::{ModelProto, TensorProto};
use pt2onnx_tensor::{DType, FileRange, Storage, Tensor};
use pt2onnx_writer::{
    Batch, Error, Inputs, MAX_ALIGNMENT, SaveOptions, Weights, check, save, to_bytes,
};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc};
use tempfile::{TempDir, tempdir};

/// A model that concatenates the tensors.
fn model(tensors: impl IntoIterator<Item = Tensor>) -> Model {
    let mut m = Model::new(20);
    let mut inputs = Vec::new();
    for (i, tensor) in tensors.into_iter().enumerate() {
        let value = m.add_constant(tensor);
        m[value].name = Some(format!("w{i}").into());
        inputs.push(Some(value));
    }
    let node = m.add_node(InsertPoint::End(Model::MAIN), "Sum", &inputs, Default::default(), 1);
    let out = m[node].outputs()[0];
    m[out].ty = Some(Type::tensor(DType::F32, []));
    m.set_outputs(Model::MAIN, &[out]);
    m.assign_names();
    m
}

fn counting(n: usize) -> Tensor {
    let elements: Vec<f32> = (0..n).map(|i| i as f32).collect();
    Tensor::from_slice(vec![n], &elements).unwrap()
}

/// Name and content of every file in a folder, temporary ones too.
fn files(folder: &TempDir) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
    entries
        .map(|p| {
            (p.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&p).unwrap_or_default())
        })
        .collect()
}

fn initialisers(file: &Path) -> Vec<TensorProto> {
    ModelProto::decode(&*fs::read(file).unwrap()).unwrap().graph.unwrap().initializer
}

/// Location, offset and length of an external tensor.
fn place(t: &TensorProto) -> Option<(String, usize, usize)> {
    let get =
        |key: &str| t.external_data.iter().find(|e| e.key() == key).map(|e| e.value().to_owned());
    Some((get("location")?, get("offset")?.parse().unwrap(), get("length")?.parse().unwrap()))
}

#[test]
fn external_data_is_aligned_and_shared() {
    let big = counting(2000);
    let shared = big.reshaped(vec![20, 100]).unwrap();
    let m = model([counting(255), big, counting(256), shared]);
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    let saved = save(&m, &file, Weights::External).unwrap();
    let data = fs::read(folder.path().join("m.onnx.data")).unwrap();
    let places: Vec<_> = initialisers(&file).iter().map(place).collect();
    let at = |offset, length| Some(("m.onnx.data".to_owned(), offset, length));
    assert_eq!(places, [None, at(0, 8000), at(8192, 1024), at(0, 8000)]);
    assert_eq!(data[..8000], *counting(2000).to_bytes());
    assert_eq!(data[8192..], *counting(256).to_bytes());
    assert_eq!(initialisers(&file)[0].raw_data(), &*counting(255).to_bytes());
    assert!(initialisers(&file)[1].raw_data.is_none());
    assert_eq!(saved.bytes, fs::metadata(&file).unwrap().len());
    assert_eq!(saved.data, [(folder.path().join("m.onnx.data"), 9216)]);
    assert_eq!(files(&folder).len(), 2);
}

#[test]
fn views_and_mapped_parts_are_written_as_they_look() {
    // 3 MiB as a transposed view, an expanded one, and a part of a file: all longer than a piece.
    let base = counting(3 << 18);
    let transposed = Tensor::strided(
        DType::F32,
        vec![1, 1 << 9, 3 << 9],
        vec![7, 1, 1 << 9],
        0,
        base.storage().unwrap().clone(),
    );
    let expanded = Tensor::strided(
        DType::F32,
        vec![2, 3 << 18],
        vec![0, 1],
        0,
        base.storage().unwrap().clone(),
    );
    let folder = tempdir().unwrap();
    let file = in_file(&folder, &base, 0);
    let tensors = [transposed.unwrap(), expanded.unwrap(), file];
    let expected: Vec<Vec<u8>> = tensors.iter().map(|t| t.to_bytes().into_owned()).collect();
    let m = model(tensors);

    let out = tempdir().unwrap();
    let path = out.path().join("m.onnx");
    save(&m, &path, Weights::External).unwrap();
    let data = fs::read(out.path().join("m.onnx.data")).unwrap();
    let places = initialisers(&path).iter().map(|t| place(t).unwrap()).collect::<Vec<_>>();
    let external: Vec<_> = places.iter().map(|(_, at, n)| data[*at..at + n].to_vec()).collect();
    assert!(external == expected);

    let out = tempdir().unwrap();
    let path = out.path().join("m.onnx");
    save(&m, &path, Weights::Auto).unwrap();
    let embedded: Vec<_> = initialisers(&path).iter().map(|t| t.raw_data().to_vec()).collect();
    assert!(embedded == expected);
    assert!(fs::read(&path).unwrap() == *to_bytes(&m).unwrap());
    assert_eq!(files(&out).len(), 1);
}

/// The tensor as a part of a file that is `missing` bytes short.
fn in_file(folder: &TempDir, tensor: &Tensor, missing: u64) -> Tensor {
    let path = folder.path().join("weights");
    let bytes = [&b"head"[..], &tensor.to_bytes()].concat();
    fs::write(&path, &bytes).unwrap();
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    file.set_len(bytes.len() as u64 - missing).unwrap();
    let source = FileRange { path: Arc::new(path), file: Arc::new(file), offset: 4 };
    let storage = Storage::mapped(tensor.storage().unwrap().bytes().clone(), source);
    Tensor::strided(tensor.dtype(), tensor.shape(), &*tensor.strides(), 0, storage).unwrap()
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let m = model([counting(5), counting(5000), counting(300)]);
    let write = || {
        let folder = tempdir().unwrap();
        save(&m, folder.path().join("m.onnx"), Weights::External).unwrap();
        files(&folder)
    };
    assert!(write() == write());
    assert_eq!(to_bytes(&m).unwrap(), to_bytes(&m.clone()).unwrap());
}

#[test]
fn an_earlier_export_is_replaced() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    save(&model([counting(5000)]), &file, Weights::External).unwrap();
    let first = files(&folder);
    save(&model([counting(3000)]), &file, Weights::External).unwrap();
    let second = files(&folder);
    assert_eq!(second.keys().collect::<Vec<_>>(), ["m.onnx", "m.onnx.data"]);
    assert!(second.iter().all(|(name, content)| *content != first[name]));
    // The data of an earlier export are not touched by one that embeds.
    save(&model([counting(1)]), &file, Weights::Embed).unwrap();
    let third = files(&folder);
    assert_eq!(third["m.onnx.data"], second["m.onnx.data"]);
    assert_ne!(third["m.onnx"], second["m.onnx"]);
}

#[test]
fn a_failure_leaves_all_as_it_was() {
    let weights = tempdir().unwrap();
    let cut = in_file(&weights, &counting(1 << 20), 5);
    let fake = Tensor::absent(DType::F32, vec![4]).unwrap();
    for mode in [Weights::Embed, Weights::External] {
        let folder = tempdir().unwrap();
        let file = folder.path().join("m.onnx");
        let attempt = |tensor: &Tensor| save(&model([counting(400), tensor.clone()]), &file, mode);
        assert!(matches!(attempt(&cut), Err(Error::Io { doing: "write", .. })));
        assert!(matches!(attempt(&fake), Err(Error::NoData(names)) if names == ["w1"]));
        assert!(files(&folder).is_empty());
        save(&model([counting(5000)]), &file, Weights::External).unwrap();
        let before = files(&folder);
        assert!(attempt(&cut).is_err() && attempt(&fake).is_err());
        assert!(files(&folder) == before);
    }
}

#[test]
fn targets_that_are_no_files() {
    let folder = tempdir().unwrap();
    let m = model([counting(1)]);
    fs::write(folder.path().join("file"), "").unwrap();
    let attempt = |path: &Path| save(&m, path, Weights::Auto);
    assert!(matches!(attempt(folder.path()), Err(Error::Target { .. })));
    assert!(matches!(attempt(Path::new("")), Err(Error::Target { .. })));
    assert!(matches!(attempt(&folder.path().join("..")), Err(Error::Target { .. })));
    for path in ["none/m.onnx", "file/m.onnx"] {
        let refused = attempt(&folder.path().join(path)).unwrap_err();
        assert!(
            matches!(refused, Error::Io { doing: "create a file in this folder", .. }),
            "{refused}"
        );
    }
    fs::create_dir(folder.path().join("taken.data")).unwrap();
    let refused = save(&model([counting(5000)]), folder.path().join("taken"), Weights::External)
        .unwrap_err()
        .to_string();
    assert!(
        refused.ends_with("taken.data: is a folder; give the name of a file in it"),
        "{refused}"
    );
    fs::remove_dir(folder.path().join("taken.data")).unwrap();
    assert_eq!(files(&folder).keys().collect::<Vec<_>>(), ["file"]);
}

#[cfg(unix)]
#[test]
fn files_are_as_open_as_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("plain"), "").unwrap();
    save(&model([counting(5000)]), folder.path().join("m.onnx"), Weights::External).unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    assert_eq!((mode("m.onnx"), mode("m.onnx.data")), (mode("plain"), mode("plain")));
}

#[test]
fn data_files_of_limited_size() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    let m = model([counting(300), counting(20), counting(5000), counting(200)]);
    let options = SaveOptions {
        shard_size: Some(8192 + 800),
        threshold: 80,
        alignment: 8192,
        ..Weights::External.into()
    };
    let saved = save(&m, &file, options.clone()).unwrap();
    let name = |i: u32| format!("m.onnx-0000{i}-of-00003.data");
    let sizes = [(1, 8192 + 80), (2, 20_000), (3, 800)];
    let sizes = sizes.map(|(i, size)| (folder.path().join(name(i)), size));
    assert_eq!(saved.data, sizes);
    let places: Vec<_> = initialisers(&file).iter().map(place).collect();
    let at = |i, offset, length| Some((name(i), offset, length));
    let expected = [at(1, 0, 1200), at(1, 8192, 80), at(2, 0, 20_000), at(3, 0, 800)];
    assert_eq!(places, expected);
    let written = files(&folder);
    assert_eq!(written[&name(1)][8192..], *counting(20).to_bytes());
    assert_eq!(written[&name(2)], *counting(5000).to_bytes());
    assert_eq!(written.len(), 4);
    // One that is large enough has no number.
    let options = SaveOptions { shard_size: Some(1 << 20), data_file: Some("w".into()), ..options };
    let saved = save(&m, &file, options).unwrap();
    assert_eq!(saved.data, [(folder.path().join("w"), 40_960 + 800)]);
}

#[test]
fn alignments() {
    let folder = tempdir().unwrap();
    let m = model([counting(300), counting(20)]);
    for (alignment, fits) in [
        (1, true),
        (MAX_ALIGNMENT, true),
        (0, false),
        (3, false),
        (2 * MAX_ALIGNMENT, false),
        (1 << 62, false),
        (1 << 63, false),
        (u64::MAX, false),
    ] {
        for shard_size in [None, Some(100), Some(u64::MAX)] {
            let options =
                SaveOptions { alignment, shard_size, threshold: 80, ..Weights::External.into() };
            let found = check(&m, options.clone());
            assert_eq!(found.is_ok(), fits, "{alignment}");
            if !fits {
                let saved = save(&m, folder.path().join("m.onnx"), options);
                assert!(matches!(saved, Err(Error::Alignment(a)) if a == alignment));
            }
        }
    }
}

#[test]
fn names_of_data_files() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    for name in ["", "..", "a/b", "/a", "m.onnx"] {
        let options = SaveOptions { data_file: Some(name.into()), ..Weights::External.into() };
        let refused = save(&model([counting(5000)]), &file, options);
        assert!(matches!(refused, Err(Error::DataName { .. })), "{name}");
    }
    assert!(files(&folder).is_empty());
}

/// Contiguous parts of files stay where they are; all else is in the model file.
#[test]
fn contiguous_parts_of_files_are_linked() {
    let folder = tempdir().unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let base = counting(3000);
    let mapped = in_file(&folder, &base, 0);
    let part = Tensor::strided(
        DType::F32,
        vec![2, 500],
        vec![500, 1],
        16,
        mapped.storage().unwrap().clone(),
    );
    let transposed = Tensor::strided(
        DType::F32,
        vec![500, 2],
        vec![1, 500],
        0,
        mapped.storage().unwrap().clone(),
    );
    let part = part.unwrap();
    let m = model([mapped, part, transposed.unwrap(), counting(600), counting(1)]);
    let file = folder.path().join("m.onnx");
    let saved = save(&m, &file, Weights::Link).unwrap();
    assert!(saved.data.is_empty());
    let places: Vec<_> = initialisers(&file).iter().map(place).collect();
    let at = |offset, length| Some(("weights".to_owned(), offset, length));
    assert_eq!(places, [at(4, 12_000), at(4 + 64, 4000), None, None, None]);
    let read = pt2onnx_writer::read(&file).unwrap();
    assert_eq!(to_bytes(&read).unwrap(), to_bytes(&m).unwrap());

    // A model that has its weights itself cannot take its own place.
    save(&m, &file, Weights::Embed).unwrap();
    let own = pt2onnx_writer::read(&file).unwrap();
    let mut inputs = Inputs::new();
    inputs.add_model(&file);
    let linked = Batch::new(inputs).model(&own, &file, &Weights::Link.into(), &|_, _| {}).map(drop);
    assert!(matches!(linked, Err(Error::Link { .. })));

    let file = below.join("m.onnx");
    assert!(matches!(save(&m, &file, Weights::Link), Err(Error::Link { .. })));
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    let options = SaveOptions { allow_external_paths: true, ..Weights::Link.into() };
    save(&m, &file, options).unwrap();
    let outside = place(&initialisers(&file)[0]).unwrap();
    assert_eq!(outside.0, "../weights");
}

/// They are not written, unless the caller wants that.
#[test]
fn models_that_are_not_valid() {
    let text = |opset, body| format!("<ir_version: 8, opset_import: [\"\" : {opset}]> {body}");
    let gelu = text(13, "g (float[2] x) => (float[2] y) { y = Gelu (x) }");
    let mut twins: Model =
        text(20, "g (float[2] x, float[2] z) => (float[2] y) { y = Add (x, z) }").parse().unwrap();
    let input = twins.inputs()[1];
    twins[input].name = Some("x".into());
    let folder = tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    for (model, expected) in [
        (gelu.parse::<Model>().unwrap(), "opset 13 has no operator Gelu"),
        (twins, "value `x`: two values have this name"),
        (Model::new(0), "the model: it imports no operators"),
    ] {
        let errors = [
            save(&model, &path, Weights::Auto).map(drop),
            check(&model, Weights::Auto),
            to_bytes(&model).map(drop),
            pt2onnx_writer::to_parts(&model, 8).map(drop),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert!(files(&folder).is_empty());
        let unchecked = SaveOptions { verify: false, ..SaveOptions::default() };
        save(&model, &path, unchecked).unwrap();
        let bytes = pt2onnx_writer::to_bytes_unverified(&model).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        fs::remove_file(&path).unwrap();
    }
}
