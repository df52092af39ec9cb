//! The join of two states: values that differ become phis, the results of a `cond` node. It changes
//! nothing but the supply of names and symbols; [`fork_join`](super::fork_join) emits the node.

use super::phi::{Base, Branch, Joined, Operand, Phi, placeholder, plain_meta};
use crate::{
    error::{Problem, Step},
    eval::{Flow, arith::to_float, expected, unbound, unsupported},
    schema::Type,
    state::{Env, JoinPolicy},
    types::of_data,
    value::{DynList, Item, Layout, Optional, Ref, Tuple, Value, quantized::Quantized},
};
use pt2onnx_fx::{
    Name, Node, TensorMeta, ValueMeta,
    strides::{contiguous, is_contiguous},
};
use pt2onnx_symbolic::{Expr, Func};
use pt2onnx_tensor::DType;
use std::{collections::BTreeSet, sync::Arc};

pub(crate) struct Joiner<'j> {
    pub(crate) base: Base<'j>,
    pub(crate) ends: &'j [Branch; 2],
    /// The condition, if only sizes of inputs decide.
    pub(crate) sizes: Option<Expr>,
    pub(crate) joined: Joined,
}

impl<'j> Joiner<'j> {
    /// How much of the heap is older than the branches.
    fn old(&self) -> usize {
        self.ends[0].delta.heap.old
    }

    pub(crate) fn flows(&mut self) -> Step<Flow> {
        let [yes, no] = self.ends;
        match (&yes.flow, &no.flow) {
            (Flow::Next, Flow::Next) => Ok(Flow::Next),
            (Flow::Return(a), Flow::Return(b)) => self.values(a, b).map(Flow::Return),
            _ => Err(Problem::Branch("only one of its branches returns".to_owned())),
        }
    }

    /// The variables that a branch assigned; none that only one of them has.
    pub(crate) fn variables(&mut self, env: &Env) -> Step<Vec<(Name, Option<Value>)>> {
        let [yes, no] = self.ends;
        let names: BTreeSet<&Name> = yes.env.keys().chain(no.env.keys()).collect();
        let mut joined = Vec::with_capacity(names.len());
        for name in names {
            let value = match (env.after(&yes.env, name), env.after(&no.env, name)) {
                (Some(a), Some(b)) => Some(self.values(&a, &b)?),
                _ => None,
            };
            joined.push((name.clone(), value));
        }
        Ok(joined)
    }

    /// The items of the heap that the branches changed.
    pub(crate) fn items(&mut self, changed: &BTreeSet<usize>) -> Step<()> {
        for &at in changed {
            if let (Some(first), Some(second)) = (self.item_at(0, at), self.item_at(1, at)) {
                let item = self.item(&first, &second)?;
                self.joined.items.insert(at, item);
            }
        }
        Ok(())
    }

    fn step(&self) -> Step<()> {
        let (work, most) = (&self.base.state.work, self.base.max_steps);
        work.set(work.get() + 1);
        if work.get() > most { Err(Problem::Steps(most)) } else { Ok(()) }
    }

    fn item_at(&self, branch: usize, at: usize) -> Option<Item> {
        let own = if at < self.old() {
            self.ends[branch].delta.heap.items.get(&at)
        } else {
            self.joined.items.get(&at)
        };
        own.or_else(|| self.base.state.heap.get(at)).cloned()
    }

