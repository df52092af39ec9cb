//! Outputs: links, devices, files with modes, files that are read, several files at once.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use pt2onnx_ir::{InsertPoint, Model, Type};
use pt2onnx_tensor::{DType, Tensor};
use pt2onnx_writer::{Batch, Error, Inputs, Output, SaveOptions, Weights, read, save, to_bytes};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
};
use tempfile::{TempDir, tempdir};

/// A model with two weights of so many elements.
fn model(elements: usize) -> Model {
    let mut m = Model::new(20);
    let mut inputs = Vec::new();
    for name in ["a", "b"] {
        let elements: Vec<f32> = (0..elements).map(|i| i as f32).collect();
        let value = m.add_constant(Tensor::from_slice(vec![elements.len()], &elements).unwrap());
        m[value].name = Some(name.into());
        inputs.push(Some(value));
    }
    let node = m.add_node(InsertPoint::End(Model::MAIN), "Sum", &inputs, Default::default(), 1);
    let out = m[node].outputs()[0];
    m[out].ty = Some(Type::tensor(DType::F32, []));
    m.set_outputs(Model::MAIN, &[out]);
    m.assign_names();
    m
}

fn files(folder: &TempDir) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap());
    entries
        .map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap_or_default()))
        .collect()
}

fn overwrites(result: Result<impl Sized, Error>, output: &str, other: &str) {
    let said = match result.map(drop) {
        Err(Error::Overwrites { output, other, .. }) => format!("{output}: {other}"),
        other => format!("{other:?}"),
    };
    assert_eq!(said, format!("{output}: {other}"));
}

#[test]
fn links_are_followed_and_stay() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("below")).unwrap();
    fs::write(at("below/real.onnx"), "old").unwrap();
    for (link, to, real) in [
        ("one.onnx", "below/real.onnx", "below/real.onnx"),
        ("two.onnx", "one.onnx", "below/real.onnx"),
        ("dangling.onnx", "below/new.onnx", "below/new.onnx"),
    ] {
        symlink(to, at(link)).unwrap();
        save(&model(3), at(link), Weights::Embed).unwrap();
        assert_eq!(fs::read_link(at(link)).unwrap(), Path::new(to));
        assert_eq!(fs::read(at(real)).unwrap(), to_bytes(&model(3)).unwrap());
        fs::write(at(real), "old").unwrap();
    }
    assert_eq!(fs::read_dir(at("below")).unwrap().count(), 2);
    symlink("nowhere/m.onnx", at("lost.onnx")).unwrap();
    assert!(save(&model(3), at("lost.onnx"), Weights::Embed).is_err());
    symlink("loop.onnx", at("loop.onnx")).unwrap();
    assert!(save(&model(3), at("loop.onnx"), Weights::Embed).is_err());
    // The data are beside the model as it was named, where the model refers to them.
    save(&model(500), at("one.onnx"), Weights::External).unwrap();
    assert!(at("one.onnx.data").exists() && read(at("one.onnx")).is_ok());
}

#[test]
fn modes_and_owners_stay() {
    let folder = tempdir().unwrap();
    let names = ["m.onnx", "m.onnx.data"];
    for (name, mode) in names.iter().zip([0o600, 0o640]) {
        let file = folder.path().join(name);
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        // Only the administrator may.
        let _ = std::os::unix::fs::chown(&file, Some(1234), Some(4321));
    }
    let what = |name: &&str| {
        let there = fs::metadata(folder.path().join(name)).unwrap();
        (there.mode(), there.uid(), there.gid())
    };
    let before = names.each_ref().map(what);
    save(&model(500), folder.path().join("m.onnx"), Weights::External).unwrap();
    assert_eq!(names.each_ref().map(what), before);
    assert!(files(&folder).values().all(|content| content != b"old"));
}

#[test]
fn files_that_are_read_only() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    for name in ["m.onnx", "m.onnx.data"] {
        let locked = folder.path().join(name);
        fs::write(&locked, "old").unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o444)).unwrap();
        let before = files(&folder);
        let refused = save(&model(500), &file, Weights::External).unwrap_err();
        assert!(matches!(refused, Error::Target { .. }), "{refused}");
        assert!(files(&folder) == before);
        fs::remove_file(&locked).unwrap();
    }
}

