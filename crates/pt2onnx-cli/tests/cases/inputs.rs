//! Files of case files: `== KIND NAME`, and the content. Kinds:
//!
//! - `file`: this text
//! - `bytes`: these bytes, written as in Rust's strings
//! - `onnx`: an ONNX model in textual syntax; `{8*0.5}` is a constant of 8 equal elements
//! - `script`: a TorchScript archive whose `forward` has these lines
//! - `zip`: a zip file of records: a name and the bytes
//! - `record`: `testdata/models/mlp.pt2` with other bytes in a record
//! - `json`: `mlp.pt2` with text of its program replaced: `-` the old, `+` the new; of another
//!   archive of the tests of `pt2onnx-fx` for `NAME of ARCHIVE`
//! - `weights`: `mlp.pt2` with text of its table of weights replaced
//! - `programs`: `mlp.pt2` with its program once for each of these names
//! - `arrays`: `.npz` or `.safetensors` of these constants, in ONNX's textual syntax
//! - `bundle`: for `NAME of FILE/CASE`, the archive of a case of `testdata/cases/FILE.tar.zst`
//! - `seed`: the archive of `testdata/seeds` that has this name

use crate::{
    common::{edited, mlp, records, zip},
    root,
};
use pt2onnx::{ir::Model, tensor::Tensor, to_npz, to_safetensors, writer};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::OnceLock,
};
use tempfile::{TempDir, tempdir};

/// Writes a file into the folder.
pub fn write(head: &str, content: &str, folder: &Path) {
    let (kind, name) = head.split_once(' ').unwrap();
    let (name, of) = name.split_once(" of ").map_or((name, None), |(name, of)| (name, Some(of)));
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = content.trim_end_matches('\n');
    let words = || text.lines().map(|line| line.split_once(' ').unwrap());
    let bytes = match (kind, of) {
        ("file", None) => content.into(),
        ("bytes", None) => unescaped(text),
        ("onnx", None) => writer::to_bytes_unverified(&model(&repeated(text))).unwrap().into(),
        ("script", None) => script(text),
        ("zip", None) => {
            let records: Vec<_> = words().map(|(name, bytes)| (name, unescaped(bytes))).collect();
            zip(records.iter().map(|(name, bytes)| (*name, &**bytes)))
        }
        ("record", None) => {
            let (wanted, new) = words().next().unwrap();
            edited(&mlp(), |name, old| if name == wanted { unescaped(new) } else { old })
        }
        ("json", None) => replaced(&mlp(), "models/model.json", text),
        ("json", Some(archive)) => {
            let data = root().join("crates/pt2onnx-fx/tests/data");
            replaced(&data.join(archive).with_extension("pt2"), "models/model.json", text)
        }
        ("weights", None) => replaced(&mlp(), "weights_config.json", text),
        ("programs", None) => programs(text),
        ("arrays", None) => arrays(&path, text),
        ("bundle", Some(case)) => {
            let (bundle, case) = case.split_once('/').unwrap();
            return unpacked(bundle, &format!("{case}/model.pt2"), &path);
        }
        ("seed", None) => {
            let seed = seeds().into_iter().find(|(_, seed)| *seed == name);
            fs::read(seed.unwrap().0).unwrap()
        }
        _ => unreachable!("{head}"),
    };
    fs::write(path, bytes).unwrap();
}

/// The bytes of a text with escapes.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    loop {
        rest = match rest {
            [] => return bytes,
            [b'\\', b'x', hex @ ..] => {
                let (digits, rest) = hex.split_at(2);
                bytes.push(u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap());
                rest
            }
            [b'\\', letter, rest @ ..] => {
                bytes.push(match letter {
                    b'0' => 0,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    other => *other,
                });
                rest
            }
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        }
    }
}

