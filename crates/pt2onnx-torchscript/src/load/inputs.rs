//! The inputs of the program: what the user says of each parameter.

use crate::{
    control::phi::plain_meta,
    error::{Error, Result},
    eval::{Env, Evaluator, Step, unsupported},
    schema::Type,
    types::Symbols,
    value::Value,
};
use pt2onnx_fx::{Argument, ConstantValue, InputSpec, Name, TensorMeta};
use pt2onnx_symbolic::{Expr, Range};
use pt2onnx_tensor::DType;
use pt2onnx_torchscript_archive::{Archive, Given, Size, syntax::Function};
use std::{cell::RefCell, collections::BTreeSet, sync::Arc};

/// The method of the saved module.
pub(crate) fn method_of(archive: &Archive, method: &str) -> Result<Arc<Function>> {
    let class = archive.root_class()?;
    class.class.method(method).cloned().ok_or_else(|| {
        let known = class.class.methods.iter().map(|m| m.name.to_string()).collect();
        Error::NoMethod { method: method.to_owned(), known }
    })
}

/// The parameters of a method of the saved module with their types, `self` left out.
///
/// # Errors
/// There is no such method.
pub fn parameters(archive: &Archive, method: &str) -> Result<Vec<(String, Type)>> {
    let function = method_of(archive, method)?;
    Ok(function.inputs().map(|param| (param.name.to_string(), param.declared_type())).collect())
}

/// The types and values of inputs by path: `x`, `images.0`.
pub(crate) struct GivenInputs {
    told: Vec<(String, Given)>,
    /// The paths that a type has a place for.
    used: RefCell<BTreeSet<String>>,
}

impl GivenInputs {
    /// Paths that start with the name of a parameter.
    pub(crate) fn of(given: Vec<(String, Given)>) -> Self {
        Self { told: given, used: RefCell::default() }
    }

    /// Replaces positions at the start of paths by the names of parameters.
    pub(crate) fn rename(
        given: Vec<(String, Given)>,
        params: &[(String, Type)],
    ) -> Result<Vec<(String, Given)>> {
        let mut told: Vec<(String, Given)> = Vec::with_capacity(given.len());
        for (path, given) in given {
            let (first, rest) = match path.split_once('.') {
                Some((first, rest)) => (first, format!(".{rest}")),
                None => (path.as_str(), String::new()),
            };
            let by_name = params.iter().find(|(name, _)| name == first);
            let Some((name, _)) = by_name.or_else(|| params.get(first.parse::<usize>().ok()?))
            else {
                let known = params.iter().map(|(n, ty)| format!("`{n}: {ty}`")).collect();
                return Err(Error::NoInput { name: path.clone(), known });
            };
            let path = format!("{name}{rest}");
            if told.iter().any(|(other, _)| *other == path) {
                return Err(Error::InputTwice(path));
            }
            told.push((path, given));
        }
        Ok(told)
    }

    fn get(&self, path: &str) -> Option<&Given> {
        let found = self.told.iter().find(|(p, _)| p == path).map(|(_, given)| given)?;
        self.used.borrow_mut().insert(path.to_owned());
        Some(found)
    }

    /// A path that no type has a place for.
    fn unused(&self) -> Option<&str> {
        let used = self.used.borrow();
        self.told.iter().map(|(path, _)| path.as_str()).find(|path| !used.contains(*path))
    }

    /// The next parts of the paths below a path, in the given order.
    fn within(&self, path: &str) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for (told, _) in &self.told {
            let rest = told.strip_prefix(path).and_then(|rest| rest.strip_prefix('.'));
            if let Some(part) = rest.and_then(|rest| rest.split('.').next())
                && !parts.iter().any(|p| p == part)
            {
                parts.push(part.to_owned());
            }
        }
        parts
    }
}

fn no_part(path: &str, of: &str, ty: &Type) -> Error {
    Error::NoPart { path: path.to_owned(), name: of.to_owned(), ty: ty.to_string() }
}

/// Why an input has no value.
pub(crate) enum Lack {
    /// Its type is missing.
    Untold,
    Other(Error),
}

