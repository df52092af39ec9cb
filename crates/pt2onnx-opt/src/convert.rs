//! Rewrites models of other producers for another opset, older or newer.

use crate::{
    CONVERTED_OPSETS, Level, OPSETS, OPTIMISED_OPSETS, Target,
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
    convert_for(model, opset, Target::Standard)
}

/// As [`convert`]. Operators that a runtime of a part of ONNX does not support are also replaced by
/// others, if there is a rule for it, also at the model's own opset.
///
/// ```
/// use pt2onnx_ir::Model;
/// use pt2onnx_opt::Target;
///
/// let text = r#"<ir_version: 8, opset_import: ["" : 18]>
/// g (float[2] x) => (bool[2] y) { y = IsNaN (x) }"#;
/// let mut model: Model = text.parse()?;
/// pt2onnx_opt::convert_for(&mut model, 18, Target::Portable)?;
/// assert!(!model.to_string().contains("IsNaN"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`convert`].
pub fn convert_for(model: &mut Model, opset: u32, target: Target) -> Result<(), LegaliseError> {
    let target = if target.is_subset() { target } else { Target::Standard };
    if !OPSETS.contains(&opset) {
        return Err(LegaliseError::Opset(opset));
    }
    if model.opset == opset && target == Target::Standard {
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
        in_opset(model, opset, target).or_else(|_| {
            *model = before.clone();
            if !OPTIMISED_OPSETS.contains(&written) {
                in_opset(model, CANONICAL_OPSET, Target::Standard)?;
            }
            optimize_imported(model, &Level::Simplify.into());
            in_opset(model, opset, target)
        })
    });
    if done.is_err() {
        *model = before;
        return done;
    }
    // A file of an older version of the format cannot have newer opsets, and older runtimes do not
    // read newer versions.
    let stated = model.ir_version.take();
    model.ir_version = stated.filter(|&v| opset >= written && v >= model.ir_version());
    Ok(())
}

/// Infers types, and rewrites the nodes for the opset.
fn in_opset(model: &mut Model, opset: u32, target: Target) -> Result<(), LegaliseError> {
    let written = model.opset;
    let mut done = Ok(());
    opaque::each_graph_of(&CONVERTED_OPSETS, model, |graph| {
        (graph.model.opset, graph.opset) = (CANONICAL_OPSET, CANONICAL_OPSET);
        crate::fold::constants(graph);
        types::infer(graph, Some(Raising { written, alike: false }), &Taken::default());
        let failures = opaque::failures(graph, written);
        done = if failures.is_empty() {
            legalise_from(graph.model, written, opset, target)
        } else {
            Err(LegaliseError::Newer { from: written, failures })
        };
    });
    done
}
