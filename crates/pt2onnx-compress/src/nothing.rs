//! Says why an option that compresses weights has changed none.

use crate::{choose, numbers, options::Options, summary::Compressed};
use pt2onnx_ir::Model;
use pt2onnx_tensor::Tensor;

/// Notes that an option has no effect, if `done` has still as many weights as before: how many weights the model has, and what is against
/// them.
pub(crate) fn note(
    model: &Model,
    options: &Options,
    option: &str,
    before: usize,
    done: &mut Compressed,
) {
    if done.weights.len() > before {
        return;
    }
    let float =
        |t: &&Tensor| t.rank() > 0 && numbers::is_readable(t.dtype()) && t.compute().is_none();
    let used = model.values().filter(|(_, data)| data.uses().len() > 0);
    let all: Vec<usize> =
        used.filter_map(|(_, data)| data.constant().filter(float)).map(Tensor::numel).collect();
    let few = all.iter().filter(|n| **n < options.min_elements).count();
    let asked = choose::weights(model, options).unwrap_or_default();
    let unfit = asked.iter().filter(|weight| float(&&weight.tensor)).count();
    let few_text = format!("fewer than {} elements (`compress-min`)", options.min_elements);
    let reasons = [
        (few, few_text.as_str()),
        (all.len().saturating_sub(few + unfit), "an option or a use that excludes them"),
        (unfit, "a use or a type that the option does not take, or would not become smaller"),
    ];
    let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = reasons.map(|(count, why)| format!("{count} have {why}")).collect();
    let why = match reasons.is_empty() {
        true => "the model has none".to_owned(),
        false => format!("of {}, {}", all.len(), reasons.join(", ")),
    };
    done.warnings.push(format!("the option `{option}` compresses no weight: {why}"));
}
