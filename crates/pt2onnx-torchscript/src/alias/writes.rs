//! Writes into tensors: what is known of all that shares their memory ends, and views of it are
//! made again.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, overload::Bound},
    schema::Schema,
    value::Value,
};
use pt2onnx_fx::{Argument, Name};
use std::sync::Arc;

impl Evaluator<'_> {
    /// The memory that a result may share: that of the argument with the same alias.
    pub(crate) fn alias_of(&self, schema: &Schema, bound: &Bound, alias: char) -> Option<Name> {
        let mut params = bound.iter().zip(&schema.params).filter(|(_, p)| p.alias == Some(alias));
        match params.next()? {
            (Some(Value::Tensor(name)), _) => {
                Some(self.memory.class_of(&self.current(name)).clone())
            }
            _ => None,
        }
    }

    /// The tensor that this one is, if it is the result of a write into it.
    pub(crate) fn write_base_of(&self, name: &Name) -> Name {
        self.memory.write_base_of(name)
    }

    /// The tensor that an operator writes into and returns.
    pub(crate) fn written_of(&self, schema: &Schema, bound: &Bound, alias: char) -> Option<Name> {
        let mut params = bound.iter().zip(&schema.params);
        match params.find(|(_, param)| param.alias == Some(alias) && param.written)? {
            (Some(Value::Tensor(name)), _) => Some(self.write_base_of(&self.current(name))),
            _ => None,
        }
    }

    /// Forgets the contents of all that shares memory with what an operator writes into.
    pub(crate) fn written(&mut self, schema: &Schema, bound: &Bound) -> Step<()> {
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
                self.writes_conditional(&name)?;
                let root = self.memory.class_of(&name).clone();
                self.forget(&root);
                self.mark_stale(&root)?;
                self.memory.written.insert(root.clone());
                self.state.mod_set.insert(root);
            }
        }
        Ok(())
    }

    /// Forgets the contents of all that shares this memory.
    pub(crate) fn forget(&mut self, class: &Name) {
        for name in self.memory.known_of(class, !self.state.is_forked()) {
            self.state.forget_contents(&name);
        }
    }

    /// The name by which a tensor is read here.
    pub(crate) fn readable(&mut self, name: &Name) -> Step<Name> {
        let name = self.current(name);
        self.check_fresh(&name)?;
        self.reads_conditional(&name)?;
        if self.state.stale_views.contains_key(&name) {
            self.deeper(|ev| ev.viewed_again(&name))
        } else {
            Ok(name)
        }
    }

    /// A view of memory for which a copy stands here, made again of the copy.
    pub(crate) fn viewed_again(&mut self, view: &Name) -> Step<Name> {
        let whole = self.write_base_of(view);
        if whole != *view {
            let again = self.readable(&whole)?;
            self.state.stale_views.remove(view);
            self.state.substitution.insert(view.clone(), again.clone());
            return Ok(again);
        }
        let found = self.memory.views.get(view).map(|node| (**node).clone());
        let Some((mut node, base)) = found.and_then(|node| {
            let base = node.args.first()?.value.name()?.clone();
            Some((node, base))
        }) else {
            let text = "it reads a view, made before it, of a tensor that it writes into";
            return Err(Problem::Loop(text.to_owned()));
        };
        let base = self.readable(&base)?;
        let root = self.memory.class_of(&base).clone();
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
                if let Some(meta) = self.state.facts.values.get(&old).cloned() {
                    self.state.facts.values.insert(again.clone(), meta);
                }
                self.memory.share(again.clone(), root.clone());
                self.state.stale_views.remove(&old);
                self.state.substitution.insert(old, again);
            }
        }
        let node = Arc::new(node);
        for name in node.output_names() {
            self.memory.views.insert(name, node.clone());
        }
        self.push((*node).clone())?;
        Ok(self.current(view))
    }
}
