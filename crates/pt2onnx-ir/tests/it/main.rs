//! Models from texts: what is read, printed, verified, built and changed.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "what the cases rely on stops them")]

mod attributes;
mod builder;
mod cases;
mod functions;
mod graph;
mod outputs;
mod parse;
mod verify;

use pt2onnx_ir::{Model, NodeId, verify};

fn model(text: &str) -> Model {
    text.parse().expect(text)
}

/// The errors that the verifier finds.
fn errors(model: &Model) -> String {
    let errors = verify(model).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The first node of that operator.
fn node(model: &Model, op: &str) -> NodeId {
    model.all_nodes().into_iter().find(|n| model[*n].is(op)).expect(op)
}
