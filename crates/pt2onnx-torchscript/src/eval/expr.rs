//! Evaluates expressions other than calls.

use crate::{
    error::Problem,
    eval::{Env, Evaluator, Step, arith, expected, raises, unbound},
    schema::Type,
    value::{
        Callee, DynList, EnumMember, Item, Ref, Tuple, Value, args,
        dyn_list::element_spec::element_type,
    },
};
use pt2onnx_fx::Name;
use pt2onnx_torchscript_archive::{
    ClassDef, Definition,
    syntax::{Expr, ExprKind},
};
use std::sync::Arc;

impl Evaluator<'_> {
    pub(crate) fn eval(&mut self, expr: &Expr, env: &Env) -> Step<Value> {
        self.step()?;
        self.deeper(|ev| ev.eval_kind(expr, env))
    }

    pub(crate) fn eval_all(&mut self, exprs: &[Expr], env: &Env) -> Step<Vec<Value>> {
        exprs.iter().map(|expr| self.eval(expr, env)).collect()
    }

    fn eval_kind(&mut self, expr: &Expr, env: &Env) -> Step<Value> {
        Ok(match &expr.kind {
            ExprKind::Name(name) => return self.name(name, env),
            ExprKind::None => Value::None,
            ExprKind::Bool(value) => Value::bool(*value),
            ExprKind::Int(value) => Value::int(*value),
            ExprKind::Float(value) => Value::float(*value),
            ExprKind::Complex(re, im) => Value::Complex(*re, *im),
            ExprKind::Str(text) => Value::Str(text.clone()),
            ExprKind::Neg(inner) => match self.eval(inner, env)? {
                Value::Complex(re, im) => Value::Complex(-re, -im),
                number => match arith::unary("neg", &number)? {
                    Some(negative) => negative,
                    None => return expected("a number", &number),
                },
            },
            ExprKind::Attr(base, name) => {
                let base = self.eval(base, env)?;
                return self.attribute(&base, name);
            }
            ExprKind::Index(base, index) => {
                let (base, index) = (self.eval(base, env)?, self.eval(index, env)?);
                return self.get_item(&base, &index);
            }
            ExprKind::Slice(base, start, end) => {
                let base = self.eval(base, env)?;
                let mut bound = |e: &Option<Box<Expr>>| {
                    e.as_ref().map_or(Ok(Value::None), |e| self.eval(e, env))
                };
                let (start, end) = (bound(start)?, bound(end)?);
                return self.slice(&base, &start, &end, &Value::int(1));
            }
            ExprKind::Call(call) => return self.call(call, env),
            ExprKind::Operator(operator) => return self.call_operator(operator, env),
            ExprKind::Tuple(items) => {
                let items = self.eval_all(items, env)?;
                return self.tuple(items, None);
            }
            ExprKind::List(items) => {
                let items = self.eval_all(items, env)?;
                return self.list(items, None);
            }
            ExprKind::Dict(entries) => {
                let mut made = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    made.push((self.eval(key, env)?, self.eval(value, env)?));
                }
                return self.dict(made);
            }
        })
    }

    pub(crate) fn tuple(&mut self, items: Vec<Value>, class: Option<Arc<ClassDef>>) -> Step<Value> {
        self.steps(items.len())?;
        Tuple::checked(items, class)
    }

    fn name(&mut self, name: &Name, env: &Env) -> Step<Value> {
        if let Some(value) = env.get(name) {
            return Ok(match value {
                Value::Tensor(tensor) => Value::Tensor(self.current(tensor)),
                other => other.clone(),
            });
        }
        Ok(match &**name {
            "torch" | "ops" | "CONSTANTS" | "__torch__" => {
                Value::callee(Callee::Namespace(name.to_string()))
            }
            "inf" => Value::float(f64::INFINITY),
            "nan" => Value::float(f64::NAN),
            "infj" => Value::Complex(0.0, f64::INFINITY),
            "nanj" => Value::Complex(0.0, f64::NAN),
            _ => return unbound(name),
        })
    }

    pub(crate) fn attribute(&mut self, base: &Value, name: &Name) -> Step<Value> {
        let method = || Ok(Value::callee(Callee::Method(base.clone(), name.clone())));
        match base {
            Value::Callee(callee) => match &**callee {
                Callee::Namespace(path) => self.member(path, name),
                Callee::Class(class) => match class.class.values.iter().find(|(n, _)| n == name) {
                    Some((_, value)) if class.class.base.as_deref() == Some("Enum") => {
                        let value = self.eval(value, &Env::default())?;
                        let (class, name) = (class.name.clone(), name.clone());
                        Ok(Value::Enum(Arc::new(EnumMember { class, name, value })))
                    }
                    _ => Ok(Value::callee(Callee::Unbound(class.clone(), name.clone()))),
                },
                _ => unbound(name),
            },
            Value::Object(object) => {
                let (class, attributes, _) = self.object_at(*object)?;
                if let Some(value) = attributes.get(name) {
                    return Ok(value.clone());
                }
                let class = class.clone();
                let mut constants = class.class.attributes.iter();
                match constants.find(|(n, _, value)| n == name && value.is_some()) {
                    Some((_, _, Some(value))) => self.eval(value, &Env::default()),
                    _ if class.class.method(name).is_some() => method(),
                    _ => unbound(format!("{}.{name}", class.name)),
                }
            }
            Value::Enum(member) => match &**name {
                "name" => Ok(Value::str(&member.name)),
                "value" => Ok(member.value.clone()),
                _ => unbound(name),
            },
            Value::Tuple(tuple) => {
                let fields = tuple.class.as_ref().map(|class| &class.class.attributes);
                let at = fields.and_then(|fields| fields.iter().position(|(n, ..)| n == name));
                let item = at.and_then(|at| tuple.items.get(at)).cloned();
                item.map_or_else(method, Ok)
            }
            Value::Tensor(_) | Value::Device(_) => {
                self.property(base, name)?.map_or_else(method, Ok)
            }
            _ => method(),
        }
    }

    /// `CONSTANTS.c0`, `ops.prim`, `__torch__.m.f`.
    fn member(&mut self, path: &str, name: &Name) -> Step<Value> {
        if path == "CONSTANTS" {
            let index: Option<usize> = name.strip_prefix('c').and_then(|n| n.parse().ok());
            let value = index.and_then(|index| self.cx.pool.get(index));
            return value.cloned().ok_or_else(|| Problem::Unbound(format!("CONSTANTS.{name}")));
        }
        let full = format!("{path}.{name}");
        Ok(Value::callee(match self.cx.archive.definition(&full) {
            Some(Definition::Class(class)) => Callee::Class(class.clone()),
            Some(Definition::Function(function)) => Callee::Function(function.clone()),
            None => Callee::Namespace(full),
        }))
    }

    /// `annotate(T, value)`, `x : T = value`: types lists, and converts tensors to numbers.
    pub(crate) fn annotate(&mut self, ty: &Type, value: Value) -> Step<Value> {
        match (&value, ty.given()) {
            (Value::List(list), Type::List(inner)) => {
                let inner = (**inner).clone();
                if let Some(Item::List { element, .. }) = self.state.heap.get_mut(list.0) {
                    element.get_or_insert(inner);
                }
                Ok(value)
            }
            (
                Value::Tensor(_),
                Type::Int | Type::Float | Type::Number | Type::Bool | Type::Complex,
            ) => self.scalar_of(&value, ty.given()),
            (Value::Int(e), Type::Float) => Ok(Value::Float(arith::to_float(e))),
            _ => Ok(value),
        }
    }

    pub(crate) fn get_item(&mut self, base: &Value, index: &Value) -> Step<Value> {
        match base {
            Value::Object(object) => self.module_item(*object, index),
            Value::Tensor(_) => self.aten("select", args![base, 0, index]),
            Value::Dict(dict) => {
                let found = self.entry_of(*dict, index)?;
                match found.and_then(|at| self.entries(*dict).get(at)) {
                    Some((_, value)) => Ok(value.clone()),
                    None => raises("KeyError"),
                }
            }
            Value::Str(_) | Value::UnknownStr(_) => self.aten("__getitem__", args![base, index]),
            Value::List(list) => {
                if let Some(parts) = self.dyn_list(*list) {
                    return self.part(&parts, index);
                }
                let items = self.items(*list);
                if matches!(index, Value::Int(_)) && index.as_int().is_none() {
                    let items = items.to_vec();
                    return self.any_of(items, index);
                }
                Ok(items[position(index, items.len())?].clone())
            }
            Value::Tuple(tuple) => Ok(tuple.items[position(index, tuple.items.len())?].clone()),
            _ => expected("a list, tuple or dict", base),
        }
    }

    fn entry_of(&mut self, dict: Ref, key: &Value) -> Step<Option<usize>> {
        self.steps(self.entries(dict).len())?;
        self.place_of(self.entries(dict).iter().map(|(key, _)| key), key)
    }

    pub(crate) fn set_item(&mut self, base: &Value, index: &Value, value: Value) -> Step<()> {
        match base {
            Value::List(list) => {
                if let Some(parts) = self.dyn_list(*list) {
                    return self.set_part(*list, &parts, index, &value);
                }
                if matches!(index, Value::Int(_)) && index.as_int().is_none() {
                    return self.set_any_of(*list, index, &value);
                }
                let at = position(index, self.items(*list).len())?;
                if let Some(slot) = self.items_mut(*list)?.get_mut(at) {
                    *slot = value;
                }
                Ok(())
            }
            Value::Dict(dict) => {
                let at = self.entry_of(*dict, index)?;
                let entries = self.entries_mut(*dict)?;
                match at.and_then(|at| entries.get_mut(at)) {
                    Some(entry) => entry.1 = value,
                    None => entries.push((index.clone(), value)),
                }
                Ok(())
            }
            _ => expected("a list or dict", base),
        }
    }

    pub(crate) fn slice(
        &mut self,
        base: &Value,
        start: &Value,
        end: &Value,
        step: &Value,
    ) -> Step<Value> {
        let known = |value: &Value| match value {
            Value::None => Ok(None),
            value => value.known_int().map(Some),
        };
        let pick =
            |length| positions(length, known(start)?, known(end)?, known(step)?.unwrap_or(1));
        match base {
            Value::List(list) => {
                if let Some(parts) = self.dyn_list(*list) {
                    return self.slice_dyn_list(&parts, start, end, step);
                }
                let is_unknown =
                    |bound: &Value| matches!(bound, Value::Int(e) if e.as_int().is_none());
                if (is_unknown(start) || is_unknown(end))
                    && let Some(element) = self.items(*list).first().and_then(element_type)
                {
                    let rows = self.stacked(self.items(*list).to_vec(), &element)?;
                    let all = DynList::rows(rows, element);
                    return self.slice_dyn_list(&all, start, end, step);
                }
                let at = pick(self.items(*list).len())?;
                self.steps(at.len())?;
                let items = at.into_iter().filter_map(|i| self.items(*list).get(i).cloned());
                self.list(items.collect(), self.element(base))
            }
            Value::Tuple(tuple) => {
                let at = pick(tuple.items.len())?;
                let items = at.into_iter().filter_map(|i| tuple.items.get(i).cloned()).collect();
                self.tuple(items, None)
            }
            Value::Str(_) | Value::UnknownStr(_) => {
                self.aten("slice", args![base, start, end, step])
            }
            _ => expected("a list, tuple or str", base),
        }
    }

    /// The type of the elements of a list, by its annotation or its numbers.
    pub(crate) fn element(&self, list: &Value) -> Option<Type> {
        let Value::List(list) = list else { return None };
        match self.state.heap.get(list.0)? {
            Item::List { element: None, items } => {
                element_type(items.first()?).filter(|element| *element != Type::Tensor)
            }
            Item::List { element, .. } => element.clone(),
            Item::DynList(parts) => Some(parts.element.clone()),
            _ => None,
        }
    }

    /// Whether a condition is true; `None` if that depends on data or cannot be proved.
    pub(crate) fn truth(&mut self, value: &Value) -> Step<Option<bool>> {
        Ok(match value {
            Value::Bool(e) | Value::Int(e) => self.decide(e),
            Value::Float(e) => crate::value::known(e).map(|f| f != 0.0),
            Value::None => Some(false),
            Value::Str(text) => Some(!text.is_empty()),
            Value::Tensor(name) => match self.elements_of(name).as_deref() {
                Some([only]) => self.decide(only),
                _ => None,
            },
            _ => return expected("a condition", value),
        })
    }
}

/// The positions that a slice of Python takes.
pub(crate) fn positions(
    length: usize,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Step<Vec<usize>> {
    if step == 0 {
        return raises("ValueError: slice step cannot be zero");
    }
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    // Where counting may begin and end: one before the first element if it goes backwards.
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let fit = |at: i64| {
        let at = if at < 0 { at.saturating_add(length) } else { at };
        at.clamp(least, most)
    };
    let (first, last) = if step > 0 { (0, length) } else { (length - 1, -1) };
    let (start, end) = (start.map_or(first, fit), end.map_or(last, fit));
    let (from, to) = if step > 0 { (start, end) } else { (-start, -end) };
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    let at = (from..to).step_by(stride).map(|at| if step > 0 { at } else { -at });
    Ok(at.filter_map(|at| usize::try_from(at).ok()).collect())
}

/// The position of an index, which may count from the end.
pub(crate) fn position(index: &Value, length: usize) -> Step<usize> {
    let found = pt2onnx_symbolic::axis(index.known_int()?, length);
    found.map_or_else(|| raises("IndexError"), Ok)
}
