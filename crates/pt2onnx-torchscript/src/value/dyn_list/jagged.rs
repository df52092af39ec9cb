//! Lists of unknown length whose elements have different sizes along a dimension: their elements
//! behind each other in one tensor, and a list of their lengths.

use crate::{
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    schema::Type,
    value::{
        DynList, Item, Ref, Value,
        dyn_list::element_spec::{ElementSpec, all_but},
    },
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

impl Evaluator<'_> {
    /// Makes a list of tensors one of unknown length whose elements differ in size along a
    /// dimension.
    pub(crate) fn generalize_jagged(
        &mut self,
        list: Ref,
        sample: &ElementSpec,
        dim: usize,
    ) -> Step<Name> {
        let items = self.items(list).to_vec();
        let (mut tensors, mut lengths) = (Vec::new(), Vec::new());
        let mut elements = Vec::with_capacity(items.len());
        for item in &items {
            let part = self.as_part(item, &Type::Tensor)?;
            elements.push(part.clone());
            lengths.push(Value::Int(self.length_of(&part, (sample.dtype, &sample.sizes), dim)?));
            tensors.push(Value::Tensor(part));
        }
        let along = i64::try_from(dim).unwrap_or(i64::MAX);
        let tensor = if tensors.is_empty() {
            self.nothing(sample.dtype, all_but(&sample.sizes, dim))?
        } else {
            let tensors = self.list(tensors, Some(Type::Tensor))?;
            self.of_tensors("cat", vec![tensors, Value::int(along)])?
        };
        self.listed(&tensor, &elements)?;
        let lengths = self.alloc(Item::List { items: lengths, element: Some(Type::Int) })?;
        let rows = DynList::rows(tensor.clone(), Type::Tensor);
        self.represent(list, DynList { dim: along, lengths: Some(lengths), ..rows });
        Ok(tensor)
    }

    /// The size of an element along the dimension. All else must be as in the other elements.
    fn length_of(&self, part: &Name, other: (DType, &[Expr]), dim: usize) -> Step<Expr> {
        let mut meta = self.meta(part)?.clone();
        meta.sizes = all_but(&meta.sizes, dim);
        self.same_type(&meta, (other.0, &all_but(other.1, dim)))?;
        let size = self.meta(part)?.sizes.get(dim).cloned();
        size.map_or_else(|| unsupported("a list of tensors of several numbers of dimensions"), Ok)
    }

    /// The result of an operator on such a list.
    pub(crate) fn on_jagged(
        &mut self,
        name: &str,
        (list, parts, lengths): (Ref, &DynList, Ref),
        args: &[Value],
    ) -> Step<Value> {
        let dim = |at: usize| args.get(at).map_or(Some(0), Value::as_int);
        Ok(match (name, args) {
            ("len", [_]) => Value::Int(self.length(parts)?),
            ("__getitem__", [_, index]) => self.part(parts, index)?,
            ("list" | "copy", [_]) => {
                let copy = self.state.heap.get(lengths.0).cloned();
                let lengths = copy.map(|lengths| self.alloc(lengths)).transpose()?;
                Value::List(self.alloc(Item::DynList(DynList { lengths, ..parts.clone() }))?)
            }
            ("append", [this, item]) => {
                self.extend_jagged((list, parts, lengths), std::slice::from_ref(item))?;
                this.clone()
            }
            ("extend" | "add_", [this, Value::List(other)]) => {
                self.add_jagged((list, parts, lengths), *other)?;
                this.clone()
            }
            ("add", [this, Value::List(other)]) => {
                let sum =
                    self.on_jagged("copy", (list, parts, lengths), std::slice::from_ref(this))?;
                if let Value::List(sum) = sum
                    && let Some(parts) = self.dyn_list(sum)
                    && let Some(lengths) = parts.lengths
                {
                    self.add_jagged((sum, &parts, lengths), *other)?;
                }
                sum
            }
            ("stack", [_, ..]) if let Some(dim) = dim(1) => {
                let rows = self.equal_rows(parts, lengths)?;
                self.joined(&rows, true, dim)?
            }
            ("pad_sequence", [_, rest @ ..]) if parts.dim == 0 => {
                self.padded(parts, lengths, rest)?
            }
            ("cat" | "concat", [_, ..]) if self.is_along(parts, dim(1))? => {
                Value::Tensor(parts.tensor.clone())
            }
            _ => {
                return unsupported(format!(
                    "{name} of a list of tensors of different sizes, whose length depends on data"
                ));
            }
        })
    }

    /// Adds elements.
    fn extend_jagged(
        &mut self,
        (list, parts, lengths): (Ref, &DynList, Ref),
        items: &[Value],
    ) -> Step<()> {
        let meta = self.meta(&parts.tensor)?.clone();
        let along = usize::try_from(parts.dim).unwrap_or(0);
        let mut pieces = vec![Value::Tensor(parts.tensor.clone())];
        let mut elements = vec![parts.tensor.clone()];
        for item in items {
            let part = self.as_part(item, &parts.element)?;
            elements.push(part.clone());
            let length = self.length_of(&part, (meta.dtype, &meta.sizes), along)?;
            let added = vec![Value::List(lengths), Value::Int(length)];
            self.operator("aten", "append", added, Kwargs::new())?;
            pieces.push(Value::Tensor(part));
        }
        let pieces = self.list(pieces, Some(Type::Tensor))?;
        let tensor = self.of_tensors("cat", vec![pieces, Value::int(parts.dim)])?;
        self.listed(&tensor, &elements)?;
        self.put(list, DynList { tensor, ..parts.clone() });
        Ok(())
    }

    /// Adds the elements of another list.
    fn add_jagged(&mut self, (list, parts, lengths): (Ref, &DynList, Ref), other: Ref) -> Step<()> {
        let more = match self.dyn_list(other) {
            None => {
                let items = self.items(other).to_vec();
                return self.extend_jagged((list, parts, lengths), &items);
            }
            Some(more) => more,
        };
        let (Some(others), true) = (more.lengths, more.dim == parts.dim) else {
            return unsupported("the sum of lists of tensors of equal and of different sizes");
        };
        let meta = self.meta(&parts.tensor)?.clone();
        let along = usize::try_from(parts.dim).unwrap_or(0);
        self.length_of(&more.tensor, (meta.dtype, &meta.sizes), along)?;
        let elements = [parts.tensor.clone(), more.tensor];
        let pieces = elements.iter().cloned().map(Value::Tensor).collect();
        let pieces = self.list(pieces, Some(Type::Tensor))?;
        let tensor = self.of_tensors("cat", vec![pieces, Value::int(parts.dim)])?;
        self.listed(&tensor, &elements)?;
        self.put(list, DynList { tensor, ..parts.clone() });
        let added = vec![Value::List(lengths), Value::List(others)];
        self.operator("aten", "extend", added, Kwargs::new()).map(drop)
    }

    /// The elements as single slices of a tensor, if their sizes turn out to be the same.
    fn equal_rows(&mut self, parts: &DynList, lengths: Ref) -> Step<DynList> {
        let front = Value::Tensor(self.moved(parts.tensor.clone(), parts.dim, 0)?);
        let sizes = self.meta(&parts.tensor)?.sizes.clone();
        let others = sizes
            .into_iter()
            .enumerate()
            .filter(|(i, _)| i64::try_from(*i).ok() != Some(parts.dim));
        let others = others.map(|(_, size)| size);
        let sizes = [self.count(lengths)?, Expr::int(-1)].into_iter().chain(others);
        let sizes = self.int_list(sizes.collect::<Vec<_>>())?;
        let rows = self.of_tensors("reshape", vec![front, sizes])?;
        let tensor = self.moved(rows, 1, parts.dim + 1)?;
        Ok(DynList { tensor, dim: 0, lengths: None, ..parts.clone() })
    }

    /// `pad_sequence`: the elements as rows of the longest one's length, with a number behind the
    /// shorter ones.
    fn padded(&mut self, parts: &DynList, lengths: Ref, args: &[Value]) -> Step<Value> {
        let batch_first = args.first().and_then(Value::as_bool).unwrap_or(false);
        let number = args.get(1).cloned().unwrap_or(Value::float(0.0));
        if args.get(2).is_some_and(|side| side.as_str() != Some("right")) {
            return unsupported("padding on the left of a list whose length depends on data");
        }
        let tensor = |name: Name| Value::Tensor(name);
        let lengths = tensor(self.lengths(lengths)?);
        let ends = tensor(self.of_tensors("cumsum", vec![lengths.clone(), Value::int(0)])?);
        let starts = tensor(self.of_tensors("sub", vec![ends, lengths.clone()])?);
        let longest = tensor(self.of_tensors("max", vec![lengths.clone()])?);
        let longest = self.scalar_of(&longest, &Type::Int)?;
        let places = tensor(self.of_tensors("arange", vec![longest])?);
        let column = |ev: &mut Self, of: Value| {
            ev.of_tensors("unsqueeze", vec![of, Value::int(1)]).map(Value::Tensor)
        };
        let (starts, lengths) = (column(self, starts)?, column(self, lengths)?);
        let mut behind = tensor(self.of_tensors("ge", vec![places.clone(), lengths])?);
        let from = tensor(self.of_tensors("add", vec![starts, places])?);
        let nowhere = vec![from, behind.clone(), Value::int(0)];
        let from = tensor(self.of_tensors("masked_fill", nowhere)?);
        let all = Value::Tensor(parts.tensor.clone());
        let from = self.list(vec![from], Some(Type::Tensor))?;
        let rows = tensor(self.of_tensors("index", vec![all, from])?);
        for _ in 1..self.meta(&parts.tensor)?.sizes.len() {
            behind = tensor(self.of_tensors("unsqueeze", vec![behind, Value::int(-1)])?);
        }
        let padded = tensor(self.of_tensors("masked_fill", vec![rows, behind, number])?);
        if batch_first {
            Ok(padded)
        } else {
            let args = vec![padded, Value::int(0), Value::int(1)];
            self.of_tensors("transpose", args).map(Value::Tensor)
        }
    }

    /// Whether this is the dimension along which the elements stand behind each other.
    fn is_along(&self, parts: &DynList, dim: Option<i64>) -> Step<bool> {
        let rank = i64::try_from(self.meta(&parts.tensor)?.sizes.len()).unwrap_or(0);
        Ok(dim.is_some_and(|dim| if dim < 0 { dim + rank } else { dim } == parts.dim))
    }

    /// Element `at`, counted from the front.
    pub(crate) fn jagged_part(&mut self, parts: &DynList, lengths: Ref, at: Expr) -> Step<Name> {
        let lengths = Value::Tensor(self.lengths(lengths)?);
        let ends = self.of_tensors("cumsum", vec![lengths.clone(), Value::int(0)])?;
        let mut number = |of: Value| -> Step<Expr> {
            let args = vec![of, Value::int(0), Value::Int(at.clone())];
            let number = Value::Tensor(self.of_tensors("select", args)?);
            match self.scalar_of(&number, &Type::Int)? {
                Value::Int(number) => Ok(number),
                other => expected("an integer", &other),
            }
        };
        let (end, length) = (number(Value::Tensor(ends))?, number(lengths)?);
        let (start, length) = (Value::Int(&end - &length), Value::Int(length));
        let tensor = Value::Tensor(parts.tensor.clone());
        self.of_tensors("narrow", vec![tensor, Value::int(parts.dim), start, length])
    }

    /// The lengths as a tensor.
    pub(crate) fn lengths(&mut self, lengths: Ref) -> Step<Name> {
        if let Some(known) = self.dyn_list(lengths) {
            return Ok(known.tensor);
        }
        match self.items(lengths).to_vec() {
            none if none.is_empty() => self.nothing(DType::I64, vec![Expr::ZERO]),
            items => self.stacked(items, &Type::Int),
        }
    }

    /// How many elements there are.
    pub(crate) fn count(&self, lengths: Ref) -> Step<Expr> {
        match self.dyn_list(lengths) {
            Some(parts) => self.length(&parts),
            None => Ok(Expr::int(i64::try_from(self.items(lengths).len()).unwrap_or(i64::MAX))),
        }
    }
}
