//! One schema: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.

use super::types::Type;
use pt2onnx_fx::Name;

/// The schema of an overload.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// `aten`.
    pub namespace: Name,
    /// `add`.
    pub name: Name,
    /// `Tensor`; empty for the default overload.
    pub overload: Name,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Results in order.
    pub returns: Vec<Return>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// The length of a list of a fixed length, for which one number may stand: `int[2]`.
    pub length: Option<usize>,
    /// Whether it need not be given.
    pub has_default: bool,
    /// Whether it is given by name only.
    pub keyword: bool,
    /// The memory that it stands for, as results name it: `a` of `Tensor(a!)`.
    pub alias: Option<char>,
    /// Whether the operator writes into it.
    pub written: bool,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// Its type.
    pub ty: Type,
    /// The parameter whose memory it may be.
    pub alias: Option<char>,
}

impl Schema {
    /// Parses a schema; `None` if the text is not one, or has types that no call of a flattened program has.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('(')?;
        let (params, returns) = split_arrow(rest)?;
        let (namespace, name) = name.trim().split_once("::")?;
        let (name, overload) = name.split_once('.').unwrap_or((name, ""));
        let mut keyword = false;
        let mut parsed = Vec::new();
        for text in split(params) {
            if text == "*" {
                keyword = true;
            } else {
                parsed.push(Param { keyword, ..param(text)? });
            }
        }
        let returns = match returns.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
            Some(several) => split(several),
            None => vec![returns],
        };
        let returns = returns.into_iter().map(|text| {
            let text = Typed::parse(text.rsplit_once(' ').map_or(text, |(ty, name)| {
                // `Tensor values`, but `Dict(str, t)`.
                if name.contains(')') { text } else { ty }
            }))?;
            Some(Return { ty: text.ty, alias: text.alias })
        });
        Some(Self {
            namespace: namespace.into(),
            name: name.into(),
            overload: overload.into(),
            params: parsed,
            returns: returns.collect::<Option<_>>()?,
        })
    }

    /// `aten::add.Tensor`.
    pub fn qualified(&self) -> String {
        let dot = if self.overload.is_empty() { "" } else { "." };
        format!("{}::{}{dot}{}", self.namespace, self.name, self.overload)
    }
}

/// Splits at the arrow behind the parameters: `...) -> Tensor`.
fn split_arrow(text: &str) -> Option<(&str, &str)> {
    let (params, returns) = text.rsplit_once("->")?;
    Some((params.trim().strip_suffix(')')?, returns.trim()))
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
        Some((typed, _)) => (typed, true),
        None => (text, false),
    };
    let (ty, name) = typed.rsplit_once(' ')?;
    let typed = Typed::parse(ty)?;
    Some(Param {
        name: name.into(),
        ty: typed.ty,
        length: typed.length,
        has_default: default,
        keyword: false,
        alias: typed.alias,
        written: typed.written,
    })
}

/// A type with what is said of its memory and length.
struct Typed {
    ty: Type,
    length: Option<usize>,
    alias: Option<char>,
    written: bool,
}

impl Typed {
    /// Parses a base and what follows it: `(a!)`, `?`, `[]`, `[2]`, in any order.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(['(', '[', '?']).unwrap_or(text.len());
        let (base, mut rest) = text.split_at(end);
        let mut typed = Self { ty: Type::simple(base), length: None, alias: None, written: false };
        if base.is_empty() {
            let (parts, after) = bracket(rest)?;
            typed.ty = Type::Tuple(types(parts)?);
            rest = after;
        } else if matches!(base, "Dict" | "Future" | "Await" | "RRef") {
            let (parts, after) = bracket(rest)?;
            typed.ty = match (base, <[Type; 2]>::try_from(types(parts)?)) {
                ("Dict", Ok([key, value])) => Type::Dict(Box::new(key), Box::new(value)),
                _ => Type::Named(base.into()),
            };
            rest = after;
        }
        while let Some(sign) = rest.chars().next() {
            match sign {
                '?' => {
                    typed.ty = Type::Optional(Box::new(typed.ty));
                    rest = rest.get(1..)?;
                }
                '[' => {
                    let close = rest.find(']')?;
                    typed.length = rest.get(1..close)?.parse().ok();
                    typed.ty = Type::List(Box::new(typed.ty));
                    rest = rest.get(close + 1..)?;
                }
                '(' => {
                    let (alias, after) = bracket(rest)?;
                    typed.alias = alias.chars().next();
                    typed.written |= alias.contains('!');
                    rest = after;
                }
                _ => return None,
            }
            rest = rest.trim_start();
        }
        Some(typed)
    }
}

fn types(text: &str) -> Option<Vec<Type>> {
    split(text).into_iter().map(|part| Some(Typed::parse(part)?.ty)).collect()
}

/// What is in the parentheses at the start, and what follows them.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return Some((text.get(1..at)?, text.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_of_all_kinds() {
        let types = |text: &str| {
            let schema = Schema::parse(text).unwrap();
            let params: Vec<String> = schema
                .params
                .iter()
                .map(|p| {
                    let length = p.length.map(|n| n.to_string()).unwrap_or_default();
                    let written = if p.written { "!" } else { "" };
                    format!("{} {}{length}{written}", p.name, p.ty)
                })
                .collect();
            let returns: Vec<String> = schema.returns.iter().map(|r| r.ty.to_string()).collect();
            format!("{}: {} -> {}", schema.qualified(), params.join("; "), returns.join("; "))
        };
        for (text, expected) in [
            (
                "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
                "aten::add_.Tensor: self Tensor!; other Tensor; alpha number -> Tensor",
            ),
            (
                "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[]) -> (Tensor, Tensor)",
                "aten::max_pool2d_with_indices: self Tensor; kernel_size List[int]2; stride List[int]2 -> Tensor; Tensor",
            ),
            (
                "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                "aten::index.Tensor: self Tensor; indices List[Optional[Tensor]] -> Tensor",
            ),
            (
                "aten::Delete.Dict_str(Dict(str, t)(a!) self, str key) -> ()",
                "aten::Delete.Dict_str: self Dict[str, t]!; key str -> ",
            ),
            (
                "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                "aten::sum.dim_IntList: self Tensor; dim Optional[List[int]]1; keepdim bool; dtype Optional[dtype] -> Tensor",
            ),
            (
                "aten::items.str(Dict(str, t) self) -> ((str, t)[])",
                "aten::items.str: self Dict[str, t] -> List[Tuple[str, t]]",
            ),
            (
                "aten::max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)",
                "aten::max.dim: self Tensor; dim int -> Tensor; Tensor",
            ),
        ] {
            assert_eq!(types(text), expected);
        }
    }
}
