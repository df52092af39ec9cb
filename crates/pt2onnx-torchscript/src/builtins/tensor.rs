//! Operators on tensors that need no node: their types answer. And those that read a tensor as a
//! number.

use crate::{
    builtins::complex,
    error::Problem,
    eval::{
        Evaluator, Step, arith, call::Kwargs, const_eval, expected, to_fx::dtype_of, unsupported,
    },
    schema::Type,
    types::Contents,
    value::{Value, known},
};
use pt2onnx_fx::{
    ArgKind, Argument, Device, Name, NamedArg, Node, OpName, SymArg, ValueMeta, archive::c10_number,
};
use pt2onnx_symbolic::{Expr, Func};
use pt2onnx_tensor::DType;
use std::sync::Arc;

impl Evaluator<'_> {
    /// The result of an operator that tensors answer, or that makes tensors in its own way; `None`
    /// if it is another operator.
    pub(crate) fn on_tensors(
        &mut self,
        namespace: &str,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Option<Value>> {
        if let Some(value) = self.made(namespace, name, args, kwargs)? {
            return Ok(Some(value));
        }
        let Some(tensor @ Value::Tensor(of)) = args.first() else {
            return Ok(None);
        };
        let of = of.clone();
        if let Some(value) = self.by_type(name, &of, args, kwargs)? {
            return Ok(Some(value));
        }
        match (name, args) {
            ("cpu" | "cuda" | "pin_memory" | "requires_grad_", _) => {
                return Ok(Some(tensor.clone()));
            }
            ("one_hot" | "squeeze" | "unsqueeze", [_, number]) => {
                if name == "squeeze"
                    && let Some(value) = self.squeeze_ones(&of, args)?
                {
                    return Ok(Some(value));
                }
                let number = number.clone();
                return self.by_data(name, tensor, &number);
            }
            ("squeeze", [_]) => return self.squeeze_ones(&of, args),
            ("_reshape_from_tensor", [_, Value::Tensor(sizes)]) => {
                let sizes = self.tolist(&sizes.clone())?;
                let args = vec![tensor.clone(), sizes];
                return self.operator("aten", "reshape", args, Kwargs::new()).map(Some);
            }
            ("allclose", [_, _, ..]) => {
                let close = self.operator("aten", "isclose", args.to_vec(), kwargs.clone())?;
                let all = self.operator("aten", "all", vec![close], Kwargs::new())?;
                return self.scalar_of(&all, &Type::Bool).map(Some);
            }
            ("equal", [_, Value::Tensor(other)]) => {
                let (a, b) = (self.meta(&of)?.sizes.clone(), self.meta(other)?.sizes.clone());
                let same = |(a, b): (&Expr, &Expr)| self.constraints().prove_eq(a, b);
                let sizes: Vec<_> = a.iter().zip(&b).map(same).collect();
                if a.len() != b.len() || sizes.contains(&Some(false)) {
                    return Ok(Some(Value::bool(false)));
                }
                if sizes.contains(&None) {
                    return unsupported("aten::equal of tensors of unknown sizes");
                }
                let equal = self.operator("aten", "eq", args.to_vec(), Kwargs::new())?;
                let all = self.operator("aten", "all", vec![equal], Kwargs::new())?;
                return self.scalar_of(&all, &Type::Bool).map(Some);
            }
            // Without training, the probability is never read.
            ("dropout" | "alpha_dropout" | "feature_dropout", [_, Value::Float(p), train])
                if known(p).is_none() && train.as_bool() == Some(false) =>
            {
                return Ok(Some(tensor.clone()));
            }
            ("item", [_]) => return self.scalar_of(tensor, &Type::Number).map(Some),
            ("tolist", _) => return self.tolist(&of).map(Some),
            ("__not__", [_]) => {
                let truth = self.truth_of(tensor)?;
                return self.on_values("__not__", &[truth]);
            }
            _ => {}
        }
        if namespace == "prim" && args.len() == 1 {
            return self.property(tensor, name);
        }
        Ok(None)
    }

    /// The result of an operator that makes tensors of other values, or lists of them.
    fn made(
        &mut self,
        namespace: &str,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Option<Value>> {
        match (name, args) {
            ("NumToTensor", [value]) => self.number_tensor(value).map(Some),
            ("tensor" | "as_tensor", [Value::List(list), rest @ ..])
                if self.dyn_list(*list).is_some_and(|parts| parts.element != Type::Tensor) =>
            {
                self.tensor_of_parts(*list, rest.first(), kwargs).map(Some)
            }
            ("tensor" | "as_tensor", [value, rest @ ..]) => {
                self.new_tensor(value, rest.first(), kwargs)
            }
            // The length of the longest sequence is what there is without it.
            ("_pad_packed_sequence", [data, sizes @ Value::Tensor(steps), rest @ .., total])
                if args.len() == 5
                    && total.number() == self.meta(steps)?.sizes.first()
                    && total.as_int().is_none() =>
            {
                let mut args = vec![data.clone(), sizes.clone()];
                args.extend(rest.iter().cloned().chain([Value::int(-1)]));
                self.operator(namespace, name, args, kwargs.clone()).map(Some)
            }
            (
                "broadcast_tensors" | "atleast_1d" | "atleast_2d" | "atleast_3d",
                [list @ Value::List(_)],
            ) => {
                let full = format!("aten::{name}");
                let list = std::slice::from_ref(list);
                let (schema, bound) = self.overload(&full, list, &Kwargs::new())?;
                self.emit(&schema, bound).map(Some)
            }
            ("__interpolate", _) => self.interpolate(args, kwargs).map(Some),
            ("__upsample" | "__upsample_bilinear" | "__upsample_nearest", _) => {
                unsupported(format!("aten::{name} of old archives"))
            }
            _ => Ok(None),
        }
    }

    /// Queries answered from the static type of a tensor.
    fn by_type(
        &mut self,
        name: &str,
        of: &Name,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<Option<Value>> {
        match (name, args) {
            ("size" | "sym_size", [_, dim]) => {
                let sizes = self.meta(of)?.sizes.clone();
                self.pick(&sizes, dim).map(Some)
            }
            ("stride", [_, dim]) => {
                let meta = self.meta(of)?;
                if meta.strides.len() != meta.sizes.len() {
                    return unsupported("the stride of this tensor");
                }
                let strides = meta.strides.clone();
                self.pick(&strides, dim).map(Some)
            }
            ("size" | "shape", [_]) => {
                let sizes = self.meta(of)?.sizes.clone();
                self.int_list(sizes).map(Some)
            }
            ("stride", [_]) => {
                let meta = self.meta(of)?;
                if meta.strides.len() != meta.sizes.len() {
                    return unsupported("the strides of this tensor");
                }
                let strides = meta.strides.clone();
                self.int_list(strides).map(Some)
            }
            ("len", [_]) => {
                let size = self.meta(of)?.sizes.first().cloned();
                match size {
                    Some(size) => Ok(Some(Value::Int(size))),
                    None => Err(Problem::Raises("TypeError: len() of a 0-d tensor".to_owned())),
                }
            }
            ("dim", [_]) => self.property(&Value::Tensor(of.clone()), "ndim"),
            ("numel", [_]) => Ok(Some(Value::Int(Expr::product(&self.meta(of)?.sizes)))),
            ("is_floating_point", [_]) => Ok(Some(Value::bool(self.meta(of)?.dtype.is_float()))),
            ("is_complex", [_]) => Ok(Some(Value::bool(self.meta(of)?.dtype.is_complex()))),
            ("element_size" | "itemsize", [_]) => {
                let bytes = self.meta(of)?.dtype.bits() / 8;
                Ok(Some(Value::int(i64::try_from(bytes).unwrap_or(0))))
            }
            ("is_contiguous", [_, rest @ ..]) => {
                let named = kwargs.iter().find(|(name, _)| name == "memory_format");
                let format = rest.first().or(named.map(|(_, value)| value));
                let format = format.and_then(Value::as_int).unwrap_or(0);
                let Some(condition) = self.is_in_format(self.meta(of)?, format) else {
                    self.note("`is_contiguous` is taken to be true".to_owned());
                    return Ok(Some(Value::bool(true)));
                };
                let known = self.decide(&condition);
                Ok(Some(Value::Bool(known.map_or(condition, Expr::bool))))
            }
            ("get_device", [_]) => Ok(Some(Value::int(-1))),
            _ => Ok(None),
        }
    }

    /// A property such as `x.dtype`; `None` if it is none.
    pub(crate) fn property(&mut self, value: &Value, name: &str) -> Step<Option<Value>> {
        let Value::Tensor(of) = value else {
            return Ok(match (value, name) {
                (Value::Device(device), "type") => Some(Value::str(&device.kind)),
                (Value::Device(_), "index") => Some(Value::None),
                _ => None,
            });
        };
        let meta = self.meta(of)?;
        Ok(Some(match name {
            "dtype" => match c10_number(meta.dtype) {
                Some(number) => Value::int(number),
                None => return unsupported("this element type"),
            },
            "device" => Value::Device(Arc::new(Device { kind: "cpu".into(), index: None })),
            "layout" => Value::int(0),
            "ndim" => Value::int(i64::try_from(meta.sizes.len()).unwrap_or(0)),
            "shape" => {
                let sizes = meta.sizes.clone();
                self.int_list(sizes)?
            }
            "requires_grad" | "is_cuda" | "is_sparse" | "is_sparse_csr" | "is_mkldnn"
            | "is_meta" | "is_xpu" | "is_mps" | "is_vulkan" | "is_ipu" | "is_hpu"
            | "is_quantized" | "is_nested" | "is_xla" | "is_mtia" | "is_maia" => Value::bool(false),
            "is_cpu" | "is_leaf" => Value::bool(true),
            "grad" | "name" => Value::None,
            "itemsize" => Value::int(i64::try_from(meta.dtype.bits() / 8).unwrap_or(0)),
            "nbytes" => {
                let bytes = i64::try_from(meta.dtype.bits() / 8).unwrap_or(0);
                Value::Int(Expr::product(&meta.sizes) * bytes)
            }
            "data" => self.operator("aten", "detach", vec![value.clone()], Kwargs::new())?,
            "T" => self.operator("aten", "numpy_T", vec![value.clone()], Kwargs::new())?,
            "mT" | "H" | "mH" => {
                let namespace = if name == "mT" { "mT" } else { "adjoint" };
                self.operator("aten", namespace, vec![value.clone()], Kwargs::new())?
            }
            _ => return Ok(None),
        }))
    }

    fn pick(&self, items: &[Expr], dim: &Value) -> Step<Value> {
        let Some(at) = dim.as_int() else {
            return expected("a known integer", dim);
        };
        let rank = i64::try_from(items.len()).unwrap_or(0);
        let at = if at < 0 { at.saturating_add(rank) } else { at };
        match usize::try_from(at).ok().and_then(|at| items.get(at)) {
            Some(size) => Ok(Value::Int(size.clone())),
            None => Err(Problem::Raises("IndexError: no such dimension".to_owned())),
        }
    }

    /// A tensor of one element as a number of this type.
    pub(crate) fn scalar_of(&mut self, value: &Value, ty: &Type) -> Step<Value> {
        let Value::Tensor(name) = value else {
            return Ok(value.clone());
        };
        let name = &self.readable(name)?;
        if let Some(number) =
            self.state.facts.contents.get(name).and_then(const_eval::complex_number)
            && matches!(ty, Type::Number | Type::Complex)
        {
            return Ok(number);
        }
        let dtype = self.meta(name)?.dtype;
        let number = match self.elements_of(name).as_deref() {
            Some([only]) if dtype == DType::Bool => Value::Bool(only.clone()),
            Some([only]) if dtype.is_float() => Value::Float(arith::to_float(only)),
            Some([only]) => Value::Int(only.clone()),
            _ => self.item(name, dtype)?,
        };
        let number = match ty {
            Type::Int => self.as_whole(&number)?,
            Type::Float => self.real_of(&number)?,
            Type::Bool => self.truth_of(&number)?,
            _ => number,
        };
        if let Value::Bool(truth) = &number
            && truth.as_int().is_none()
        {
            self.numbers.truths.insert(truth.clone(), name.clone());
        }
        Ok(number)
    }

    /// A node that reads a number, as a new symbol.
    fn item(&mut self, tensor: &Name, dtype: DType) -> Step<Value> {
        if dtype.is_complex() {
            return unsupported("reading a complex number from a tensor");
        }
        let symbol = self.state.facts.symbols.next(dtype.is_float());
        let (node, number) = self.read_node(tensor, dtype, symbol)?;
        self.push(node)?;
        Ok(number)
    }

    /// A node that reads a number, and the number with its symbol.
    pub(crate) fn read_node(
        &mut self,
        tensor: &Name,
        dtype: DType,
        symbol: Expr,
    ) -> Step<(Node, Value)> {
        let arg = NamedArg {
            name: "self".into(),
            kind: ArgKind::Positional,
            value: Argument::Tensor(tensor.clone()),
        };
        let op = OpName::new("aten", "_local_scalar_dense", "default");
        let mut node = self.node(op, vec![arg])?;
        let name = node.name.clone();
        let expr = symbol.clone();
        let (meta, output, number) = if dtype == DType::Bool {
            let expr = Expr::call(Func::Eq, vec![expr, Expr::ONE]);
            let number = Value::Bool(expr.clone());
            (ValueMeta::SymBool { expr, hint: None }, Argument::SymBool(SymArg::Name(name)), number)
        } else if dtype.is_float() {
            let number = Value::Float(arith::to_float(&expr));
            (
                ValueMeta::SymFloat { expr, hint: None },
                Argument::SymFloat(SymArg::Name(name)),
                number,
            )
        } else {
            let number = Value::Int(expr.clone());
            (ValueMeta::SymInt { expr, hint: None }, Argument::SymInt(SymArg::Name(name)), number)
        };
        if let Some(symbol) = symbol.as_symbol() {
            self.numbers.sources.insert(symbol.to_owned(), output.clone());
            self.numbers.read_from.insert(symbol.to_owned(), tensor.clone());
        }
        node.outputs.push(output);
        self.state.facts.values.insert(node.name.clone(), meta);
        Ok((node, number))
    }

    /// `NumToTensor`: a 0-d tensor of the number.
    fn number_tensor(&mut self, value: &Value) -> Step<Value> {
        let dtype = match value {
            Value::Tensor(_) => return Ok(value.clone()),
            Value::Int(_) => 4,
            Value::Float(_) => 7,
            Value::Bool(_) => 11,
            _ => return expected("a number", value),
        };
        // A truth value that was read from a tensor is that tensor.
        if let Some(name) = value.number().and_then(|e| self.numbers.truths.get(e)) {
            let meta = self.meta(name)?;
            if dtype == 11 && meta.dtype == DType::Bool && meta.sizes.is_empty() {
                return Ok(Value::Tensor(name.clone()));
            }
        }
        // A truth value is the number 0 or 1 to the operator.
        let number = match value {
            Value::Bool(e) => Value::Int(e.clone()),
            other => other.clone(),
        };
        let kwargs = vec![("dtype".into(), Value::int(dtype))];
        self.operator("aten", "scalar_tensor", vec![number], kwargs)
    }

    /// `torch.tensor(numbers)`.
    fn new_tensor(
        &mut self,
        value: &Value,
        dtype: Option<&Value>,
        kwargs: &Kwargs,
    ) -> Step<Option<Value>> {
        let dtype = kwargs.iter().find(|(n, _)| n == "dtype").map(|(_, v)| v).or(dtype);
        let dtype = match dtype {
            None | Some(Value::None) => None,
            Some(value) => Some((value.clone(), dtype_of(value)?)),
        };
        if let Value::Tensor(_) = value {
            return match dtype {
                None => self.operator("aten", "clone", vec![value.clone()], Kwargs::new()),
                Some((dtype, _)) => {
                    self.operator("aten", "to", vec![value.clone(), dtype], Kwargs::new())
                }
            }
            .map(Some);
        }
        let mut flat = Vec::new();
        let shape = self.flatten_numbers(value, &mut flat, 16)?;
        let mut numbers = Vec::with_capacity(flat.len());
        for item in &flat {
            numbers.push(self.scalar_of(item, &Type::Number)?);
        }
        if numbers.iter().any(|number| matches!(number, Value::Complex(..))) {
            return self.complex_tensor(&numbers, shape, dtype.map(|(_, dtype)| dtype)).map(Some);
        }
        let dtype = match dtype {
            Some((_, dtype)) => dtype,
            None => self.natural_dtype(value, &numbers),
        };
        let elements: Option<Vec<Expr>> = numbers.iter().map(|v| v.number().cloned()).collect();
        let Some(elements) = elements else {
            return unsupported("a tensor of complex numbers");
        };
        if elements.iter().all(|e| known(e).is_some()) {
            return self.constant(&elements, shape, dtype).map(Some);
        }
        let mut scalars = Vec::with_capacity(numbers.len());
        let number = c10_number(dtype).map_or(Value::None, Value::int);
        for value in numbers {
            // A truth value is the number 0 or 1 to the operator.
            let value = match value {
                Value::Bool(e) => Value::Int(e),
                other => other,
            };
            let kwargs = vec![("dtype".into(), number.clone())];
            scalars.push(self.operator("aten", "scalar_tensor", vec![value], kwargs)?);
        }
        match (shape.as_slice(), scalars.pop()) {
            ([], Some(only)) => Ok(Some(only)),
            (sizes, last) => {
                scalars.extend(last);
                let list = self.list(scalars, Some(Type::Tensor))?;
                let row = self.operator("aten", "stack", vec![list], Kwargs::new())?;
                if sizes.len() == 1 {
                    return Ok(Some(row));
                }
                let sizes = sizes.iter().map(|&n| Expr::int(i64::try_from(n).unwrap_or(i64::MAX)));
                let sizes = self.int_list(sizes.collect::<Vec<_>>())?;
                self.operator("aten", "reshape", vec![row, sizes], Kwargs::new()).map(Some)
            }
        }
    }

    /// A tensor of known complex numbers.
    fn complex_tensor(
        &mut self,
        numbers: &[Value],
        mut shape: Vec<usize>,
        dtype: Option<DType>,
    ) -> Step<Value> {
        let part = match (dtype, self.cx.types.default_dtype()) {
            (Some(DType::C64), _) | (None, DType::F32) => DType::F32,
            (Some(DType::C128), _) | (None, DType::F64) => DType::F64,
            (dtype, default) => {
                let dtype = dtype.unwrap_or(default);
                return unsupported(format!("a tensor of complex numbers as {dtype}"));
            }
        };
        let pairs: Option<Vec<_>> = numbers.iter().map(complex::parts).collect();
        let Some(pairs) = pairs else {
            return unsupported("a tensor of complex numbers that are not known");
        };
        let elements: Vec<Expr> =
            pairs.into_iter().flat_map(|(re, im)| [re, im]).map(Expr::float).collect();
        shape.push(2);
        let pairs = self.constant(&elements, shape, part)?;
        self.operator("aten", "view_as_complex", vec![pairs], Kwargs::new())
    }

    fn natural_dtype(&self, value: &Value, numbers: &[Value]) -> DType {
        let float = |v: &Value| matches!(v, Value::Float(_));
        let element = if numbers.is_empty() { self.element(value) } else { None };
        if element == Some(Type::Bool) {
            DType::Bool
        } else if numbers.iter().any(float) || numbers.is_empty() && element != Some(Type::Int) {
            self.cx.types.default_dtype()
        } else if !numbers.is_empty() && numbers.iter().all(|v| matches!(v, Value::Bool(_))) {
            DType::Bool
        } else {
            DType::I64
        }
    }

    /// The numbers of nested lists in order; returns the sizes.
    fn flatten_numbers(
        &mut self,
        value: &Value,
        flat: &mut Vec<Value>,
        depth: usize,
    ) -> Step<Vec<usize>> {
        let Some(items) = self.sequence(value) else {
            flat.push(value.clone());
            return Ok(Vec::new());
        };
        if depth == 0 {
            return Err(Problem::Depth(16));
        }
        self.steps(items.len())?;
        let mut inner = Vec::new();
        for item in &items {
            inner = self.flatten_numbers(item, flat, depth - 1)?;
        }
        inner.insert(0, items.len());
        Ok(inner)
    }

    /// A constant of the program with these elements.
    fn constant(&mut self, elements: &[Expr], shape: Vec<usize>, dtype: DType) -> Step<Value> {
        let numbers: Vec<f64> = elements.iter().filter_map(known).collect();
        let wide = elements.iter().any(|e| e.as_int().is_some_and(|i| i.unsigned_abs() > 1 << 53));
        let bytes = const_eval::encode(elements, &numbers, dtype, wide);
        let tensor = bytes.and_then(|bytes| pt2onnx_tensor::Tensor::new(dtype, shape, bytes).ok());
        let Some(tensor) = tensor else {
            return unsupported(format!("a constant tensor of {dtype}"));
        };
        let name = self.add_constant("_tensor_constant", tensor.clone());
        self.set_contents(name.clone(), Contents::Exact(tensor));
        // PyTorch's FX copies constants, so that writes do not change them.
        self.operator("aten", "lift_fresh_copy", vec![Value::Tensor(name)], Kwargs::new())
    }
}
