//! Whether a first call computes what later calls compute from zeros: both programs are compared as
//! terms.

use crate::eval::Evaluator;
use pt2onnx_fx::{Argument, Name, Node, ValueMeta};
use pt2onnx_symbolic::Expr;
use rustc_hash::{FxHashMap, FxHashSet};

/// Numbers of terms that both programs share.
#[derive(Default)]
pub(crate) struct ValueNumbering(FxHashMap<String, usize>);

/// The numbers of the values of one program.
struct Reader<'t> {
    terms: &'t mut ValueNumbering,
    of: FxHashMap<Name, usize>,
    /// The values that are all zeros.
    zeros: FxHashSet<usize>,
}

impl ValueNumbering {
    fn number(&mut self, text: String) -> usize {
        let next = self.0.len();
        *self.0.entry(text).or_insert(next)
    }
}

impl Evaluator<'_> {
    /// The terms of results, if the program only computes: `held` inputs are zeros. `None` if it
    /// also writes or branches.
    pub(crate) fn numbers_of(
        &self,
        results: &[Name],
        terms: &mut ValueNumbering,
    ) -> Option<Vec<usize>> {
        let mut reader = Reader { terms, of: FxHashMap::default(), zeros: FxHashSet::default() };
        for spec in &self.interface.specs {
            let Some(name) = spec.name() else { continue };
            let text = match spec.target() {
                Some(target) => format!("weight {target}"),
                None => format!("input {name}"),
            };
            let known = self.interface.state_inputs.iter().any(|(_, held, _)| held == name);
            let zero = known.then(|| self.zero(name)).flatten();
            reader.define(name, text, zero);
        }
        for node in &self.state.nodes {
            self.read(&mut reader, node)?;
        }
        results.iter().map(|name| reader.of.get(name).copied()).collect()
    }

    /// The term of a tensor of zeros.
    fn zero(&self, name: &Name) -> Option<String> {
        let Some(ValueMeta::Tensor(meta)) = self.state.facts.values.get(name) else {
            return None;
        };
        let sizes: Vec<String> = meta.sizes.iter().map(Expr::to_string).collect();
        Some(format!("zeros {} {}", meta.dtype, sizes.join(",")))
    }

    fn read(&self, reader: &mut Reader<'_>, node: &Node) -> Option<()> {
        let op = &*node.target.name;
        let writes = op.ends_with('_') && !op.ends_with("__");
        if writes || &*node.target.namespace != "aten" {
            return None;
        }
        let mut zeros = matches!(op, "zeros" | "zeros_like" | "new_zeros");
        let reads = node.input_names();
        if MOVES.split(' ').any(|moves| moves == op) && !reads.is_empty() {
            let zero = |name: &Name| reader.of.get(name).is_some_and(|t| reader.zeros.contains(t));
            zeros = reads.iter().all(zero);
        }
        let mut text = format!("{}(", node.target);
        for arg in &node.args {
            let mut value = arg.value.clone();
            reader.rename(&mut value)?;
            text.push_str(&format!("{}={value:?};", arg.name));
        }
        for (at, name) in node.output_names().into_iter().enumerate() {
            let zero = zeros.then(|| self.zero(&name)).flatten();
            reader.define(&name, format!("{text}{at}"), zero);
        }
        Some(())
    }
}

impl Reader<'_> {
    fn define(&mut self, name: &Name, text: String, zero: Option<String>) {
        let is_zero = zero.is_some();
        let number = self.terms.number(zero.unwrap_or(text));
        self.of.insert(name.clone(), number);
        if is_zero {
            self.zeros.insert(number);
        }
    }

    /// Replaces names by the numbers of their terms. `None` if something has no term.
    fn rename(&self, value: &mut Argument) -> Option<()> {
        let mut is_known = !matches!(value, Argument::Graph { .. });
        value.for_each_name_mut(&mut |name| match self.of.get(name) {
            Some(term) => *name = Name::from(format!("%{term}")),
            None => is_known = false,
        });
        is_known.then_some(())
    }
}

/// Ops that only move elements: zeros stay zeros.
const MOVES: &str = "alias cat chunk clone contiguous detach expand flatten index_select narrow \
    permute repeat reshape select slice split squeeze stack t to transpose unbind unsqueeze view";
