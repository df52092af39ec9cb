//! Operators on tensors that need no node: their types answer. And those that read a tensor as a
//! number, or make one of numbers.

use crate::{
    builtins::{Call, Found, numbers},
    error::Problem,
    eval::{Evaluator, Step, arith, const_eval, expected, to_fx::dtype_of, unsupported},
    schema::Type,
    types::Contents,
    value::{Value, args, known},
};
use pt2onnx_fx::{Argument, Name, NamedArg, Node, OpName, SymArg, ValueMeta, archive::c10_number};
use pt2onnx_symbolic::{Expr, Func, Range, axis};
use pt2onnx_tensor::DType;

/// The sizes, or the size of a dimension.
pub(crate) fn size(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let sizes = ev.meta(call.get(0).tensor()?)?.sizes.clone();
    // Those that are computed from floats have no range.
    for size in &sizes {
        if ev.constraints().range_of(size).min.is_none_or(|least| least < 0) {
            ev.state.facts.constraints.constrain(size, Range::at_least(0));
        }
    }
    all_or_one(ev, sizes, call.args.get(1))
}

pub(crate) fn stride(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let (tensor, dim) = (call.get(0), call.args.get(1));
    let meta = ev.meta(tensor.tensor()?)?;
    if meta.strides.len() != meta.sizes.len() {
        let strides = if dim.is_some() { "stride" } else { "strides" };
        return unsupported(format!("the {strides} of this tensor"));
    }
    let strides = meta.strides.clone();
    all_or_one(ev, strides, dim)
}

fn all_or_one(ev: &mut Evaluator<'_>, items: Vec<Expr>, dim: Option<&Value>) -> Step<Value> {
    let Some(dim) = dim else { return ev.int_list(items) };
    match axis(dim.known_int()?, items.len()).and_then(|at| items.get(at)) {
        Some(size) => Ok(Value::Int(size.clone())),
        None => Err(Problem::Raises("IndexError: no such dimension".to_owned())),
    }
}

pub(crate) fn len(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    match ev.meta(x.tensor()?)?.sizes.first() {
        Some(size) => Ok(Value::Int(size.clone())),
        None => Err(Problem::Raises("TypeError: len() of a 0-d tensor".to_owned())),
    }
}

pub(crate) fn rank(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    Ok(ev.meta(x.tensor()?)?.sizes.len().into())
}

pub(crate) fn dtype(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    match c10_number(ev.meta(x.tensor()?)?.dtype) {
        Some(number) => Ok(number.into()),
        None => unsupported("this element type"),
    }
}

/// The bytes of an element.
pub(crate) fn item_size(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    Ok((ev.meta(x.tensor()?)?.dtype.bits() / 8).into())
}

pub(crate) fn byte_count(ev: &mut Evaluator<'_>, x: &Value) -> Step<Value> {
    let meta = ev.meta(x.tensor()?)?;
    let bytes = i64::try_from(meta.dtype.bits() / 8).unwrap_or(0);
    Ok((Expr::product(&meta.sizes) * bytes).into())
}

pub(crate) fn is_contiguous(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let format = call.args.get(1).or_else(|| call.keyword("memory_format"));
    let format = format.and_then(Value::as_int).unwrap_or(0);
    let Some(condition) = ev.is_in_format(ev.meta(call.get(0).tensor()?)?, format) else {
        ev.note("`is_contiguous` is taken to be true".to_owned());
        return Ok(true.into());
    };
    let known = ev.decide(&condition);
    Ok(Value::Bool(known.map_or(condition, Expr::bool)))
}

/// Without training, the probability is never read.
pub(crate) fn dropout(_: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    Ok(match call.args {
        [x, Value::Float(p), train] if known(p).is_none() && train.as_bool() == Some(false) => {
            Some(x.clone())
        }
        _ => None,
    })
}

/// The length of the longest sequence is what there is without it.
pub(crate) fn pad_packed(ev: &mut Evaluator<'_>, call: Call<'_>) -> Found {
    let [given @ .., total] = call.args else { return Ok(None) };
    let [_, Value::Tensor(steps), _, _] = given else { return Ok(None) };
    if total.as_int().is_some() || total.number() != ev.meta(steps)?.sizes.first() {
        return Ok(None);
    }
    ev.aten(call.name, [given, &[Value::int(-1)]].concat()).map(Some)
}

fn all(ev: &mut Evaluator<'_>, elements: Value) -> Step<Value> {
    let all = ev.aten("all", vec![elements])?;
    ev.scalar_of(&all, &Type::Bool)
}

pub(crate) fn all_close(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let close = ev.operator("aten", "isclose", call.args.to_vec(), call.kwargs.clone())?;
    all(ev, close)
}