    /// The value that is `a` in the first branch, and `b` in the second one.
    pub(crate) fn values(&mut self, a: &Value, b: &Value) -> Step<Value> {
        self.step()?;
        Ok(match (a, b) {
            (Value::Undef(_), other) => self.with_undef(1, other)?,
            (other, Value::Undef(_)) => self.with_undef(0, other)?,
            (Value::Callee(_), _) | (_, Value::Callee(_)) => a.clone(),
            (Value::List(x), Value::List(y)) if x != y => Value::List(self.refs([*x, *y])?),
            (Value::Dict(x), Value::Dict(y)) if x != y => Value::Dict(self.refs([*x, *y])?),
            (Value::Str(_) | Value::UnknownStr(_), Value::UnknownStr(_)) => b.clone(),
            (Value::UnknownStr(_), Value::Str(_)) => a.clone(),
            (Value::Tuple(x), Value::Tuple(y)) if x.items.len() == y.items.len() => {
                let pairs = x.items.iter().zip(&y.items);
                let items = pairs.map(|(a, b)| self.values(a, b)).collect::<Step<_>>()?;
                Tuple::checked(items, x.class.clone())?
            }
            // 0 and 0.0 are equal, but not the same.
            _ if a.kind() == b.kind() && self.base.state.same(a, b) => a.clone(),
            (Value::Tensor(x), Value::Tensor(y)) => Value::Tensor(self.tensors([x, y])?),
            (Value::Quantized(x), Value::Quantized(y))
                if (x.kind, &x.scheme) == (y.kind, &y.scheme) =>
            {
                let ints = self.tensors([&x.ints, &y.ints])?;
                Value::Quantized(Arc::new(Quantized { ints, ..(**x).clone() }))
            }
            (Value::Int(x), Value::Int(y))
                if self.base.state.join != JoinPolicy::Exact
                    && let Some(size) = self.size(x, y) =>
            {
                Value::Int(size)
            }
            (Value::Int(_), Value::Int(_))
            | (Value::Bool(_), Value::Bool(_))
            | (Value::Float(_), Value::Float(_))
                if self.base.state.join != JoinPolicy::Exact =>
            {
                self.number([a, b])?
            }
            (Value::None | Value::Optional(_), _) | (_, Value::None | Value::Optional(_))
                if self.base.state.join == JoinPolicy::AllowOptional =>
            {
                self.optional([a, b])?
            }
            _ => {
                let text =
                    format!("it makes {} in one branch and {} in the other", a.kind(), b.kind());
                return Err(Problem::Branch(text));
            }
        })
    }

    /// The list or dict that is one or the other. Its changes do not reach these.
    fn refs(&mut self, pair: [Ref; 2]) -> Step<Ref> {
        if let Some(known) = self.joined.pairs.get(&pair) {
            return Ok(*known);
        }
        let [x, y] = pair;
        let (Some(first), Some(second)) = (self.item_at(0, x.0), self.item_at(1, y.0)) else {
            return Err(lengths());
        };
        let item = if [&first, &second].iter().any(|item| matches!(item, Item::DynList(_))) {
            Item::DynList(self.sequences(&first, &second)?)
        } else {
            self.item(&first, &second)?
        };
        let made = Ref(self.base.state.heap.len() + self.joined.made.len());
        self.joined.made.push(item);
        self.joined.pairs.insert(pair, made);
        let old = self.old();
        for (of, known) in pair.into_iter().zip(&mut self.joined.one_of) {
            if of.0 < old {
                self.joined.copies.push((made, of));
            } else if let Some(other) = known.insert(of, made) {
                // Both are one list in this branch.
                self.joined.copies.extend([(made, other), (other, made)]);
            }
        }
        Ok(made)
    }

    fn item(&mut self, first: &Item, second: &Item) -> Step<Item> {
        Ok(match (first, second) {
            (Item::List { items: a, element }, Item::List { items: b, .. })
                if a.len() == b.len() =>
            {
                let items = a.iter().zip(b).map(|(a, b)| self.values(a, b)).collect::<Step<_>>()?;
                Item::List { items, element: element.clone() }
            }
            (Item::Dict(a), Item::Dict(b)) if a.len() == b.len() => {
                let mut entries = Vec::with_capacity(a.len());
                for ((key, a), (other, b)) in a.iter().zip(b) {
                    if !self.base.state.same(key, other) {
                        return Err(lengths());
                    }
                    entries.push((key.clone(), self.values(a, b)?));
                }
                Item::Dict(entries)
            }
            (Item::Object { attributes: a, .. }, Item::Object { class, attributes: b, path }) => {
                let mut attributes = b.clone();
                attributes.retain(|name, _| a.contains_key(name));
                for (name, value) in &mut attributes {
                    if let Some(first) = a.get(name) {
                        *value = self.values(first, value)?;
                    }
                }
                Item::Object { class: class.clone(), attributes, path: path.clone() }
            }
            (Item::DynList(a), Item::DynList(b)) if a.is_like(b) => {
                let tensor = self.tensors([&a.tensor, &b.tensor])?;
                Item::DynList(DynList { tensor, ..b.clone() })
            }
            (Item::Dict(_), Item::Dict(_)) => return Err(lengths()),
            _ => Item::DynList(self.sequences(first, second)?),
        })
    }

