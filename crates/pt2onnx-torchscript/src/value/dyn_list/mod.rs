//! Lists whose length depends on data: they are the parts of one tensor, and their elements are
//! read by slices of it.

pub(crate) mod element_spec;
mod jagged;
mod sequence;
pub(crate) mod split;
mod stack;

use crate::{
    error::Problem,
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    schema::Type,
    value::{DynList, Item, Ref, Tuple, Value, dyn_list::element_spec::element_type},
};
use pt2onnx_fx::{Argument, Name, TensorMeta};
use pt2onnx_symbolic::Expr;

impl Evaluator<'_> {
    /// The parts of such a list; `None` for other lists.
    pub(crate) fn dyn_list(&self, list: Ref) -> Option<DynList> {
        self.state.heap.reads(list);
        match self.state.heap.get(list.0) {
            Some(Item::DynList(parts)) => Some(parts.clone()),
            _ => None,
        }
    }

    /// A list of the parts of a tensor along a dimension.
    pub(crate) fn new_dyn_list(
        &mut self,
        tensor: &Name,
        dim: i64,
        size: Option<Expr>,
    ) -> Step<Value> {
        let parts = DynList { dim, size, ..DynList::rows(tensor.clone(), Type::Tensor) };
        Ok(Value::List(self.alloc(Item::DynList(parts))?))
    }

    /// A call of an operator with positional arguments, whose result is a tensor.
    pub(crate) fn of_tensors(&mut self, op: &str, args: Vec<Value>) -> Step<Name> {
        match self.operator("aten", op, args, Kwargs::new())? {
            Value::Tensor(name) => Ok(name),
            other => expected("a tensor", &other),
        }
    }

    /// Element `index`; as in Python, a negative one counts from the end.
    pub(crate) fn part(&mut self, parts: &DynList, index: &Value) -> Step<Value> {
        let Value::Int(at) = index else {
            return expected("an integer", index);
        };
        self.not_sequence("an element", parts)?;
        let tensor = Value::Tensor(parts.tensor.clone());
        let dim = Value::int(parts.dim);
        let part = match (parts.lengths, &parts.size) {
            (Some(lengths), _) => {
                let at = self.place(parts, index)?;
                self.jagged_part(parts, lengths, at)?
            }
            (None, None) => self.of_tensors("select", vec![tensor, dim, index.clone()])?,
            (None, Some(size)) => {
                let at = match at.as_int() {
                    Some(known) if known < 0 => self.length(parts)? + known,
                    _ => at.clone(),
                };
                let total = self.extent(parts)?;
                let (start, end) = (&at * size, (&at + 1) * size);
                let end = Expr::min(&end, &total);
                let bounds = [Value::Int(start), Value::Int(end), Value::int(1)];
                self.of_tensors("slice", [vec![tensor, dim], bounds.to_vec()].concat())?
            }
        };
        self.element_in(parts, part)
    }

    /// A part as an element of the list.
    fn element_in(&mut self, parts: &DynList, part: Name) -> Step<Value> {
        match &parts.element {
            Type::Tensor => Ok(Value::Tensor(part)),
            number => {
                let number = number.clone();
                self.scalar_of(&Value::Tensor(part), &number)
            }
        }
    }

    /// Element `index`, which depends on data, of a list of known values.
    pub(crate) fn any_of(&mut self, items: Vec<Value>, index: &Value) -> Step<Value> {
        let Some(first) = items.first() else {
            return Err(Problem::Raises("IndexError".to_owned()));
        };
        if let Value::Tuple(tuple) = first {
            return self.any_tuple(&tuple.clone(), &items, index);
        }
        let Some(element) = element_type(first) else {
            return unsupported(format!(
                "an index that depends on data, of a list of {}",
                first.kind()
            ));
        };
        if let Some(one) = self.one_of(&items, index)? {
            return Ok(one);
        }
        let tensor = self.stacked(items, &element)?;
        self.part(&DynList::rows(tensor, element), index)
    }

    /// As [`Evaluator::any_of`], of tuples that are like the first one: each part is chosen by
    /// itself.
    fn any_tuple(&mut self, like: &Tuple, items: &[Value], index: &Value) -> Step<Value> {
        let mut chosen = Vec::with_capacity(like.items.len());
        for at in 0..like.items.len() {
            let part = |item: &Value| match item {
                Value::Tuple(tuple) => tuple.items.get(at).cloned(),
                _ => None,
            };
            let parts = items.iter().map(part).collect::<Option<Vec<_>>>();
            chosen.push(self.any_of(parts.unwrap_or_default(), index)?);
        }
        self.tuple(chosen, like.class.clone())
    }

    /// The size of the dimension that is divided.
    fn extent(&self, parts: &DynList) -> Step<Expr> {
        let sizes = &self.meta(&parts.tensor)?.sizes;
        let rank = i64::try_from(sizes.len()).unwrap_or(0);
        let dim = if parts.dim < 0 { parts.dim + rank } else { parts.dim };
        let size = usize::try_from(dim).ok().and_then(|dim| sizes.get(dim));
        size.cloned().ok_or_else(|| Problem::Raises("IndexError: no such dimension".to_owned()))
    }

    /// How many elements there are.
    pub(crate) fn length(&self, parts: &DynList) -> Step<Expr> {
        if let Some(lengths) = parts.lengths {
            return self.count(lengths);
        }
        let total = self.extent(parts)?;
        Ok(match &parts.size {
            None => total,
            Some(size) => self.constraints().simplify(&total.ceil_div(size)),
        })
    }

    /// The tensor of a list whose elements are single slices along dimension 0, as those that
    /// change are.
    pub(crate) fn rows(&self, parts: &DynList) -> Step<Name> {
        self.not_sequence("such a change", parts)?;
        match (&parts.size, parts.lengths, parts.dim) {
            (None, None, 0) => Ok(parts.tensor.clone()),
            _ => unsupported(
                "such a change of a list of parts of different sizes, whose number depends on data,",
            ),
        }
    }

    /// Elements `start` to `end` of the list, as rows.
    fn rows_between(&mut self, parts: &DynList, start: Value, end: Value) -> Step<Name> {
        let rows = Value::Tensor(self.rows(parts)?);
        let args = vec![rows, Value::int(0), start, end, Value::int(1)];
        self.of_tensors("slice", args)
    }

    /// The elements as rows, the last one first.
    fn reversed(&mut self, parts: &DynList) -> Step<Name> {
        let (rows, dims) = (self.rows(parts)?, self.int_list([Expr::ZERO])?);
        let reversed = self.of_tensors("flip", vec![Value::Tensor(rows.clone()), dims])?;
        self.listed(&reversed, &[rows])?;
        Ok(reversed)
    }

    pub(crate) fn slice_dyn_list(
        &mut self,
        parts: &DynList,
        start: &Value,
        end: &Value,
        step: &Value,
    ) -> Step<Value> {
        let is_whole = matches!((start, end), (Value::None, Value::None));
        let tensor = match step.as_int() {
            Some(1) => self.rows_between(parts, start.clone(), end.clone())?,
            Some(step) if step > 1 || step < 0 && is_whole => {
                let rows = if step > 0 { self.rows(parts)? } else { self.reversed(parts)? };
                let by = Value::int(step.saturating_abs());
                let args = [Value::Tensor(rows), Value::int(0), start.clone(), end.clone(), by];
                self.of_tensors("slice", args.to_vec())?
            }
            _ => {
                return unsupported(
                    "a slice backwards between bounds of a list whose length depends on data",
                );
            }
        };
        Ok(Value::List(self.alloc(Item::DynList(DynList { tensor, ..parts.clone() }))?))
    }

    /// Puts rows in place of the elements from `start` to `end`.
    fn splice(
        &mut self,
        list: Ref,
        parts: &DynList,
        [start, end]: [Value; 2],
        rows: Option<Name>,
    ) -> Step<()> {
        let before = self.rows_between(parts, Value::int(0), start)?;
        let behind = self.rows_between(parts, end, Value::None)?;
        let elements: Vec<Name> = [parts.tensor.clone()].into_iter().chain(rows.clone()).collect();
        let pieces: Vec<Name> = [Some(before), rows, Some(behind)].into_iter().flatten().collect();
        self.join(list, parts, pieces, &elements)
    }

    /// Gives the list these rows, which are those of tensors.
    fn join(&mut self, list: Ref, parts: &DynList, pieces: Vec<Name>, of: &[Name]) -> Step<()> {
        let pieces = pieces.into_iter().map(Value::Tensor).collect();
        let pieces = self.list(pieces, Some(Type::Tensor))?;
        let tensor = self.of_tensors("cat", vec![pieces])?;
        self.listed(&tensor, of)?;
        self.put(list, DynList { tensor, ..parts.clone() });
        Ok(())
    }

    /// Gives the list other elements.
    pub(crate) fn put(&mut self, list: Ref, parts: DynList) {
        self.state.heap.changes(list);
        self.represent(list, parts);
    }

    /// The elements of the list are these parts.
    pub(crate) fn represent(&mut self, list: Ref, parts: DynList) {
        if let Some(slot) = self.state.heap.get_mut(list.0) {
            *slot = Item::DynList(parts);
        }
    }

    /// A value as a row that fits the others.
    fn row(&mut self, parts: &DynList, item: &Value) -> Step<Name> {
        let part = self.as_part(item, &parts.element)?;
        let (rows, meta) = (self.meta(&parts.tensor)?.clone(), self.meta(&part)?.clone());
        self.same_type(&meta, (rows.dtype, rows.sizes.get(1..).unwrap_or_default()))?;
        self.of_tensors("unsqueeze", vec![Value::Tensor(part), Value::int(0)])
    }

    pub(crate) fn set_part(
        &mut self,
        list: Ref,
        parts: &DynList,
        index: &Value,
        item: &Value,
    ) -> Step<()> {
        if self.is_element(parts, index, item)? {
            return Ok(());
        }
        let at = self.place(parts, index)?;
        let row = self.row(parts, item)?;
        self.splice(list, parts, [Value::Int(at.clone()), Value::Int(at + 1)], Some(row))
    }

    /// Whether a tensor is this element of the list, which may have been written into: `rows[i] +=
    /// 1` puts it back.
    fn is_element(&mut self, parts: &DynList, index: &Value, item: &Value) -> Step<bool> {
        let Value::Tensor(item) = item else { return Ok(false) };
        let Some(node) = self.memory.views.get(&self.write_base_of(item)).cloned() else {
            return Ok(false);
        };
        let index = self.argument(index, &Type::Int)?;
        let [of, dim, at] = &node.args[..] else { return Ok(false) };
        Ok(node.target.name == "select"
            && of.value.name().map(|of| self.current(of)) == Some(self.current(&parts.tensor))
            && dim.value == Argument::Int(parts.dim)
            && at.value == index)
    }

    /// A place counted from the front.
    fn place(&self, parts: &DynList, index: &Value) -> Step<Expr> {
        match (index, index.as_int()) {
            (_, Some(known)) if known < 0 => Ok(self.length(parts)? + known),
            (Value::Int(at), _) => Ok(at.clone()),
            _ => expected("an integer", index),
        }
    }

    /// The result of an operator on such a list.
    pub(crate) fn on_dyn_list(
        &mut self,
        name: &str,
        list: Ref,
        parts: &DynList,
        args: &[Value],
    ) -> Step<Value> {
        if let Some(lengths) = parts.lengths {
            return self.on_jagged(name, (list, parts, lengths), args);
        }
        if parts.sequence.is_some() {
            return self.on_sequence(name, list, parts, args);
        }
        let this = args.first().cloned().unwrap_or(Value::None);
        Ok(match (name, args) {
            ("len", [_]) => Value::Int(self.length(parts)?),
            ("__getitem__", [_, index]) => self.part(parts, index)?,
            ("list" | "copy", [_]) => Value::List(self.alloc(Item::DynList(parts.clone()))?),
            ("append", [_, item]) => {
                let pieces =
                    self.rows(parts).and_then(|rows| Ok(vec![rows, self.row(parts, item)?]));
                match pieces {
                    Ok(pieces) => self.join(list, parts, pieces.clone(), &pieces)?,
                    Err(Problem::Unsupported(_)) if self.policy.allow_sequences => {
                        self.grow(list, item)?
                    }
                    Err(problem) => return Err(problem),
                }
                this
            }
            ("add", [_, other]) => {
                let sum = self.alloc(Item::DynList(parts.clone()))?;
                self.extend(sum, parts, other)?;
                Value::List(sum)
            }
            ("extend" | "add_", [_, other]) => {
                self.extend(list, parts, other)?;
                this
            }
            ("insert", [_, index, item]) => {
                let row = self.row(parts, item)?;
                let at = Value::Int(self.place(parts, index)?);
                self.splice(list, parts, [at.clone(), at], Some(row))?;
                Value::None
            }
            ("pop" | "Delete", [_, rest @ ..]) => {
                let at = self.place(parts, rest.first().unwrap_or(&Value::int(-1)))?;
                let item = self.part(parts, &Value::Int(at.clone()))?;
                self.splice(list, parts, [Value::Int(at.clone()), Value::Int(at + 1)], None)?;
                item
            }
            ("_set_item", [_, index, item]) => {
                self.set_part(list, parts, index, item)?;
                this
            }
            ("reverse", [_]) => {
                let tensor = self.reversed(parts)?;
                self.put(list, DynList { tensor, ..parts.clone() });
                Value::None
            }
            ("slice", [_, rest @ ..]) => {
                let arg = |at: usize, default| rest.get(at).cloned().unwrap_or(default);
                let (start, end) = (arg(0, Value::None), arg(1, Value::None));
                self.slice_dyn_list(parts, &start, &end, &arg(2, Value::int(1)))?
            }
            ("stack" | "cat" | "concat", [_, rest @ ..]) if parts.element == Type::Tensor => {
                let dim = rest.first().map_or(Some(0), Value::as_int);
                let Some(dim) = dim else {
                    return expected("a known integer", args.last().unwrap_or(&Value::None));
                };
                self.joined(parts, name == "stack", dim)?
            }
            _ => {
                return unsupported(format!("{name} of a list whose length depends on data"));
            }
        })
    }

    /// The sum of a list of known length and one of unknown length, or the former extended by the
    /// latter.
    pub(crate) fn add_dyn_list(&mut self, name: &str, list: Ref, other: Ref) -> Step<Value> {
        let sum = match name {
            "add" => {
                let (items, element) =
                    (self.items(list).to_vec(), self.element(&Value::List(list)));
                self.alloc(Item::List { items, element })?
            }
            _ => list,
        };
        let sample = self.element_spec(other);
        self.generalize(sum, sample)?;
        if let Some(parts) = self.dyn_list(sum) {
            self.extend(sum, &parts, &Value::List(other))?;
        }
        Ok(Value::List(sum))
    }

    fn extend(&mut self, list: Ref, parts: &DynList, other: &Value) -> Step<()> {
        let mut pieces = vec![self.rows(parts)?];
        match other {
            Value::List(other)
                if self.dyn_list(*other).is_some_and(|o| o.element == parts.element) =>
            {
                if let Some(other) = self.dyn_list(*other) {
                    let (a, b) = (self.meta(&parts.tensor)?, self.meta(&other.tensor)?.clone());
                    let sizes = b.sizes.get(1..).unwrap_or_default();
                    let rows = TensorMeta {
                        sizes: a.sizes.get(1..).unwrap_or_default().to_vec(),
                        ..a.clone()
                    };
                    self.same_type(&rows, (b.dtype, sizes))?;
                    pieces.push(self.rows(&other)?);
                }
            }
            _ => {
                let Some(items) = self.sequence(other) else {
                    return expected("a list", other);
                };
                for item in &items {
                    pieces.push(self.row(parts, item)?);
                }
            }
        }
        self.join(list, parts, pieces.clone(), &pieces)
    }
}
