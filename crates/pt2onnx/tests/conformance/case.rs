//! Conformance cases out of bundles: an archive, inputs and PyTorch's outputs each.
//!
//! `testdata/cases/*.tar.zst` are of one version of PyTorch, `testdata/archives/archives.tar.zst`
//! is of all of them, `testdata/torchscript/torchscript.tar.zst` has traces and scripts.

use crate::bundles::{Files, numbered, temporary, unpack};
use pt2onnx::{Exporter, Options, Tolerance, tensor::Tensor};
use safetensors::SafeTensors;
use std::{fs, path::Path};
use tempfile::NamedTempFile;

/// A case.
pub struct Case {
    /// Bundle, suite and name: `first/transformers/bert`.
    pub name: String,
    /// The `.pt2`, or the `.pt` of TorchScript.
    pub archive: NamedTempFile,
    /// One sample, or two with different sizes.
    pub samples: Vec<Sample>,
    /// The inputs of a TorchScript file.
    pub options: Options,
    /// Functions in ONNX's textual syntax that translate its own ops.
    pub functions: Option<String>,
    /// Whether the values count, or only shapes and types (random ops).
    pub values: bool,
    /// Where it is wider than the types'.
    pub tolerance: Tolerance,
    /// A part of the error that the program must give.
    pub refused: Option<String>,
}

impl Case {
    /// Whether it is a trace or a script.
    pub fn is_torchscript(&self) -> bool {
        self.name.starts_with("torchscript/")
    }

    /// Its exporter, at an opset.
    pub fn exporter(&self, opset: u32) -> Exporter {
        let exporter = Exporter::with_options(self.options.clone()).expect("options");
        let functions = self.functions.as_deref().unwrap_or_default();
        exporter.opset(opset).functions(functions).expect("functions")
    }
}

/// Inputs and what PyTorch gave for them.
pub struct Sample {
    /// Empty, or `alt.` for the second.
    pub label: &'static str,
    pub inputs: Vec<Tensor>,
    pub outputs: Vec<Tensor>,
}

/// All cases of all bundles, by name.
pub fn read_all(testdata: &Path) -> Vec<Case> {
    let folder = fs::read_dir(testdata.join("cases")).expect("testdata/cases");
    let mut bundles: Vec<_> = folder.map(|entry| entry.expect("a bundle").path()).collect();
    bundles.sort();
    bundles.push(testdata.join("archives/archives.tar.zst"));
    bundles.push(testdata.join("torchscript/torchscript.tar.zst"));
    bundles.iter().flat_map(|bundle| read_bundle(bundle)).collect()
}

fn read_bundle(path: &Path) -> Vec<Case> {
    let bundle = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".tar.zst"));
    let bundle = bundle.unwrap_or_else(|| panic!("{} is no .tar.zst", path.display()));
    let cases = unpack(path).into_iter();
    cases.map(|(name, files)| case(format!("{bundle}/{name}"), &files)).collect()
}

fn case(name: String, files: &Files) -> Case {
    let file = |n: &str| files.get(n).unwrap_or_else(|| panic!("{name} has no {n}"));
    let about: serde_json::Value = serde_json::from_slice(file("case.json")).expect("case.json");
    let io = SafeTensors::deserialize(file("io.safetensors")).expect("io.safetensors");
    let archive = temporary(files.get("model.pt").unwrap_or_else(|| file("model.pt2")));
    let options = about.get("options").map(|o| serde_json::from_value(o.clone()).expect("options"));
    let samples = ["", "alt."].into_iter().map(|label| Sample {
        label,
        inputs: numbered(&io, &format!("{label}input.")),
        outputs: numbered(&io, &format!("{label}output.")),
    });
    let functions = files.get("functions.onnxtxt");
    let functions = functions.map(|f| String::from_utf8(f.clone()).expect("UTF-8"));
    let number = |key: &str| about.get(key).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
    Case {
        samples: samples.filter(|s| !s.inputs.is_empty() || !s.outputs.is_empty()).collect(),
        values: about.get("compare").and_then(|c| c.as_str()) != Some("shape"),
        refused: about.get("refused").and_then(|text| text.as_str()).map(str::to_owned),
        tolerance: Tolerance { rtol: number("rtol"), atol: number("atol") },
        functions,
        options: options.unwrap_or_default(),
        archive,
        name,
    }
}
