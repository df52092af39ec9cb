//! Known contents of tensors: traces compute sizes as tensors (`NumToTensor`, `mul`, `int`).

use crate::{
    eval::{Evaluator, arith, expr::positions},
    types::{Contents, MAX_CONTENTS, Typed},
    value::{Value, known},
};
use pt2onnx_fx::{Argument, Name, Node, SymArg, ValueMeta};
use pt2onnx_symbolic::{Expr, Func, View};
use pt2onnx_tensor::{DType, Scalar, Tensor};

/// The elements of a tensor as expressions, if it is small and of a type that numbers have.
pub(crate) fn elements(tensor: &Tensor) -> Option<Vec<Expr>> {
    if tensor.numel() > MAX_CONTENTS {
        return None;
    }
    let all = |of: fn(f64) -> Expr| Some(tensor.to_doubles()?.into_iter().map(of).collect());
    match tensor.dtype() {
        DType::I64 => Some(tensor.to_ints()?.into_iter().map(Expr::int).collect()),
        DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => {
            all(|f| Expr::int(f as i64))
        }
        DType::F32 | DType::F64 => all(Expr::float),
        _ => None,
    }
}

/// The bytes of known numbers as elements of this type; `None` if there is no conversion.
pub(crate) fn encode(
    elements: &[Expr],
    numbers: &[f64],
    dtype: DType,
    wide: bool,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for (element, &number) in elements.iter().zip(numbers) {
        let scalar = match element.as_int() {
            Some(i) if wide || !dtype.is_float() => Scalar::Int(i),
            _ => Scalar::Float(number),
        };
        bytes.extend_from_slice(&scalar.to_tensor(dtype)?.to_bytes());
    }
    Some(bytes)
}

