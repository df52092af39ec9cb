//! Archives and models that errors are provoked with.

use crate::common::{edited, mlp, pt2onnx, with_json, zip};
use ::pt2onnx::{ir::Model, writer};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

/// An archive of the tests of `pt2onnx-fx`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pt2onnx-fx/tests/data").join(name)
}

pub fn none() -> Option<Vec<u8>> {
    None
}

pub fn good() -> Option<Vec<u8>> {
    fs::read(mlp()).ok()
}

/// A `Softmax` over an unknown number of dimensions.
pub fn old_softmax() -> Option<Vec<u8>> {
    onnx(
        r#"<ir_version: 4, opset_import: ["" : 9]>
        g (float[] x) => (float[] y) { y = Softmax (x) }"#,
    )
}

/// A model of several nodes.
pub fn parts() -> Option<Vec<u8>> {
    onnx(
        r#"<ir_version: 9, opset_import: ["" : 20, "my" : 1]>
        g (float[2] x, float[2] z) => (float[2] y) <float[2] w = {1, 2}> {
            a = Add (x, w)
            b = Mul (a, z)
            c = my.Op (b)
            y = Neg (c)
        }"#,
    )
}

/// A model of two inputs of different types.
pub fn small() -> Option<Vec<u8>> {
    onnx(
        r#"<ir_version: 9, opset_import: ["" : 20]>
        g (float[2, 4] x, int64[2] i) => (float[2, 3] y) <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
            a = Gather (x, i)
            y = MatMul (a, w)
        }"#,
    )
}

pub fn json(from: &str, to: &str) -> Option<Vec<u8>> {
    Some(with_json(&mlp(), from, to))
}

/// An archive of `pt2onnx-fx` with its JSON changed.
pub fn changed(name: &str, changes: &[(&str, &str)]) -> Option<Vec<u8>> {
    Some(edited(&data(name), |record, bytes| match record {
        "models/model.json" => {
            let text = String::from_utf8(bytes).unwrap();
            let text = changes.iter().fold(text, |text, (from, to)| {
                assert!(text.contains(from), "no {from}");
                text.replace(from, to)
            });
            text.into()
        }
        _ => bytes,
    }))
}

/// A TorchScript archive whose `forward` has these lines.
pub fn script(lines: &str) -> Option<Vec<u8>> {
    let code = format!("class M(Module):\n  def forward(self, x: Tensor) -> Tensor:\n{lines}");
    let records: [(&str, &[u8]); 4] = [
        ("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}b."),
        ("m/constants.pkl", b"\x80\x02)."),
        ("m/code/__torch__.py", code.as_bytes()),
        ("m/version", b"3"),
    ];
    Some(zip(records))
}

pub fn relu() -> Option<Vec<u8>> {
    script("    return torch.relu(x)\n")
}

/// A TorchScript archive whose `forward` counts its calls in the attribute `n`.
pub fn counter() -> Option<Vec<u8>> {
    let code = "class M(Module):\n  n : int\n  def forward(self, x: Tensor) -> Tensor:\n    self.n = torch.add(self.n, 1)\n    return torch.relu(x)\n";
    let records: [(&str, &[u8]); 4] = [
        ("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}X\x01\x00\x00\x00nK\x00sb."),
        ("m/constants.pkl", b"\x80\x02)."),
        ("m/code/__torch__.py", code.as_bytes()),
        ("m/version", b"3"),
    ];
    Some(zip(records))
}

/// A view of floats as integers, with the result recorded as this type.
pub fn bit_cast(dtype: &str) -> Option<Vec<u8>> {
    let argument = r#"{"name": "other", "arg": {"as_int": 2}, "kind": 1}"#;
    let changes = [
        ("torch.ops.aten.mul.Tensor", "torch.ops.aten.view.dtype"),
        (argument, r#"{"name": "dtype", "arg": {"as_scalar_type": 4}, "kind": 1}"#),
        (r#""mul": {"dtype": 7"#, &format!(r#""mul": {{"dtype": {dtype}"#)),
    ];
    changed("writes_buffer.pt2", &changes)
}

pub fn record(wanted: &str, content: fn(Vec<u8>) -> Vec<u8>) -> Option<Vec<u8>> {
    Some(edited(&mlp(), |name, bytes| if name == wanted { content(bytes) } else { bytes }))
}

pub fn given(name: &str) -> Option<Vec<u8>> {
    fs::read(data(name)).ok()
}

pub fn zipped(records: &[(&str, &[u8])]) -> Option<Vec<u8>> {
    Some(zip(records.iter().copied()))
}

/// An ONNX model.
pub fn onnx(text: &str) -> Option<Vec<u8>> {
    let mut model: Model = text.parse().unwrap();
    model.assign_names();
    Some(writer::to_bytes(&model).unwrap().into())
}

/// A model of one product.
pub fn product() -> Option<Vec<u8>> {
    onnx(
        "<ir_version: 9, opset_import: [\"\" : 18]> g (float[N, 2] x) => (float[N, 2] y) { y = Mul (x, x) }",
    )
}

/// A model without the file of its weights.
pub fn apart() -> Option<Vec<u8>> {
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

/// A model with a weight that is no number.
pub fn not_finite() -> Option<Vec<u8>> {
    onnx(
        r#"<ir_version: 10, opset_import: ["" : 21]>
        g (float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, nan, 3, 4}> { y = MatMul (x, w) }"#,
    )
}

/// A model with bodies within bodies.
pub fn nested() -> Option<Vec<u8>> {
    let body = (0..40).fold("y0 = Neg (x)".to_owned(), |body, i| {
        let branch = |name: &str, nodes: &str| {
            format!("{name}_branch: graph = {name}{i} () => (float r) {{ {nodes} r = Neg (y{i}) }}")
        };
        let (then, other) = (branch("then", &body), branch("else", &format!("y{i} = Abs (x)")));
        format!("y{} = If <{then}, {other}> (c)", i + 1)
    });
    onnx(&format!(
        "<ir_version: 9, opset_import: [\"\" : 20]> g (float x, bool c) => (float y40) {{ {body} }}"
    ))
}

/// What becomes of the good archive.
pub fn converted(args: &[&str]) -> Option<Vec<u8>> {
    let folder = tempdir().unwrap();
    let output = folder.path().join("m.onnx");
    let (mlp, out) = (mlp(), output.to_str().unwrap());
    let run = pt2onnx([&[mlp.to_str().unwrap(), "-o", out], args].concat());
    assert_eq!(run.code, 0, "{run:?}");
    fs::read(&output).ok()
}

pub fn hollow() -> Option<Vec<u8>> {
    converted(&["--weights", "none"])
}

/// A program in which a node has its first argument only.
pub fn without_arguments(program: Vec<u8>) -> Vec<u8> {
    let mut program: serde_json::Value = serde_json::from_slice(&program).unwrap();
    let nodes = program["graph_module"]["graph"]["nodes"].as_array_mut().unwrap();
    let mut inputs = nodes.iter_mut().map(|node| node["inputs"].as_array_mut().unwrap());
    inputs.find(|inputs| inputs.len() > 2).unwrap().truncate(1);
    drop(inputs);
    serde_json::to_vec(&program).unwrap()
}
