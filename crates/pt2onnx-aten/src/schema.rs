//! Op schemas in PyTorch's notation: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

use pt2onnx_fx::graph::Argument;
use std::fmt;

/// The parsed schema of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The name, such as `aten::add.Tensor`. The default overload has no suffix.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The results' types, as they are written.
    pub returns: Vec<String>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParamType,
    /// Its value if it is not given.
    pub default: Option<Argument>,
    /// Whether the op writes into it.
    pub mutated: bool,
}

/// The type of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamType {
    /// The name of the type, or of the list's elements: `Tensor`, `int`, `SymInt`, `Scalar`, `bool`, `str`, `ScalarType`, ...
    pub base: String,
    /// Whether it is a list.
    pub list: bool,
    /// Whether the elements of the list may be None.
    pub optional_elements: bool,
    /// Whether it may be None.
    pub optional: bool,
}

impl ParamType {
    /// The type `base`: not a list, never None.
    pub fn of(base: &str) -> Self {
        let base = base.to_owned();
        Self { base, list: false, optional_elements: false, optional: false }
    }

    /// Whether it is one of these types, not a list, and never None.
    pub fn is_one_of(&self, bases: &[&str]) -> bool {
        !self.list && !self.optional && bases.contains(&&*self.base)
    }

    /// Whether it is a list of one of these types, and never None itself.
    pub fn is_list_of(&self, bases: &[&str]) -> bool {
        self.list && !self.optional && bases.contains(&&*self.base)
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |on: bool, mark| if on { mark } else { "" };
        let (list, elements) = (mark(self.list, "[]"), mark(self.optional_elements, "?"));
        write!(f, "{}{elements}{list}{}", self.base, mark(self.optional, "?"))
    }
}

impl Schema {
    /// Parses a schema. Returns `None` if the text is not a schema.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('(')?;
        let (params, returns) = rest.rsplit_once("->")?;
        let params = params.trim().strip_suffix(')')?;
        let params =
            split(params).into_iter().filter(|p| *p != "*").map(param).collect::<Option<_>>()?;
        let returns = returns.trim();
        let returns =
            returns.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(returns);
        let returns = split(returns)
            .into_iter()
            .map(|r| r.split(' ').next().unwrap_or(r).to_owned())
            .collect();
        Some(Self { name: name.trim().to_owned(), params, returns })
    }
}

/// The parts between commas that are outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|c| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|p| !p.is_empty()).collect()
}

fn param(text: &str) -> Option<Param> {
    let (typed, default) = match text.split_once('=') {
        Some((typed, default)) => (typed, Some(literal(default))),
        None => (text, None),
    };
    // A type can have spaces: `Tensor(a -> *)`.
    let (ty, name) = typed.rsplit_once(' ')?;
    let mutated = ty.contains('!');
    // The alias annotation in `Tensor(a!)` is not part of the type.
    let mut bare = String::new();
    let mut depth = 0;
    for c in ty.chars() {
        depth += i32::from(c == '(');
        if depth == 0 {
            bare.push(c);
        }
        depth -= i32::from(c == ')');
    }
    let (inner, optional) = match bare.strip_suffix('?') {
        Some(inner) => (inner, true),
        None => (&*bare, false),
    };
    let (element, list) = match inner.strip_suffix(']').and_then(|i| i.rsplit_once('[')) {
        Some((element, _)) => (element, true),
        None => (inner, false),
    };
    let (base, optional_elements) = match element.strip_suffix('?') {
        Some(base) => (base, true),
        None => (element, false),
    };
    let ty = ParamType { base: base.to_owned(), list, optional_elements, optional };
    Some(Param { name: name.to_owned(), ty, default, mutated })
}

/// A default value. The losses' `Mean` and `Sum` are numbers.
fn literal(text: &str) -> Argument {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    match text {
        "None" => Argument::None,
        "True" => Argument::Bool(true),
        "False" => Argument::Bool(false),
        "Mean" => Argument::Int(1),
        "Sum" => Argument::Int(2),
        "contiguous_format" => Argument::MemoryFormat(pt2onnx_fx::graph::MemoryFormat::Contiguous),
        "long" => Argument::DType(pt2onnx_tensor::DType::I64),
        "float" => Argument::DType(pt2onnx_tensor::DType::F32),
        _ => match (inner, text.parse(), text.parse()) {
            (Some(list), _, _) => {
                Argument::Ints(list.split(',').filter_map(|i| i.trim().parse().ok()).collect())
            }
            (None, Ok(int), _) => Argument::Int(int),
            (None, _, Ok(float)) => Argument::Float(float),
            _ => Argument::String(text.trim_matches(['"', '\'']).into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_pytorchs_schemas() {
        let s = Schema::parse(
            "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], bool ceil_mode=False) -> (Tensor, Tensor)",
        )
        .unwrap();
        assert_eq!((s.name.as_str(), s.returns.len()), ("aten::max_pool2d_with_indices", 2));
        assert_eq!(s.params[2].default, Some(Argument::Ints(vec![])));
        assert!(s.params[1].ty.list && s.params[1].ty.base == "int");

        let s = Schema::parse(
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        )
        .unwrap();
        assert!(s.params[0].mutated && s.params[0].ty.base == "Tensor");
        assert_eq!(s.params[2].default, Some(Argument::Int(1)));

        let s =
            Schema::parse("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor").unwrap();
        assert!(
            s.params[1].ty.list && s.params[1].ty.optional_elements && !s.params[1].ty.optional
        );

        let s = Schema::parse(
            "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        );
        assert!(s.unwrap().params[1].ty.optional);
        assert_eq!(Schema::parse("not a schema"), None);
    }
}
