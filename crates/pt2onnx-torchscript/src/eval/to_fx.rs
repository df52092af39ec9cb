//! Values become arguments of nodes.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, expected, unsupported},
    schema::Type,
    value::Value,
};
use pt2onnx_fx::{
    ArgKind, Argument, Device, Layout, MemoryFormat, Name, NamedArg, OpName, SymArg, ValueMeta,
    archive::dtype_of_c10,
};
use pt2onnx_symbolic::Expr;
use pt2onnx_tensor::DType;

impl Evaluator<'_> {
    pub(crate) fn argument(&mut self, value: &Value, ty: &Type) -> Step<Argument> {
        let optional = matches!(ty, Type::Optional(_));
        Ok(match (ty.given(), value) {
            (_, Value::None) => Argument::None,
            (_, Value::Tensor(name)) if optional => {
                Argument::OptionalTensor(Some(self.readable(name)?))
            }
            (_, Value::Tensor(name)) => Argument::Tensor(self.readable(name)?),
            (Type::DType, Value::Int(_)) => Argument::DType(dtype_of(value)?),
            (Type::Layout, Value::Int(_)) => match value.as_int() {
                Some(0) => Argument::Layout(Layout::Strided),
                _ => return unsupported("a sparse layout"),
            },
            (Type::MemoryFormat, Value::Int(_)) => Argument::MemoryFormat(match value.as_int() {
                Some(0) => MemoryFormat::Contiguous,
                Some(1) => MemoryFormat::Preserve,
                Some(2) => MemoryFormat::ChannelsLast,
                Some(3) => MemoryFormat::ChannelsLast3d,
                _ => return unsupported("this memory format"),
            }),
            (Type::Device, Value::Str(_)) | (_, Value::Device(_)) => {
                Argument::Device(Device { kind: "cpu".into(), index: None })
            }
            (_, Value::Int(e)) => match self.int_argument(e)? {
                SymArg::Value(i) => Argument::Int(i),
                other => Argument::SymInt(other),
            },
            (_, Value::Float(e)) => match crate::value::known(e) {
                Some(f) => Argument::Float(f),
                None => Argument::SymFloat(SymArg::Name(self.float_node(e)?)),
            },
            (_, Value::Bool(e)) => match e.as_int() {
                Some(b) => Argument::Bool(b != 0),
                None => return unsupported("a truth value that is not known, as an argument,"),
            },
            (_, Value::Complex(re, im)) => Argument::Complex(*re, *im),
            (_, Value::Str(text)) => Argument::String((**text).into()),
            (Type::List(inner), Value::List(_) | Value::Tuple(_)) => {
                let Some(mut items) = self.sequence(value) else {
                    return unsupported("this operator on a list whose length depends on data");
                };
                self.steps(items.len())?;
                for item in &mut items {
                    if let Value::Tensor(name) = item {
                        *name = self.readable(name)?;
                    }
                }
                return self.list_argument(&items, inner);
            }
            _ => return expected("an argument of an operator", value),
        })
    }

    fn list_argument(&mut self, items: &[Value], element: &Type) -> Step<Argument> {
        fn all<T>(items: &[Value], of: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
            items.iter().map(of).collect()
        }
        let name = |value: &Value| match value {
            Value::Tensor(name) => Some(name.clone()),
            _ => None,
        };
        let optional = |value: &Value| match value {
            Value::None => Some(None),
            other => name(other).map(Some),
        };
        let found = match element.given() {
            Type::Tensor => match element {
                Type::Optional(_) => all(items, optional).map(Argument::OptionalTensors),
                _ => all(items, name).map(Argument::Tensors),
            },
            Type::Float => all(items, Value::as_f64).map(Argument::Floats),
            Type::Bool => all(items, Value::as_bool).map(Argument::Bools),
            Type::Str => all(items, |v| v.as_str().map(Name::from)).map(Argument::Strings),
            _ => match all(items, Value::as_int) {
                Some(ints) => Some(Argument::Ints(ints)),
                None if items.iter().all(|item| matches!(item, Value::Int(_))) => {
                    let sizes = items.iter().filter_map(Value::number);
                    let sizes = sizes.map(|size| self.int_argument(size)).collect::<Step<_>>()?;
                    Some(Argument::SymInts(sizes))
                }
                None => all(items, Value::as_f64).map(Argument::Floats),
            },
        };
        found.ok_or_else(|| Problem::Unsupported(format!("a list of {element} with other values")))
    }

    /// An integer as an argument. If it depends on data, it must be the result of a node.
    fn int_argument(&mut self, e: &Expr) -> Step<SymArg<i64>> {
        if let Some(i) = e.as_int() {
            return Ok(SymArg::Value(i));
        }
        if let Some(Argument::SymInt(named)) =
            e.as_symbol().and_then(|s| self.numbers.sources.get(s))
        {
            return Ok(named.clone());
        }
        let sources = self.sources_of(e);
        if sources.is_empty() {
            return Ok(SymArg::Expr(e.clone()));
        }
        let meta = ValueMeta::SymInt { expr: e.clone(), hint: None };
        Ok(SymArg::Name(self.number_node("sym_int", sources, meta)?))
    }

    /// The results of nodes that an expression depends on.
    fn sources_of(&self, e: &Expr) -> Vec<Argument> {
        e.symbols().iter().filter_map(|s| self.numbers.sources.get(&**s).cloned()).collect()
    }

    /// A node whose result is a float of this expression.
    pub(crate) fn float_node(&mut self, e: &Expr) -> Step<Name> {
        if let Some(Argument::SymFloat(SymArg::Name(name))) =
            e.as_symbol().and_then(|s| self.numbers.sources.get(s))
        {
            return Ok(name.clone());
        }
        let sources = self.sources_of(e);
        let meta = ValueMeta::SymFloat { expr: e.clone(), hint: None };
        self.number_node("sym_float", sources, meta)
    }

    /// A node that stands for the arithmetic of an expression over numbers.
    pub(crate) fn number_node(
        &mut self,
        op: &str,
        sources: Vec<Argument>,
        meta: ValueMeta,
    ) -> Step<Name> {
        let args = sources.into_iter().map(|value| positional("", value)).collect();
        let mut node = self.node(OpName::new("torch", op, ""), args)?;
        let name = node.name.clone();
        self.state.facts.values.insert(name.clone(), meta);
        node.outputs.push(self.value_argument(&name));
        self.push(node)?;
        Ok(name)
    }
}

pub(crate) fn positional(name: &str, value: Argument) -> NamedArg {
    NamedArg { name: name.into(), kind: ArgKind::Positional, value }
}

/// The element type of PyTorch's number.
pub(crate) fn dtype_of(value: &Value) -> Step<DType> {
    let number = value.as_int();
    let found = number.and_then(dtype_of_c10);
    match (found, number) {
        (Some(dtype), _) => Ok(dtype),
        (None, Some(12..=14 | 16 | 17)) => unsupported("a quantised element type"),
        _ => unsupported("this element type"),
    }
}
