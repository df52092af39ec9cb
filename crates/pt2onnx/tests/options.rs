//! [`Options`]: their serialised form, and values that they cannot have.
#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a test may fail so")]

use pt2onnx::{Error, Exporter, Options, ReportedOptions, Target, UnsupportedOps};
use serde_json::{Value, json};

/// Every option, at a value other than its default.
fn all() -> Value {
    serde_json::from_str(include_str!("options.json")).unwrap()
}

#[test]
fn the_form_is_complete_and_goes_round() {
    let defaults = serde_json::to_value(Options::default()).unwrap();
    let (all, keys) = (all(), |v: &Value| v.as_object().unwrap().keys().cloned().collect());
    let (given, known): (Vec<String>, Vec<String>) = (keys(&all), keys(&defaults));
    assert_eq!(given, known, "the list above is complete and in the order of the struct");
    let options: Options = serde_json::from_value(all.clone()).unwrap();
    assert_eq!(serde_json::to_value(&options).unwrap(), all);
    assert_eq!(options.changed(), all.as_object().unwrap().clone().into_iter().collect::<Vec<_>>());
    assert_eq!(serde_json::from_value::<Options>(defaults).unwrap(), Options::default());
    assert_eq!(serde_json::from_value::<Options>(json!({})).unwrap(), Options::default());
    assert!(Options::default().changed().is_empty());
}

#[test]
fn every_option_is_in_the_report() {
    let options: Options = serde_json::from_value(all()).unwrap();
    let report = pt2onnx_report(&options);
    let reported: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(reported["options"], all());
    let markdown = report.to_markdown();
    for (key, value) in options.changed() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        assert!(markdown.contains(&format!("| {key} | `{value}` |")), "{key}: {markdown}");
    }
}

/// The report of a conversion that fails, as there is no archive.
fn pt2onnx_report(options: &Options) -> pt2onnx::Report {
    let mut without_files = options.clone();
    (without_files.op_functions, without_files.rules) = (Vec::new(), Vec::new());
    let exporter = Exporter::with_options(without_files).unwrap();
    let mut report = exporter.attempt("no/such/file.pt2").unwrap_err().report;
    assert_eq!(report.options, Some(ReportedOptions::from(exporter.options())));
    // Files of functions and rules are read at once, and there are none here.
    report.options = Some(ReportedOptions::from(options));
    *report
}

#[test]
fn setters_set_options() {
    let exporter = Exporter::new()
        .opset(18)
        .rename_dim("s77", "batch")
        .metadata_prop("k", "1")
        .metadata_prop("k", "2");
    let given = json!({"opset": 18, "rename-dim": {"s77": "batch"}, "metadata-prop": {"k": "2"}});
    assert_eq!(*exporter.options(), serde_json::from_value(given).unwrap());
}

#[test]
fn values_have_the_same_names_as_text() {
    assert_eq!("tensorrt".parse::<Target>().unwrap(), Target::TensorRt);
    assert_eq!("aten-fallback".parse::<UnsupportedOps>().unwrap(), UnsupportedOps::AtenFallback);
    assert_eq!(UnsupportedOps::AtenFallback.to_string(), "aten-fallback");
    let unknown = "tensor-rt".parse::<Target>().unwrap_err().to_string();
    let names = "`standard`, `ort`, `ort-cpu`, `ort-genai`, `tensorrt`, `tract`, `portable`, `openvino`, `rten`, `mnn`, `opencv`, `iree`, `tflite`, `reference`, `web`, `coreml`";
    assert_eq!(unknown, format!("unknown variant `tensor-rt`, expected one of {names}"));
}

