//! Lists whose length depends on data: they are the parts of one tensor, and their elements are
//! read by slices of it.

pub(crate) mod element_spec;
mod jagged;
mod sequence;
pub(crate) mod split;
mod stack;

use crate::{
    builtins::Call,
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    schema::Type,
    value::{DynList, Item, Layout, Ref, Tuple, Value, args, dyn_list::element_spec::element_type},
};
use pt2onnx_fx::{Argument, Name, TensorMeta};
use pt2onnx_symbolic::Expr;

impl Evaluator<'_> {
    /// The parts of such a list; `None` for other lists.
    pub(crate) fn dyn_list(&self, list: Ref) -> Option<DynList> {
        self.state.reads(list);
        match self.state.heap.get(list.0) {
            Some(Item::DynList(parts)) => Some(parts.clone()),
            _ => None,
        }
    }

    /// The place and the parts of such a list.
    fn parts_of(&self, list: &Value) -> Step<(Ref, DynList)> {
        let at = list.list()?;
        match self.dyn_list(at) {
            Some(parts) => Ok((at, parts)),
            None => unsupported("this operator of a list of known length"),
        }
    }

    pub(crate) fn new_dyn_list(&mut self, parts: DynList) -> Step<Value> {
        self.alloc(Item::DynList(parts)).map(Value::List)
    }

    /// Element `index`; as in Python, a negative one counts from the end.
    pub(crate) fn part(&mut self, parts: &DynList, index: &Value) -> Step<Value> {
        let at = index.integer()?;
        self.not_sequence("an element", parts)?;
        let part = match &parts.layout {
            Layout::Jagged(lengths) => {
                let at = self.place(parts, index)?;
                self.jagged_part(parts, *lengths, at)?
            }
            Layout::Slices | Layout::Sequence(_) => {
                self.aten_tensor("select", args![&parts.tensor, parts.dim, index])?
            }
            Layout::Parts(size) => {
                let at = match at.as_int() {
                    Some(known) if known < 0 => self.length(parts)? + known,
                    _ => at.clone(),
                };
                let end = Expr::min(&((&at + 1) * size), &self.extent(parts)?);
                self.aten_tensor("slice", args![&parts.tensor, parts.dim, &at * size, end, 1])?
            }
        };
        match &parts.element {
            Type::Tensor => Ok(part.into()),
            number => self.scalar_of(&part.into(), number),
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
            let kind = first.kind();
            return unsupported(format!("an index that depends on data, of a list of {kind}"));
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
        let size = self.size_along(&parts.tensor, parts.dim)?;
        size.ok_or_else(|| Problem::Raises("IndexError: no such dimension".to_owned()))
    }

    /// How many elements there are.
    pub(crate) fn length(&self, parts: &DynList) -> Step<Expr> {
        match &parts.layout {
            Layout::Jagged(lengths) => self.count(*lengths),
            Layout::Parts(size) => {
                Ok(self.constraints().simplify(&self.extent(parts)?.ceil_div(size)))
            }
            Layout::Slices | Layout::Sequence(_) => self.extent(parts),
        }
    }

    /// The tensor of a list whose elements are single slices along dimension 0, as those that
    /// change are.
    pub(crate) fn rows(&self, parts: &DynList) -> Step<Name> {
        self.not_sequence("such a change", parts)?;
        match (&parts.layout, parts.dim) {
            (Layout::Slices, 0) => Ok(parts.tensor.clone()),
            _ => unsupported(
                "such a change of a list of parts of different sizes, whose number depends on data,",
            ),
        }
    }

    /// The elements as rows, the last one first.
    fn reversed(&mut self, parts: &DynList) -> Step<Name> {
        let (rows, dims) = (self.rows(parts)?, self.int_list([Expr::ZERO])?);
        let reversed = self.aten_tensor("flip", args![&rows, dims])?;
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
        let (rows, by) = match step.as_int() {
            Some(step) if step > 0 => (self.rows(parts)?, step),
            Some(step) if step < 0 && is_whole => (self.reversed(parts)?, step.saturating_neg()),
            _ => {
                return unsupported(
                    "a slice backwards between bounds of a list whose length depends on data",
                );
            }
        };
        let tensor = self.aten_tensor("slice", args![rows, 0, start, end, by])?;
        self.new_dyn_list(DynList { tensor, ..parts.clone() })
    }

    /// Puts rows in place of the elements from `start` to `end`.
    fn splice(
        &mut self,
        list: Ref,
        parts: &DynList,
        [start, end]: [Expr; 2],
        rows: Option<Name>,
    ) -> Step<()> {
        let all = self.rows(parts)?;
        let before = self.aten_tensor("slice", args![&all, 0, 0, start, 1])?;
        let behind = self.aten_tensor("slice", args![&all, 0, end, Value::None, 1])?;
        let elements: Vec<Name> = [all].into_iter().chain(rows.clone()).collect();
        let pieces: Vec<Name> = [Some(before), rows, Some(behind)].into_iter().flatten().collect();
        self.join(list, parts, &pieces, &elements)
    }

    /// Gives the list the elements of these tensors, which are behind each other. `of` are the
    /// tensors whose memory they have.
    fn join(&mut self, list: Ref, parts: &DynList, pieces: &[Name], of: &[Name]) -> Step<()> {
        let pieces = pieces.iter().map(Value::from).collect();
        let pieces = self.list(pieces, Some(Type::Tensor))?;
        let along = if parts.lengths().is_some() { args![parts.dim] } else { Vec::new() };
        let tensor = self.aten_tensor("cat", [vec![pieces], along].concat())?;
        self.listed(&tensor, of)?;
        self.put(list, DynList { tensor, ..parts.clone() });
        Ok(())
    }

    /// Gives the list other elements.
    pub(crate) fn put(&mut self, list: Ref, parts: DynList) {
        self.state.changes(list);
        self.represent(list, parts);
    }

    /// The elements of the list are these parts.
    pub(crate) fn represent(&mut self, list: Ref, parts: DynList) {
        if let Some(slot) = self.state.heap.get_mut(list.0) {
            *slot = Item::DynList(parts);
        }
    }

    /// The tensor of a list to which elements are added.
    fn growable(&self, parts: &DynList) -> Step<Name> {
        if parts.lengths().is_some() { Ok(parts.tensor.clone()) } else { self.rows(parts) }
    }

    /// A value as a piece of the list's tensor: a row that fits the others, or an element whose
    /// length is added to those of the others.
    fn piece(&mut self, parts: &DynList, item: &Value) -> Step<Name> {
        let part = self.as_part(item, &parts.element)?;
        let meta = self.meta(&parts.tensor)?;
        let Some(lengths) = parts.lengths() else {
            let sizes = meta.sizes.get(1..).unwrap_or_default();
            self.same_type(self.meta(&part)?, (meta.dtype, sizes))?;
            return self.aten_tensor("unsqueeze", args![part, 0]);
        };
        let along = usize::try_from(parts.dim).unwrap_or(0);
        let length = self.length_of(&part, (meta.dtype, &meta.sizes), along)?;
        self.aten("append", args![Value::List(lengths), length])?;
        Ok(part)
    }

    /// Adds elements at the end.
    fn extend_items(&mut self, list: Ref, parts: &DynList, items: &[Value]) -> Step<()> {
        let mut pieces = vec![self.growable(parts)?];
        for item in items {
            pieces.push(self.piece(parts, item)?);
        }
        self.join(list, parts, &pieces, &pieces)
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
        let start = self.place(parts, index)?;
        let row = self.piece(parts, item)?;
        self.splice(list, parts, [start.clone(), start + 1], Some(row))
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
        match index.as_int() {
            Some(known) if known < 0 => Ok(self.length(parts)? + known),
            _ => index.integer().cloned(),
        }
    }

    pub(crate) fn dyn_len(&self, list: &Value) -> Step<Value> {
        let (_, parts) = self.parts_of(list)?;
        Ok(self.length(&parts)?.into())
    }

    pub(crate) fn copied_dyn_list(&mut self, list: &Value) -> Step<Value> {
        let (_, mut parts) = self.parts_of(list)?;
        if let Layout::Jagged(lengths) = &mut parts.layout
            && let Some(copy) = self.state.heap.get(lengths.0).cloned()
        {
            *lengths = self.alloc(copy)?;
        }
        self.new_dyn_list(parts)
    }

    pub(crate) fn append_row(&mut self, list: &Value, item: &Value) -> Step<Value> {
        let (at, parts) = self.parts_of(list)?;
        if let Layout::Sequence(_) = parts.layout {
            self.grow(at, item)?;
            return Ok(list.clone());
        }
        match self.extend_items(at, &parts, std::slice::from_ref(item)) {
            Err(Problem::Unsupported(_))
                if self.policy.allow_sequences && parts.lengths().is_none() =>
            {
                self.grow(at, item)?;
            }
            done => done?,
        }
        Ok(list.clone())
    }

    pub(crate) fn add_dyn_list(&mut self, list: &Value, other: &Value) -> Step<Value> {
        let sum = self.copied_dyn_list(list)?;
        self.extend_dyn_list(&sum, other)
    }

    pub(crate) fn insert_row(&mut self, list: &Value, index: &Value, item: &Value) -> Step<Value> {
        let (at, parts) = self.parts_of(list)?;
        let row = self.piece(&parts, item)?;
        let start = self.place(&parts, index)?;
        self.splice(at, &parts, [start.clone(), start], Some(row))?;
        Ok(Value::None)
    }

    pub(crate) fn pop_row(&mut self, call: Call<'_>) -> Step<Value> {
        let (list, parts) = self.parts_of(&call.get(0))?;
        let start = self.place(&parts, call.args.get(1).unwrap_or(&Value::int(-1)))?;
        let item = self.part(&parts, &Value::Int(start.clone()))?;
        self.splice(list, &parts, [start.clone(), start + 1], None)?;
        Ok(item)
    }

    pub(crate) fn reverse_rows(&mut self, list: &Value) -> Step<Value> {
        let (at, parts) = self.parts_of(list)?;
        let tensor = self.reversed(&parts)?;
        self.put(at, DynList { tensor, ..parts });
        Ok(Value::None)
    }

    /// `stack` and `cat`.
    pub(crate) fn join_parts(&mut self, call: Call<'_>) -> Step<Value> {
        let (_, parts) = self.parts_of(&call.get(0))?;
        if parts.element != Type::Tensor {
            return unsupported(format!("{} of a list whose length depends on data", call.name));
        }
        self.joined(&parts, call.name == "stack", call.int(1, 0)?)
    }

    /// A list of known length extended by one of unknown length.
    pub(crate) fn extend_by_dyn_list(&mut self, list: &Value, other: &Value) -> Step<Value> {
        let sample = self.element_spec(other.list()?);
        self.generalize(list.list()?, sample)?;
        self.extend_dyn_list(list, other)
    }

    pub(crate) fn extend_dyn_list(&mut self, list: &Value, other: &Value) -> Step<Value> {
        let (at, parts) = self.parts_of(list)?;
        let other = other.list()?;
        let Some(more) = self.dyn_list(other) else {
            let items = self.items(other).to_vec();
            self.extend_items(at, &parts, &items)?;
            return Ok(list.clone());
        };
        let (a, b) = (self.meta(&parts.tensor)?, self.meta(&more.tensor)?);
        let along = usize::try_from(parts.dim).unwrap_or(0);
        match (parts.lengths(), more.lengths()) {
            (Some(_), Some(_)) if parts.dim == more.dim => {
                self.length_of(&more.tensor, (a.dtype, &a.sizes), along)?;
            }
            (None, None) if parts.element == more.element => {
                let [a_rows, b_rows] = [a, b].map(|meta| meta.sizes.get(1..).unwrap_or_default());
                let rows = TensorMeta { sizes: a_rows.to_vec(), ..a.clone() };
                self.same_type(&rows, (b.dtype, b_rows))?;
            }
            _ => return unsupported("the sum of lists of tensors of equal and of different sizes"),
        }
        let pieces = [self.growable(&parts)?, self.growable(&more)?];
        self.join(at, &parts, &pieces, &pieces)?;
        if let (Some(lengths), Some(others)) = (parts.lengths(), more.lengths()) {
            self.aten("extend", vec![Value::List(lengths), Value::List(others)])?;
        }
        Ok(list.clone())
    }
}
