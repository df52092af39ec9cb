//! What the two branches of a condition on data make, merged into values after both.

use super::{Interp, Step, heap::Heap};
use crate::{
    error::Problem,
    quantized::Quantized,
    types::of_data,
    value::{Item, Maybe, Parts, Ref, Value},
};
use pt2onnx_fx::{Name, Node, TensorMeta, ValueMeta, archive::c10_number, strides};
use pt2onnx_symbolic::{Expr, Func};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What took the place of tensors in a branch, and the views that are made again there.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) replaced: FxHashMap<Name, Name>,
    pub(super) hidden: FxHashSet<Name>,
}

/// The results of `cond`: the values of both branches, and the name of the merged one.
#[derive(Default)]
pub(super) struct Merged {
    pub(super) results: Vec<[Name; 2]>,
    pub(super) outputs: Vec<Name>,
    /// Memory that branches write into, and what stands for it at the end of each.
    pub(super) memory: Vec<(Name, [Name; 2])>,
    /// What took the place of tensors in each branch.
    pub(super) scopes: [Scope; 2],
    /// How much of the heap is older than the branches, and the heap after the first one.
    pub(super) old: usize,
    pub(super) first: Heap,
    /// The lists and dicts of both branches that became one, by both and by each of them.
    pub(super) pairs: FxHashMap<[Ref; 2], Ref>,
    pub(super) one_of: [FxHashMap<Ref, Ref>; 2],
    /// The condition, if only sizes of inputs decide.
    pub(super) sizes: Option<Expr>,
}

impl Merged {
    /// The size that is `a` if the condition holds, and `b` otherwise; `None` if data decide.
    fn size(&self, a: &Expr, b: &Expr) -> Option<Expr> {
        let condition = self.sizes.as_ref()?;
        let choice = || Expr::call(Func::Where, vec![condition.clone(), a.clone(), b.clone()]);
        (!of_data(a) && !of_data(b)).then(choice)
    }
}

