//! Lists become tensors: elements are stacked, and the parts of lists whose length depends on data
//! are joined.

use crate::{
    builtins::Call,
    error::Problem,
    eval::{Evaluator, Step, unsupported},
    schema::Type,
    value::{DynList, Layout, Ref, Value, args, dyn_list::element_spec::ElementSpec},
};
use pt2onnx_fx::{Argument, Name, TensorMeta};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

impl Evaluator<'_> {
    /// Values of this type in one tensor, behind each other along a new first dimension. They must
    /// have the same type and sizes.
    pub(crate) fn stacked(&mut self, items: Vec<Value>, element: &Type) -> Step<Name> {
        let tensors = items.iter().map(|item| self.as_part(item, element));
        let tensors = tensors.collect::<Step<Vec<_>>>()?;
        for pair in tensors.windows(2) {
            let (a, b) = (self.meta(&pair[0])?, self.meta(&pair[1])?);
            self.same_type(a, (b.dtype, &b.sizes))?;
        }
        let list = tensors.iter().map(Value::from).collect();
        let list = self.list(list, Some(Type::Tensor))?;
        let stacked = self.aten_tensor("stack", vec![list])?;
        self.listed(&stacked, &tensors)?;
        Ok(stacked)
    }

    /// An element as a tensor.
    pub(crate) fn as_part(&mut self, item: &Value, element: &Type) -> Step<Name> {
        match (item, element) {
            (Value::Tensor(name), Type::Tensor) => Ok(name.clone()),
            (Value::Int(_), Type::Int)
            | (Value::Float(_), Type::Float)
            | (Value::Bool(_), Type::Bool) => self.as_tensor(item),
            _ => unsupported(
                "a list of values of several types, whose length or index depends on data",
            ),
        }
    }

    /// An error unless a tensor has this type and these sizes.
    pub(crate) fn same_type(
        &self,
        meta: &TensorMeta,
        (dtype, sizes): (DType, &[Expr]),
    ) -> Step<()> {
        let equal = |(a, b)| a == b || self.constraints().prove_eq(a, b) == Some(true);
        if meta.dtype == dtype
            && meta.sizes.len() == sizes.len()
            && meta.sizes.iter().zip(sizes).all(equal)
        {
            return Ok(());
        }
        unsupported(
            "a list of tensors of several types or sizes, whose length or index depends on data,",
        )
    }

    /// A tensor with a dimension in another place.
    pub(crate) fn moved(&mut self, tensor: Name, from: i64, to: i64) -> Step<Name> {
        if from == to { Ok(tensor) } else { self.aten_tensor("movedim", args![tensor, from, to]) }
    }

    /// All elements in one tensor: stacked along a new dimension, or behind each other along one
    /// that they have.
    pub(crate) fn joined(&mut self, parts: &DynList, stacks: bool, dim: i64) -> Step<Value> {
        let rank = i64::try_from(self.meta(&parts.tensor)?.sizes.len()).unwrap_or(0);
        let from_front = |dim: i64, rank: i64| if dim < 0 { dim + rank } else { dim };
        let from = from_front(parts.dim, rank);
        if let Layout::Parts(_) = parts.layout {
            if !stacks && from_front(dim, rank) == from {
                return Ok((&parts.tensor).into());
            }
            return unsupported("joining pieces whose number depends on data");
        }
        // The elements have one dimension less.
        let to = from_front(dim, if stacks { rank } else { rank - 1 });
        let moved = self.moved(parts.tensor.clone(), from, to)?;
        if stacks { Ok(moved.into()) } else { self.aten("flatten", args![moved, to, to + 1]) }
    }

    /// `torch.tensor` of a list of numbers.
    pub(crate) fn tensor_of_parts(&mut self, call: Call<'_>) -> Step<Value> {
        let (_, parts) = self.parts_of(&call.get(0))?;
        let natural = match parts.element {
            Type::Tensor => return unsupported("a tensor of a list whose length depends on data"),
            Type::Float => self.cx.types.default_dtype(),
            Type::Bool => DType::Bool,
            _ => DType::I64,
        };
        let dtype = match call.keyword("dtype").cloned().unwrap_or_else(|| call.get(1)) {
            Value::None => natural.into(),
            given => given,
        };
        let rows = self.rows(&parts)?;
        self.aten("to", args![rows, dtype])
    }

    /// Makes a list one of dynamic length. `sample` is the type of its elements if it is empty.
    pub(crate) fn generalize(&mut self, list: Ref, sample: Option<ElementSpec>) -> Step<Name> {
        if let Some(sample @ ElementSpec { jagged: Some(dim), .. }) = &sample {
            return self.generalize_jagged(list, sample, *dim);
        }
        let Some(ElementSpec { element, dtype, sizes, .. }) = self.element_spec(list).or(sample)
        else {
            return Err(Problem::Loop("it changes a list whose elements are not known".to_owned()));
        };
        let items = self.items(list).to_vec();
        let tensor = if items.is_empty() {
            self.nothing(dtype, [Expr::ZERO].into_iter().chain(sizes).collect())?
        } else {
            self.stacked(items, &element)?
        };
        self.represent(list, DynList::rows(tensor.clone(), element));
        Ok(tensor)
    }

    /// A tensor without elements.
    pub(crate) fn nothing(&mut self, dtype: DType, sizes: Vec<Expr>) -> Step<Name> {
        let sizes = self.int_list(sizes)?;
        let kwargs = vec![("dtype".into(), dtype.into())];
        self.operator("aten", "zeros", vec![sizes], kwargs)?.tensor().cloned()
    }

    /// The list as a result of the program: a node that makes it one value.
    pub(crate) fn list_output(&mut self, list: Ref) -> Step<Argument> {
        let (_, parts) = self.parts_of(&Value::List(list))?;
        self.parts_output(&parts)
    }

    /// The parts as one value.
    pub(crate) fn parts_output(&mut self, parts: &DynList) -> Step<Argument> {
        let tensor = Argument::Tensor(self.readable(&parts.tensor)?);
        let mut args = vec![("self", tensor.clone()), ("dim", Argument::Int(parts.dim))];
        match &parts.layout {
            Layout::Sequence(_) => return Ok(tensor),
            Layout::Slices => {}
            Layout::Parts(size) => {
                args.push(("size", self.argument(&Value::Int(size.clone()), &Type::Int)?));
            }
            Layout::Jagged(lengths) => {
                args.push(("lengths", Argument::Tensor(self.lengths(*lengths)?)));
            }
        }
        self.one_value("list_of_parts", args)
    }
}
