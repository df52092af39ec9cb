//! Methods of lists of known length, and functions of them.

use crate::{
    builtins::{Call, Found},
    error::Problem,
    eval::{Evaluator, Step, arith, unsupported},
    schema::Type,
    value::{DynList, Item, Value, args, dyn_list::element_spec::element_type, known},
};
use pt2onnx_symbolic::{Expr, Func};
use std::cmp::Ordering;

/// The most integers of unknown size that are sorted.
const MAX_EXCHANGED: usize = 6;

/// The items of a list; each counts as a step.
pub(crate) fn items(ev: &mut Evaluator<'_>, list: &Value) -> Step<Vec<Value>> {
    let items = ev.items(list.list()?).to_vec();
    ev.steps(items.len())?;
    Ok(items)
}

pub(crate) fn copy(ev: &mut Evaluator<'_>, list: &Value) -> Step<Value> {
    let (items, element) = (items(ev, list)?, ev.element(list));
    ev.list(items, element)
}

pub(crate) fn append(ev: &mut Evaluator<'_>, list: &Value, item: &Value) -> Step<Value> {
    ev.items_mut(list.list()?)?.push(item.clone());
    Ok(list.clone())
}

pub(crate) fn add(ev: &mut Evaluator<'_>, list: &Value, other: &Value) -> Step<Value> {
    if ev.dyn_list(other.list()?).is_some() {
        let sum = copy(ev, list)?;
        return ev.extend_by_dyn_list(&sum, other);
    }
    ev.room(ev.items(other.list()?).len())?;
    let all = [items(ev, list)?, ev.items(other.list()?).to_vec()].concat();
    let element = ev.element(list);
    ev.list(all, element)
}

pub(crate) fn extend(ev: &mut Evaluator<'_>, list: &Value, other: &Value) -> Step<Value> {
    let Some(more) = ev.sequence(other) else {
        other.list()?;
        return ev.extend_by_dyn_list(list, other);
    };
    ev.room(more.len())?;
    ev.budget.elements = ev.budget.elements.saturating_add(more.len());
    ev.items_mut(list.list()?)?.extend(more);
    Ok(list.clone())
}

pub(crate) fn insert(
    ev: &mut Evaluator<'_>,
    list: &Value,
    index: &Value,
    item: &Value,
) -> Step<Value> {
    let (at, items) = (index.known_int()?, ev.items_mut(list.list()?)?);
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let at = if at < 0 { at.saturating_add(length).max(0) } else { at.min(length) };
    items.insert(usize::try_from(at).unwrap_or(0), item.clone());
    Ok(Value::None)
}

pub(crate) fn pop(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let list = call.get(0).list()?;
    match call.args.get(1) {
        Some(index) => {
            let at = crate::eval::expr::position(index, ev.items(list).len())?;
            Ok(ev.items_mut(list)?.remove(at))
        }
        None => {
            let empty = || Problem::Raises("IndexError: pop from empty list".to_owned());
            ev.items_mut(list)?.pop().ok_or_else(empty)
        }
    }
}

/// The place of an item that the list must have.
pub(crate) fn index(ev: &mut Evaluator<'_>, list: &Value, item: &Value) -> Step<usize> {
    let missing = || Problem::Raises("ValueError: not in the list".to_owned());
    let items = ev.items(list.list()?).to_vec();
    ev.place_of(&items, item)?.ok_or_else(missing)
}

pub(crate) fn remove(ev: &mut Evaluator<'_>, list: &Value, item: &Value) -> Step<Value> {
    let at = index(ev, list, item)?;
    ev.items_mut(list.list()?)?.remove(at);
    Ok(Value::None)
}

/// Changes the items in a way that cannot fail.
pub(crate) fn change(
    ev: &mut Evaluator<'_>,
    list: &Value,
    change: fn(&mut Vec<Value>),
) -> Step<Value> {
    change(ev.items_mut(list.list()?)?);
    Ok(Value::None)
}

pub(crate) fn set_item(
    ev: &mut Evaluator<'_>,
    list: &Value,
    index: &Value,
    item: &Value,
) -> Step<Value> {
    ev.set_item(list, index, item.clone())?;
    Ok(list.clone())
}