/// The text with `{2*0.5}` as `{0.5, 0.5}`.
fn repeated(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let list = part.split_once('}').and_then(|(list, rest)| {
            let (count, element) = list.split_once('*')?;
            Some(format!("{}}}{rest}", vec![element; count.parse().ok()?].join(", ")))
        });
        all + "{" + list.as_deref().unwrap_or(part)
    })
}

fn model(text: &str) -> Model {
    let mut model: Model = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    model.assign_names();
    model
}

/// A TorchScript archive whose `forward` has these lines.
fn script(lines: &str) -> Vec<u8> {
    let code = format!("class M(Module):\n  def forward(self, x: Tensor) -> Tensor:\n{lines}\n");
    let records: [(&str, &[u8]); 4] = [
        ("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}b."),
        ("m/constants.pkl", b"\x80\x02)."),
        ("m/code/__torch__.py", code.as_bytes()),
        ("m/version", b"3"),
    ];
    zip(records)
}

/// An archive with texts of a record replaced.
fn replaced(archive: &Path, wanted: &str, changes: &str) -> Vec<u8> {
    let lines: Vec<&str> = changes.lines().map(|line| line.get(2..).unwrap_or_default()).collect();
    edited(archive, |name, bytes| {
        if !name.ends_with(wanted) {
            return bytes;
        }
        let text = String::from_utf8(bytes).unwrap();
        let changed = lines.chunks(2).fold(text, |text, change| {
            assert!(text.contains(change[0]), "no {}", change[0]);
            text.replace(change[0], change[1])
        });
        changed.into()
    })
}

/// The archive of the perceptron, with its program once for each of the names.
fn programs(names: &str) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, bytes) in records(&mlp()) {
        let own = ["models/model.json", "/model_weights_config", "/model_constants_config"];
        if own.iter().any(|part| name.contains(part)) {
            let (folder, file) = name.rsplit_once('/').unwrap();
            let one = |own| (format!("{folder}/{}", file.replacen("model", own, 1)), bytes.clone());
            all.extend(names.lines().map(one));
        } else {
            all.push((name, bytes));
        }
    }
    zip(all.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
}

fn arrays(path: &Path, text: &str) -> Vec<u8> {
    let model = model(&format!("g () => () <{text}> {{ }}"));
    let constants = model.values().filter_map(|(_, v)| Some((v.name.as_ref()?, v.constant()?)));
    let all: Vec<(String, Tensor)> =
        constants.map(|(name, tensor)| (name.to_string(), tensor.clone())).collect();
    let pairs = all.iter().map(|(name, tensor)| (name, tensor));
    if path.extension().is_some_and(|e| e == "npz") {
        to_npz(pairs).unwrap()
    } else {
        to_safetensors(pairs).unwrap()
    }
}

fn bundle(path: String) -> tar::Archive<impl std::io::Read> {
    let packed = File::open(root().join("testdata").join(path)).unwrap();
    tar::Archive::new(ruzstd::decoding::StreamingDecoder::new(packed).unwrap())
}

/// Writes a file of a bundle of cases to a path.
fn unpacked(name: &str, file: &str, path: &Path) {
    let mut all = bundle(format!("cases/{name}.tar.zst"));
    let mut entries = all.entries().unwrap().map(Result::unwrap);
    let mut entry = entries.find(|e| e.path().unwrap().ends_with(file)).unwrap();
    entry.unpack(path).unwrap();
}

/// The archives of `testdata/seeds`, and their inputs and outputs, with their names.
pub fn seeds() -> Vec<(PathBuf, &'static str)> {
    static FOLDER: OnceLock<(TempDir, Vec<PathBuf>)> = OnceLock::new();
    let (_, files) = FOLDER.get_or_init(|| {
        let folder = tempdir().unwrap();
        bundle("seeds/archives.tar.zst".to_owned()).unpack(folder.path()).unwrap();
        let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        (folder, files)
    });
    files.iter().map(|path| (path.clone(), path.file_name().unwrap().to_str().unwrap())).collect()
}
