//! Lists that are one value, a sequence of tensors of any sizes: they can grow, and be results of
//! the program.

use crate::{
    control::join::lengths,
    eval::{Evaluator, Step, expected, unsupported},
    schema::Type,
    value::{DynList, Item, Layout, Ref, Value},
};
use pt2onnx_fx::{Argument, Name};
use pt2onnx_tensor::DType;

impl Evaluator<'_> {
    /// An error if a list is a sequence.
    pub(crate) fn not_sequence(&self, what: &str, parts: &DynList) -> Step<()> {
        match parts.layout {
            Layout::Sequence(_) => unsupported(format!(
                "{what} of a list of tensors of several sizes, whose length depends on data or sizes"
            )),
            _ => Ok(()),
        }
    }

    /// Appends a tensor to a list, which becomes a sequence.
    pub(crate) fn grow(&mut self, list: Ref, item: &Value) -> Step<()> {
        let item = item.tensor()?;
        let before = self.state.heap.get(list.0).cloned().ok_or_else(lengths)?;
        let (before, dtype) = self.sequence_of(&before)?;
        self.has_dtype(item, dtype)?;
        let (whole, added) = (self.readable(&before)?, self.readable(item)?);
        let args = [("self", Argument::Tensor(whole)), ("item", Argument::Tensor(added))];
        let grown = self.sequence_by("list_append", args)?;
        self.listed(&grown, &[before, item.clone()])?;
        self.put(list, DynList::of_sequence(grown, dtype));
        Ok(())
    }

    /// A list of tensors of one element type as a sequence.
    pub(crate) fn sequence_of(&mut self, list: &Item) -> Step<(Name, DType)> {
        match list {
            Item::DynList(DynList { layout: Layout::Sequence(dtype), tensor, .. }) => {
                Ok((tensor.clone(), *dtype))
            }
            Item::DynList(parts) if parts.element == Type::Tensor => {
                let dtype = self.meta(&parts.tensor)?.dtype;
                let Argument::Tensor(name) = self.parts_output(parts)? else {
                    return Err(lengths());
                };
                self.listed(&name, std::slice::from_ref(&parts.tensor))?;
                Ok((name, dtype))
            }
            Item::List { items, .. } => {
                let tensors = items.iter().map(|item| item.tensor().cloned());
                let tensors = tensors.collect::<Step<Vec<_>>>().map_err(|_| lengths())?;
                let dtype = self.meta(tensors.first().ok_or_else(lengths)?)?.dtype;
                Ok((self.sequence_of_tensors(&tensors, dtype)?, dtype))
            }
            _ => Err(lengths()),
        }
    }

    pub(crate) fn sequence_of_tensors(&mut self, tensors: &[Name], dtype: DType) -> Step<Name> {
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
            return Ok(());
        }
        unsupported("a list of tensors of several types, whose length is not known")
    }

    fn sequence_by(&mut self, op: &str, args: [(&'static str, Argument); 2]) -> Step<Name> {
        match self.one_value(op, args)? {
            Argument::Tensor(name) => Ok(name),
            _ => expected("a list", &Value::None),
        }
    }

    /// The lists of tensors in a result that has no tensor, each as a sequence without elements.
    pub(crate) fn empty_sequences(&mut self, value: &Value, found: &mut Vec<Argument>) -> Step<()> {
        self.step()?;
        match value {
            Value::List(_) if self.element(value) == Some(Type::Tensor) => {
                let dtype = self.cx.types.default_dtype();
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
