//! Lists of unknown length whose elements have different sizes along a dimension: their elements
//! behind each other in one tensor, and a list of their lengths.

use crate::{
    builtins::{Call, Found},
    eval::{Evaluator, Step, unsupported},
    schema::Type,
    value::{
        DynList, Item, Layout, Ref, Value, args,
        dyn_list::element_spec::{ElementSpec, all_but},
    },
};
use pt2onnx_fx::Name;
use pt2onnx_symbolic::{Expr, axis};
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
        let (mut lengths, mut elements) = (Vec::new(), Vec::new());
        for item in self.items(list).to_vec() {
            let part = self.as_part(&item, &Type::Tensor)?;
            lengths.push(Value::Int(self.length_of(&part, (sample.dtype, &sample.sizes), dim)?));
            elements.push(part);
        }
        let along = i64::try_from(dim).unwrap_or(i64::MAX);
        let tensor = if elements.is_empty() {
            self.nothing(sample.dtype, all_but(&sample.sizes, dim))?
        } else {
            let tensors = elements.iter().map(Value::from).collect();
            let tensors = self.list(tensors, Some(Type::Tensor))?;
            self.aten_tensor("cat", args![tensors, along])?
        };
        self.listed(&tensor, &elements)?;
        let lengths = self.alloc(Item::List { items: lengths, element: Some(Type::Int) })?;
        let rows = DynList::rows(tensor.clone(), Type::Tensor);
        self.represent(list, DynList { dim: along, layout: Layout::Jagged(lengths), ..rows });
        Ok(tensor)
    }

    /// The size of an element along the dimension. All else must be as in the other elements.
    pub(super) fn length_of(&self, part: &Name, other: (DType, &[Expr]), dim: usize) -> Step<Expr> {
        let mut meta = self.meta(part)?.clone();
        meta.sizes = all_but(&meta.sizes, dim);
        self.same_type(&meta, (other.0, &all_but(other.1, dim)))?;
        let size = self.meta(part)?.sizes.get(dim).cloned();
        size.map_or_else(|| unsupported("a list of tensors of several numbers of dimensions"), Ok)
    }

    /// `stack` of elements whose sizes turn out to be the same.
    pub(crate) fn stack_jagged(&mut self, call: Call<'_>) -> Found {
        let (_, parts) = self.parts_of(&call.get(0))?;
        let (Some(lengths), Ok(dim)) = (parts.lengths(), call.int(1, 0)) else { return Ok(None) };
        let front = self.moved(parts.tensor.clone(), parts.dim, 0)?;
        let mut sizes = self.meta(&parts.tensor)?.sizes.clone();
        sizes.remove(usize::try_from(parts.dim).unwrap_or(0));
        sizes.splice(..0, [self.count(lengths)?, Expr::int(-1)]);
        let sizes = self.int_list(sizes)?;
        let rows = self.aten_tensor("reshape", args![front, sizes])?;
        let tensor = self.moved(rows, 1, parts.dim + 1)?;
        self.joined(&DynList { tensor, dim: 0, layout: Layout::Slices, ..parts }, true, dim)
            .map(Some)
    }

    /// `cat` along the dimension along which the elements are behind each other.
    pub(crate) fn cat_jagged(&mut self, call: Call<'_>) -> Found {
        let (_, parts) = self.parts_of(&call.get(0))?;
        let rank = self.meta(&parts.tensor)?.sizes.len();
        let is_along = |dim: i64| axis(dim, rank) == usize::try_from(parts.dim).ok();
        Ok(call.int(1, 0).is_ok_and(is_along).then_some(parts.tensor.into()))
    }

    /// `pad_sequence`: the elements as rows of the longest one's length, with a number behind the
    /// shorter ones.
    pub(crate) fn pad_jagged(&mut self, call: Call<'_>) -> Found {
        let (_, parts) = self.parts_of(&call.get(0))?;
        let (Some(lengths), 0) = (parts.lengths(), parts.dim) else { return Ok(None) };
        let batch_first = call.get(1).as_bool().unwrap_or(false);
        let number = call.args.get(2).cloned().unwrap_or(Value::float(0.0));
        if call.args.get(3).is_some_and(|side| side.as_str() != Some("right")) {
            return unsupported("padding on the left of a list whose length depends on data");
        }
        let args = args![&parts.tensor, self.lengths(lengths)?, number, batch_first];
        self.formula("pad_sequence", args).map(Some)
    }

    /// Element `at`, counted from the front.
    pub(crate) fn jagged_part(&mut self, parts: &DynList, lengths: Ref, at: Expr) -> Step<Name> {
        let args = args![&parts.tensor, self.lengths(lengths)?, parts.dim, at];
        self.formula("jagged_part", args)?.tensor().cloned()
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
