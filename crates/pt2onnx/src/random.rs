//! Random numbers: seeds for the nodes that draw them, or a warning.

use pt2onnx_ir::{Attribute, Model, NodeId, Traits};
use std::collections::BTreeSet;

/// Gives each node that draws random numbers a seed, counting up from `seed`. Without a seed, warns
/// that outputs differ from run to run.
pub(crate) fn seed(model: &mut Model, seed: Option<u32>) -> Option<String> {
    let mut operators = BTreeSet::new();
    let mut next = seed;
    for id in model.graph_nodes() {
        let dropout = model[id].is("Dropout");
        let draws = model[id].traits().contains(Traits::RANDOM) || dropout && drops(model, id);
        if !draws {
            continue;
        }
        operators.insert(model[id].op().to_string());
        if let Some(seed) = &mut next {
            model[id].attributes.retain(|(name, _)| name != "seed");
            let value = if dropout {
                Attribute::Int(i64::from(*seed))
            } else {
                Attribute::Float(*seed as f32)
            };
            model[id].attributes.push(("seed".into(), value));
            *seed = seed.wrapping_add(1);
        }
    }
    (seed.is_none() && !operators.is_empty()).then(|| {
        let operators = operators.into_iter().collect::<Vec<_>>().join(", ");
        format!(
            "the model draws random numbers ({operators}): its outputs differ from run to run, and from PyTorch's; \
             the option `seed` makes them repeatable"
        )
    })
}

/// Whether a `Dropout` may be in training mode.
fn drops(model: &Model, dropout: NodeId) -> bool {
    let mode = model[dropout].input(2);
    mode.is_some_and(|mode| match model[mode].constant().and_then(|t| t.to_vec::<bool>()) {
        Some(mode) => mode.first() != Some(&false),
        None => true,
    })
}
