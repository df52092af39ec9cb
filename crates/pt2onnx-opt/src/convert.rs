//! Rewrites models of other producers for another opset, older or newer.

use crate::{
    CONVERTED_OPSETS, Level, OPSETS, OPTIMISED_OPSETS,
    legalise::{LegaliseError, legalise_from},
    opaque::{self, Raising},
    optimize::optimize_imported,
    types::{self, keeping_outputs},
    unreachable_branches::Taken,
};
use pt2onnx_ir::{Model, schema::CANONICAL_OPSET};

/// Rewrites a model for another opset and sets [`Model::opset`]: nodes mean the same, or there is
/// an error. Functions that nothing calls are dropped. For an older opset, the version of the file
/// format is the oldest that will do. The opset of the model must be one of
/// [`CONVERTED_OPSETS`](crate::CONVERTED_OPSETS), the new one is one of [`OPSETS`](crate::OPSETS).
///
/// If a node needs sizes that do not follow at once, the model is simplified first
/// ([`Level::Simplify`]).
///
/// ```
/// use pt2onnx_ir::Model;
///
/// let text = r#"<ir_version: 4, opset_import: ["" : 9]>
/// main_graph (float[2,1] x) => (float[2] y) { y = Squeeze <axes: ints = [1]> (x) }"#;
/// let mut model: Model = text.parse()?;
/// pt2onnx_opt::convert(&mut model, 20)?;
/// assert_eq!(model.opset, 20);
/// assert_eq!(model[model.nodes(Model::MAIN).next().unwrap()].inputs().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Nodes that the new opset cannot express, a model with functions, or an opset that is not
/// supported. The model is then unchanged.
pub fn convert(model: &mut Model, opset: u32) -> Result<(), LegaliseError> {
    if !OPSETS.contains(&opset) {
        return Err(LegaliseError::Opset(opset));
    }
    if model.opset == opset {
        return Ok(());
    }
    let written = model.opset;
    if !CONVERTED_OPSETS.contains(&written) {
        return Err(LegaliseError::Direction { from: written, to: opset });
    }
    let before = model.clone();
    model.drop_unused_functions();
    if !model.functions.is_empty() {
        *model = before;
        return Err(LegaliseError::Functions);
    }
    let done = keeping_outputs(model, |model| {
        in_opset(model, opset).or_else(|_| {
            *model = before.clone();
            if !OPTIMISED_OPSETS.contains(&written) {
                in_opset(model, CANONICAL_OPSET)?;
            }
            optimize_imported(model, &Level::Simplify.into());
            in_opset(model, opset)
        })
    });
    if done.is_err() {
        *model = before;
        return done;
    }
    // A file of an older version of the format cannot have newer opsets, and older runtimes do not
    // read newer versions.
    let stated = model.ir_version.take();
    model.ir_version = stated.filter(|&v| opset > written && v >= model.ir_version());
    Ok(())
}

/// Infers types, and rewrites the nodes for the opset.
fn in_opset(model: &mut Model, opset: u32) -> Result<(), LegaliseError> {
    let written = model.opset;
    let mut done = Ok(());
    opaque::each_graph_of(&CONVERTED_OPSETS, model, |graph| {
        (graph.model.opset, graph.opset) = (CANONICAL_OPSET, CANONICAL_OPSET);
        crate::fold::constants(graph);
        types::infer(graph, Some(Raising { written, alike: false }), &Taken::default());
        let failures = opaque::failures(graph, written);
        done = if failures.is_empty() {
            legalise_from(graph.model, written, opset)
        } else {
            Err(LegaliseError::Newer { from: written, failures })
        };
    });
    done
}