impl Interp<'_> {
    /// An item of the heap from before both branches, after them.
    pub(super) fn merge_items(
        &mut self,
        at: usize,
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<()> {
        let (Some(first), Some(second)) =
            (merged.first.get(at).cloned(), self.heap.get(at).cloned())
        else {
            return Ok(());
        };
        let item = self.merge_item([first, second], merged, bodies)?;
        if let Some(slot) = self.heap.get_mut(at) {
            *slot = item;
        }
        Ok(())
    }

    /// The list or dict that is one or the other. A change of it does not reach those that others
    /// know.
    fn merge_refs(
        &mut self,
        pair: [Ref; 2],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Ref> {
        if let Some(known) = merged.pairs.get(&pair) {
            return Ok(*known);
        }
        let [x, y] = pair;
        let heap = if x.0 < merged.old { &merged.first } else { &self.heap };
        let (Some(first), Some(second)) = (heap.get(x.0).cloned(), self.heap.get(y.0).cloned())
        else {
            return Err(lengths());
        };
        let is_parts = [&first, &second].map(|item| matches!(item, Item::Parts(_)));
        let item = if is_parts.contains(&true) {
            Item::Parts(self.merge_sequences([&first, &second], merged, bodies)?)
        } else {
            self.merge_item([first, second], merged, bodies)?
        };
        let made = self.alloc(item)?;
        merged.pairs.insert(pair, made);
        for (of, known) in pair.into_iter().zip(&mut merged.one_of) {
            if of.0 < merged.old {
                self.heap.may_be(made, of);
            } else if let Some(other) = known.insert(of, made) {
                // Both are one list in this branch.
                self.heap.may_be(made, other);
                self.heap.may_be(other, made);
            }
        }
        Ok(made)
    }

    fn merge_item(
        &mut self,
        items: [Item; 2],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Item> {
        Ok(match items {
            [Item::List { items: a, element }, Item::List { items: b, .. }]
                if a.len() == b.len() =>
            {
                let mut items = Vec::with_capacity(a.len());
                for (a, b) in a.iter().zip(&b) {
                    items.push(self.merge_values(a, b, merged, bodies)?);
                }
                Item::List { items, element }
            }
            [Item::Dict(a), Item::Dict(b)] => {
                Item::Dict(self.merge_entries(&a, &b, merged, bodies)?)
            }
            [
                Item::Object { attributes: a, .. },
                Item::Object { class, attributes: mut b, path },
            ] => {
                for (name, value) in &mut b {
                    if let Some(first) = a.get(name) {
                        *value = self.merge_values(first, value, merged, bodies)?;
                    }
                }
                Item::Object { class, attributes: b, path }
            }
            [Item::Parts(a), Item::Parts(b)] if a.is_like(&b) => {
                let tensor = if a.tensor == b.tensor {
                    a.tensor
                } else {
                    self.merge_read([&a.tensor, &b.tensor], merged, bodies)?
                };
                Item::Parts(Parts { tensor, ..b })
            }
            [first, second] => {
                Item::Parts(self.merge_sequences([&first, &second], merged, bodies)?)
            }
        })
    }

    /// The value that is `a` if the condition holds, and `b` otherwise.
    pub(super) fn merge_values(
        &mut self,
        a: &Value,
        b: &Value,
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Value> {
        self.step()?;
        Ok(match (a, b) {
            (Value::Opaque(_), other) => self.only_in(1, other, merged, bodies)?,
            (other, Value::Opaque(_)) => self.only_in(0, other, merged, bodies)?,
            (Value::Callee(_), _) | (_, Value::Callee(_)) => a.clone(),
            (Value::List(x), Value::List(y)) if x != y => {
                Value::List(self.merge_refs([*x, *y], merged, bodies)?)
            }
            (Value::Dict(x), Value::Dict(y)) if x != y => {
                Value::Dict(self.merge_refs([*x, *y], merged, bodies)?)
            }
            (Value::Str(_) | Value::Unclear(_), Value::Unclear(_)) => b.clone(),
            (Value::Unclear(_), Value::Str(_)) => a.clone(),
            _ if self.same(a, b) => a.clone(),
            (Value::Tensor(x), Value::Tensor(y)) => {
                Value::Tensor(self.merge_tensors([x, y], merged, bodies)?)
            }
            (Value::Quantized(x), Value::Quantized(y))
                if (x.kind, &x.scheme) == (y.kind, &y.scheme) =>
            {
                let ints = self.merge_read([&x.ints, &y.ints], merged, bodies)?;
                Value::Quantized(Arc::new(Quantized { ints, ..(**x).clone() }))
            }
            (Value::Int(_), Value::Int(_))
            | (Value::Bool(_), Value::Bool(_))
            | (Value::Float(_), Value::Float(_))
                if !self.strict =>
            {
                match (a, b) {
                    (Value::Int(x), Value::Int(y)) if let Some(size) = merged.size(x, y) => {
                        Value::Int(size)
                    }
                    _ => self.merge_numbers([a, b], merged, bodies)?,
                }
            }
            (Value::Tuple(x), Value::Tuple(y)) if x.items.len() == y.items.len() => {
                let mut items = Vec::with_capacity(x.items.len());
                for (a, b) in x.items.iter().zip(&y.items) {
                    items.push(self.merge_values(a, b, merged, bodies)?);
                }
                self.tuple(items, x.class.clone())?
            }
            (Value::None | Value::Maybe(_), _) | (_, Value::None | Value::Maybe(_))
                if self.optional && !self.strict =>
            {
                self.merge_optional([a, b], merged, bodies)?
            }
            _ => {
                let text =
                    format!("it makes {} in one branch and {} in the other", a.kind(), b.kind());
                return Err(Problem::Branch(text));
            }
        })
    }

    fn merge_entries(
        &mut self,
        first: &[(Value, Value)],
        second: &[(Value, Value)],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Vec<(Value, Value)>> {
        if first.len() != second.len() {
            return Err(lengths());
        }
        let mut entries = Vec::with_capacity(first.len());
        for ((key, a), (other, b)) in first.iter().zip(second) {
            if !self.same(key, other) {
                return Err(lengths());
            }
            entries.push((key.clone(), self.merge_values(a, b, merged, bodies)?));
        }
        Ok(entries)
    }

    fn merge_numbers(
        &mut self,
        [a, b]: [&Value; 2],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Value> {
        let x = self.tensor_in(a, &mut bodies[0])?;
        let y = self.tensor_in(b, &mut bodies[1])?;
        let tensor = self.merge_contents(&x, &y, merged)?;
        self.number_result(&tensor)
    }

    /// Values of which one may be None.
    fn merge_optional(
        &mut self,
        values: [&Value; 2],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Value> {
        let [(a, x), (b, y)] = values.map(Maybe::parts);
        let present = match (a.as_int(), b.as_int(), &merged.sizes) {
            (Some(1), Some(0), Some(condition)) => Value::Bool(condition.clone()),
            (Some(0), Some(1), Some(condition)) => {
                Value::Bool(Expr::call(Func::Not, vec![condition.clone()]))
            }
            _ => self.merge_values(&Value::Bool(a), &Value::Bool(b), merged, bodies)?,
        };
        let value = self.merge_values(&x, &y, merged, bodies)?;
        Ok(match present {
            Value::Bool(present) => Maybe::of(present, value),
            other => return super::expected("a truth value", &other),
        })
    }

    /// A value that only one of the branches makes. Nobody reads it after the other one, which
    /// makes something of the same type.
    pub(super) fn only_in(
        &mut self,
        branch: usize,
        value: &Value,
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Value> {
        let zero = match value {
            Value::Tensor(name) => {
                if let Some(root) = self.memory_in(branch, name, merged) {
                    return Ok(Value::Tensor(root));
                }
                let made = |node: &Node| node.output_names().contains(name);
                self.steps(bodies[branch].len())?;
                if !bodies[branch].iter().any(made) {
                    return Ok(value.clone());
                }
                let meta = self.meta(name)?.clone();
                let stand_in = self.stand_in(&meta, &mut bodies[1 - branch])?;
                let [x, y] = in_order(branch, name, &stand_in);
                return Ok(Value::Tensor(self.merge_contents(x, y, merged)?));
            }
            Value::Tuple(tuple) => {
                let mut items = Vec::with_capacity(tuple.items.len());
                for item in &tuple.items {
                    items.push(self.only_in(branch, item, merged, bodies)?);
                }
                return self.tuple(items, tuple.class.clone());
            }
            Value::List(list) if list.0 >= merged.old && self.parts_of(*list).is_none() => {
                let mut items = self.items(*list).to_vec();
                for item in &mut items {
                    *item = self.only_in(branch, item, merged, bodies)?;
                }
                if let Some(Item::List { items: old, .. }) = self.heap.get_mut(list.0) {
                    *old = items;
                }
                return Ok(value.clone());
            }
            Value::List(list) if list.0 >= merged.old && self.sequences => {
                self.only_parts(branch, *list, merged, bodies)?;
                return Ok(value.clone());
            }
            Value::Maybe(maybe) => {
                let present = Value::Bool(maybe.present.clone());
                let present = self.only_in(branch, &present, merged, bodies)?;
                let value = self.only_in(branch, &maybe.value, merged, bodies)?;
                return Ok(match present {
                    Value::Bool(present) => Maybe::of(present, value),
                    _ => value,
                });
            }
            Value::Int(_) => Value::int(0),
            Value::Float(_) => Value::float(0.0),
            Value::Bool(_) => Value::bool(false),
            other => return Ok(other.clone()),
        };
        if value.number().is_some_and(of_data) {
            self.merge_numbers(in_order(branch, value, &zero), merged, bodies)
        } else {
            Ok(value.clone())
        }
    }

    /// A tensor of this element type and as many dimensions, whose node is in a body.
    fn stand_in(&mut self, meta: &TensorMeta, body: &mut Vec<Node>) -> Step<Name> {
        std::mem::swap(&mut self.nodes, body);
        let made = self.placeholder(meta);
        std::mem::swap(&mut self.nodes, body);
        made
    }

    /// A tensor of zeros of this element type and as many dimensions. A size that depends on data
    /// is 0.
    pub(super) fn placeholder(&mut self, meta: &TensorMeta) -> Step<Name> {
        let size = |e: &Expr| if of_data(e) { Expr::ZERO } else { e.clone() };
        let sizes = self.int_list(meta.sizes.iter().map(size).collect::<Vec<_>>())?;
        let dtype = c10_number(meta.dtype).map_or(Value::None, Value::int);
        match self.operator("aten", "zeros", vec![sizes], vec![("dtype".into(), dtype)])? {
            Value::Tensor(name) => Ok(name),
            other => super::expected("a tensor", &other),
        }
    }

    /// The memory that both branches write into and that a tensor is in a branch.
    fn memory_in(&self, branch: usize, name: &Name, merged: &Merged) -> Option<Name> {
        let whole = self.whole_of(&self.current(name));
        let found = merged.memory.iter().find(|(root, copies)| {
            *root == whole || copies.get(branch).is_some_and(|copy| self.whole_of(copy) == whole)
        });
        found.map(|(root, _)| root.clone())
    }

    fn merge_tensors(
        &mut self,
        [x, y]: [&Name; 2],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Name> {
        let memory = self.memory_in(0, x, merged);
        if memory.is_some() && memory == self.memory_in(1, y, merged) {
            Ok(memory.unwrap_or_default())
        } else {
            self.merge_read([x, y], merged, bodies)
        }
    }

    /// A new tensor with the elements of one or the other, as each branch has it at its end.
    fn merge_read(
        &mut self,
        [x, y]: [&Name; 2],
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Name> {
        let x = self.read_in(0, x, merged, bodies)?;
        let y = self.read_in(1, y, merged, bodies)?;
        self.merge_contents(&x, &y, merged)
    }

    /// The name by which a tensor is read at the end of a branch.
    fn read_in(
        &mut self,
        branch: usize,
        name: &Name,
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
    ) -> Step<Name> {
        if merged.memory.is_empty() {
            return Ok(self.current(name));
        }
        self.in_branch(branch, merged, bodies, |interp| {
            let name = interp.current(name);
            if interp.hidden.contains(&name) { interp.viewed_again(&name) } else { Ok(name) }
        })
    }

    /// Runs at the end of a branch.
    pub(super) fn in_branch<T>(
        &mut self,
        branch: usize,
        merged: &mut Merged,
        bodies: &mut [Vec<Node>; 2],
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let (scope, body) = (&mut merged.scopes[branch], &mut bodies[branch]);
        let mut swap = |interp: &mut Self| {
            std::mem::swap(&mut interp.replaced, &mut scope.replaced);
            std::mem::swap(&mut interp.hidden, &mut scope.hidden);
            std::mem::swap(&mut interp.nodes, body);
        };
        swap(self);
        let result = run(self);
        swap(self);
        result
    }

    /// A new tensor with the elements of one or the other.
    pub(super) fn merge_contents(&mut self, x: &Name, y: &Name, merged: &mut Merged) -> Step<Name> {
        let (x, y) = (&self.current(x), &self.current(y));
        let known = merged.results.iter().position(|[a, b]| a == x && b == y);
        if let Some(name) = known.and_then(|at| merged.outputs.get(at)) {
            return Ok(name.clone());
        }
        let (a, b) = (self.meta(x)?.clone(), self.meta(y)?.clone());
        if a.dtype != b.dtype || a.sizes.len() != b.sizes.len() {
            let rank = |meta: &TensorMeta| meta.sizes.len();
            return Err(Problem::Branch(format!(
                "it makes a tensor of {} and {} dimensions in one branch, of {} and {} in the other",
                a.dtype,
                rank(&a),
                b.dtype,
                rank(&b)
            )));
        }
        let plain = [&a, &b].map(|meta| self.is_contiguous(meta)) == [Some(true); 2];
        let mut meta = a;
        for (size, other) in meta.sizes.iter_mut().zip(&b.sizes) {
            if self.facts.constraints.prove_eq(size, other) != Some(true) {
                if self.strict {
                    return Err(lengths());
                }
                *size = match merged.size(size, other) {
                    Some(size) => size,
                    None => self.size_symbol(),
                };
            }
        }
        meta.strides = if plain { strides::contiguous(&meta.sizes) } else { Vec::new() };
        meta.requires_grad = false;
        let name = self.fresh("cond");
        self.facts.values.insert(name.clone(), ValueMeta::from(meta));
        self.roots.insert(name.clone(), name.clone());
        self.copied(&name, &[x.clone(), y.clone()]);
        merged.results.push([x.clone(), y.clone()]);
        merged.outputs.push(name.clone());
        Ok(name)
    }

    /// A number as a tensor, whose node is in a body.
    pub(super) fn tensor_in(&mut self, number: &Value, body: &mut Vec<Node>) -> Step<Name> {
        std::mem::swap(&mut self.nodes, body);
        let made = self.operator("prim", "NumToTensor", vec![number.clone()], Vec::new());
        std::mem::swap(&mut self.nodes, body);
        match made? {
            Value::Tensor(name) => Ok(name),
            other => super::expected("a tensor", &other),
        }
    }
}

/// What the branches have: the first of the two in this branch, the other one in the other branch.
pub(super) fn in_order<'v, T>(branch: usize, own: &'v T, other: &'v T) -> [&'v T; 2] {
    if branch == 0 { [own, other] } else { [other, own] }
}

pub(super) fn lengths() -> Problem {
    Problem::Branch("it makes a list or dict of another length in each branch".to_owned())
}
