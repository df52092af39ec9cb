//! Statistics of passes: what each changed, and where fusions did not apply.

use pt2onnx_ir::{Model, RegionId};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The effect of one pass on a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassEffect {
    /// The pass.
    pub pass: &'static str,
    /// How many times it changed the model.
    pub times: usize,
    /// How many more nodes of each operator there are after it, those of all its runs together.
    pub operators: BTreeMap<String, i64>,
}

impl PassEffect {
    /// How many more nodes there are after the pass.
    pub fn nodes(&self) -> i64 {
        self.operators.values().sum()
    }
}

/// A line: `cse: 2 times, -14 nodes (-9 Shape, -5 Gather)`.
impl fmt::Display for PassEffect {
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

/// Places of the final model where the pattern of a fusion fits, and the fusion does not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The pass.
    pub pass: &'static str,
    /// Why it does not apply.
    pub reason: &'static str,
    /// The number of places.
    pub places: usize,
}

/// A line: `layer-norm: not applied at 2 places: the type is float64`.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pass, reason, places } = self;
        let s = if *places == 1 { "" } else { "s" };
        write!(f, "{pass}: not applied at {places} place{s}: {reason}")
    }
}

/// A record of what passes did; clones share it.
///
/// ```
/// use pt2onnx_opt::{Options, PassStats, optimize};
///
/// let text = r#"<ir_version: 9, opset_import: ["" : 20]>
/// main_graph (double[2] x) => (double[2] y) <double _zero = {0}, double _one = {1}> {
///     a = Identity (x) b = Max (a, _zero) y = Min (b, _one) }"#;
/// let mut model: pt2onnx_ir::Model = text.parse()?;
/// let stats = PassStats::default();
/// optimize(&mut model, &Options { stats: Some(stats.clone()), opset: 11, ..Options::default() });
/// assert_eq!(stats.effects()[0].to_string(), "cleanup: once, -1 nodes (-1 Identity)");
/// assert_eq!(
///     stats.refusals()[0].to_string(),
///     "clip: not applied at 1 place: the type is not float32"
/// );
/// # Ok::<(), pt2onnx_ir::ParseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PassStats(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    effects: Vec<PassEffect>,
    refusals: Vec<Refusal>,
}

/// How many nodes of each operator there are.
pub(crate) type Counts = BTreeMap<String, i64>;

pub(crate) fn counts(model: &Model, region: RegionId) -> Counts {
    let mut counts = Counts::new();
    for id in model.nodes_in(&[region]) {
        *counts.entry(model[id].op().to_owned()).or_default() += 1;
    }
    counts
}

impl PassStats {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The effect of each pass, in the order in which they first changed the model.
    pub fn effects(&self) -> Vec<PassEffect> {
        self.notes().effects.clone()
    }

    /// Where fusions did not apply, and why, by pass and reason.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.notes().refusals.clone()
    }

    pub(crate) fn changed(&self, pass: &'static str, before: Counts, after: Counts) {
        let effects = &mut self.notes().effects;
        let at = effects.iter().position(|e| e.pass == pass).unwrap_or_else(|| {
            effects.push(PassEffect { pass, times: 0, operators: BTreeMap::new() });
            effects.len() - 1
        });
        let Some(effect) = effects.get_mut(at) else { return };
        effect.times += 1;
        let lost = before.into_iter().map(|(op, n)| (op, -n));
        for (op, n) in lost.chain(after) {
            *effect.operators.entry(op).or_default() += n;
        }
    }

    pub(crate) fn refused(&self, pass: &'static str, reasons: BTreeMap<&'static str, usize>) {
        let refusals = &mut self.notes().refusals;
        for (reason, places) in reasons {
            match refusals.iter_mut().find(|r| (r.pass, r.reason) == (pass, reason)) {
                Some(refusal) => refusal.places += places,
                None => refusals.push(Refusal { pass, reason, places }),
            }
        }
    }
}
