//! Known contents of tensors: arithmetic on sizes that goes through tensors, as traces have it (`NumToTensor`, `mul`, `int`).

use super::{Interp, compare};
use crate::{
    types::{Contents, MAX_CONTENTS, Typed},
    value::{Value, known},
};
use pt2onnx_fx::{Argument, Name, Node, SymArg, ValueMeta};
use pt2onnx_symbolic::{Expr, Func, View};
use pt2onnx_tensor::{DType, Tensor};

/// The elements of a tensor as expressions, if it is small and of a type that numbers have.
pub(super) fn elements(tensor: &Tensor) -> Option<Vec<Expr>> {
    if tensor.numel() > MAX_CONTENTS || !tensor.has_data() {
        return None;
    }
    fn ints<T: pt2onnx_tensor::Element + Into<i64>>(tensor: &Tensor) -> Option<Vec<Expr>> {
        Some(tensor.to_vec::<T>()?.into_iter().map(|i| Expr::int(i.into())).collect())
    }
    match tensor.dtype() {
        DType::I64 => ints::<i64>(tensor),
        DType::I32 => ints::<i32>(tensor),
        DType::I16 => ints::<i16>(tensor),
        DType::I8 => ints::<i8>(tensor),
        DType::U8 => ints::<u8>(tensor),
        DType::Bool => Some(tensor.to_vec::<bool>()?.into_iter().map(Expr::bool).collect()),
        DType::F32 => {
            let floats = tensor.to_vec::<f32>()?.into_iter();
            Some(floats.map(|f| Expr::float(f.into())).collect())
        }
        DType::F64 => Some(tensor.to_vec::<f64>()?.into_iter().map(Expr::float).collect()),
        _ => None,
    }
}

