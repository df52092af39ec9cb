//! The inputs of the program: what the user says of each parameter.

use crate::{
    archive::Archive,
    control::phi::plain_meta,
    error::{Error, Result},
    eval::{Env, Evaluator, Step, unsupported},
    schema::Type,
    syntax::{ExprKind, Function, Param},
    types::Symbols,
    value::{Value, quantized::Kind},
};
use pt2onnx_fx::{Argument, ConstantValue, InputSpec, Name, TensorMeta};
use pt2onnx_symbolic::{Expr, Range};
use pt2onnx_tensor::DType;
use std::{cell::RefCell, collections::BTreeSet, fmt, sync::Arc};

/// The type or value of an input: `float32[batch,3,224,224]`, `16000`, `none`, `"none"`, `[]`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Given {
    Tensor(DType, Vec<Size>),
    /// A quantised tensor: `quint8[1,3]`. The element type is that of its integers.
    Quantized(DType, Vec<Size>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    None,
    /// A list, tuple or dict without items.
    Empty,
}

/// The size of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number.
    Known(usize),
    /// A name: the size is dynamic, and at least 1.
    Named(String),
    /// A name, and the least size: `n>=0`, `n>=4`.
    AtLeast(String, u32),
}

impl Size {
    /// None for what is neither a number nor a name: `-3`, a number that is too large, `n>=x`.
    fn parse(text: &str) -> Option<Self> {
        if let Ok(known) = text.parse() {
            return Some(Self::Known(known));
        }
        let (name, least) =
            text.split_once(">=").map_or((text, None), |(n, least)| (n, Some(least)));
        let name = name.trim();
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && !name.contains(['<', '>', '=']);
        match least {
            _ if !is_name => None,
            Some(least) => Some(Self::AtLeast(name.to_owned(), least.trim().parse().ok()?)),
            None => Some(Self::Named(name.to_owned())),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(n) => write!(f, "{n}"),
            Self::Named(name) => f.write_str(name),
            Self::AtLeast(name, least) => write!(f, "{name}>={least}"),
        }
    }
}

impl Given {
    /// Parses the text of `--input NAME=TEXT`.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Ok(tensor) = Self::tensor(text) {
            return tensor;
        }
        // Quotes make a text of what is a number or `none` without.
        if let Some(text) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            return Self::Str(text.to_owned());
        }
        match text {
            "[]" => return Self::Empty,
            "none" | "None" => return Self::None,
            "true" | "True" => return Self::Bool(true),
            "false" | "False" => return Self::Bool(false),
            _ => {}
        }
        let is_word = text.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_alphabetic());
        match (text.parse(), text.parse::<f64>()) {
            (Ok(int), _) => Self::Int(int),
            // `1e999` is none, but `inf` is one.
            (Err(_), Ok(float)) if float.is_finite() || is_word => Self::Float(float),
            _ => Self::Str(text.to_owned()),
        }
    }

    /// Parses `float32[n,4]`. The error says why the text is not the type of a tensor, if it has
    /// brackets.
    fn tensor(text: &str) -> std::result::Result<Self, Option<String>> {
        let (dtype, rest) = text.split_once('[').ok_or(None)?;
        let (own, kind) = (DType::from_name(dtype.trim()), Kind::named(dtype.trim()));
        let of: fn(DType, Vec<Size>) -> Self =
            if own.is_some() { Self::Tensor } else { Self::Quantized };
        let Some(ints) = own.or(kind.map(Kind::ints)) else {
            return Err(Some(format!("`{dtype}` is no element type")));
        };
        let sizes =
            rest.strip_suffix(']').ok_or_else(|| "the sizes do not end in `]`".to_owned())?;
        let sizes = sizes.split(',').map(str::trim).filter(|size| !size.is_empty());
        let sizes = sizes.map(|size| {
            Size::parse(size)
                .ok_or_else(|| format!("`{size}` is neither a size nor the name of one"))
        });
        let sizes = sizes.collect::<std::result::Result<Vec<_>, String>>()?;
        // As in ONNX models.
        let count = sizes.iter().try_fold(1usize, |all, size| match size {
            Size::Known(n) => all.checked_mul((*n).max(1)).filter(|n| *n <= 1 << 48),
            _ => Some(all),
        });
        count.ok_or_else(|| "no tensor has so many elements".to_owned())?;
        Ok(of(ints, sizes))
    }
}

