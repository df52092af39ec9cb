//! Says why an option that compresses weights has changed none.

use crate::{Compressed, Options, numbers, weight_selection};
use pt2onnx_ir::{Model, Value};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashSet;

/// Warns that an option has no effect, if there are as many weights as `before`, and says why.
pub(crate) fn note(
    model: &Model,
    options: &Options,
    option: &str,
    given: &FxHashSet<Value>,
    before: usize,
    done: &mut Compressed,
) {
    if done.weights.len() > before {
        return;
    }
    let float = |t: &&Tensor| t.rank() > 0 && numbers::is_readable(t.dtype());
    let used =
        model.values().filter(|(value, data)| given.contains(value) && data.uses().len() > 0);
    let all: Vec<usize> =
        used.filter_map(|(_, data)| data.constant().filter(float)).map(Tensor::numel).collect();
    let few = all.iter().filter(|n| **n < options.min_elements).count();
    let asked = weight_selection::weights(model, options);
    let unfit = asked.iter().filter(|w| given.contains(&w.value) && float(&&w.tensor)).count();
    let min = options.spelling.text("{min-elements}");
    let reasons = [
        (few, &*format!("of fewer than {} elements ({min})", options.min_elements)),
        (all.len().saturating_sub(few + unfit), "left out by options or by other uses"),
        (
            unfit,
            "of a type or use that it does not take, or no larger than what would become of it",
        ),
    ];
    let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = reasons.map(|(count, why)| format!("{count} {why}")).collect();
    let why =
        if reasons.is_empty() { "there is none for it".to_owned() } else { reasons.join(", ") };
    done.warnings.push(format!("the option {option} compresses no weight: {why}"));
}
