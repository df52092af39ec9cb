//! What passes did, how often.

use pt2onnx_ir::{Model, RegionId};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// What one pass did to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// The pass.
    pub pass: &'static str,
    /// How many times it changed the model.
    pub times: usize,
    /// How many more nodes of each operator there are after it, those of all its runs together.
    pub operators: BTreeMap<String, i64>,
}

impl Effect {
    /// How many more nodes there are after the pass.
    pub fn nodes(&self) -> i64 {
        self.operators.values().sum()
    }
}

/// A line: `cse: 2 times, -14 nodes (-9 Shape, -5 Gather)`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times =
            if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        write!(f, "{}: {times}, {:+} nodes", self.pass, self.nodes())?;
        let mut changed: Vec<_> = self.operators.iter().filter(|(_, n)| **n != 0).collect();
        changed.sort_by_key(|(op, n)| (**n, (*op).clone()));
        for (i, (op, n)) in changed.iter().enumerate() {
            write!(f, "{}{n:+} {op}", if i == 0 { " (" } else { ", " })?;
        }
        f.write_str(if changed.is_empty() { "" } else { ")" })
    }
}

/// A record of what passes did; clones share it.
///
/// ```
/// use pt2onnx_opt::{Journal, Options, optimize};
///
/// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
/// main_graph (float[2] x) => (float[2] y) { a = Identity (x) y = Relu (a) }"#;
/// let mut model: pt2onnx_ir::Model = text.parse()?;
/// let journal = Journal::default();
/// optimize(&mut model, &Options { journal: Some(journal.clone()), ..Options::default() });
/// assert_eq!(journal.effects()[0].to_string(), "cleanup: once, -1 nodes (-1 Identity)");
/// # Ok::<(), pt2onnx_ir::ParseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Vec<Effect>>>);

/// How many nodes of each operator there are.
pub(crate) type Counts = BTreeMap<String, i64>;

pub(crate) fn counts(model: &Model, region: RegionId) -> Counts {
    let mut counts = Counts::new();
    for id in model.nodes_in(&[region]) {
        *counts.entry(model[id].op().to_owned()).or_default() += 1;
    }
    counts
}

impl Journal {
    /// What each pass did, in the order in which they first changed the model.
    pub fn effects(&self) -> Vec<Effect> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a pass changed a graph.
    pub(crate) fn note(&self, pass: &'static str, before: Counts, after: Counts) {
        let mut effects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = effects.iter().position(|e| e.pass == pass).unwrap_or_else(|| {
            effects.push(Effect { pass, times: 0, operators: BTreeMap::new() });
            effects.len() - 1
        });
        let Some(effect) = effects.get_mut(at) else {
            return;
        };
        effect.times += 1;
        let lost = before.into_iter().map(|(op, n)| (op, -n));
        for (op, n) in lost.chain(after) {
            *effect.operators.entry(op).or_default() += n;
        }
    }
}