/// Why a text is not a value of the type; none if it is a value of another type.
fn wrong(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("there is nothing behind `=`".to_owned());
    }
    let number = text.parse::<f64>().is_ok();
    let large = number.then(|| format!("`{text}` is too large for a number"));
    Given::tensor(text).err().flatten().or(large)
}

/// How an input of this type can be given.
fn example(path: &str, ty: &Type) -> String {
    let value = match ty {
        Type::Int | Type::Number => "16000",
        Type::Float => "0.5",
        Type::Bool => "true",
        Type::Str => "text",
        Type::Optional(_) | Type::None => "none",
        Type::List(item) => return example(&format!("{path}.0"), item),
        Type::Tuple(items) if !items.is_empty() => return example(&format!("{path}.0"), &items[0]),
        Type::Dict(_, item) => return example(&format!("{path}.key"), item),
        _ => "float32[batch,3,224,224]",
    };
    format!("{path}={value}")
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(dtype, sizes) | Self::Quantized(dtype, sizes) => {
                let sizes: Vec<String> = sizes.iter().map(Size::to_string).collect();
                let quantised = if matches!(self, Self::Quantized(..)) { "q" } else { "" };
                write!(f, "{quantised}{dtype}[{}]", sizes.join(","))
            }
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Str(text) => f.write_str(text),
            Self::None => f.write_str("none"),
            Self::Empty => f.write_str("[]"),
        }
    }
}

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
    let params = function.params.iter().skip(1);
    Ok(params.map(|param| (param.name.to_string(), type_of(param))).collect())
}

/// A method as a line of Python: `forward(x: Tensor, scale: float = 2.0) -> Tensor`; `self` is left
/// out.
pub fn signature(function: &Function) -> String {
    let params = function.params.iter().skip(1).map(|param| {
        let default = param.default.as_ref().map(|value| format!(" = {}", literal(value)));
        format!("{}: {}{}", param.name, type_of(param), default.unwrap_or_default())
    });
    let params: Vec<String> = params.collect();
    let returns = function.returns.as_ref().map(|ty| format!(" -> {}", Type::of(ty)));
    format!("{}({}){}", function.name, params.join(", "), returns.unwrap_or_default())
}

/// The text of a literal; `...` for other expressions.
fn literal(value: &crate::syntax::Expr) -> String {
    match &value.kind {
        ExprKind::None => "None".to_owned(),
        ExprKind::Bool(true) => "True".to_owned(),
        ExprKind::Bool(false) => "False".to_owned(),
        ExprKind::Int(i) => i.to_string(),
        ExprKind::Float(f) => format!("{f:?}"),
        ExprKind::Str(text) => format!("{text:?}"),
        ExprKind::Neg(inner) => format!("-{}", literal(inner)),
        _ => "...".to_owned(),
    }
}

fn type_of(param: &Param) -> Type {
    param.ty.as_ref().map_or(Type::Tensor, Type::of)
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
        for param in function.params.iter().skip(1) {
            let ty = type_of(param);
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
        let mut params = function.params.iter().skip(1);
        if !is_missing {
            let unused = told.unused().and_then(|path| {
                let top = path.split('.').next()?;
                let param = params.find(|param| &*param.name == top)?;
                Some(no_part(path, top, &type_of(param)))
            });
            return unused.map_or(Ok(args), Err);
        }
        let first = params.clone().next().map(|param| example(&param.name, &type_of(param)));
        let all = params.map(|param| format!("`{}: {}`", param.name, type_of(param)));
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
                    why: if let Given::Str(text) = given { wrong(text) } else { None },
                    example: example(path, ty).into(),
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