pub(crate) fn equal(ev: &mut Evaluator<'_>, a: &Value, b: &Value) -> Step<Value> {
    let (x, y) = (&ev.meta(a.tensor()?)?.sizes, &ev.meta(b.tensor()?)?.sizes);
    let same = |(x, y): (&Expr, &Expr)| ev.constraints().prove_eq(x, y);
    let sizes: Vec<_> = x.iter().zip(y).map(same).collect();
    if x.len() != y.len() || sizes.contains(&Some(false)) {
        return Ok(false.into());
    }
    if sizes.contains(&None) {
        return unsupported("aten::equal of tensors of unknown sizes");
    }
    let equal = ev.aten("eq", args![a, b])?;
    all(ev, equal)
}

/// `torch.tensor(numbers)`.
pub(crate) fn new_tensor(ev: &mut Evaluator<'_>, call: Call<'_>) -> Step<Value> {
    let value = &call.get(0);
    let dtype = call.keyword("dtype").cloned().unwrap_or_else(|| call.get(1));
    let dtype = if let Value::None = dtype { None } else { Some(dtype_of(&dtype)?) };
    if let Value::Tensor(_) = value {
        return match dtype {
            None => ev.aten("clone", args![value]),
            Some(dtype) => ev.aten("to", args![value, dtype]),
        };
    }
    let mut numbers = Vec::new();
    let shape = ev.flatten_numbers(value, &mut numbers, 16)?;
    for number in &mut numbers {
        *number = ev.scalar_of(number, &Type::Number)?;
    }
    if numbers.iter().any(|number| matches!(number, Value::Complex(..))) {
        return ev.complex_tensor(&numbers, shape, dtype);
    }
    let dtype = dtype.unwrap_or_else(|| ev.natural_dtype(value, &numbers));
    let elements: Option<Vec<Expr>> = numbers.iter().map(|v| v.number().cloned()).collect();
    let Some(elements) = elements else {
        return unsupported("a tensor of complex numbers");
    };
    if elements.iter().all(|e| known(e).is_some()) {
        return ev.constant(&elements, shape, dtype);
    }
    let scalars = numbers.iter().map(|number| ev.scalar_tensor(number, dtype));
    let mut scalars = scalars.collect::<Step<Vec<_>>>()?;
    if shape.is_empty()
        && let Some(only) = scalars.pop()
    {
        return Ok(only);
    }
    let list = ev.list(scalars, Some(Type::Tensor))?;
    let row = ev.aten("stack", vec![list])?;
    if shape.len() == 1 {
        return Ok(row);
    }
    let sizes = shape.into_iter().map(Value::from).collect();
    let sizes = ev.list(sizes, Some(Type::Int))?;
    ev.aten("reshape", vec![row, sizes])
}

impl Evaluator<'_> {
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
        let arg = NamedArg::positional("self", Argument::Tensor(tensor.clone()));
        let op = OpName::new("aten", "_local_scalar_dense", "default");
        let mut node = self.node(op, vec![arg])?;
        let (name, expr) = (node.name.clone(), symbol.clone());
        let (meta, output, number) = if dtype == DType::Bool {
            let expr = Expr::call(Func::Eq, vec![expr, Expr::ONE]);
            let number = Value::Bool(expr.clone());
            (ValueMeta::SymBool { expr, hint: None }, Argument::SymBool(SymArg::Name(name)), number)
        } else if dtype.is_float() {
            let number = Value::Float(arith::to_float(&expr));
            let output = Argument::SymFloat(SymArg::Name(name));
            (ValueMeta::SymFloat { expr, hint: None }, output, number)
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
    pub(crate) fn number_tensor(&mut self, value: &Value) -> Step<Value> {
        let dtype = match value.number_dtype() {
            _ if matches!(value, Value::Tensor(_)) => return Ok(value.clone()),
            Some(dtype) => dtype,
            None => return expected("a number", value),
        };
        // A truth value that was read from a tensor is that tensor.
        if let Some(name) = value.number().and_then(|e| self.numbers.truths.get(e)) {
            let meta = self.meta(name)?;
            if dtype == DType::Bool && meta.dtype == dtype && meta.sizes.is_empty() {
                return Ok(name.into());
            }
        }
        self.scalar_tensor(value, dtype)
    }

    /// A 0-d tensor of the number, with this element type.
    pub(crate) fn scalar_tensor(&mut self, number: &Value, dtype: DType) -> Step<Value> {
        // A truth value is the number 0 or 1 to the operator.
        let number = match number {
            Value::Bool(e) => Value::Int(e.clone()),
            other => other.clone(),
        };
        self.operator("aten", "scalar_tensor", vec![number], vec![("dtype".into(), dtype.into())])
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
        let pairs: Option<Vec<_>> = numbers.iter().map(numbers::parts).collect();
        let Some(pairs) = pairs else {
            return unsupported("a tensor of complex numbers that are not known");
        };
        let elements: Vec<Expr> =
            pairs.into_iter().flat_map(|(re, im)| [re, im]).map(Expr::float).collect();
        shape.push(2);
        let pairs = self.constant(&elements, shape, part)?;
        self.aten("view_as_complex", vec![pairs])
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
        self.aten("lift_fresh_copy", args![name])
    }
}