/// A slice of a list of any length.
pub(crate) fn slice(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let step = call.args.get(3).cloned().unwrap_or(Value::int(1));
    ev.slice(&call.get(0), &call.get(1), &call.get(2), &step)
}

pub(crate) fn count(ev: &mut Evaluator<'_>, list: &Value, item: &Value) -> Step<Value> {
    let mut count = 0;
    for other in items(ev, list)? {
        count += i64::from(ev.place_of([&other], item)?.is_some());
    }
    Ok(count.into())
}

/// Whether an item is equal to this one, as a truth value that sizes may decide.
pub(crate) fn contains(ev: &mut Evaluator<'_>, list: &Value, item: &Value) -> Step<Value> {
    let mut found = Expr::bool(false);
    for other in items(ev, list)? {
        found = Expr::call(Func::Or, vec![found, ev.equality(&other, item)?]);
        if found.as_int() == Some(1) {
            break;
        }
    }
    Ok(Value::Bool(found))
}

/// Whether all of the items are true, or any; `None` if one of them has no truth value.
pub(crate) fn all_or_any(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [list] = call.args else { return Ok(None) };
    let func = if call.name == "all" { Func::And } else { Func::Or };
    let mut result = Expr::bool(func == Func::And);
    for item in items(ev, list)? {
        let truth = match (ev.truth(&item)?, ev.truth_of(&item)?) {
            (Some(truth), _) => Expr::bool(truth),
            (None, Value::Bool(truth)) => truth,
            _ => return Ok(None),
        };
        result = Expr::call(func, vec![result, truth]);
    }
    Ok(Some(Value::Bool(result)))
}

/// The items under an operation of two numbers, from the first on; `None` if it is not one of them.
pub(crate) fn fold(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [list] = call.args else { return Ok(None) };
    reduce(items(ev, list)?, call.name)
}

fn reduce(items: Vec<Value>, op: &str) -> Found {
    let mut items = items.into_iter();
    let first = items.next();
    items.try_fold(first, |so_far, item| match so_far {
        Some(so_far) => arith::binary(op, &so_far, &item),
        None => Ok(None),
    })
}

/// The sum of numbers. Truth values count as integers.
pub(crate) fn sum(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [list] = call.args else { return Ok(None) };
    let numbers = items(ev, list)?.into_iter().map(|item| match item {
        Value::Bool(truth) => Some(Value::Int(truth)),
        number => number.number().is_some().then_some(number),
    });
    let Some(numbers) = numbers.collect::<Option<Vec<_>>>() else { return Ok(None) };
    Ok(reduce(numbers, "add")?.or(Some(Value::int(0))))
}

/// `[...] * n`.
pub(crate) fn mul(ev: &mut Evaluator<'_>, list: &Value, count: &Value) -> Step<Value> {
    let items = items(ev, list)?;
    if count.as_int().is_some() {
        let (repeated, element) = (repeated(ev, items, count)?, ev.element(list));
        return ev.list(repeated, element);
    }
    // `[number] * n`, where the model knows `n`.
    let ([item], Value::Int(count)) = (items.as_slice(), count) else {
        return repeats();
    };
    let (Some(dtype), Some(element)) = (item.number_dtype(), element_type(item)) else {
        return repeats();
    };
    let sizes = ev.int_list([Expr::max(count, &Expr::ZERO)])?;
    let kwargs = vec![("dtype".into(), dtype.into())];
    let full = ev.operator("aten", "full", args![sizes, item], kwargs)?;
    let rows = DynList::rows(full.tensor()?.clone(), element);
    ev.alloc(Item::DynList(rows)).map(Value::List)
}

pub(crate) fn mul_(ev: &mut Evaluator<'_>, list: &Value, count: &Value) -> Step<Value> {
    let at = list.list()?;
    let items = ev.items(at).to_vec();
    *ev.items_mut(at)? = repeated(ev, items, count)?;
    Ok(list.clone())
}

