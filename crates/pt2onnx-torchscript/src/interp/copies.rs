//! Copies: a list of unknown length has copies of the tensors that were added to it. Where a write would tell a copy from the tensor, what
//! is read afterwards is an error.

use super::{Interp, Step, unsupported};
use crate::{
    schema::Type,
    value::{Item, Parts},
};
use pt2onnx_fx::{InputSpec, Name};

impl Interp<'_> {
    /// Notes that a list has a copy of a tensor.
    pub(super) fn copied(&mut self, name: &Name) {
        let root = self.root_of(name);
        self.listed.insert(root);
    }

    fn root_of(&self, name: &Name) -> Name {
        let name = self.current(name);
        self.roots.get(&name).cloned().unwrap_or(name)
    }

    /// Notes a write into memory: lists may have copies of what was there, and it may be that of a list, which has copies of other tensors.
    pub(super) fn outdate(&mut self, root: &Name) {
        if self.listed.is_empty() {
            return;
        }
        let copied = self.listed.contains(root);
        let mut holds = false;
        for at in 0..self.heap.len() {
            let tensor = match self.heap.get(at) {
                Some(Item::Parts(parts)) if parts.element == Type::Tensor => parts.tensor.clone(),
                _ => continue,
            };
            holds |= self.root_of(&tensor) == *root;
            if let (true, Some(Item::Parts(parts))) = (copied, self.heap.get_mut(at)) {
                parts.stale = true;
            }
        }
        if holds {
            self.lost.extend(self.listed.iter().filter(|listed| *listed != root).cloned());
        }
    }

    /// An error if the list has a copy of a tensor that was written into since.
    pub(super) fn fresh_list(&self, parts: &Parts) -> Step<()> {
        match parts.stale {
            false => Ok(()),
            true => unsupported(
                "a list whose length depends on data, after a write into a tensor that it holds,",
            ),
        }
    }

    /// An error if a list with a copy of a tensor was written into, and so the tensor, too.
    pub(super) fn fresh_tensor(&self, name: &Name) -> Step<()> {
        match self.lost.is_empty() || !self.lost.contains(&self.root_of(name)) {
            true => Ok(()),
            false => unsupported(
                "a tensor that a list of unknown length holds, after a write into an element of the list,",
            ),
        }
    }

    /// The same for the parameters and buffers, which keep what is written.
    pub(super) fn fresh_state(&self) -> Step<()> {
        let kept = self
            .specs
            .iter()
            .filter(|spec| matches!(spec, InputSpec::Parameter { .. } | InputSpec::Buffer { .. }));
        kept.filter_map(InputSpec::name).try_for_each(|name| match self.lost.contains(name) {
            true => self.fresh_tensor(name),
            false => Ok(()),
        })
    }
}
