//! Lists that are one value, a sequence of tensors of any sizes: they can grow, and be results of
//! the program.

use super::{
    Interp, Step, expected,
    merge::{Merged, in_order, lengths},
    unsupported,
};
use crate::{
    schema::Type,
    value::{Item, Parts, Ref, Value},
};
use pt2onnx_fx::{Argument, Name, Node};
use pt2onnx_tensor::DType;

impl Interp<'_> {
    /// An error if a list is a sequence.
    pub(super) fn not_sequence(&self, what: &str, parts: &Parts) -> Step<()> {
        match parts.sequence {
            None => Ok(()),
            Some(_) => unsupported(format!(
                "{what} of a list of tensors of several sizes, whose length depends on data or sizes"
            )),
        }
    }

    /// The result of an operator on a sequence.
    pub(super) fn on_sequence(
        &mut self,
        name: &str,
        list: Ref,
        parts: &Parts,
        args: &[Value],
    ) -> Step<Value> {
        match (name, args) {
            ("append", [this, item]) => {
                self.grow(list, item)?;
                Ok(this.clone())
            }
            ("list" | "copy", [_]) => Ok(Value::List(self.alloc(Item::Parts(parts.clone()))?)),
            _ => self.not_sequence(name, parts).map(|()| Value::None),
        }
    }

    /// Appends a tensor to a list, which becomes a sequence.
    pub(super) fn grow(&mut self, list: Ref, item: &Value) -> Step<()> {
        let Value::Tensor(item) = item else {
            return expected("a tensor", item);
        };
        let before = self.heap.get(list.0).cloned().ok_or_else(lengths)?;
        let (before, dtype) = self.sequence_of(&before)?;
        self.has_dtype(item, dtype)?;
        let (whole, added) = (self.readable(&before)?, self.readable(item)?);
        let args = [("self", Argument::Tensor(whole)), ("item", Argument::Tensor(added))];
        let grown = self.sequence_by("list_append", args)?;
        self.listed(&grown, &[before, item.clone()])?;
        self.put(list, sequence(grown, dtype));
        Ok(())
    }

    /// A list of tensors of one element type as a sequence.
    fn sequence_of(&mut self, list: &Item) -> Step<(Name, DType)> {
        match list {
            Item::Parts(parts) if let Some(dtype) = parts.sequence => {
                Ok((parts.tensor.clone(), dtype))
            }
            Item::Parts(parts) if parts.element == Type::Tensor => {
                let dtype = self.meta(&parts.tensor)?.dtype;
                let Argument::Tensor(name) = self.parts_output(parts)? else {
                    return Err(lengths());
                };
                self.listed(&name, std::slice::from_ref(&parts.tensor))?;
                Ok((name, dtype))
            }
            Item::List { items, .. } => {
                let name = |item: &Value| match item {
                    Value::Tensor(name) => Some(name.clone()),
                    _ => None,
                };
                let tensors: Option<Vec<Name>> = items.iter().map(name).collect();
                let tensors = tensors.ok_or_else(lengths)?;
                let first = tensors.first().ok_or_else(lengths)?;
                let dtype = self.meta(first)?.dtype;
                Ok((self.sequence_of_tensors(&tensors, dtype)?, dtype))
            }
            _ => Err(lengths()),
        }
    }

    fn sequence_of_tensors(&mut self, tensors: &[Name], dtype: DType) -> Step<Name> {
        let mut read = Vec::with_capacity(tensors.len());
        for name in tensors {
            self.has_dtype(name, dtype)?;
            read.push(self.readable(name)?);
        }
        let args = [("tensors", Argument::Tensors(read)), ("dtype", Argument::DType(dtype))];
        let made = self.sequence_by("list_of_tensors", args)?;
        self.listed(&made, tensors)?;
        Ok(made)
    }

    fn has_dtype(&self, name: &Name, dtype: DType) -> Step<()> {
        if self.meta(name)?.dtype == dtype {
            Ok(())
        } else {
            unsupported("a list of tensors of several types, whose length is not known")
        }
    }

    fn sequence_by<const N: usize>(
        &mut self,
        op: &str,
        args: [(&'static str, Argument); N],
    ) -> Step<Name> {
        match self.one_value(op, args)? {
            Argument::Tensor(name) => Ok(name),
            _ => expected("a list", &Value::None),
        }
    }

    /// A list of unknown length that only one of the branches makes; nobody reads it after the
    /// other one.
    pub(super) fn only_parts(
        &mut self,
        branch: usize,
        list: Ref,
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<()> {
        let Some(parts) = self.parts_of(list) else { return Ok(()) };
        let tensor = match parts.sequence {
            Some(dtype) => {
                let other = self.in_branch(1 - branch, merged, bodies, |interp| {
                    interp.sequence_of_tensors(&[], dtype)
                })?;
                let [a, b] = in_order(branch, &parts.tensor, &other).map(Clone::clone);
                self.choose([a, b], merged)?
            }
            None => {
                let value = Value::Tensor(parts.tensor.clone());
                match self.only_in(branch, &value, merged, bodies)? {
                    Value::Tensor(tensor) => tensor,
                    other => return expected("a tensor", &other),
                }
            }
        };
        if let Some(lengths) = parts.lengths {
            self.only_in(branch, &Value::List(lengths), merged, bodies)?;
        }
        self.represent(list, Parts { tensor, ..parts });
        Ok(())
    }

    /// A list that each branch has made in another way, as a sequence.
    pub(super) fn merge_sequences(
        &mut self,
        [a, b]: [&Item; 2],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Parts> {
        if !self.sequences || self.strict {
            return Err(lengths());
        }
        let (a, first) = self.in_branch(0, merged, bodies, |interp| interp.sequence_of(a))?;
        let (b, second) = self.in_branch(1, merged, bodies, |interp| interp.sequence_of(b))?;
        if first != second {
            return Err(lengths());
        }
        Ok(sequence(self.choose([a, b], merged)?, first))
    }

    /// The sequence that is one of these.
    fn choose(&mut self, pair: [Name; 2], merged: &mut Merged) -> Step<Name> {
        let name = self.fresh("cond");
        self.listed(&name, &pair)?;
        merged.results.push(pair);
        merged.outputs.push(name.clone());
        Ok(name)
    }

    /// The lists of tensors in a result that has no tensor, each as a sequence without elements.
    pub(super) fn empty_sequences(&mut self, value: &Value, found: &mut Vec<Argument>) -> Step<()> {
        self.step()?;
        match value {
            Value::List(_) if self.element(value) == Some(Type::Tensor) => {
                let dtype = self.types.default_dtype();
                found.push(Argument::Tensor(self.sequence_of_tensors(&[], dtype)?));
            }
            Value::Tuple(tuple) => {
                tuple.items.iter().try_for_each(|item| self.empty_sequences(item, found))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A sequence as a list.
fn sequence(tensor: Name, dtype: DType) -> Parts {
    Parts { sequence: Some(dtype), ..Parts::rows(tensor, Type::Tensor) }
}
