//! Archives and models that errors are provoked with: those of `inputs.txt`, and some that only
//! code makes.

use crate::common::{edited, mlp, pt2onnx, zip};
use ::pt2onnx::{ir::Model, writer};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

/// The folder of archives of `pt2onnx-fx`.
fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pt2onnx-fx/tests/data")
}

/// The bytes of an input. There is no file for `none`.
pub fn input(name: &str) -> Option<Vec<u8>> {
    match name {
        "none" => None,
        "mlp" => fs::read(mlp()).ok(),
        "cut" => fs::read(mlp()).ok().map(|bytes| bytes[..bytes.len() - 30].to_vec()),
        "renamed_record" => Some(renamed_record()),
        "short_weight" => Some(record("data/weights/weight_0", |bytes| bytes[..40].to_vec())),
        "cut_json" => Some(record("models/model.json", |bytes| bytes[..bytes.len() / 2].to_vec())),
        "no_arguments" => Some(record("models/model.json", without_arguments)),
        "converted" => converted(&[]),
        "hollow" => converted(&["--weights", "none"]),
        "apart" => apart(),
        "nested" => Some(onnx(&nested())),
        _ => Some(written(name)),
    }
}

/// An input of `inputs.txt`, or an archive of `pt2onnx-fx`.
fn written(name: &str) -> Vec<u8> {
    let blocks = include_str!("inputs.txt").split("\n== ").skip(1);
    for block in blocks {
        let (head, content) = block.split_once('\n').unwrap_or((block, ""));
        let content = content.trim_end_matches('\n');
        match *head.split(' ').collect::<Vec<_>>() {
            [kind, known] if known == name => return made(kind, content, &mlp()),
            [kind, known, "of", archive] if known == name => {
                return made(kind, content, &data().join(archive).with_extension("pt2"));
            }
            _ => {}
        }
    }
    fs::read(data().join(name).with_extension("pt2")).unwrap()
}

fn made(kind: &str, content: &str, archive: &Path) -> Vec<u8> {
    let records = || content.lines().map(|line| line.split_once(' ').unwrap());
    match kind {
        "script" => script(content),
        "onnx" => onnx(content),
        "bytes" => unescaped(content),
        "zip" => {
            let records: Vec<_> = records().map(|(name, bytes)| (name, unescaped(bytes))).collect();
            zip(records.iter().map(|(name, bytes)| (*name, bytes.as_slice())))
        }
        "record" => {
            let (wanted, bytes) = records().next().unwrap();
            record(wanted, |_| unescaped(bytes))
        }
        "json" => replaced(archive, "models/model.json", content),
        "weights" => replaced(archive, "weights_config.json", content),
        _ => unreachable!("{kind}"),
    }
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

/// An archive with texts of a record replaced.
fn replaced(archive: &Path, wanted: &str, changes: &str) -> Vec<u8> {
    let lines: Vec<&str> = changes.lines().map(|line| &line[2..]).collect();
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

fn record(wanted: &str, content: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    edited(&mlp(), |name, bytes| if name == wanted { content(bytes) } else { bytes })
}

/// A record has another name in the headers of the zip file, not in the table of weights.
fn renamed_record() -> Vec<u8> {
    let (mut bytes, name) = (fs::read(mlp()).unwrap(), b"data/weights/weight_0");
    for at in 0..bytes.len() - name.len() {
        if bytes[at..].starts_with(name) {
            bytes[at + name.len() - 1] = b'x';
        }
    }
    bytes
}

/// A program in which a node has its first argument only.
fn without_arguments(program: Vec<u8>) -> Vec<u8> {
    let mut program: serde_json::Value = serde_json::from_slice(&program).unwrap();
    let nodes = program["graph_module"]["graph"]["nodes"].as_array_mut().unwrap();
    let mut inputs = nodes.iter_mut().map(|node| node["inputs"].as_array_mut().unwrap());
    inputs.find(|inputs| inputs.len() > 2).unwrap().truncate(1);
    drop(inputs);
    serde_json::to_vec(&program).unwrap()
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

/// An ONNX model.
fn onnx(text: &str) -> Vec<u8> {
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    writer::to_bytes(&model).unwrap().into()
}

/// A model without the file of its weights.
fn apart() -> Option<Vec<u8>> {
    let mut model: Model = r#"<ir_version: 9, opset_import: ["" : 20]>
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"#
        .parse()
        .unwrap();
    model.assign_names();
    let (folder, options) = (tempdir().unwrap(), writer::Weights::External.into());
    let options = writer::SaveOptions { threshold: 1, ..options };
    writer::save(&model, folder.path().join("w.onnx"), options).unwrap();
    fs::read(folder.path().join("w.onnx")).ok()
}

/// A model with bodies within bodies.
fn nested() -> String {
    let body = (0..40).fold("y0 = Neg (x)".to_owned(), |body, i| {
        let branch = |name: &str, nodes: &str| {
            format!("{name}_branch: graph = {name}{i} () => (float r) {{ {nodes} r = Neg (y{i}) }}")
        };
        let (then, other) = (branch("then", &body), branch("else", &format!("y{i} = Abs (x)")));
        format!("y{} = If <{then}, {other}> (c)", i + 1)
    });
    format!(
        "<ir_version: 9, opset_import: [\"\" : 20]> g (float x, bool c) => (float y40) {{ {body} }}"
    )
}

/// The model of the good archive.
fn converted(args: &[&str]) -> Option<Vec<u8>> {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    let (mlp, out) = (mlp(), output.to_str().unwrap());
    let run = pt2onnx([&[mlp.to_str().unwrap(), "-o", out], args].concat());
    assert_eq!(run.code, 0, "{run:?}");
    fs::read(&output).ok()
}
