//! Names of values and dimensions in a finished model.

use pt2onnx::{Exporter, OnnxProgram, Provenance, ir::Model, writer};

#[test]
fn axes_are_renamed() {
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    let mut program = Exporter::new().export(archive).unwrap();
    program.rename_axes([("tensor_x.0", "rows")]).unwrap();
    let text = program.to_text();
    assert!(text.contains("float[rows,2] linear_4") && !text.contains("s18"), "{text}");
    assert!(program.rename_axes([("s18", "n")]).is_err());
}

/// Tools that merge models compare their inputs and outputs.
#[test]
fn renamed_inputs_and_outputs_have_metadata_only_with_full_provenance() {
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    for detail in [Provenance::Full, Provenance::Basic, Provenance::None] {
        let exporter = Exporter::new().provenance(detail).output_names(["y"]);
        let program = exporter.rename("tensor_x", "x").export(archive).unwrap();
        let model = program.model();
        let ends = || model.inputs().iter().copied().chain(model.output_values());
        assert!(ends().any(|value| model[value].name.as_deref() == Some("x")));
        let recorded = ends().any(|value| !model[value].metadata.is_empty());
        assert_eq!(recorded, detail == Provenance::Full);
    }
}

/// A body of an operator of another domain may have the names of values around it, which are found
/// first.
#[test]
fn values_of_other_scopes_come_last() {
    let text = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>
        g (float[2] x) => (float[2] y) {
            s = com.microsoft.Search <body: graph = b (float[2] z) => (float[2] a) { a = Neg (z) }> (x)
            a = Relu (x)
            y = Add (a, s)
        }";
    let model: Model = text.parse().unwrap();
    let program = OnnxProgram::from_bytes(writer::to_bytes(&model).unwrap(), []).unwrap();
    let made_by = |name: &str| {
        let model = program.model();
        model.producer(program.value(name).unwrap()).map(|node| model[node].op().to_owned())
    };
    assert_eq!(made_by("a").as_deref(), Some("Relu"));
    assert_eq!(made_by("z"), None);
}
