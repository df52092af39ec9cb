//! The overload that a call means: whether values fit parameters, and their conversion.

use crate::{
    error::Problem,
    eval::{Evaluator, Step, call::Kwargs, is_plain},
    schema::{self, Param, Schema, Type},
    value::Value,
};
use pt2onnx_fx::Name;

/// Arguments by the position of their parameter; `None` is not given.
pub(crate) type Bound = Vec<Option<Value>>;

impl Evaluator<'_> {
    /// The overload that PyTorch chooses: the first that fits, or else that fits with conversions.
    pub(crate) fn overload(
        &mut self,
        name: &str,
        args: &[Value],
        kwargs: &Kwargs,
    ) -> Step<(Schema, Bound)> {
        let mut overloads = schema::overloads(name);
        if overloads.is_empty() {
            let told = self.cx.types.schemas(name);
            let known = |text: &String| {
                Schema::parse(text).unwrap_or_else(|| self.schema_of_call(text, args, kwargs))
            };
            overloads = told.iter().map(known).collect();
        }
        let passes: &[bool] = if overloads.len() == 1 { &[true] } else { &[false, true] };
        let is_barred = |schema: &Schema| name == "aten::view" && schema.overload == "dtype";
        for &convert in passes {
            for schema in overloads.iter().filter(|schema| !is_barred(schema)) {
                if let Some(bound) = self.bind(schema, args, kwargs, convert) {
                    return Ok((schema.clone(), self.converted(schema, bound)?));
                }
            }
        }
        let given = args.iter().chain(kwargs.iter().map(|(_, value)| value));
        let is_dyn_list =
            |value: &&Value| matches!(value, Value::List(list) if self.dyn_list(*list).is_some());
        if !overloads.is_empty()
            && let Some(list) = given.into_iter().find(is_dyn_list)
        {
            let expected = "a list whose length is a known integer";
            return Err(Problem::Kind { expected, found: self.describe(list) });
        }
        let mut kinds: Vec<String> = args.iter().map(|a| self.describe(a)).collect();
        kinds.extend(kwargs.iter().map(|(name, v)| format!("{name}={}", self.describe(v))));
        Err(Problem::NoOverload(format!("{name}({})", kinds.join(", "))))
    }

    /// Takes those out of all arguments of an overload that calls give by name.
    pub(crate) fn keywords(&self, name: &str, args: &mut Vec<Value>) -> Kwargs {
        let overloads = schema::overloads(name);
        let fits = |schema: &&Schema| {
            let mut pairs = schema.params.iter().zip(&*args);
            schema.params.len() == args.len()
                && pairs.all(|(param, value)| self.fits(value, &param.ty, param.length, true))
        };
        let Some(schema) = overloads.iter().find(fits) else {
            return Kwargs::new();
        };
        let first = schema.params.iter().position(|param| param.keyword).unwrap_or(args.len());
        let named = schema.params.iter().skip(first).map(|param| param.name.clone());
        named.zip(args.split_off(first)).collect()
    }

    /// The schema that a call suggests of an operator with a known name only.
    fn schema_of_call(&self, operator: &str, args: &[Value], kwargs: &Kwargs) -> Schema {
        let param = |name: Name, keyword: bool, value: &Value| Param {
            name,
            ty: self.type_of(value),
            length: None,
            has_default: false,
            keyword,
            alias: None,
            written: false,
        };
        let positional = args.iter().map(|value| param("".into(), false, value));
        let named = kwargs.iter().map(|(name, value)| param(name.clone(), true, value));
        let params = positional.chain(named).collect();
        let (namespace, rest) = operator.split_once("::").unwrap_or(("", operator));
        let (name, overload) = rest.split_once('.').unwrap_or((rest, ""));
        let (namespace, name, overload) = (namespace.into(), name.into(), overload.into());
        Schema { namespace, name, overload, params, returns: Vec::new() }
    }

    fn type_of(&self, value: &Value) -> Type {
        let items = match value {
            Value::Tensor(_) => return Type::Tensor,
            Value::Float(_) => return Type::Float,
            Value::Bool(_) => return Type::Bool,
            Value::Str(_) | Value::UnknownStr(_) => return Type::Str,
            Value::List(list) => self.items(*list),
            Value::Tuple(tuple) => &tuple.items,
            _ => return Type::Any,
        };
        let first = || items.first().map(|first| self.type_of(first));
        Type::List(Box::new(self.element(value).or_else(first).unwrap_or(Type::Any)))
    }

    /// The type of a value, with that of its elements.
    pub(crate) fn describe(&self, value: &Value) -> String {
        match value {
            Value::List(list) if self.dyn_list(*list).is_some() => {
                "a list whose length depends on data".to_owned()
            }
            Value::List(list) => match self.items(*list).first() {
                Some(first) => format!("List[{}]", first.kind()),
                None => "List[]".to_owned(),
            },
            other => other.kind().to_owned(),
        }
    }

    fn bind(
        &self,
        schema: &Schema,
        args: &[Value],
        kwargs: &Kwargs,
        convert: bool,
    ) -> Option<Bound> {
        let mut rest = args.iter();
        let mut named = 0;
        let mut bound = Bound::with_capacity(schema.params.len());
        for (at, param) in schema.params.iter().enumerate() {
            let positional = if param.keyword { None } else { rest.as_slice().first() };
            let value = if let Some(value) = positional {
                let last = schema.params.get(at + 1).is_none_or(|next| next.keyword);
                let list = matches!(value, Value::List(_) | Value::Tuple(_));
                if convert
                    && last
                    && !list
                    && param.length.is_none()
                    && let Type::List(inner) = param.ty.given()
                    && rest.as_slice().iter().all(|v| self.fits(v, inner, None, true))
                {
                    // `torch.view(x, 1, 2)`: the last list takes what follows.
                    bound.push(Some(Value::tuple(rest.as_slice().to_vec())));
                    rest = [].iter();
                    continue;
                }
                rest.next();
                value
            } else if let Some(value) = keyword(kwargs, param) {
                named += 1;
                value
            } else if param.has_default {
                bound.push(None);
                continue;
            } else {
                return None;
            };
            if !self.fits(value, &param.ty, param.length, convert) {
                return None;
            }
            bound.push(Some(value.clone()));
        }
        (rest.as_slice().is_empty() && named == kwargs.len()).then_some(bound)
    }

    /// Whether a value fits a type, also if it must be converted for that.
    fn fits(&self, value: &Value, ty: &Type, length: Option<usize>, convert: bool) -> bool {
        let tensor = convert && matches!(value, Value::Tensor(_));
        match (ty, value) {
            (Type::Optional(_), Value::None) => true,
            (Type::Optional(inner), Value::Optional(maybe)) => {
                self.fits(&maybe.value, inner, length, convert)
            }
            (Type::Optional(inner), _) => self.fits(value, inner, length, convert),
            (Type::DType | Type::Layout | Type::MemoryFormat, Value::Int(_)) | (Type::Any, _) => {
                true
            }
            (Type::Str, Value::UnknownStr(_)) => false,
            _ if is_plain(value, ty) => true,
            (Type::Int | Type::Float | Type::Complex | Type::Number, _) => tensor,
            (Type::Device, Value::Str(_)) => convert,
            (Type::List(_), Value::List(list)) if self.dyn_list(*list).is_some() => false,
            (Type::List(inner), Value::List(list)) => {
                let items = self.items(*list);
                match self.element(value) {
                    Some(element) if items.is_empty() => element_fits(&element, inner),
                    _ => items.iter().all(|item| self.fits(item, inner, None, false)),
                }
            }
            (Type::List(inner), Value::Tuple(tuple)) => {
                tuple.items.iter().all(|item| self.fits(item, inner, None, false))
            }
            (Type::List(inner), Value::Int(_) | Value::Float(_)) => {
                length.is_some() && self.fits(value, inner, None, false)
            }
            (Type::Tuple(_), Value::Tuple(_)) | (Type::Dict(..), Value::Dict(_)) => true,
            (Type::Tensor, Value::Quantized(_)) => true,
            (Type::Named(name), Value::Packed(_)) => name.starts_with("__torch__.torch.classes."),
            // A type variable.
            (Type::Named(name), _) => name == "t",
            _ => false,
        }
    }

    fn converted(&mut self, schema: &Schema, bound: Bound) -> Step<Bound> {
        let values = bound.into_iter().zip(&schema.params).map(|(value, param)| {
            value.map(|value| self.convert(value, &param.ty, param.length)).transpose()
        });
        values.collect()
    }

    fn convert(&mut self, value: Value, ty: &Type, length: Option<usize>) -> Step<Value> {
        Ok(match (ty.given(), &value) {
            (Type::List(inner), Value::Int(_) | Value::Float(_)) => {
                Value::tuple(vec![self.convert(value, inner, None)?; length.unwrap_or(1)])
            }
            (Type::List(inner), Value::Tuple(tuple)) => {
                let items = tuple.items.iter().map(|v| self.convert(v.clone(), inner, None));
                Value::tuple(items.collect::<Step<_>>()?)
            }
            (Type::Int | Type::Float | Type::Complex | Type::Number, Value::Tensor(_)) => {
                self.scalar_of(&value, ty.given())?
            }
            (Type::Float, Value::Int(e)) => Value::Float(crate::eval::arith::to_float(e)),
            _ => value,
        })
    }
}

/// The argument of a parameter by its name. Old code says `input` for `self`.
fn keyword<'v>(kwargs: &'v Kwargs, param: &Param) -> Option<&'v Value> {
    let old = |name: &str| name == "input" && param.name == "self";
    kwargs.iter().find(|(name, _)| *name == param.name || old(name)).map(|(_, value)| value)
}

fn element_fits(element: &Type, ty: &Type) -> bool {
    match (element, ty) {
        (_, Type::Any) => true,
        (Type::None, Type::Optional(_)) => true,
        (Type::Optional(a), Type::Optional(b)) => element_fits(a, b),
        (_, Type::Optional(inner)) => element_fits(element, inner),
        (_, Type::Named(name)) => name == "t",
        _ => element == ty,
    }
}