    /// The size that is `a` if the condition holds, and `b` otherwise; `None` if data decide.
    fn size(&self, a: &Expr, b: &Expr) -> Option<Expr> {
        let condition = self.sizes.as_ref()?;
        let choice = || Expr::call(Func::Where, vec![condition.clone(), a.clone(), b.clone()]);
        (!of_data(a) && !of_data(b)).then(choice)
    }

    fn number(&mut self, numbers: [&Value; 2]) -> Step<Value> {
        let operands = numbers.map(|number| {
            // A truth value that was read from a tensor is that tensor.
            let truth = match number {
                Value::Bool(e) => self.base.truths.get(e),
                _ => None,
            };
            let is_scalar = |name: &&Name| match self.base.state.facts.values.get(*name) {
                Some(ValueMeta::Tensor(meta)) => meta.dtype == DType::Bool && meta.sizes.is_empty(),
                _ => false,
            };
            match truth.filter(is_scalar) {
                Some(name) => Operand::Tensor(self.base.memory.current(name)),
                None => Operand::Number(number.clone()),
            }
        });
        let at = self.phi(operands)?;
        let is_float = matches!(numbers[0], Value::Float(_));
        let symbol = self.base.state.facts.symbols.next(is_float);
        self.joined.phis[at].numbers.push(symbol.clone());
        Ok(match numbers[0] {
            Value::Bool(_) => Value::Bool(Expr::call(Func::Eq, vec![symbol, Expr::ONE])),
            Value::Float(_) => Value::Float(to_float(&symbol)),
            _ => Value::Int(symbol),
        })
    }

    /// Two values; one may be None.
    fn optional(&mut self, values: [&Value; 2]) -> Step<Value> {
        let [(a, x), (b, y)] = values.map(Optional::parts);
        let present = match (a.as_int(), b.as_int(), &self.sizes) {
            (Some(1), Some(0), Some(condition)) => condition.clone(),
            (Some(0), Some(1), Some(condition)) => Expr::call(Func::Not, vec![condition.clone()]),
            _ => match self.values(&Value::Bool(a), &Value::Bool(b))? {
                Value::Bool(present) => present,
                other => return expected("a truth value", &other),
            },
        };
        Ok(Optional::of(present, self.values(&x, &y)?))
    }

    /// A value that one branch makes. After the other one, nobody reads it: its type is enough.
    fn with_undef(&mut self, branch: usize, value: &Value) -> Step<Value> {
        self.step()?;
        let zero = match value {
            Value::Tensor(name) => {
                let base = self.base.memory.write_base_of(name);
                if !self.makes(branch, &base) {
                    return Ok(Value::Tensor(base));
                }
                let zeros = Operand::Zeros(placeholder(self.meta(name)?));
                let operands =
                    in_order(branch, Operand::Tensor(self.base.memory.current(name)), zeros);
                return self.tensor(operands).map(Value::Tensor);
            }
            Value::Tuple(tuple) => {
                let items = tuple.items.iter().map(|item| self.with_undef(branch, item));
                return Tuple::checked(items.collect::<Step<_>>()?, tuple.class.clone());
            }
            Value::List(list) if list.0 >= self.old() => {
                self.list_with_undef(branch, *list)?;
                return Ok(value.clone());
            }
            Value::Optional(optional) => {
                let present = Value::Bool(optional.present.clone());
                let present = self.with_undef(branch, &present)?;
                let value = self.with_undef(branch, &optional.value)?;
                return Ok(match present {
                    Value::Bool(present) => Optional::of(present, value),
                    _ => value,
                });
            }
            Value::Int(_) => Value::int(0),
            Value::Float(_) => Value::float(0.0),
            Value::Bool(_) => Value::bool(false),
            other => return Ok(other.clone()),
        };
        if value.number().is_some_and(of_data) {
            self.number(in_order(branch, value, &zero))
        } else {
            Ok(value.clone())
        }
    }

