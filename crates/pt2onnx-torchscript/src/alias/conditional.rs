//! Results of `contiguous` that are their argument where a size is 1, of a transposed tensor. The
//! model takes them for copies, and warns of writes that make a difference.

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
        for Alias { result, base, view } in shared {
            if &*node.target.name == "contiguous"
                && *view == View::Unknown
                && self.meta(base).is_ok_and(has_strides)
            {
                self.conditional.results.insert(result.clone());
            }
        }
    }

    /// Notes a write into a tensor.
    pub(super) fn writes_conditional(&mut self, name: &Name) -> Step<()> {
        for (result, within) in self.sides(name)? {
            let site = self.site();
            self.conditional.written.entry(result).or_insert((within, site));
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

    /// The results that share the memory of a tensor, and whether it is one of them or a view.
    fn sides(&mut self, name: &Name) -> Step<Vec<(Name, bool)>> {
        if self.conditional.results.is_empty() {
            return Ok(Vec::new());
        }
        let mut chain = FxHashSet::default();
        let mut next = Some(name.clone());
        while let Some(name) = next.filter(|name| !chain.contains(name)) {
            let base = || self.memory.views.get(&name)?.args.first()?.value.name();
            next = self.memory.write_base.get(&name).or_else(base).cloned();
            chain.insert(name);
        }
        self.steps(chain.len() + self.conditional.results.len())?;
        let root = self.memory.class_of(name);
        let of_root = |result: &&Name| self.memory.class_of(result) == root;
        let results = self.conditional.results.iter().filter(of_root);
        Ok(results.map(|result| (result.clone(), chain.contains(result))).collect())
    }
}