pub(crate) fn complex_number(contents: &Contents) -> Option<Value> {
    match contents {
        Contents::Exact(tensor) if tensor.dtype().is_complex() => {
            match elements(&tensor.view_as_real())?.as_slice() {
                [re, im] => Some(Value::Complex(known(re)?, known(im)?)),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Evaluator<'_> {
    /// The contents of a result that is computed from known contents, as expressions.
    pub(crate) fn sizes_of(&self, node: &Node, meta: &ValueMeta) -> Option<Contents> {
        let ValueMeta::Tensor(meta) = meta else {
            return None;
        };
        if &*node.target.namespace != "aten" || meta.sizes.len() > 1 {
            return None;
        }
        let length = meta.sizes.first().map_or(Some(1), Expr::as_int);
        let length = usize::try_from(length?).ok().filter(|&n| n <= 64)?;
        let integer = meta.dtype.is_int() || meta.dtype == DType::Bool;
        let mut elements = self.computed(node, meta.dtype, meta.sizes.len(), length)?;
        // In float64, these of two float32 are exact enough to be rounded once.
        let name = plain_name(node);
        let is_rounded = matches!(
            name,
            "add" | "div" | "mul" | "reciprocal" | "rsub" | "sub" | "to" | "_to_copy" | "float"
        );
        if meta.dtype == DType::F32 && is_rounded {
            elements.iter_mut().for_each(|e| *e = single(e));
        } else if !integer && meta.dtype != DType::F64 && matches!(name, "div" | "reciprocal") {
            // The result is rounded to the float type of the promotion, which no expression does.
            return None;
        }
        let fits = elements.len() == length
            && (!integer || elements.iter().all(|e| e.is_integer() || e.is_boolean()));
        // Floats of fewer bits than 64 would have to be rounded.
        let exact = |e: &Expr| {
            integer || meta.dtype == DType::F64 || known(e).is_none_or(|f| f64::from(f as f32) == f)
        };
        let wide = !matches!(meta.dtype, DType::I8 | DType::U8 | DType::I16);
        (fits && wide && elements.iter().all(exact)).then_some(Contents::Exprs(elements))
    }

    /// Parts of a vector, with the contents that they take from it.
    pub(crate) fn with_contents(&self, node: &Node, mut parts: Vec<Typed>) -> Vec<Typed> {
        let split = matches!(
            node.target.name.trim_start_matches("unsafe_"),
            "chunk" | "split" | "split_with_sizes" | "unbind"
        );
        let Some(Argument::Tensor(whole)) = node.arg("self").filter(|_| split) else {
            return parts;
        };
        let vector = self.meta(whole).is_ok_and(|meta| meta.sizes.len() == 1);
        let Some(mut left) = self.elements_of(whole).filter(|_| vector) else {
            return parts;
        };
        for part in &mut parts {
            let ValueMeta::Tensor(meta) = &part.meta else { return parts };
            let length = meta.sizes.first().map_or(Some(1), Expr::as_int);
            let Some(length) = length.and_then(|n| usize::try_from(n).ok()) else { return parts };
            if meta.sizes.len() > 1 || length > left.len() {
                return parts;
            }
            let elements = left.drain(..length).collect();
            part.contents.get_or_insert(Contents::Exprs(elements));
        }
        parts
    }

    /// The elements of a result of this type, by the name of the operator.
    fn computed(&self, node: &Node, dtype: DType, rank: usize, length: usize) -> Option<Vec<Expr>> {
        let operand = |name: &str| self.operand(node.arg(name)?);
        let name = plain_name(node);
        match name {
            "scalar_tensor" => Some(converted(operand("s")?, dtype)),
            "detach" | "clone" | "to" | "contiguous" | "alias" | "_to_copy" | "type_as" | "cpu"
            | "float" | "lift_fresh" | "squeeze" | "unsqueeze" | "view" | "reshape" | "flatten"
            | "double" | "long" => Some(converted(operand("self")?, dtype)),
            "floor" | "ceil" | "neg" | "trunc" | "abs" => {
                let unary = |e| match arith::unary(name, &as_value(e)).ok()?? {
                    Value::Int(e) if !dtype.is_int() => Some(arith::to_float(&e)),
                    other => other.number().cloned(),
                };
                operand("self")?.into_iter().map(unary).collect()
            }
            "add" | "sub" | "mul" | "div" | "floor_divide" | "remainder" | "rsub" | "eq" | "ne"
            | "lt" | "le" | "gt" | "ge" | "maximum" | "minimum" | "__and__" | "__or__" | "max"
            | "min"
                if node.arg("other").is_some() =>
            {
                self.binary(node, dtype, length)
            }
            "stack" | "cat" if int_arg(node, "dim", 0)? == 0 => {
                let Argument::Tensors(names) = node.arg("tensors")? else { return None };
                let parts = names.iter().map(|name| self.elements_of(name));
                Some(parts.collect::<Option<Vec<_>>>()?.concat())
            }
            "select" if rank == 0 => {
                let items = operand("self")?;
                let at = pt2onnx_symbolic::axis(int_arg(node, "index", 0)?, items.len())?;
                Some(vec![items.get(at)?.clone()])
            }
            "slice" if int_arg(node, "step", 1)? == 1 => {
                let items = operand("self")?;
                let start = Some(int_arg(node, "start", 0)?);
                let at = positions(items.len(), start, None, 1).ok()?;
                at.get(..length)?.iter().map(|at| items.get(*at).cloned()).collect()
            }
            "prod" if rank == 0 => Some(vec![Expr::product(&operand("self")?)]),
            "sum" if rank == 0 => Some(vec![Expr::sum(&operand("self")?)]),
            "max" | "min" if rank == 0 && node.arg("dim").is_none() => {
                let mut items = operand("self")?.into_iter();
                let first = items.next()?;
                let extreme = items.try_fold(first, |a, b| self.arithmetic(name, a, b, dtype))?;
                Some(vec![extreme])
            }
            "reciprocal" => {
                let inverse = |e: Expr| known(&e).map(|f| Expr::float(1.0 / f));
                operand("self")?.into_iter().map(inverse).collect()
            }
            _ => None,
        }
    }

    /// The elements of a result of arithmetic or a comparison.
    fn binary(&self, node: &Node, dtype: DType, length: usize) -> Option<Vec<Expr>> {
        if int_arg(node, "alpha", 1)? != 1 {
            return None;
        }
        let mut a = self.operand(node.arg("self")?)?;
        let mut b = self.operand(node.arg("other")?)?;
        let op = match (plain_name(node), node.arg("rounding_mode")) {
            ("div", Some(Argument::String(mode))) if mode == "floor" => "floordiv",
            ("div", Some(Argument::String(_))) => "trunc_div",
            ("floor_divide", _) => "floordiv",
            ("maximum", _) => "max",
            ("minimum", _) => "min",
            ("rsub", _) => {
                std::mem::swap(&mut a, &mut b);
                "sub"
            }
            (name, _) => name,
        };
        if dtype == DType::F32 || self.in_single(node) {
            a.iter_mut().chain(&mut b).for_each(|e| *e = single(e));
        }
        let pick = |v: &[Expr], i| v.get(if v.len() == 1 { 0 } else { i }).cloned();
        (0..length).map(|i| self.arithmetic(op, pick(&a, i)?, pick(&b, i)?, dtype)).collect()
    }

    /// Whether a node computes in float32: it has such a tensor, and none of float64.
    fn in_single(&self, node: &Node) -> bool {
        let has = |dtype| {
            let is = |name: &Name| self.meta(name).is_ok_and(|meta| meta.dtype == dtype);
            node.input_names().iter().any(is)
        };
        has(DType::F32) && !has(DType::F64)
    }

    /// The elements of an argument: of a tensor, or the number that it is.
    fn operand(&self, argument: &Argument) -> Option<Vec<Expr>> {
        match argument {
            Argument::Tensor(name) | Argument::OptionalTensor(Some(name)) => self.elements_of(name),
            Argument::Int(i) => Some(vec![Expr::int(*i)]),
            Argument::Float(f) => Some(vec![Expr::float(*f)]),
            Argument::Bool(b) => Some(vec![Expr::bool(*b)]),
            Argument::SymInt(SymArg::Expr(e)) => Some(vec![e.clone()]),
            Argument::SymFloat(SymArg::Name(name)) | Argument::SymInt(SymArg::Name(name)) => {
                match self.state.facts.values.get(name)? {
                    ValueMeta::SymInt { expr, .. } | ValueMeta::SymFloat { expr, .. } => {
                        Some(vec![expr.clone()])
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn arithmetic(&self, op: &str, a: Expr, b: Expr, dtype: DType) -> Option<Expr> {
        if op == "trunc_div" {
            let known = self.constraints();
            let positive = known.prove_ge(&a, &Expr::ZERO) && known.prove_gt(&b, &Expr::ZERO);
            return (positive && a.is_integer() && b.is_integer()).then(|| a.floor_div(&b));
        }
        let value = arith::binary(op, &as_value(a), &as_value(b)).ok()??;
        let e = value.number()?;
        Some(if dtype.is_float() { arith::to_float(e) } else { e.clone() })
    }
}

/// The name of an operator, without the `_` of one that writes.
fn plain_name(node: &Node) -> &str {
    let name = &*node.target.name;
    if name.starts_with("__") { name } else { name.trim_end_matches('_') }
}

/// An integer argument; `None` if it is given and is not a known integer.
fn int_arg(node: &Node, name: &str, default: i64) -> Option<i64> {
    match node.arg(name) {
        None | Some(Argument::None) => Some(default),
        Some(Argument::Int(i)) => Some(*i),
        _ => None,
    }
}

/// A number, rounded to float32.
fn single(e: &Expr) -> Expr {
    match known(e) {
        Some(f) if f64::from(f as f32) != f => Expr::float(f64::from(f as f32)),
        None if !is_single(e) => Expr::call(Func::ToSingle, vec![e.clone()]),
        _ => e.clone(),
    }
}

/// Whether an expression over sizes that float32 can hold has such a value, or one that rounds down
/// to the same integer: sums and products of sizes with short numbers, and quotients of integers.
fn is_single(e: &Expr) -> bool {
    let short = |f: f64| (f * 1024.0).fract() == 0.0 && f.abs() < 16384.0;
    match e.view() {
        View::Int(_) | View::Symbol(_) => true,
        View::Float(f) => short(f),
        View::Rational(n, d) => short(n as f64 / d as f64),
        View::Add(items) | View::Mul(items) => items.iter().all(is_single),
        View::Pow(..) => e.is_integer(),
        View::Call(Func::ToSingle, _) => true,
        View::Call(Func::IntTrueDiv | Func::FloatTrueDiv | Func::ToFloat, args) => {
            args.iter().all(is_single)
        }
        View::Call(..) => e.is_integer() || e.is_boolean(),
    }
}

/// An expression as the value of the kind that it has.
fn as_value(e: Expr) -> Value {
    if e.is_integer() { Value::Int(e) } else { Value::Float(e) }
}

/// Elements after a conversion of the element type.
fn converted(items: Vec<Expr>, dtype: DType) -> Vec<Expr> {
    let convert = |e: Expr| match known(&e) {
        _ if dtype.is_float() => arith::to_float(&e),
        _ if dtype != DType::Bool => arith::rounded(Func::TruncToInt, &e).unwrap_or(e),
        Some(f) => Expr::bool(f != 0.0),
        None if e.is_boolean() => e,
        None => Expr::call(Func::Ne, vec![e, Expr::ZERO]),
    };
    items.into_iter().map(convert).collect()
}
