//! Runs methods of lists, and functions of them.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, arith, expected},
    schema::Type,
    value::{DynList, Item, Ref, Value, known},
};
use pt2onnx_fx::archive::c10_number;
use pt2onnx_symbolic::{Expr, Func};
use pt2onnx_tensor::DType;
use std::cmp::Ordering;

/// The most integers of unknown size that are sorted.
const MAX_EXCHANGED: usize = 6;

impl Evaluator<'_> {
    /// The result of an operator on a list; `None` if it is another operator.
    pub(crate) fn on_list(&mut self, name: &str, args: &[Value]) -> Step<Option<Value>> {
        let Some(&Value::List(list)) = args.first() else {
            return Ok(None);
        };
        if let Some(parts) = self.dyn_list(list) {
            return self.on_dyn_list(name, list, &parts, args).map(Some);
        }
        if let ("add" | "add_" | "extend", [_, Value::List(other)]) = (name, args)
            && self.dyn_list(*other).is_some()
        {
            return self.add_dyn_list(name, list, *other).map(Some);
        }
        if let Some(value) = self.change_list(name, list, args)? {
            return Ok(Some(value));
        }
        self.steps(self.items(list).len())?;
        let items = self.items(list).to_vec();
        let element = args.first().and_then(|list| self.element(list));
        Ok(Some(match (name, args) {
            ("len", [_]) => Value::int(i64::try_from(items.len()).unwrap_or(i64::MAX)),
            ("list" | "copy", [_]) => self.list(items, element)?,
            ("add", [_, Value::List(other)]) => {
                self.room(items.len().saturating_add(self.items(*other).len()))?;
                let more = self.items(*other).to_vec();
                self.list([items, more].concat(), element)?
            }
            ("mul", [_, count]) => match count.as_int() {
                Some(_) => {
                    let repeated = self.repeated(items, count)?;
                    self.list(repeated, element)?
                }
                None => self.repeated_by_size(&items, count)?,
            },
            ("Size", [list]) => list.clone(),
            ("__getitem__", [list, index]) => self.get_item(list, index)?,
            ("slice", [list, rest @ ..]) => {
                let arg = |at: usize, default| rest.get(at).cloned().unwrap_or(default);
                let (start, end) = (arg(0, Value::None), arg(1, Value::None));
                self.slice(list, &start, &end, &arg(2, Value::int(1)))?
            }
            ("__contains__" | "contains", [_, item]) => self.contains(&items, item)?,
            ("index", [_, item]) => match self.place_of(&items, item)? {
                Some(at) => Value::int(i64::try_from(at).unwrap_or(i64::MAX)),
                None => return Err(Problem::Raises("ValueError: not in the list".to_owned())),
            },
            ("count", [_, item]) => self.times(&items, item)?,
            ("sorted", [_]) => {
                let sorted = self.sorted(items, false)?;
                self.list(sorted, element)?
            }
            ("broadcast_shapes" | "_infer_size", [_, Value::List(other)]) => {
                let sizes = broadcast(&items, self.items(*other))?;
                self.int_list(sizes)?
            }
            ("max" | "min", [_]) => return self.fold(name, &items),
            ("sum", [_]) => {
                let plain = items.iter().all(|v| v.number().is_some());
                if !plain {
                    return Ok(None);
                }
                return self.fold("add", &items).map(|sum| sum.or(Some(Value::int(0))));
            }
            ("all" | "any", [_]) => return self.all_or_any(name, &items),
            _ => return Ok(None),
        }))
    }

    /// The result of an operator that changes the list; `None` if it is another operator.
    fn change_list(&mut self, name: &str, list: Ref, args: &[Value]) -> Step<Option<Value>> {
        let length = i64::try_from(self.items(list).len()).unwrap_or(i64::MAX);
        Ok(Some(match (name, args) {
            ("append", [of, item]) => {
                self.items_mut(list)?.push(item.clone());
                of.clone()
            }
            ("extend" | "add_", [of, other]) => {
                let Some(more) = self.sequence(other) else { return Ok(None) };
                self.room(more.len())?;
                self.budget.elements = self.budget.elements.saturating_add(more.len());
                self.items_mut(list)?.extend(more);
                of.clone()
            }
            ("insert", [_, index, item]) => {
                let Some(at) = index.as_int() else {
                    return expected("a known integer", index);
                };
                let at = if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) };
                self.items_mut(list)?.insert(usize::try_from(at).unwrap_or(0), item.clone());
                Value::None
            }
            ("pop", [_]) => match self.items_mut(list)?.pop() {
                Some(item) => item,
                None => return Err(Problem::Raises("IndexError: pop from empty list".to_owned())),
            },
            ("pop" | "Delete", [_, index]) => {
                let at = place(index, length)?;
                self.items_mut(list)?.remove(at)
            }
            ("remove", [_, item]) => {
                let items = self.items(list).to_vec();
                match self.place_of(&items, item)? {
                    Some(at) => self.items_mut(list)?.remove(at),
                    None => return Err(Problem::Raises("ValueError: not in the list".to_owned())),
                };
                Value::None
            }
            ("mul_", [of, count]) => {
                let items = self.items(list).to_vec();
                let repeated = self.repeated(items, count)?;
                *self.items_mut(list)? = repeated;
                of.clone()
            }
            ("clear", [_]) => {
                self.items_mut(list)?.clear();
                Value::None
            }
            ("reverse", [_]) => {
                self.items_mut(list)?.reverse();
                Value::None
            }
            ("_set_item", [of, index, item]) => {
                self.set_item(of, index, item.clone())?;
                of.clone()
            }
            ("sort", [_, rest @ ..]) => {
                let reverse = rest.first().and_then(Value::as_bool).unwrap_or(false);
                let items = self.items(list).to_vec();
                let sorted = self.sorted(items, reverse)?;
                *self.items_mut(list)? = sorted;
                Value::None
            }
            _ => return Ok(None),
        }))
    }

    /// How often an item occurs.
    fn times(&self, items: &[Value], item: &Value) -> Step<Value> {
        let mut count = 0;
        for other in items {
            count += i64::from(self.place_of([other], item)?.is_some());
        }
        Ok(Value::int(count))
    }

    /// Whether all of the items are true, or any; `None` if one of them has no truth value.
    fn all_or_any(&mut self, name: &str, items: &[Value]) -> Step<Option<Value>> {
        let func = if name == "all" { Func::And } else { Func::Or };
        let mut result = Expr::bool(name == "all");
        for item in items {
            let truth = match (self.truth(item)?, self.truth_of(item)?) {
                (Some(truth), _) => Expr::bool(truth),
                (None, Value::Bool(truth)) => truth,
                _ => return Ok(None),
            };
            result = Expr::call(func, vec![result, truth]);
        }
        Ok(Some(Value::Bool(result)))
    }

    /// Whether an item is equal to this one, as a truth value that sizes may decide.
    fn contains(&self, items: &[Value], item: &Value) -> Step<Value> {
        let mut found = Expr::bool(false);
        for other in items {
            found = Expr::call(Func::Or, vec![found, self.equality(other, item)?]);
            if found.as_int() == Some(1) {
                break;
            }
        }
        Ok(Value::Bool(found))
    }

    /// The items as often as a known number says.
    fn repeated(&mut self, items: Vec<Value>, count: &Value) -> Step<Vec<Value>> {
        let Some(count) = count.as_int() else {
            return repeats();
        };
        let count = usize::try_from(count).unwrap_or(0);
        self.room(items.len().saturating_mul(count))?;
        self.budget.elements =
            self.budget.elements.saturating_add(items.len().saturating_mul(count));
        Ok(std::iter::repeat_n(&items, count).flatten().cloned().collect())
    }

    /// `[number] * n`, where the model knows `n`.
    fn repeated_by_size(&mut self, items: &[Value], count: &Value) -> Step<Value> {
        let ([item], Value::Int(count)) = (items, count) else {
            return repeats();
        };
        let (dtype, element) = match item {
            Value::Int(_) => (DType::I64, Type::Int),
            Value::Float(_) => (DType::F64, Type::Float),
            Value::Bool(_) => (DType::Bool, Type::Bool),
            _ => return repeats(),
        };
        let sizes = self.int_list([Expr::max(count, &Expr::ZERO)])?;
        let dtype = c10_number(dtype).map_or(Value::None, Value::int);
        let args = vec![sizes, item.clone()];
        match self.operator("aten", "full", args, vec![("dtype".into(), dtype)])? {
            Value::Tensor(tensor) => {
                self.alloc(Item::DynList(DynList::rows(tensor, element))).map(Value::List)
            }
            other => expected("a tensor", &other),
        }
    }

    /// The items in order. `reverse` exchanges what is less and greater, so that equal items stay
    /// in their order.
    fn sorted(&mut self, mut items: Vec<Value>, reverse: bool) -> Step<Vec<Value>> {
        if !items.iter().all(|item| order(item, item).is_some()) {
            return self.sorted_by_exchange(items, reverse);
        }
        let mut comparable = true;
        items.sort_by(|a, b| {
            let order = order(a, b);
            comparable &= order.is_some();
            let order = order.unwrap_or(Ordering::Equal);
            if reverse { order.reverse() } else { order }
        });
        if comparable {
            Ok(items)
        } else {
            Err(Problem::Unsupported("sorting a list of several types".to_owned()))
        }
    }

    /// Sorts a few integers of unknown size: neighbours are exchanged by `min` and `max`.
    fn sorted_by_exchange(&mut self, mut items: Vec<Value>, reverse: bool) -> Step<Vec<Value>> {
        let integers = items.iter().all(|item| matches!(item, Value::Int(_)));
        if !integers || items.len() > MAX_EXCHANGED {
            return Err(Problem::Unsupported("sorting a list of unknown values".to_owned()));
        }
        for last in (1..items.len()).rev() {
            for at in 0..last {
                if let Some([a, b]) = items.get_mut(at..at + 2)
                    && let (Value::Int(x), Value::Int(y)) = (&*a, &*b)
                {
                    let (low, high) = (Expr::min(x, y), Expr::max(x, y));
                    (*a, *b) = (Value::Int(low), Value::Int(high));
                }
            }
        }
        if reverse {
            items.reverse();
        }
        Ok(items)
    }

    /// The items under an operation of two numbers, from the first on; `None` if it is not one of
    /// them.
    fn fold(&mut self, op: &str, items: &[Value]) -> Step<Option<Value>> {
        let mut result: Option<Value> = None;
        for item in items {
            result = match result {
                None => Some(item.clone()),
                Some(so_far) => match arith::binary(op, &so_far, item)? {
                    Some(value) => Some(value),
                    None => return Ok(None),
                },
            };
        }
        Ok(result)
    }

    /// A list of integers.
    pub(crate) fn int_list(&mut self, items: impl IntoIterator<Item = Expr>) -> Step<Value> {
        let items = items.into_iter().map(Value::Int).collect();
        self.list(items, Some(Type::Int))
    }
}

