//! Writes into tensors: what is known of all that shares their memory ends, and views of it are
//! made again.

use super::{Interp, Step, fits::Bound};
use crate::{error::Problem, schema::Schema, value::Value};
use pt2onnx_fx::{Argument, Name};
use std::sync::Arc;

impl Interp<'_> {
    /// The memory that a result may share: that of the argument with the same alias.
    pub(super) fn alias_of(&self, schema: &Schema, bound: &Bound, alias: char) -> Option<Name> {
        let mut params = bound.iter().zip(&schema.params).filter(|(_, p)| p.alias == Some(alias));
        match params.next()? {
            (Some(Value::Tensor(name)), _) => self.roots.get(&self.current(name)).cloned(),
            _ => None,
        }
    }

    /// The tensor that this one is as a whole, if it is the result of a write into it.
    pub(super) fn whole_of(&self, name: &Name) -> Name {
        self.wholes.get(name).unwrap_or(name).clone()
    }

    /// The tensor that an operator writes into and returns.
    pub(super) fn written_of(&self, schema: &Schema, bound: &Bound, alias: char) -> Option<Name> {
        let mut params = bound.iter().zip(&schema.params);
        match params.find(|(_, param)| param.alias == Some(alias) && param.written)? {
            (Some(Value::Tensor(name)), _) => Some(self.whole_of(&self.current(name))),
            _ => None,
        }
    }

    /// Forgets the contents of all that shares memory with what an operator writes into.
    pub(super) fn written(&mut self, schema: &Schema, bound: &Bound) -> Step<()> {
        for (value, param) in bound.iter().zip(&schema.params) {
            let names: Vec<Name> = match value {
                Some(Value::Tensor(name)) if param.written => vec![name.clone()],
                Some(Value::List(list)) if param.written => {
                    let tensors = self.items(*list).iter().filter_map(|item| match item {
                        Value::Tensor(name) => Some(name.clone()),
                        _ => None,
                    });
                    tensors.collect()
                }
                _ => continue,
            };
            for name in names {
                let name = self.current(&name);
                self.writes_unsure(&name)?;
                let root = self.roots.get(&name).cloned().unwrap_or(name);
                self.forget(&root);
                self.outdate(&root)?;
                self.changed.insert(root.clone());
                self.writes.insert(root);
            }
        }
        Ok(())
    }

    /// Forgets the contents of all that shares this memory.
    pub(super) fn forget(&mut self, root: &Name) {
        let roots = &self.roots;
        self.facts.contents.retain(|name, _| roots.get(name).unwrap_or(name) != root);
    }

    /// The name by which a tensor is read here.
    pub(super) fn readable(&mut self, name: &Name) -> Step<Name> {
        let name = self.current(name);
        self.fresh_tensor(&name)?;
        self.reads_unsure(&name)?;
        if self.hidden.contains(&name) {
            self.deeper(|interp| interp.viewed_again(&name))
        } else {
            Ok(name)
        }
    }

    /// A view of memory for which a copy stands here, made again of the copy.
    pub(super) fn viewed_again(&mut self, view: &Name) -> Step<Name> {
        let whole = self.whole_of(view);
        if whole != *view {
            let again = self.readable(&whole)?;
            self.hidden.remove(view);
            self.replaced.insert(view.clone(), again.clone());
            return Ok(again);
        }
        let found = self.views.get(view).map(|node| (**node).clone());
        let Some((mut node, base)) = found.and_then(|node| {
            let base = node.args.first()?.value.name()?.clone();
            Some((node, base))
        }) else {
            let text = "it reads a view, made before it, of a tensor that it writes into";
            return Err(Problem::Loop(text.to_owned()));
        };
        let base = self.readable(&base)?;
        let root = self.roots.get(&base).unwrap_or(&base).clone();
        node.name = self.fresh(&node.name.clone());
        if let Some(first) = node.args.first_mut() {
            first.value = Argument::Tensor(base);
        }
        for output in &mut node.outputs {
            let names = match output {
                Argument::Tensor(name) => std::slice::from_mut(name),
                Argument::Tensors(names) => names.as_mut_slice(),
                _ => continue,
            };
            for name in names {
                let again = self.fresh(&name.clone());
                let old = std::mem::replace(name, again.clone());
                if let Some(meta) = self.facts.values.get(&old).cloned() {
                    self.facts.values.insert(again.clone(), meta);
                }
                self.roots.insert(again.clone(), root.clone());
                self.hidden.remove(&old);
                self.replaced.insert(old, again);
            }
        }
        let node = Arc::new(node);
        for name in node.output_names() {
            self.views.insert(name, node.clone());
        }
        self.push((*node).clone())?;
        Ok(self.current(view))
    }
}