/// The items as often as a known number says.
fn repeated(ev: &mut Evaluator<'_>, items: Vec<Value>, count: &Value) -> Step<Vec<Value>> {
    let Some(count) = count.as_int() else {
        return repeats();
    };
    let count = usize::try_from(count).unwrap_or(0);
    let more = items.len().saturating_mul(count);
    ev.room(more)?;
    ev.budget.elements = ev.budget.elements.saturating_add(more);
    Ok(std::iter::repeat_n(&items, count).flatten().cloned().collect())
}

/// The problem that a list is repeated by a number that is not known.
fn repeats<T>() -> Step<T> {
    unsupported("a list, other than of one number, times a size or number that is not known")
}

pub(crate) fn sorted(ev: &mut Evaluator<'_>, list: &Value) -> Step<Value> {
    let (items, element) = (items(ev, list)?, ev.element(list));
    ev.list(in_order(items, false)?, element)
}

pub(crate) fn sort(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let list = call.get(0).list()?;
    let reverse = call.get(1).as_bool().unwrap_or(false);
    let items = ev.items(list).to_vec();
    *ev.items_mut(list)? = in_order(items, reverse)?;
    Ok(Value::None)
}

/// The items in order. `reverse` exchanges what is less and greater, so that equal items stay in
/// their order.
fn in_order(mut items: Vec<Value>, reverse: bool) -> Step<Vec<Value>> {
    if !items.iter().all(|item| order(item, item).is_some()) {
        return exchanged(items, reverse);
    }
    let mut comparable = true;
    items.sort_by(|a, b| {
        let order = order(a, b);
        comparable &= order.is_some();
        let order = order.unwrap_or(Ordering::Equal);
        if reverse { order.reverse() } else { order }
    });
    if comparable { Ok(items) } else { unsupported("sorting a list of several types") }
}

/// Sorts a few integers of unknown size: neighbours are exchanged by `min` and `max`.
fn exchanged(mut items: Vec<Value>, reverse: bool) -> Step<Vec<Value>> {
    let integers = items.iter().all(|item| matches!(item, Value::Int(_)));
    if !integers || items.len() > MAX_EXCHANGED {
        return unsupported("sorting a list of unknown values");
    }
    for last in (1..items.len()).rev() {
        for at in 0..last {
            if let Some([Value::Int(a), Value::Int(b)]) = items.get_mut(at..at + 2) {
                (*a, *b) = (Expr::min(a, b), Expr::max(a, b));
            }
        }
    }
    if reverse {
        items.reverse();
    }
    Ok(items)
}

/// The order of known numbers, strings, and tuples of them; `None` if it is not known.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        (Value::Tuple(a), Value::Tuple(b)) if a.items.len() == b.items.len() => {
            // All must be known, also those that do not decide.
            let mut pairs = a.items.iter().zip(&b.items);
            pairs.try_fold(Ordering::Equal, |found, (a, b)| Some(found.then(order(a, b)?)))
        }
        _ => match (a.number()?, b.number()?) {
            (a, b) if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) => Some(a.cmp(&b)),
            (a, b) => known(a)?.partial_cmp(&known(b)?),
        },
    }
}

/// The sizes to which tensors of both sizes broadcast. If both are unknown, it is the larger one:
/// they are equal, or one is 1.
pub(crate) fn broadcast(ev: &mut Evaluator<'_>, a: &Value, b: &Value) -> Step<Value> {
    let (a, b) = (items(ev, a)?, items(ev, b)?);
    let rank = a.len().max(b.len());
    let at = |sizes: &[Value], i: usize| match (i + sizes.len()).checked_sub(rank) {
        Some(i) => sizes[i].number().cloned().unwrap_or(Expr::ONE),
        None => Expr::ONE,
    };
    let size = |i| match (at(&a, i), at(&b, i)) {
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
    let sizes = (0..rank).map(size).collect::<Step<Vec<_>>>()?;
    ev.int_list(sizes)
}

impl Evaluator<'_> {
    /// A list of integers.
    pub(crate) fn int_list(&mut self, items: impl IntoIterator<Item = Expr>) -> Step<Value> {
        let items = items.into_iter().map(Value::Int).collect();
        self.list(items, Some(Type::Int))
    }
}
