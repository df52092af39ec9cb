//! Converts an archive with options: by methods, and by the struct that an options file holds.

use pt2onnx::{Exporter, OPSETS, Options, Weights};
use std::{error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models/mlp.pt2");
    let folder = tempfile::tempdir()?;

    // Each option has a method.
    let exporter = Exporter::new()
        .opset(18)
        .rename_dim("s18", "batch")
        .input_names(["x", "y", "z"])
        .weights(Weights::External)
        .metadata_prop("author", "me");
    let program = exporter.export(&archive)?;
    assert_eq!(program.model().opset, 18);
    assert!(program.warnings().is_empty());
    assert!(program.to_text().contains("float[batch,8] x"), "{}", program.to_text());
    let saved = program.save(folder.path().join("mlp.onnx"))?;
    assert_eq!(fs::metadata(folder.path().join("mlp.onnx"))?.len(), saved.bytes);

    // The same options as text.
    let text = r#"{
        "opset": 18,
        "rename-dim": {"s18": "batch"},
        "input-names": ["x", "y", "z"],
        "weights": "external",
        "metadata-prop": {"author": "me"}
    }"#;
    let options: Options = serde_json::from_str(text)?;
    assert_eq!(options, *exporter.options());
    let again = Exporter::with_options(options)?.export(&archive)?;
    assert_eq!(again.to_bytes()?, program.to_bytes()?);

    // The report says what was done, and with which options.
    let report = again.report();
    assert!(report.success);
    assert_eq!(report.options.as_ref().map(|o| o.changed.len()), Some(5));

    // A value out of range is an error before anything is read.
    let mut options = Options::default();
    options.opset = OPSETS.end() + 1;
    let error = Exporter::with_options(options).map(|_| ());
    assert!(error.is_err_and(|error| error.key() == "opset"));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
