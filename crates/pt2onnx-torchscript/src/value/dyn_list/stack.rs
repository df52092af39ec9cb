//! Lists become tensors: elements are stacked, and the parts of lists whose length depends on data
//! are joined.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, call::Kwargs, expected, unsupported},
    schema::Type,
    value::{DynList, Ref, Value, dyn_list::element_spec::ElementSpec},
};
use pt2onnx_fx::{Argument, Name, TensorMeta, archive::c10_number};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

impl Evaluator<'_> {
    /// Values of this type in one tensor, behind each other along a new first dimension. They must
    /// have the same type and sizes.
    pub(crate) fn stacked(&mut self, items: Vec<Value>, element: &Type) -> Step<Name> {
        let mut tensors = Vec::with_capacity(items.len());
        for item in &items {
            tensors.push(self.as_part(item, element)?);
        }
        for pair in tensors.windows(2) {
            if let [a, b] = pair {
                let (a, b) = (self.meta(a)?.clone(), self.meta(b)?.clone());
                self.same_type(&a, (b.dtype, &b.sizes))?;
            }
        }
        let list = tensors.iter().cloned().map(Value::Tensor).collect();
        let list = self.list(list, Some(Type::Tensor))?;
        let stacked = self.of_tensors("stack", vec![list])?;
        self.listed(&stacked, &tensors)?;
        Ok(stacked)
    }

    /// An element as a tensor.
    pub(crate) fn as_part(&mut self, item: &Value, element: &Type) -> Step<Name> {
        let found = match (item, element) {
            (Value::Tensor(_), Type::Tensor) => item.clone(),
            (Value::Int(_), Type::Int)
            | (Value::Float(_), Type::Float)
            | (Value::Bool(_), Type::Bool) => {
                self.operator("prim", "NumToTensor", vec![item.clone()], Kwargs::new())?
            }
            _ => {
                return unsupported(
                    "a list of values of several types, whose length or index depends on data",
                );
            }
        };
        match found {
            Value::Tensor(name) => Ok(name),
            other => expected("a tensor", &other),
        }
    }

    /// An error unless a tensor has this type and these sizes.
    pub(crate) fn same_type(
        &self,
        meta: &TensorMeta,
        (dtype, sizes): (DType, &[Expr]),
    ) -> Step<()> {
        let equal = meta.dtype == dtype
            && meta.sizes.len() == sizes.len()
            && meta
                .sizes
                .iter()
                .zip(sizes)
                .all(|(a, b)| a == b || self.constraints().prove_eq(a, b) == Some(true));
        if equal {
            Ok(())
        } else {
            unsupported(
                "a list of tensors of several types or sizes, whose length or index depends on data,",
            )
        }
    }

    /// A tensor with a dimension in another place.
    pub(crate) fn moved(&mut self, tensor: Name, from: i64, to: i64) -> Step<Name> {
        if from == to {
            Ok(tensor)
        } else {
            let args = vec![Value::Tensor(tensor), Value::int(from), Value::int(to)];
            self.of_tensors("movedim", args)
        }
    }

    /// All elements in one tensor: stacked along a new dimension, or behind each other along one
    /// that they have.
    pub(crate) fn joined(&mut self, parts: &DynList, stacks: bool, dim: i64) -> Step<Value> {
        let tensor = Value::Tensor(parts.tensor.clone());
        let rank = i64::try_from(self.meta(&parts.tensor)?.sizes.len()).unwrap_or(0);
        if parts.size.is_some() {
            let front = |dim: i64| if dim < 0 { dim + rank } else { dim };
            return if !stacks && front(dim) == front(parts.dim) {
                Ok(tensor)
            } else {
                unsupported("joining pieces whose number depends on data")
            };
        }
        let from = if parts.dim < 0 { parts.dim + rank } else { parts.dim };
        // The elements have one dimension less.
        let to = match (stacks, dim < 0) {
            (true, true) => dim + rank,
            (false, true) => dim + rank - 1,
            (_, false) => dim,
        };
        let moved = Value::Tensor(self.moved(parts.tensor.clone(), from, to)?);
        if stacks {
            return Ok(moved);
        }
        let args = vec![moved, Value::int(to), Value::int(to + 1)];
        self.of_tensors("flatten", args).map(Value::Tensor)
    }

    /// `torch.tensor` of a list of numbers.
    pub(crate) fn tensor_of_parts(
        &mut self,
        list: Ref,
        dtype: Option<&Value>,
        kwargs: &Kwargs,
    ) -> Step<Value> {
        let Some(parts) = self.dyn_list(list) else {
            return expected("a list", &Value::None);
        };
        let rows = Value::Tensor(self.rows(&parts)?);
        let dtype = kwargs.iter().find(|(n, _)| n == "dtype").map(|(_, v)| v).or(dtype);
        let natural = match parts.element {
            Type::Float => self.cx.types.default_dtype(),
            Type::Bool => DType::Bool,
            _ => DType::I64,
        };
        let dtype = match dtype {
            None | Some(Value::None) => c10_number(natural).map_or(Value::None, Value::int),
            Some(given) => given.clone(),
        };
        self.operator("aten", "to", vec![rows, dtype], Kwargs::new())
    }

    /// Makes a list one of dynamic length. `sample` is the type of its elements if it is empty.
    pub(crate) fn generalize(&mut self, list: Ref, sample: Option<ElementSpec>) -> Step<Name> {
        let items = self.items(list).to_vec();
        if let Some(sample @ ElementSpec { jagged: Some(dim), .. }) = &sample {
            return self.generalize_jagged(list, sample, *dim);
        }
        let Some(ElementSpec { element, dtype, sizes, .. }) = self.element_spec(list).or(sample)
        else {
            return Err(Problem::Loop("it changes a list whose elements are not known".to_owned()));
        };
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
        let dtype = c10_number(dtype).map_or(Value::None, Value::int);
        match self.operator("aten", "zeros", vec![sizes], vec![("dtype".into(), dtype)])? {
            Value::Tensor(name) => Ok(name),
            other => expected("a tensor", &other),
        }
    }

    /// The list as a result of the program: a node that makes it one value.
    pub(crate) fn list_output(&mut self, list: Ref) -> Step<Argument> {
        let Some(parts) = self.dyn_list(list) else {
            return expected("a list", &Value::None);
        };
        self.parts_output(&parts)
    }

    /// The parts as one value.
    pub(crate) fn parts_output(&mut self, parts: &DynList) -> Step<Argument> {
        if parts.sequence.is_some() {
            return Ok(Argument::Tensor(self.readable(&parts.tensor)?));
        }
        let mut args = vec![
            ("self", Argument::Tensor(self.readable(&parts.tensor)?)),
            ("dim", Argument::Int(parts.dim)),
        ];
        if let Some(size) = &parts.size {
            args.push(("size", self.argument(&Value::Int(size.clone()), &Type::Int)?));
        }
        if let Some(lengths) = parts.lengths {
            args.push(("lengths", Argument::Tensor(self.lengths(lengths)?)));
        }
        self.one_value("list_of_parts", args)
    }
}