    /// The same for the elements of a list that the branch has made.
    fn list_with_undef(&mut self, branch: usize, list: Ref) -> Step<()> {
        if self.joined.items.contains_key(&list.0) {
            return Ok(());
        }
        match self.item_at(branch, list.0) {
            Some(Item::List { mut items, element }) => {
                // A list that holds itself ends there.
                let unchanged = Item::List { items: items.clone(), element: element.clone() };
                self.joined.items.insert(list.0, unchanged);
                for item in &mut items {
                    *item = self.with_undef(branch, item)?;
                }
                self.joined.items.insert(list.0, Item::List { items, element });
            }
            Some(Item::DynList(parts)) if self.base.allow_sequences => {
                let tensor = match parts.layout {
                    Layout::Sequence(dtype) => {
                        let own = Operand::Tensor(parts.tensor.clone());
                        self.sequence(in_order(branch, own, Operand::NoTensors(dtype)))
                    }
                    _ => match self.with_undef(branch, &Value::Tensor(parts.tensor.clone()))? {
                        Value::Tensor(tensor) => tensor,
                        other => return expected("a tensor", &other),
                    },
                };
                if let Some(lengths) = parts.lengths() {
                    self.with_undef(branch, &Value::List(lengths))?;
                }
                self.joined.items.insert(list.0, Item::DynList(DynList { tensor, ..parts }));
            }
            _ => {}
        }
        Ok(())
    }

    fn makes(&self, branch: usize, name: &Name) -> bool {
        let nodes = &self.ends[branch].delta.nodes;
        let made = self.joined.results[branch]
            .get_or_init(|| nodes.iter().flat_map(Node::output_names).collect());
        made.contains(name)
    }

    /// The tensor that is `x` in the first branch, and `y` in the second one, or both: written
    /// into.
    fn tensors(&mut self, [x, y]: [&Name; 2]) -> Step<Name> {
        let base = self.base.memory.write_base_of(x);
        if base == self.base.memory.write_base_of(y) {
            return Ok(base);
        }
        self.tensor([x, y].map(|name| Operand::Tensor(self.base.memory.current(name))))
    }

