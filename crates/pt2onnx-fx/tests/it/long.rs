//! Long programs, whose JSON is read on another thread, are read as short ones.

use crate::support::records;
use pt2onnx_fx::{Error, ExportedProgram, archive::from_json, readable};
use serde_json::{Value, json};

/// A program without weights, one thing of its graph's JSON changed, with a stack trace of so many
/// bytes.
fn read(change: Option<(&str, Value)>, trace: usize) -> Result<ExportedProgram, Error> {
    let records = records("dynamic.pt2");
    let (_, json) = records.iter().find(|(name, _)| name.ends_with("models/model.json")).unwrap();
    let mut json = serde_json::from_slice(json).unwrap();
    let graph = Value::pointer_mut(&mut json, "/graph_module/graph").unwrap();
    let mut set = |place: &str, to| *graph.pointer_mut(place).unwrap() = to;
    set("/nodes/0/metadata/stack_trace", json!("x".repeat(trace)));
    if let Some((place, to)) = change {
        set(place, to);
    }
    from_json(&serde_json::to_vec(&json).unwrap(), Default::default(), Default::default())
}

#[test]
fn programs() {
    let printed = |trace| readable(&read(None, trace).unwrap()).to_string();
    assert_eq!(printed(4 << 20), printed(1));
}

#[test]
fn errors() {
    for (place, to) in [
        ("/nodes/0/inputs/0/arg", json!({"as_tensor": {"name": "nothing"}})),
        ("/nodes/1/target", json!(1)),
        ("/nodes", json!(1)),
        ("/tensor_values", json!({"x": {"sizes": 1}})),
        ("/outputs", json!(1)),
    ] {
        // Without line and column.
        let error = |trace| {
            let error = read(Some((place, to.clone())), trace).unwrap_err().to_string();
            error.split(" at line ").next().unwrap().to_owned()
        };
        assert_eq!(error(4 << 20), error(1));
    }
}