#[test]
fn devices_and_pipes_are_written_to() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    let m = model(50_000);
    let saved = save(&m, &pipe, Weights::Embed).unwrap();
    assert_eq!(reader.join().unwrap(), to_bytes(&m).unwrap());
    assert_eq!(saved.bytes, to_bytes(&m).unwrap().len() as u64);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    save(&m, "/dev/null", Weights::Auto).unwrap();
    for weights in [Weights::External, Weights::Link] {
        assert!(matches!(save(&m, "/dev/null", weights), Err(Error::NoFolder(_))));
    }
    let options = SaveOptions { data_file: Some("w".into()), ..SaveOptions::default() };
    assert!(matches!(save(&m, "/dev/null", options), Err(Error::NoFolder(_))));
    #[cfg(target_os = "linux")]
    for elements in [1, 50_000] {
        let full = save(&model(elements), "/dev/full", Weights::Auto);
        assert!(matches!(full, Err(Error::Io { doing: "write to this", .. })), "{full:?}");
    }
    // A pipe beside the model does not become a data file.
    let refused = save(
        &m,
        folder.path().join("m.onnx"),
        SaveOptions { data_file: Some("pipe".into()), ..Weights::External.into() },
    );
    assert!(matches!(refused, Err(Error::Target { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn files_that_are_read_are_not_written() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = SaveOptions { data_file: Some("in.bin".into()), ..Weights::External.into() };
    save(&model(500), at("in.onnx"), options.clone()).unwrap();
    fs::hard_link(at("in.bin"), at("hard")).unwrap();
    symlink("in.bin", at("soft")).unwrap();
    fs::write(at("notes"), "").unwrap();
    fs::hard_link(at("in.onnx"), at("hard.onnx")).unwrap();
    let m = read(at("in.onnx")).unwrap();
    let before = files(&folder);
    let (data, quiet) = ("the weights to be read", |_, _| {});
    for name in ["in.bin", "hard", "soft", "../x/../in.bin"] {
        let path = if name.contains('/') { at(".").join("in.bin") } else { at(name) };
        overwrites(save(&m, &path, Weights::Embed), "output", data);
        let mut batch = Batch::new(Inputs::new());
        batch.model(&m, at("out.onnx"), &Weights::Embed.into(), &quiet).unwrap();
        overwrites(batch.file("report", &path, b"..."), "report", data);
    }
    for name in ["in.bin", "hard", "soft"] {
        let options = SaveOptions { data_file: Some(name.into()), ..options.clone() };
        overwrites(save(&m, at("out.onnx"), options), "data file", data);
    }
    // One of several data files.
    fs::hard_link(at("in.bin"), at("in-00002-of-00002.bin")).unwrap();
    let shards = SaveOptions { shard_size: Some(2000), ..options };
    overwrites(save(&m, at("out.onnx"), shards), "data file", data);
    fs::remove_file(at("in-00002-of-00002.bin")).unwrap();
    // Files whose bytes the model does not hold.
    let mut inputs = Inputs::new();
    inputs.add("options", at("notes"));
    inputs.add_model(at("in.onnx"));
    let claim = |what, name: &str| Batch::new(inputs.clone()).claim(what, at(name));
    overwrites(claim("report", "notes"), "report", "the options to be read");
    overwrites(claim("report", "in.onnx"), "report", "the model to be read");
    overwrites(claim("output", "hard.onnx"), "output", "the model to be read");
    assert!(files(&folder) == before);
    // Only a model may take its own place, under its own name.
    let mut batch = Batch::new(inputs.clone());
    batch.model(&m, at("in.onnx"), &Weights::Embed.into(), &quiet).unwrap();
    batch.commit().unwrap();
    assert_eq!(to_bytes(&read(at("in.onnx")).unwrap()).unwrap(), to_bytes(&m).unwrap());
    assert_eq!(files(&folder)["hard.onnx"], before["in.onnx"]);
}

#[test]
fn no_file_is_written_twice() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("x")).unwrap();
    let m = model(500);
    for other in [at("m.onnx"), at("x/../m.onnx"), at("m.onnx.data")] {
        let mut batch = Batch::new(Inputs::new());
        batch.model(&m, at("m.onnx"), &Weights::External.into(), &|_, _| {}).unwrap();
        assert!(matches!(batch.file("report", other, b""), Err(Error::Overwrites { .. })));
    }
    fs::write(at("m.onnx"), "").unwrap();
    symlink("m.onnx", at("r.md")).unwrap();
    let mut batch = Batch::new(Inputs::new());
    batch.claim("report", at("r.md")).unwrap();
    overwrites(batch.claim("output", at("m.onnx")), "output", "the report to be written");
}

/// Files get their names together, or none does.
#[test]
fn all_files_or_none() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (m, quiet) = (model(500), |_, _| {});
    let mut batch = Batch::new(Inputs::new());
    batch.model(&m, at("m.onnx"), &Weights::External.into(), &quiet).unwrap();
    assert!(batch.file("report", at("none/r.md"), b"...").is_err());
    drop(batch);
    assert!(files(&folder).is_empty());

    for name in ["m.onnx", "m.onnx.data", "r.md"] {
        fs::write(at(name), name).unwrap();
    }
    let before = files(&folder);
    let written = |broken: bool| {
        let mut batch = Batch::new(Inputs::new());
        batch.model(&m, at("m.onnx"), &Weights::External.into(), &quiet).unwrap();
        batch.file("report", at("r.md"), b"...").unwrap();
        if broken {
            // The last file to be renamed cannot be.
            fs::remove_file(at("m.onnx")).unwrap();
            fs::create_dir(at("m.onnx")).unwrap();
        }
        batch.commit()
    };
    assert!(written(true).is_err());
    fs::remove_dir(at("m.onnx")).unwrap();
    fs::write(at("m.onnx"), "m.onnx").unwrap();
    assert!(files(&folder) == before);
    written(false).unwrap();
    assert!(files(&folder).iter().all(|(name, content)| *content != before[name]));
    assert_eq!(files(&folder).len(), 3);
}