    fn meta(&self, name: &Name) -> Step<&'j TensorMeta> {
        match self.base.state.facts.values.get(name) {
            Some(ValueMeta::Tensor(meta)) => Ok(meta),
            _ => unbound(name),
        }
    }

    /// A tensor with the elements of one or the other.
    fn tensor(&mut self, operands: [Operand; 2]) -> Step<Name> {
        let at = self.phi(operands)?;
        Ok(self.joined.phis[at].name.clone())
    }

    /// The position of a phi; of the same tensors there is one.
    fn phi(&mut self, operands: [Operand; 2]) -> Step<usize> {
        let names = match &operands {
            [Operand::Tensor(x), Operand::Tensor(y)] => Some([x.clone(), y.clone()]),
            _ => None,
        };
        if let Some(at) = names.as_ref().and_then(|names| self.joined.known.get(names)) {
            return Ok(*at);
        }
        let meta = self.joined_meta(&operands)?;
        let name = self.base.names.fresh("cond");
        let at = self.joined.phis.len();
        self.joined.known.extend(names.map(|names| (names, at)));
        self.joined.phis.push(Phi { name, meta: Some(meta), operands, numbers: Vec::new() });
        Ok(at)
    }

    fn sequence(&mut self, operands: [Operand; 2]) -> Name {
        let name = self.base.names.fresh("cond");
        let phi = Phi { name: name.clone(), meta: None, operands, numbers: Vec::new() };
        self.joined.phis.push(phi);
        name
    }

    fn joined_meta(&mut self, operands: &[Operand; 2]) -> Step<TensorMeta> {
        let [a, b] = [self.operand_meta(&operands[0])?, self.operand_meta(&operands[1])?];
        if a.dtype != b.dtype || a.sizes.len() != b.sizes.len() {
            return Err(Problem::Branch(format!(
                "it makes a tensor of {} and {} dimensions in one branch, of {} and {} in the other",
                a.dtype,
                a.sizes.len(),
                b.dtype,
                b.sizes.len()
            )));
        }
        let constraints = &self.base.state.facts.constraints;
        let plain = [&a, &b].map(|meta| is_contiguous(meta, constraints)) == [Some(true); 2];
        let mut meta = a;
        for (size, other) in meta.sizes.iter_mut().zip(&b.sizes) {
            if constraints.prove_eq(size, other) != Some(true) {
                if self.base.state.join == JoinPolicy::Exact {
                    return Err(lengths());
                }
                *size = match self.size(size, other) {
                    Some(size) => size,
                    None => {
                        let symbol = self.base.state.facts.symbols.next(false);
                        self.joined.sizes.push(symbol.clone());
                        symbol
                    }
                };
            }
        }
        meta.strides = if plain { contiguous(&meta.sizes) } else { Vec::new() };
        meta.requires_grad = false;
        Ok(meta)
    }

    fn operand_meta(&self, operand: &Operand) -> Step<TensorMeta> {
        match operand {
            Operand::Tensor(name) => self.meta(name).cloned(),
            Operand::Zeros(meta) => Ok(meta.clone()),
            Operand::Number(value) => {
                Ok(plain_meta(value.number_dtype().unwrap_or(DType::Bool), Vec::new()))
            }
            Operand::Sequence(_) | Operand::NoTensors(_) => Err(lengths()),
        }
    }

    /// A list that each branch has made in another way, as a sequence.
    fn sequences(&mut self, a: &Item, b: &Item) -> Step<DynList> {
        if !self.base.allow_sequences || self.base.state.join == JoinPolicy::Exact {
            return Err(lengths());
        }
        let (a, first) = self.as_sequence(a)?;
        let (b, second) = self.as_sequence(b)?;
        if first != second {
            return Err(lengths());
        }
        Ok(DynList::of_sequence(self.sequence([a, b]), first))
    }

    /// A list of tensors of one element type as a sequence.
    fn as_sequence(&self, list: &Item) -> Step<(Operand, DType)> {
        match list {
            Item::DynList(DynList { layout: Layout::Sequence(dtype), tensor, .. }) => {
                Ok((Operand::Tensor(tensor.clone()), *dtype))
            }
            Item::DynList(parts) if parts.element == Type::Tensor => {
                Ok((Operand::Sequence(list.clone()), self.meta(&parts.tensor)?.dtype))
            }
            Item::List { items, .. } => {
                let dtype = |item: &Value| match item {
                    Value::Tensor(name) => Ok(self.meta(name)?.dtype),
                    _ => Err(lengths()),
                };
                let dtypes = items.iter().map(dtype).collect::<Step<Vec<DType>>>()?;
                let first = *dtypes.first().ok_or_else(lengths)?;
                if dtypes.iter().any(|dtype| *dtype != first) {
                    return unsupported(
                        "a list of tensors of several types, whose length is not known",
                    );
                }
                Ok((Operand::Sequence(list.clone()), first))
            }
            _ => Err(lengths()),
        }
    }
}

/// The operands of the branches: the first of the two is that of this branch.
fn in_order<T>(branch: usize, own: T, other: T) -> [T; 2] {
    if branch == 0 { [own, other] } else { [other, own] }
}

pub(crate) fn lengths() -> Problem {
    Problem::Branch("it makes a list or dict of another length in each branch".to_owned())
}