/// The position that an index means; a negative one counts from the end.
fn place(index: &Value, length: i64) -> Step<usize> {
    let Some(at) = index.as_int() else {
        return expected("a known integer", index);
    };
    let at = if at < 0 { at.saturating_add(length) } else { at };
    match usize::try_from(at) {
        Ok(place) if at < length => Ok(place),
        _ => Err(Problem::Raises("IndexError".to_owned())),
    }
}

/// The problem that a list is repeated by a number that is not known.
fn repeats<T>() -> Step<T> {
    let text = "a list, other than of one number, times a size or number that is not known";
    Err(Problem::Unsupported(text.to_owned()))
}

/// The order of known numbers, strings, and tuples of them; `None` if it is not known.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        (Value::Tuple(a), Value::Tuple(b)) if a.items.len() == b.items.len() => {
            let mut found = Ordering::Equal;
            // All must be known, also those that do not decide.
            for (a, b) in a.items.iter().zip(&b.items) {
                found = found.then(order(a, b)?);
            }
            Some(found)
        }
        _ => match (a.number()?, b.number()?) {
            (a, b) if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) => Some(a.cmp(&b)),
            (a, b) => known(a)?.partial_cmp(&known(b)?),
        },
    }
}

/// The sizes to which tensors of both sizes broadcast. If both are unknown, it is the larger one:
/// they are equal, or one is 1.
fn broadcast(a: &[Value], b: &[Value]) -> Step<Vec<Expr>> {
    let rank = a.len().max(b.len());
    let at = |sizes: &[Value], i: usize| match (i + sizes.len()).checked_sub(rank) {
        Some(i) => sizes[i].number().cloned().unwrap_or(Expr::ONE),
        None => Expr::ONE,
    };
    let size = |i| match (at(a, i), at(b, i)) {
        (x, y) if x == y || y == Expr::ONE => Ok(x),
        (x, y) if x == Expr::ONE => Ok(y),
        (x, y) => match (x.as_int(), y.as_int()) {
            (Some(_), None) => Ok(x),
            (None, Some(_)) => Ok(y),
            (None, None) => Ok(Expr::max(&x, &y)),
            (Some(_), Some(_)) => {
                let text = format!("RuntimeError: the sizes {x} and {y} do not broadcast");
                Err(Problem::Raises(text))
            }
        },
    };
    (0..rank).map(size).collect()
}
