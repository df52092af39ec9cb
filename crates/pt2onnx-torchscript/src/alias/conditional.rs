//! Results of `contiguous` that are their argument for some sizes only: a transposed tensor whose
//! size may be 1. The model takes them for copies; where a write makes a difference, a warning says
//! so.

use crate::{
    eval::{Evaluator, Step},
    note::Note,
};
use pt2onnx_fx::{
    Name, Node,
    strides::has_strides,
    views::{Alias, View},
};
use rustc_hash::FxHashSet;

impl Evaluator<'_> {
    /// Notes results that may be their argument.
    pub(crate) fn note_conditional(&mut self, node: &Node, shared: &[Alias]) {
        if &*node.target.name != "contiguous" {
            return;
        }
        for Alias { result, base, view } in shared {
            if *view == View::Unknown && self.meta(base).is_ok_and(has_strides) {
                self.conditional.results.insert(result.clone());
            }
        }
    }

    /// Notes a write into a tensor.
    pub(crate) fn writes_conditional(&mut self, name: &Name) -> Step<()> {
        if self.conditional.results.is_empty() {
            return Ok(());
        }
        let site = self.site();
        for (result, within) in self.sides(name)? {
            self.conditional.written.entry(result).or_insert_with(|| (within, site.clone()));
        }
        Ok(())
    }

    /// Warns if a tensor is read that a write reaches for some sizes only.
    pub(crate) fn reads_conditional(&mut self, name: &Name) -> Step<()> {
        if self.conditional.written.is_empty() {
            return Ok(());
        }
        for (result, within) in self.sides(name)? {
            let written = self.conditional.written.get(&result);
            let Some((_, site)) = written.filter(|(written, _)| *written != within) else {
                continue;
            };
            let text = "`contiguous` is taken to make a copy, but where a size is 1 it returns its argument, which this write then \
                        reaches: use `clone()`";
            self.state.warnings.push(Note { site: Some(site.clone()), text: text.to_owned() });
            self.conditional.written.remove(&result);
            self.conditional.results.remove(&result);
        }
        Ok(())
    }

    /// The results that share the memory of a tensor, and whether the tensor is one of them or a
    /// view of it.
    fn sides(&mut self, name: &Name) -> Step<Vec<(Name, bool)>> {
        let mut chain = FxHashSet::default();
        let mut next = Some(name.clone());
        while let Some(name) = next {
            next = match self.memory.write_base.get(&name) {
                Some(whole) => Some(whole.clone()),
                None => self
                    .memory
                    .views
                    .get(&name)
                    .and_then(|node| node.args.first()?.value.name())
                    .cloned(),
            };
            if !chain.insert(name) {
                break;
            }
        }
        self.steps(chain.len() + self.conditional.results.len())?;
        let root = self.memory.class_of(name);
        let of_root = |result: &&Name| self.memory.class_of(result) == root;
        let results = self.conditional.results.iter().filter(of_root);
        Ok(results.map(|result| (result.clone(), chain.contains(result))).collect())
    }
}