/// Two programs that write the same files take turns.
#[test]
fn files_get_their_names_while_the_folder_is_locked() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    let lock = fs::File::open(folder.path()).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        let saving = scope.spawn(|| save(&model(500), &file, Weights::External).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!saving.is_finished());
        assert!(!file.exists() && !file.with_extension("onnx.data").exists());
        lock.unlock().unwrap();
        saving.join().unwrap();
    });
    assert_eq!(files(&folder).len(), 2);
}

#[test]
fn names_as_long_as_may_be() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("ä".repeat(125) + ".onnx");
    save(&model(1), &file, Weights::Embed).unwrap();
    save(&model(2), &file, Weights::Embed).unwrap();
    assert_eq!(files(&folder).len(), 1);
}

#[test]
fn weights_left_out_and_as_inputs() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("m.onnx");
    let written = |elements: usize, weights: Weights, keep: bool| {
        let options = SaveOptions { keep_initializers_as_inputs: keep, ..weights.into() };
        save(&model(elements), &file, options).unwrap();
        let m = read(&file).unwrap();
        let with = m
            .values()
            .filter(|(_, d)| d.constant().or(d.default.as_deref()).is_some_and(Tensor::has_data));
        (m.inputs().len(), with.count())
    };
    assert_eq!(written(17, Weights::Embed, false), (0, 2));
    assert_eq!(written(17, Weights::None, false), (0, 0));
    assert_eq!(written(17, Weights::Embed, true), (2, 2));
    assert_eq!(written(17, Weights::None, true), (2, 0));
    assert_eq!(written(16, Weights::None, true), (0, 2));
}

#[test]
fn standard_output_by_its_names() {
    for name in ["/dev/stdout", "/dev/fd/1"] {
        let mut batch = Batch::new(Inputs::new());
        batch.claim("output", Output::Stdout).unwrap();
        overwrites(batch.claim("report", name), "report", "the output to be written");
    }
}