impl Evaluator<'_> {
    /// The arguments of a method.
    pub(crate) fn arguments(
        &mut self,
        function: &Function,
        told: &GivenInputs,
    ) -> Result<Vec<Value>> {
        let mut args = Vec::new();
        let mut is_missing = false;
        for param in function.inputs() {
            let ty = param.declared_type();
            match self.input(&param.name, &ty, told) {
                Ok(value) => args.push(value),
                Err(Lack::Other(error)) => return Err(error),
                Err(Lack::Untold) => match &param.default {
                    Some(default) => {
                        let value = self.eval(default, &Env::default());
                        args.push(value.map_err(|problem| self.error(problem))?);
                    }
                    None => is_missing = true,
                },
            }
        }
        let mut params = function.inputs();
        if !is_missing {
            let unused = told.unused().and_then(|path| {
                let top = path.split('.').next()?;
                let param = params.find(|param| &*param.name == top)?;
                Some(no_part(path, top, &param.declared_type()))
            });
            return unused.map_or(Ok(args), Err);
        }
        let first =
            params.clone().next().map(|param| Given::example(&param.name, &param.declared_type()));
        let all = params.map(|param| format!("`{}: {}`", param.name, param.declared_type()));
        Err(Error::Untold { missing: all.collect(), example: first.unwrap_or_default() })
    }

    fn input(
        &mut self,
        path: &str,
        ty: &Type,
        told: &GivenInputs,
    ) -> std::result::Result<Value, Lack> {
        let failed = |ev: &Self, problem| Lack::Other(ev.error(problem));
        if let Some(given) = told.get(path) {
            let value = self.leaf(path, ty, given);
            return value.map_err(|problem| failed(self, problem)).and_then(|value| {
                let misfit = || Error::Misfit {
                    name: path.to_owned(),
                    given: given.to_string(),
                    ty: ty.to_string(),
                    why: if let Given::Str(text) = given { Given::flaw(text) } else { None },
                    example: Given::example(path, ty).into(),
                };
                value.ok_or_else(|| Lack::Other(misfit()))
            });
        }
        let parts = told.within(path);
        if parts.is_empty() {
            return Err(Lack::Untold);
        }
        let part = |name: &str| format!("{path}.{name}");
        let made = match ty.given() {
            Type::Tuple(types) => {
                let mut items = Vec::new();
                for (at, ty) in types.iter().enumerate() {
                    items.push(self.input(&part(&at.to_string()), ty, told)?);
                }
                self.tuple(items, None)
            }
            Type::Dict(_, inner) => {
                let mut entries = Vec::new();
                for name in &parts {
                    let value = self.input(&part(name), inner, told)?;
                    entries.push((Value::str(name), value));
                }
                self.dict(entries)
            }
            Type::Named(class) => match self.cx.archive.class(class).cloned() {
                Some(class) if class.class.base.as_deref() == Some("NamedTuple") => {
                    let mut items = Vec::new();
                    for (at, (name, ty, _)) in class.class.attributes.iter().enumerate() {
                        let by_name = parts.iter().any(|p| *p == **name);
                        let path = if by_name { part(name) } else { part(&at.to_string()) };
                        items.push(self.input(&path, &Type::of(ty), told)?);
                    }
                    self.tuple(items, Some(class))
                }
                _ => unsupported(format!("an input of type {class}")),
            },
            list @ (Type::List(_) | Type::Any | Type::Union(_)) => {
                let inner = match list {
                    Type::List(inner) => inner,
                    other => other,
                };
                let mut items = Vec::new();
                for at in 0..parts.len() {
                    items.push(self.input(&part(&at.to_string()), inner, told)?);
                }
                self.list(items, Some(inner.clone()))
            }
            other => {
                let first = parts.first().map(|name| part(name)).unwrap_or_default();
                return Err(Lack::Other(no_part(&first, path, other)));
            }
        };
        made.map_err(|problem| failed(self, problem))
    }

    /// An input of one value; `None` if it does not fit the type.
    fn leaf(&mut self, path: &str, ty: &Type, given: &Given) -> Step<Option<Value>> {
        let any = matches!(ty.given(), Type::Any | Type::Union(_));
        let optional = any || matches!(ty, Type::Optional(_));
        if *given == Given::Empty {
            return match ty.given() {
                Type::List(inner) => self.list(Vec::new(), Some((**inner).clone())).map(Some),
                Type::Dict(..) => self.dict(Vec::new()).map(Some),
                Type::Tuple(types) if types.is_empty() => self.tuple(Vec::new(), None).map(Some),
                _ => Ok(None),
            };
        }
        let value = match (given, ty.given()) {
            (Given::Tensor(dtype, sizes), other) if any || *other == Type::Tensor => {
                return self.tensor_input(path, *dtype, sizes).map(Some);
            }
            (Given::Quantized(dtype, sizes), other) if any || *other == Type::Tensor => {
                return self.quantized_input(path, *dtype, sizes).map(Some);
            }
            // A number that stays free is a 0-d tensor.
            (Given::Tensor(dtype, sizes), Type::Int | Type::Float | Type::Bool)
                if sizes.is_empty() && Type::of_elements(*dtype) == *ty.given() =>
            {
                let tensor = self.tensor_input(path, *dtype, sizes)?;
                return self.scalar_of(&tensor, ty.given()).map(Some);
            }
            (Given::None, other) if optional || *other == Type::None => Value::None,
            (Given::Int(i), Type::Float) => Value::float(*i as f64),
            (Given::Int(i), Type::Bool) => Value::bool(*i != 0),
            (Given::Int(i), Type::Int | Type::Number | Type::Any | Type::Union(_)) => (*i).into(),
            (Given::Float(f), Type::Float | Type::Number | Type::Any | Type::Union(_)) => {
                (*f).into()
            }
            (Given::Bool(b), Type::Bool | Type::Any | Type::Union(_)) => (*b).into(),
            (Given::Str(text), Type::Str) => text.as_str().into(),
            _ => return Ok(None),
        };
        let constant = match (&value, value.as_f64()) {
            (Value::Float(_), Some(f)) => ConstantValue::Float(f),
            (Value::Bool(_), Some(f)) => ConstantValue::Bool(f != 0.0),
            (Value::Str(text), _) => ConstantValue::String((**text).into()),
            _ => value.as_int().map_or(ConstantValue::None, ConstantValue::Int),
        };
        let name = self.fresh(path);
        let input = self.argument(&value, ty)?;
        self.interface.inputs.push(input);
        self.interface.specs.push(InputSpec::Constant { name, value: constant });
        Ok(Some(value))
    }

    /// A tensor of the user.
    pub(crate) fn tensor_input(&mut self, path: &str, dtype: DType, sizes: &[Size]) -> Step<Value> {
        let mut dims = Vec::with_capacity(sizes.len());
        for size in sizes {
            let (name, least) = match size {
                Size::Known(n) => {
                    let Ok(n) = i64::try_from(*n) else {
                        return unsupported("a size of more than 63 bits");
                    };
                    dims.push(Expr::int(n));
                    continue;
                }
                Size::Named(name) => (name, 1),
                Size::AtLeast(name, least) => (name, *least),
            };
            if Symbols::makes(name) {
                return unsupported(format!(
                    "a size that is called `{name}`, as sizes that depend on data are,"
                ));
            }
            let symbol = Expr::symbol(name);
            self.state.facts.constraints.constrain(&symbol, Range::at_least(least.into()));
            dims.push(symbol);
        }
        let name = self.new_input(path, plain_meta(dtype, dims));
        self.interface.specs.push(InputSpec::UserInput(Argument::Tensor(name.clone())));
        Ok(Value::Tensor(name))
    }

    /// A new tensor of the program's inputs.
    pub(crate) fn new_input(&mut self, wish: &str, meta: TensorMeta) -> Name {
        let name = self.fresh(wish);
        self.declare(&name, meta);
        self.interface.inputs.push(Argument::Tensor(name.clone()));
        name
    }
}
