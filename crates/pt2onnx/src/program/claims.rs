//! The types that a file declares, beside those that its nodes make.

use pt2onnx_ir::{Model, TensorType, Value, VerifyError};

fn tensor(model: &Model, value: Value) -> Option<&TensorType> {
    model[value].ty.as_ref()?.as_tensor()
}

/// An error if the elements of an output do not have the type that the model states.
pub(super) fn mismatch(
    model: &Model,
    claimed: Value,
    typed: &Model,
    made: Value,
) -> Option<VerifyError> {
    let (declared, is) = (tensor(model, claimed)?.dtype, tensor(typed, made)?.dtype);
    (declared != is).then(|| VerifyError {
        place: format!("output `{}`", model[claimed].name.as_deref().unwrap_or_default()),
        what: format!("the graph says that it is {declared}, its node makes {is}"),
    })
}

/// Gives values of the main graph whose sizes cannot be the declared ones those that are inferred.
/// Returns a text for each.
pub(super) fn drop_wrong_sizes(model: &mut Model, typed: &Model) -> Vec<String> {
    let made = model.nodes(Model::MAIN).flat_map(|id| model[id].outputs());
    let wrong: Vec<Value> = made.copied().filter(|&v| contradict(model, typed, v)).collect();
    let mut texts = Vec::new();
    for value in wrong {
        let Some(is) = typed[value].ty.clone() else { continue };
        let name = model[value].name.as_deref().unwrap_or_default();
        let claim = model[value].ty.as_ref().map(ToString::to_string).unwrap_or_default();
        texts.push(format!("`{name}` is declared as {claim}, and is {is}"));
        model[value].ty = Some(is);
    }
    texts
}

/// Whether the number of dimensions differs, or a size by a number that is known.
fn contradict(model: &Model, typed: &Model, value: Value) -> bool {
    let sizes = |model| tensor(model, value).and_then(|t: &TensorType| t.shape.as_ref());
    let Some((claim, is)) = sizes(model).zip(sizes(typed)) else { return false };
    let differ = || claim.iter().zip(is).any(|(a, b)| (a - b).as_int().is_some_and(|by| by != 0));
    claim.len() != is.len() || differ()
}

#[cfg(test)]
mod tests {
    use crate::OnnxProgram;
    use pt2onnx_ir::Model;

    /// Sizes that the file states wrongly are those that the nodes make, and that is a warning.
    #[test]
    fn wrong_sizes() {
        let text = "g (float[N,4] x) => (float[N,5] y, float[M,4] z) { y = Relu (x) z = Abs (x) }";
        let model: Model = text.parse().unwrap();
        let bytes = pt2onnx_writer::to_bytes_unverified(&model).unwrap();
        let program = OnnxProgram::from_bytes(bytes, []).unwrap();
        assert!(program.to_text().contains("=> (float[N,4] y, float[M,4] z)"));
        let texts: Vec<String> = program.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["`y` is declared as float[N,5], and is float[N,4]"]);
    }
}
