//! Weights in separate files, and in the file of the model.

use super::{entry, small, vector};
use prost::Message;
use pt2onnx_ir::Type;
use pt2onnx_proto::{TensorProto, tensor_proto::DataLocation};
use pt2onnx_tensor::DType;
use pt2onnx_writer::{Weights, from_bytes, read, save, to_bytes};
use std::{fs, path::Path};
use tempfile::tempdir;

/// Writes a model with external data of these entries.
fn external(folder: &Path, entries: &[(&str, &str)]) -> std::path::PathBuf {
    let mut m = small();
    m.graph.as_mut().unwrap().initializer = vec![TensorProto {
        float_data: Vec::new(),
        data_location: Some(DataLocation::External.into()),
        external_data: entries.iter().map(|(k, v)| entry(k, v)).collect(),
        ..vector("w", &[0.0, 0.0])
    }];
    let path = folder.join("m.onnx");
    fs::write(&path, m.encode_to_vec()).unwrap();
    path
}

#[test]
fn external_data_stays_in_the_folder() {
    let (folder, outside) = (tempdir().unwrap(), tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    let data: Vec<u8> = [1f32, 2.0, 3.0].iter().flat_map(|f| f.to_le_bytes()).collect();
    fs::write(at("sub/d"), &data).unwrap();
    fs::write(outside.path().join("d"), &data).unwrap();
    let read = |entries: &[(&str, &str)]| {
        let model = read(external(folder.path(), entries)).map_err(|e| e.to_string())?;
        let w = model.values().find_map(|(_, d)| d.constant().cloned()).unwrap();
        Ok::<_, String>(w)
    };
    let w = read(&[("location", "./sub/d"), ("offset", "4"), ("length", "8")]).unwrap();
    assert_eq!(w.to_vec::<f32>().unwrap(), [2.0, 3.0]);
    assert_eq!(w.storage().unwrap().source().unwrap().offset, 4);
    assert_eq!(read(&[("location", "sub/d")]).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    let absolute = outside.path().join("d");
    let wrong = [
        read(&[("location", absolute.to_str().unwrap())]),
        read(&[("location", "sub/../../x/d")]),
        read(&[("location", "sub")]),
        read(&[("location", "")]),
        read(&[("offset", "0")]),
        read(&[("location", "sub/d"), ("offset", "8")]),
        read(&[("location", "sub/d"), ("offset", &u64::MAX.to_string())]),
        read(&[("location", "sub/d"), ("offset", "-1")]),
        read(&[("location", "sub/d"), ("length", "4")]),
    ];
    let wrong: Vec<String> = wrong.into_iter().map(Result::unwrap_err).collect();
    let wanted = format!(
        "initialiser `w`: `{}` is not the name of a file in the model's folder or below\n\
        initialiser `w`: `sub/../../x/d` is not the name of a file in the model's folder or below\n\
        initialiser `w`: `sub` is not a file\n\
        initialiser `w`: `` is not the name of a file in the model's folder or below\n\
        initialiser `w`: external data has no location\n\
        initialiser `w`: takes bytes 8 to 16 of `sub/d`, which has 12\n\
        initialiser `w`: takes bytes 18446744073709551615 to 18446744073709551615 of `sub/d`, which has 12\n\
        initialiser `w`: external data has `offset` -1, which is no number\n\
        initialiser `w`: needs 8 bytes of storage, there are 4",
        absolute.display()
    );
    assert_eq!(wrong.join("\n"), wanted);
    let missing = read(&[("location", "none")]).unwrap_err();
    let said = "initialiser `w`: its data is in the file `none`, which cannot be opened: ";
    assert!(missing.starts_with(said), "{missing}");
    let twice = read(&[("location", "sub/d"), ("location", "none")]).unwrap_err();
    assert_eq!(twice, "initialiser `w`: external data has two entries `location`");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&absolute, at("link")).unwrap();
        let led = read(&[("location", "link")]).unwrap_err();
        assert_eq!(led, "initialiser `w`: `link` leads out of the model's folder");
        fs::hard_link(at("sub/d"), at("same")).unwrap();
        assert!(read(&[("location", "same")]).is_ok());
        fs::hard_link(&absolute, at("hard")).unwrap();
        let linked = read(&[("location", "hard")]).unwrap_err();
        assert!(linked.starts_with("initialiser `w`: `hard` is a hard link: "), "{linked}");
    }
    let in_memory = fs::read(external(folder.path(), &[("location", "sub/d")])).unwrap();
    assert!(from_bytes(in_memory).unwrap_err().to_string().contains("in another file"));
}

#[test]
fn weights_are_views_of_the_files() {
    let mut m = small();
    let elements: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let raw: Vec<u8> = elements.iter().flat_map(|f| f.to_le_bytes()).collect();
    m.graph.as_mut().unwrap().initializer = vec![TensorProto {
        float_data: Vec::new(),
        raw_data: Some(raw.into()),
        ..vector("w", &elements)
    }];
    let folder = tempdir().unwrap();
    let (first, second) = (folder.path().join("a.onnx"), folder.path().join("b.onnx"));
    fs::write(&first, m.encode_to_vec()).unwrap();
    let model = read(&first).unwrap();
    save(&model, &second, Weights::External).unwrap();
    let again = read(&second).unwrap();
    for model in [&model, &again] {
        let (_, w) = model.values().find(|(_, d)| d.constant().is_some()).unwrap();
        let tensor = w.constant().unwrap();
        assert_eq!(tensor.to_vec::<f32>().unwrap(), elements);
        assert!(tensor.storage().unwrap().source().is_some());
        assert!(matches!(&w.ty, Some(Type::Tensor(t)) if t.dtype == DType::F32));
    }
    assert_eq!(to_bytes(&model).unwrap(), to_bytes(&again).unwrap());
}
