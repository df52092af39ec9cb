//! Tensors that share memory, and writes that all of them see.

mod conditional;
mod inplace_view;
mod may_alias;

use crate::{
    eval::{Evaluator, Step, overload::Bound},
    schema::Schema,
    value::Value,
};
use pt2onnx_fx::{
    Name,
    views::{Alias, View},
};
use rustc_hash::FxHashMap;

impl Evaluator<'_> {
    /// The tensor whose memory a result with this alias may share, and whether the operator writes
    /// into it and returns it.
    pub(crate) fn aliased<'b>(
        schema: &Schema,
        bound: &'b Bound,
        alias: char,
    ) -> Option<(&'b Name, bool)> {
        let mut params = bound.iter().zip(&schema.params);
        match params.find(|(_, param)| param.alias == Some(alias))? {
            (Some(Value::Tensor(name)), param) => Some((name, param.written)),
            _ => None,
        }
    }

    /// Forgets the contents of all that shares memory with what an operator writes into.
    pub(crate) fn written(&mut self, schema: &Schema, bound: &Bound) -> Step<()> {
        for (value, _) in bound.iter().zip(&schema.params).filter(|(_, param)| param.written) {
            let values = match value {
                Some(tensor @ Value::Tensor(_)) => vec![tensor.clone()],
                Some(list) => self.sequence(list).unwrap_or_default(),
                None => continue,
            };
            for name in values.iter().filter_map(|value| value.tensor().ok()) {
                let name = self.current(name);
                self.writes_conditional(&name)?;
                let class = self.memory.class_of(&name).clone();
                self.forget(&class);
                self.mark_stale(&class)?;
                self.memory.written.insert(class.clone());
                self.state.mod_set.insert(class);
            }
        }
        Ok(())
    }

    /// Forgets the contents of all that shares this memory. Returns whether any were known.
    pub(crate) fn forget(&mut self, class: &Name) -> bool {
        let contents = &mut self.state.facts.contents;
        let known = self.memory.known_of(class, !contents.is_forked());
        let count = contents.len();
        known.iter().for_each(|name| contents.remove(name));
        contents.len() < count
    }

    /// The name by which a tensor is read here.
    pub(crate) fn readable(&mut self, name: &Name) -> Step<Name> {
        let name = self.current(name);
        self.check_fresh(&name)?;
        self.reads_conditional(&name)?;
        Ok(name)
    }

    pub(crate) fn current(&self, name: &Name) -> Name {
        self.memory.current(name)
    }

    pub(crate) fn write_base_of(&self, name: &Name) -> Name {
        self.memory.write_base_of(name)
    }

    /// The result that is an argument, where an operator has nothing to do: all that changes it in
    /// place, its shape too, changes the argument. In a list, such arguments take their places.
    pub(crate) fn identity_result(
        &mut self,
        shared: &[Alias],
        results: &[Value],
    ) -> Step<Option<Value>> {
        // A constant counts as a number only where nothing was made of it.
        let is_kept = |shared: &&Alias| {
            shared.view == View::Itself && !self.cx.pool_numbers.contains(&shared.base)
        };
        let kept: FxHashMap<&Name, &Name> =
            shared.iter().filter(is_kept).map(|shared| (&shared.result, &shared.base)).collect();
        let argument = |result: &Value| kept.get(result.tensor().ok()?).map(|base| (*base).into());
        match results {
            [Value::List(list)] if !kept.is_empty() => {
                for item in self.items_mut(*list)? {
                    if let Some(of) = argument(item) {
                        *item = of;
                    }
                }
                Ok(None)
            }
            [result] => Ok(argument(result)),
            _ => Ok(None),
        }
    }
}
