//! Operators with a number that depends on data, where PyTorch's translation needs a known one:
//! dimensions, numbers of classes, and positions in lists of tensors.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected},
    schema::Type,
    value::{DynList, Ref, Value},
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

impl Evaluator<'_> {
    /// `one_hot`, `squeeze` or `unsqueeze` with a number that depends on data; `None` if it is
    /// known.
    pub(crate) fn by_data(&mut self, name: &str, x: &Value, number: &Value) -> Step<Option<Value>> {
        let number = match number {
            Value::Tensor(_) => self.scalar_of(number, &Type::Int)?,
            other => other.clone(),
        };
        if !matches!(number, Value::Int(_)) || number.as_int().is_some() {
            return Ok(None);
        }
        match name {
            "one_hot" => self.one_hot(x, &number),
            _ => self.with_another_rank(x, &number, name == "unsqueeze"),
        }
        .map(Some)
    }

    /// Each element is compared with all classes.
    fn one_hot(&mut self, x: &Value, classes: &Value) -> Step<Value> {
        let column = self.operator("aten", "unsqueeze", vec![x.clone(), Value::int(-1)], vec![])?;
        let classes = self.operator("aten", "arange", vec![classes.clone()], Kwargs::new())?;
        let equal = self.operator("aten", "eq", vec![column, classes], Kwargs::new())?;
        self.operator("aten", "to", vec![equal, Value::int(4)], Kwargs::new())
    }

    /// A tensor with a dimension of size 1 more or less. The result has the elements in the same
    /// order, so it is a view whose sizes depend on where the dimension is. If the dimension that
    /// is taken out is larger than 1, the model fails.
    fn with_another_rank(&mut self, x: &Value, dim: &Value, more: bool) -> Step<Value> {
        let Value::Tensor(name) = x else {
            return expected("a tensor", x);
        };
        let old: Vec<Value> = self.meta(name)?.sizes.iter().cloned().map(Value::Int).collect();
        let rank = if more { old.len() + 1 } else { old.len().saturating_sub(1) };
        let places = i64::try_from(rank.max(old.len())).unwrap_or(0);
        let at = self.operator("prim", "NumToTensor", vec![dim.clone()], Kwargs::new())?;
        let at = self.operator("aten", "remainder", vec![at, Value::int(places)], Kwargs::new())?;
        let mut sizes = Vec::with_capacity(rank);
        for i in 0..rank {
            let place = Value::int(i64::try_from(i).unwrap_or(0));
            let one = Value::int(1);
            let here = old.get(i).unwrap_or(&one).clone();
            // Before the dimension, sizes stay where they are.
            let size = if more {
                let before = i.checked_sub(1).and_then(|i| old.get(i)).unwrap_or(&one).clone();
                let is_new = self.compared_with(&at, "eq", &place)?;
                self.where_size(&is_new, one, before)?
            } else {
                self.size_tensor(old.get(i + 1).unwrap_or(&one).clone())?
            };
            let before = self.compared_with(&at, "gt", &place)?;
            let here = self.size_tensor(here)?;
            let size = self.operator("aten", "where", vec![before, here, size], Kwargs::new())?;
            sizes.push(self.scalar_of(&size, &Type::Int)?);
        }
        let sizes = self.list(sizes, Some(Type::Int))?;
        self.operator("aten", "reshape", vec![x.clone(), sizes], Kwargs::new())
    }

    fn compared_with(&mut self, at: &Value, comparison: &str, place: &Value) -> Step<Value> {
        self.operator("aten", comparison, vec![at.clone(), place.clone()], Kwargs::new())
    }

    fn size_tensor(&mut self, size: Value) -> Step<Value> {
        self.operator("prim", "NumToTensor", vec![size], Kwargs::new())
    }

    fn where_size(&mut self, test: &Value, a: Value, b: Value) -> Step<Value> {
        let (a, b) = (self.size_tensor(a)?, self.size_tensor(b)?);
        self.operator("aten", "where", vec![test.clone(), a, b], Kwargs::new())
    }

    /// The element of a list of tensors of several sizes at a position that depends on data; `None`
    /// if all have the same size, or if they are no tensors.
    pub(crate) fn one_of(&mut self, items: &[Value], index: &Value) -> Step<Option<Value>> {
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Tensor(name) => names.push(self.readable(name)?),
                _ => return Ok(None),
            }
        }
        let Some((last, others)) = names.split_last() else {
            return Ok(None);
        };
        let meta = self.meta(last)?.clone();
        let mut equal = true;
        for name in others {
            equal &= self.meta(name)?.sizes == meta.sizes;
        }
        if equal {
            return Ok(None);
        }
        let mut found = last.clone();
        for (at, name) in others.iter().enumerate().rev() {
            let here = self.is_position(index, at, items.len())?;
            found = self.either(&here, name, &found)?;
        }
        Ok(Some(Value::Tensor(found)))
    }

    /// Puts a tensor or number into a list of them, at a position that depends on data.
    pub(crate) fn set_any_of(&mut self, list: Ref, index: &Value, value: &Value) -> Step<()> {
        let items = self.items(list).to_vec();
        for (at, item) in items.iter().enumerate() {
            let here = self.is_position(index, at, items.len())?;
            let new = match (value, item) {
                (Value::Tensor(value), Value::Tensor(old)) => {
                    let (value, old) = (self.readable(value)?, self.readable(old)?);
                    Value::Tensor(self.either(&here, &value, &old)?)
                }
                _ => self.either_number(here, value, item)?,
            };
            if let Some(slot) = self.items_mut(list)?.get_mut(at) {
                *slot = new;
            }
        }
        Ok(())
    }

    /// The first number if a condition on data holds, and the second one otherwise. Both have one
    /// type.
    fn either_number(&mut self, test: Value, a: &Value, b: &Value) -> Step<Value> {
        let ty = match (a, b) {
            (Value::Int(_), Value::Int(_)) => Type::Int,
            (Value::Float(_), Value::Float(_)) => Type::Float,
            (Value::Bool(_), Value::Bool(_)) => Type::Bool,
            _ => return expected("tensors or numbers, at a position that depends on data", a),
        };
        let mut args = vec![test];
        for number in [a, b] {
            args.push(self.operator("prim", "NumToTensor", vec![number.clone()], vec![])?);
        }
        let chosen = self.operator("aten", "where", args, Kwargs::new())?;
        self.scalar_of(&chosen, &ty)
    }

    /// Whether an index, which may count from the end, is this position.
    fn is_position(&mut self, index: &Value, at: usize, length: usize) -> Step<Value> {
        let [at, length] = [at, length].map(|n| Value::int(i64::try_from(n).unwrap_or(0)));
        let index = self.operator("prim", "NumToTensor", vec![index.clone()], Kwargs::new())?;
        let index = self.operator("aten", "remainder", vec![index, length], Kwargs::new())?;
        self.operator("aten", "eq", vec![index, at], Kwargs::new())
    }

    /// The elements of a tensor as numbers in nested lists.
    pub(crate) fn tolist(&mut self, tensor: &Name) -> Step<Value> {
        let meta = self.meta(tensor)?;
        let (dtype, first, rank) = (meta.dtype, meta.sizes.first().cloned(), meta.sizes.len());
        let (element, wrap): (Type, fn(Expr) -> Value) = match dtype {
            DType::Bool => (Type::Bool, Value::Bool),
            _ if dtype.is_float() => (Type::Float, Value::Float),
            _ => (Type::Int, Value::Int),
        };
        if let (Some(items), 1) = (self.elements_of(tensor), rank) {
            return self.list(items.into_iter().map(wrap).collect(), None);
        }
        let Some(size) = first else {
            return self.scalar_of(&Value::Tensor(tensor.clone()), &Type::Number);
        };
        let Some(count) = size.as_int().and_then(|size| usize::try_from(size).ok()) else {
            if rank > 1 {
                return crate::eval::unsupported("tolist of rows whose number is not known");
            }
            let parts = DynList::rows(tensor.clone(), element);
            return self.alloc(crate::value::Item::DynList(parts)).map(Value::List);
        };
        self.room(count)?;
        let mut items = Vec::with_capacity(count);
        for at in 0..count {
            let at = Value::int(i64::try_from(at).unwrap_or(0));
            let args = vec![Value::Tensor(tensor.clone()), Value::int(0), at];
            items.push(match self.operator("aten", "select", args, Kwargs::new())? {
                Value::Tensor(part) => self.deeper(|ev| ev.tolist(&part))?,
                other => other,
            });
        }
        self.list(items, None)
    }
}