/// The complex number in a tensor.
pub(super) fn complex_number(contents: &Contents) -> Option<Value> {
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

impl Interp<'_> {
    /// The contents of a result that is computed from known contents, as expressions.
    pub(super) fn sizes_of(&self, node: &Node, meta: &ValueMeta) -> Option<Contents> {
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
        let name = node.target.name.trim_end_matches('_');
        if meta.dtype == DType::F32 && ROUNDED.contains(&name) {
            elements.iter_mut().for_each(|e| *e = single(e));
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

    /// Parts of a tensor with the contents that they take from it, where it is a vector of known contents.
    pub(super) fn with_contents(&self, node: &Node, mut parts: Vec<Typed>) -> Vec<Typed> {
        let split = SPLITS.contains(&node.target.name.trim_start_matches("unsafe_"));
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

    fn computed(&self, node: &Node, dtype: DType, rank: usize, length: usize) -> Option<Vec<Expr>> {
        let operand = |name: &str| self.operand(node.arg(name)?);
        let name = node.target.name.trim_end_matches('_');
        let name = if node.target.name.starts_with("__") { &*node.target.name } else { name };
        let number = |name: &str, default: i64| match node.arg(name) {
            None => Some(default),
            Some(Argument::Int(i)) => Some(*i),
            _ => None,
        };
        match name {
            "scalar_tensor" => Some(converted(operand("s")?, dtype)),
            "detach" | "clone" | "to" | "contiguous" | "alias" | "_to_copy" | "type_as" | "cpu"
            | "float" | "lift_fresh" | "squeeze" | "unsqueeze" | "view" | "reshape" | "flatten"
            | "double" | "long" => Some(converted(operand("self")?, dtype)),
            "floor" | "ceil" | "neg" | "trunc" | "abs" => {
                let items = operand("self")?.into_iter();
                let items = items.map(|e| {
                    let value = as_value(e);
                    match compare::unary(name, &value).ok()?? {
                        Value::Int(e) if !dtype.is_int() => Some(compare::to_float(&e)),
                        other => other.number().cloned(),
                    }
                });
                items.collect()
            }
            "add" | "sub" | "mul" | "div" | "floor_divide" | "remainder" | "rsub" | "eq" | "ne"
            | "lt" | "le" | "gt" | "ge" | "maximum" | "minimum" | "__and__" | "__or__" | "max"
            | "min"
                if node.arg("other").is_some() =>
            {
                if number("alpha", 1)? != 1 {
                    return None;
                }
                let op = match (name, node.arg("rounding_mode")) {
                    ("div", Some(Argument::String(mode))) if mode == "floor" => "floordiv",
                    ("div", Some(Argument::String(_))) => "trunc_div",
                    ("floor_divide", _) => "floordiv",
                    ("maximum", _) => "max",
                    ("minimum", _) => "min",
                    ("rsub", _) => "sub",
                    _ => name,
                };
                let (mut a, mut b) = (operand("self")?, operand("other")?);
                if name == "rsub" {
                    std::mem::swap(&mut a, &mut b);
                }
                if dtype == DType::F32 || self.in_single(node) {
                    a.iter_mut().chain(&mut b).for_each(|e| *e = single(e));
                }
                let results = (0..length).map(|i| {
                    let pick = |v: &[Expr]| v.get(if v.len() == 1 { 0 } else { i }).cloned();
                    self.arithmetic(op, pick(&a)?, pick(&b)?, dtype)
                });
                results.collect()
            }
            "stack" | "cat" => {
                let Argument::Tensors(names) = node.arg("tensors")? else { return None };
                if number("dim", 0)? != 0 {
                    return None;
                }
                let parts =
                    names.iter().map(|n| self.elements_of(n)).collect::<Option<Vec<_>>>()?;
                Some(parts.into_iter().flatten().collect())
            }
            "select" if rank == 0 => {
                let items = operand("self")?;
                let index = number("index", 0)?;
                let index = if index < 0 { index + items.len() as i64 } else { index };
                Some(vec![items.get(usize::try_from(index).ok()?)?.clone()])
            }
            "slice" if number("step", 1)? == 1 => {
                let items = operand("self")?;
                let start = match node.arg("start") {
                    None | Some(Argument::None) => 0,
                    Some(Argument::Int(i)) if *i < 0 => i + items.len() as i64,
                    Some(Argument::Int(i)) => *i,
                    _ => return None,
                };
                let start = usize::try_from(start.max(0)).ok()?.min(items.len());
                Some(items.get(start..start.checked_add(length)?)?.to_vec())
            }
            "prod" | "sum" if rank == 0 => {
                let items = operand("self")?;
                Some(vec![if name == "prod" { Expr::product(&items) } else { Expr::sum(&items) }])
            }
            "max" | "min" if rank == 0 && node.arg("dim").is_none() => {
                let mut items = operand("self")?.into_iter();
                let first = items.next()?;
                let least = items.try_fold(first, |a, b| self.arithmetic(name, a, b, dtype))?;
                Some(vec![least])
            }
            "reciprocal" => {
                let inverse = |e: Expr| known(&e).map(|f| Expr::float(1.0 / f));
                operand("self")?.into_iter().map(inverse).collect()
            }
            _ => None,
        }
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
            Argument::SymFloat(SymArg::Name(name)) => self.number_named(name),
            Argument::SymInt(SymArg::Name(name)) => self.number_named(name),
            _ => None,
        }
    }

    fn number_named(&self, name: &Name) -> Option<Vec<Expr>> {
        match self.facts.values.get(name)? {
            ValueMeta::SymInt { expr, .. } | ValueMeta::SymFloat { expr, .. } => {
                Some(vec![expr.clone()])
            }
            _ => None,
        }
    }

    fn arithmetic(&self, op: &str, a: Expr, b: Expr, dtype: DType) -> Option<Expr> {
        let (a, b) = (as_value(a), as_value(b));
        if op == "trunc_div" {
            let (x, y) = (a.number()?, b.number()?);
            let positive = self.constraints().prove_ge(x, &Expr::ZERO)
                && self.constraints().prove_gt(y, &Expr::ZERO);
            let floor = positive && x.is_integer() && y.is_integer();
            return floor.then(|| x.floor_div(y));
        }
        let value = compare::binary(op, &a, &b).ok()??;
        let e = value.number()?;
        Some(if dtype.is_float() { compare::to_float(e) } else { e.clone() })
    }
}

/// Operators whose results are what they take their operand apart into, in order.
const SPLITS: &[&str] = &["chunk", "split", "split_with_sizes", "unbind"];

/// Operators whose results in float32 are those in float64, rounded.
const ROUNDED: &[&str] =
    &["add", "div", "mul", "reciprocal", "rsub", "sub", "to", "_to_copy", "float"];

/// A number, rounded to float32.
fn single(e: &Expr) -> Expr {
    match known(e) {
        Some(f) if f64::from(f as f32) != f => Expr::float(f64::from(f as f32)),
        None if !is_single(e) => Expr::call(Func::ToSingle, vec![e.clone()]),
        _ => e.clone(),
    }
}

/// Whether an expression over sizes that float32 can hold has such a value, or one that rounds down to the same integer: sums and products
/// of sizes with short numbers, and quotients of integers.
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
    let convert = |e: Expr| {
        if dtype.is_float() {
            compare::to_float(&e)
        } else if dtype == DType::Bool {
            match known(&e) {
                Some(f) => Expr::bool(f != 0.0),
                None if e.is_boolean() => e,
                None => Expr::call(Func::Ne, vec![e, Expr::ZERO]),
            }
        } else {
            compare::truncated(&e).unwrap_or(e)
        }
    };
    items.into_iter().map(convert).collect()
}
