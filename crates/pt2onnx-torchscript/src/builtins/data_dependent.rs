//! Operators with a number that depends on data or sizes, where PyTorch's translation needs a known
//! one: dimensions, numbers of classes, and positions in lists of tensors.

use crate::{
    builtins::{Call, Found},
    eval::{Evaluator, Step, expected, unsupported},
    schema::Type,
    value::{DynList, Item, Ref, Value, args, dyn_list::element_spec::element_type},
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::{Expr, Func};

/// The second argument, if it is a number that depends on data.
fn unknown_number(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Option<Value>> {
    let number = match call.args {
        [_, tensor @ Value::Tensor(_)] => ev.scalar_of(tensor, &Type::Int)?,
        [_, number] => number.clone(),
        _ => return Ok(None),
    };
    Ok(matches!(&number, Value::Int(e) if e.as_int().is_none()).then_some(number))
}

/// An operator with such a number, by its formula.
pub(crate) fn by_formula(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let Some(number) = unknown_number(ev, call)? else { return Ok(None) };
    ev.formula(call.name, vec![call.get(0), number]).map(Some)
}

/// Takes out dimensions whose size is 1 only where a condition on it holds (`if x.size(0) == 1:
/// return x.squeeze(0)`): the first element along each.
pub(crate) fn squeeze(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let tensor = call.get(0);
    let sizes = ev.meta(tensor.tensor()?)?.sizes.clone();
    let rank = i64::try_from(sizes.len()).unwrap_or(0);
    let mut dims = match call.args.get(1) {
        None => (0..rank).collect(),
        Some(Value::List(list)) => ev.items(*list).iter().filter_map(Value::as_int).collect(),
        Some(dim) => dim.as_int().into_iter().collect::<Vec<_>>(),
    };
    dims.iter_mut().filter(|dim| **dim < 0).for_each(|dim| *dim = dim.saturating_add(rank));
    dims.sort_unstable();
    dims.dedup();
    let size = |dim: i64| usize::try_from(dim).ok().and_then(|at| sizes.get(at));
    let is_one = |dim: i64| size(dim).is_some_and(|size| ev.is_one(size) == Some(true));
    let (ones, others): (Vec<i64>, Vec<i64>) = dims.into_iter().partition(|dim| is_one(*dim));
    if ones.iter().all(|dim| size(*dim).is_none_or(|size| size.as_int().is_some())) {
        return by_formula(ev, call);
    }
    let mut value = tensor;
    for dim in ones.iter().rev() {
        value = ev.aten("select", args![value, *dim, 0])?;
    }
    for dim in others.iter().rev() {
        let before = ones.partition_point(|one| one < dim);
        let dim = dim.saturating_sub(i64::try_from(before).unwrap_or(0));
        value = ev.aten("squeeze", args![value, dim])?;
    }
    Ok(Some(value))
}

impl Evaluator<'_> {
    /// Whether a size is 1 in the branch that runs; `None` if it is not known.
    pub(crate) fn is_one(&self, size: &Expr) -> Option<bool> {
        match size.as_int() {
            Some(size) => Some(size == 1),
            None => self.decide(&Expr::call(Func::Eq, vec![size.clone(), Expr::ONE])),
        }
    }

    /// The element of a list of tensors of several sizes at a position that depends on data; `None`
    /// if all have the same size, or if they are no tensors.
    pub(crate) fn one_of(&mut self, items: &[Value], index: &Value) -> Step<Option<Value>> {
        let mut names = Vec::with_capacity(items.len());
        for item in items {
            let Value::Tensor(name) = item else { return Ok(None) };
            names.push(self.readable(name)?);
        }
        let Some((last, others)) = names.split_last() else {
            return Ok(None);
        };
        let sizes = &self.meta(last)?.sizes;
        let mut equal = true;
        for name in others {
            equal &= self.meta(name)?.sizes == *sizes;
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
        let ty = match (element_type(a), element_type(b)) {
            (Some(a), Some(b)) if a == b && a != Type::Tensor => a,
            _ => return expected("tensors or numbers, at a position that depends on data", a),
        };
        let numbers = [self.number_tensor(a)?, self.number_tensor(b)?];
        let chosen = self.aten("where", [vec![test], numbers.to_vec()].concat())?;
        self.scalar_of(&chosen, &ty)
    }

    /// Whether an index, which may count from the end, is this position.
    fn is_position(&mut self, index: &Value, at: usize, length: usize) -> Step<Value> {
        let index = self.number_tensor(index)?;
        let index = self.aten("remainder", args![index, length])?;
        self.aten("eq", args![index, at])
    }

    /// The elements of a tensor as numbers in nested lists.
    pub(crate) fn tolist(&mut self, tensor: &Name) -> Step<Value> {
        let meta = self.meta(tensor)?;
        let (first, rank) = (meta.sizes.first().cloned(), meta.sizes.len());
        let element = Type::of_elements(meta.dtype);
        if let (Some(items), 1) = (self.elements_of(tensor), rank) {
            let wrap = match element {
                Type::Bool => Value::Bool,
                Type::Float => Value::Float,
                _ => Value::Int,
            };
            return self.list(items.into_iter().map(wrap).collect(), None);
        }
        let Some(size) = first else {
            return self.scalar_of(&tensor.into(), &Type::Number);
        };
        let Some(count) = size.as_int().and_then(|size| usize::try_from(size).ok()) else {
            if rank > 1 {
                return unsupported("tolist of rows whose number is not known");
            }
            let parts = DynList::rows(tensor.clone(), element);
            return self.alloc(Item::DynList(parts)).map(Value::List);
        };
        self.room(count)?;
        let mut items = Vec::with_capacity(count);
        for at in 0..count {
            items.push(match self.aten("select", args![tensor, 0, at])? {
                Value::Tensor(part) => self.deeper(|ev| ev.tolist(&part))?,
                other => other,
            });
        }
        self.list(items, None)
    }
}