#[test]
fn wrong_options() {
    for (given, key, said) in [
        (json!({"opset": 5000}), "opset", "opset 5000 is not among those"),
        (json!({"ir-version": 99}), "ir-version", "IR version 99 is not among those"),
        (json!({"target": "tensorrt", "opset": 26}), "target", "tensorrt reads opsets"),
        (
            json!({"alignment": 100}),
            "alignment",
            "an alignment must be a power of two of at most 1 GiB, but 100 is not",
        ),
        (
            json!({"alignment": 0}),
            "alignment",
            "an alignment must be a power of two of at most 1 GiB, but 0 is not",
        ),
        (
            json!({"module-functions": "all", "opset": 14}),
            "module-functions",
            "functions of modules need opset 15 or newer, but opset 14 is asked for",
        ),
        (
            json!({"block-size": 33}),
            "block-size",
            "a block must have 16, 32, 64, 128 or 256 elements",
        ),
        (json!({"accuracy-level": 5}), "accuracy-level", "an accuracy level is a number from 0"),
        (json!({"skip-pass": ["none"]}), "skip-pass", "there is no pass `none`"),
        (json!({"custom-opset": {"a": 0}}), "custom-opset", "the domain `a` is given version 0"),
        (
            json!({"op-functions": ["none.onnxtxt"]}),
            "op-functions",
            "the functions cannot be read: ",
        ),
    ] {
        let options: Options = serde_json::from_value(given).unwrap();
        let error = Exporter::with_options(options).unwrap_err();
        assert_eq!(error.key(), key);
        assert!(error.to_string().starts_with(said), "{error}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    assert!(matches!(Exporter::new().opset(6).export(path), Err(Error::Options(_))));
}

#[test]
fn integers_are_multiplied_as_by_the_builder_of_onnxruntime_genai() {
    for (given, level) in [
        (json!({"target": "ort-genai", "quantize": "int4"}), Some(4)),
        (json!({"target": "ort-genai", "quantize": "int4", "accuracy-level": 1}), Some(1)),
        (json!({"target": "ort-genai", "quantize": "int8"}), None),
        (json!({"target": "ort", "quantize": "int4"}), None),
    ] {
        let options: Options = serde_json::from_value(given).unwrap();
        assert_eq!(options.compression().accuracy_level, level);
        options.check_compression().unwrap();
    }
}

#[test]
fn what_is_not_understood() {
    for (given, said) in [
        (json!({"opsets": 18}), "unknown field `opsets`"),
        (json!({"opset": "18"}), "invalid type: string"),
        (json!({"optimize": 3}), "there is no level 3; give 0, 1 or 2"),
        (json!({"weights": "nowhere"}), "unknown variant `nowhere`"),
        (json!({"module-functions": 1}), "give a word or a list of words"),
        (json!({"output-names": "tree"}), "give a list of names, or \"from-tree\""),
        (json!({"shard-size": "1XB"}), "give a number of bytes such as 4096, 64KiB or 2GB"),
        (json!({"shard-size": -1}), "give a number of bytes such as 4096"),
        (json!({"dynamic-axes": {"x": {"a": "b"}}}), "`a` of `x` is not the number of an axis"),
        (json!({"dynamic-axes": {"x": 0}}), "give a table of names by axis, or a list of axes"),
    ] {
        let error = serde_json::from_value::<Options>(given).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
    let word: Options = serde_json::from_value(json!({"module-functions": "all"})).unwrap();
    assert_eq!(word.module_functions, ["all"]);
    let bytes = json!({"shard-size": "2GB", "alignment": "64KiB", "fold-limit": 5});
    let options: Options = serde_json::from_value(bytes).unwrap();
    assert_eq!((options.shard_size, options.alignment), (Some(2_000_000_000), 65536));
}

/// Models for these targets run on all processors, products of codes with a sign do not.
#[test]
fn signed_codes_are_not_for_targets_of_all_processors() {
    let refused = |target: &str| {
        let json = json!({ "quantize": "dynamic-int8", "signed": true, "target": target });
        let options: Options = serde_json::from_value(json).unwrap();
        options.check_compression().err().map(|e| e.to_string())
    };
    assert_eq!(refused("standard"), None);
    for target in ["ort", "ort-cpu"] {
        let error = refused(target).unwrap();
        assert!(error.contains("`signed` has a meaning only with `target` `standard`"), "{error}");
    }
}
