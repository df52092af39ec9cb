//! Parses a schema's text into its parts.

use std::{error, fmt};

/// The deepest nesting of types: that of all texts that pt2onnx reads (`pt2onnx_symbolic::text`).
const MAX_NESTING: usize = 64;

/// The schema of an overload.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema<'a> {
    /// `aten`.
    pub namespace: &'a str,
    /// `add`.
    pub name: &'a str,
    /// `Tensor`; empty for the default overload.
    pub overload: &'a str,
    /// Parameters in order.
    pub params: Vec<Param<'a>>,
    /// Results in order.
    pub returns: Vec<Slot<'a>>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub slot: Slot<'a>,
    /// The text of its value if it is not given.
    pub default: Option<&'a str>,
    /// Whether it is given by name only.
    pub keyword: bool,
}

/// The type of a parameter or result, and its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot<'a> {
    /// The type.
    pub ty: Type<'a>,
    /// The length of a list of a fixed length, for which one number may stand: `int[2]`.
    pub length: Option<usize>,
    /// The name of the memory: `a` of `Tensor(a!)`. A result with the name of a parameter may share
    /// its memory.
    pub alias: Option<char>,
    /// Whether the operator writes into it.
    pub written: bool,
}

/// A type. Its text is that of schemas, without names of memory and lengths.
#[derive(Clone, Debug, PartialEq)]
pub enum Type<'a> {
    /// `Tensor`, `int`, `SymInt`, `Scalar`, a type variable, ...
    Named(&'a str),
    /// `int[]`.
    List(Box<Type<'a>>),
    /// `int?`.
    Optional(Box<Type<'a>>),
    /// `Dict(str, t)`, and the tuple `(str, t)`, whose name is empty.
    Generic(&'a str, Vec<Type<'a>>),
}

/// The reason why a text is not a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError(String);

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for SchemaError {}

impl<'a> Schema<'a> {
    /// Parses a schema such as `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) ->
    /// Tensor`.
    ///
    /// # Errors
    /// The reason why the text is not one. Schemas that end their parameters with `...` are not
    /// read, nor those with types more than 64 deep.
    pub fn parse(text: &'a str) -> Result<Self, SchemaError> {
        let no = |reason: &str| SchemaError(reason.to_owned());
        let (name, rest) = text.split_once('(').ok_or_else(|| no("no `(` begins parameters"))?;
        let (params, returns) =
            rest.rsplit_once("->").ok_or_else(|| no("no `->` is before results"))?;
        let params = params.trim().strip_suffix(')');
        let params = params.ok_or_else(|| no("no `)` ends the parameters"))?;
        let (namespace, name) =
            name.trim().split_once("::").ok_or_else(|| no("its name has no namespace"))?;
        let (name, overload) = name.split_once('.').unwrap_or((name, ""));
        let mut keyword = false;
        let mut parsed = Vec::new();
        for text in items(params) {
            if text == "*" {
                keyword = true;
            } else {
                parsed.push(Param { keyword, ..Param::parse(text)? });
            }
        }
        let returns = returns.trim();
        let returns = match returns.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
            Some(several) => items(several),
            None => vec![returns],
        };
        // A result may have a name: `Tensor values`. The space of `Dict(str, t)` is part of the
        // type.
        let bare = |text: &'a str| match text.rsplit_once(' ') {
            Some((ty, name)) if !name.contains(')') => ty,
            _ => text,
        };
        let returns = returns.into_iter().map(|text| Slot::parse(bare(text)));
        let returns = returns.collect::<Result<_, _>>()?;
        Ok(Self { namespace, name, overload, params: parsed, returns })
    }
}

/// The parts between commas that are outside of brackets and of strings.
pub fn items(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut escaped) = (0, None, false);
    let parts = text.split(|c| {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None => {
                quote = Some(c).filter(|c| matches!(c, '"' | '\''));
                depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
            }
        }
        c == ',' && depth == 0 && quote.is_none()
    });
    parts.map(str::trim).filter(|p| !p.is_empty()).collect()
}

impl<'a> Param<'a> {
    fn parse(text: &'a str) -> Result<Self, SchemaError> {
        let (typed, default) = match text.split_once('=') {
            Some((typed, default)) => (typed, Some(default.trim())),
            None => (text, None),
        };
        // A type can have spaces: `Tensor(a -> *)`.
        let (ty, name) = typed.rsplit_once(' ').ok_or_else(|| match typed {
            "..." => SchemaError("`...` is not supported".to_owned()),
            _ => SchemaError(format!("the parameter `{typed}` has no type or no name")),
        })?;
        Ok(Self { name, slot: Slot::parse(ty)?, default, keyword: false })
    }
}

impl<'a> Slot<'a> {
    fn parse(text: &'a str) -> Result<Self, SchemaError> {
        let wrong = || SchemaError(format!("`{text}` is not a type, or nests too deeply"));
        Self::nested(text, MAX_NESTING).ok_or_else(wrong)
    }

    /// Parses a base and what follows it: `(a!)`, `?`, `[]`, `[2]`, in any order. Types may stand
    /// in each other `left` times.
    fn nested(text: &'a str, mut left: usize) -> Option<Self> {
        let text = text.trim();
        let (base, mut rest) = text.split_at(text.find(['(', '[', '?']).unwrap_or(text.len()));
        let mut ty = Type::Named(base);
        if matches!(base, "" | "Dict" | "Future" | "Await" | "RRef") {
            left = left.checked_sub(1)?;
            let (parts, after) = bracket(rest)?;
            let parts = items(parts).into_iter().map(|part| Some(Self::nested(part, left)?.ty));
            ty = Type::Generic(base, parts.collect::<Option<_>>()?);
            rest = after;
        }
        let mut slot = Self { ty, length: None, alias: None, written: false };
        while let Some(sign) = rest.chars().next() {
            left = left.checked_sub(1)?;
            rest = match sign {
                '?' => {
                    slot.ty = Type::Optional(Box::new(slot.ty));
                    rest.get(1..)?
                }
                '[' => {
                    let close = rest.find(']')?;
                    slot.length = rest.get(1..close)?.parse().ok();
                    slot.ty = Type::List(Box::new(slot.ty));
                    rest.get(close + 1..)?
                }
                '(' => {
                    let (alias, after) = bracket(rest)?;
                    slot.alias = alias.chars().next();
                    slot.written |= alias.contains('!');
                    after
                }
                _ => return None,
            }
            .trim_start();
        }
        Some(slot)
    }
}

/// The text in the parentheses at the start, and the rest.
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

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::List(inner) => write!(f, "{inner}[]"),
            Self::Optional(inner) => write!(f, "{inner}?"),
            Self::Generic(name, parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "{name}({})", parts.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_of_all_kinds() {
        let parts = |text: &str| {
            let schema = Schema::parse(text).unwrap();
            let slot = |slot: &Slot| {
                let length = slot.length.map(|n| n.to_string()).unwrap_or_default();
                let alias = slot.alias.map(|a| format!(" {a}")).unwrap_or_default();
                format!("{}{length}{alias}{}", slot.ty, if slot.written { "!" } else { "" })
            };
            let params: Vec<_> = schema
                .params
                .iter()
                .map(|p| {
                    let default = p.default.map(|d| format!("={d}")).unwrap_or_default();
                    let star = if p.keyword { "*" } else { "" };
                    format!("{star}{}: {}{default}", p.name, slot(&p.slot))
                })
                .collect();
            let returns: Vec<_> = schema.returns.iter().map(slot).collect();
            let name = [schema.namespace, schema.name, schema.overload].join("/");
            format!("{name} | {} | {}", params.join("; "), returns.join("; "))
        };
        let mut lines = include_str!("parse.txt").lines().skip(1);
        while let Some((text, expected)) = lines.next().zip(lines.next()) {
            assert_eq!(parts(text).trim_end(), expected.trim_start());
        }
        for (text, reason) in [
            ("not a schema", "no `(` begins parameters"),
            ("a::f(x)", "no `->` is before results"),
            ("a::f(Tensor x -> Tensor", "no `)` ends the parameters"),
            ("f(Tensor x) -> Tensor", "its name has no namespace"),
            ("a::f(...) -> Tensor", "`...` is not supported"),
            ("a::f(x) -> Tensor", "the parameter `x` has no type or no name"),
            ("a::f(int[ x) -> Tensor", "`int[` is not a type, or nests too deeply"),
        ] {
            assert_eq!(Schema::parse(text).unwrap_err().to_string(), reason, "{text}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let tuple = |depth: usize| format!("{}x{}", "(".repeat(depth), ")".repeat(depth));
        let marks = |depth: usize| format!("int{}", "?".repeat(depth));
        for (depth, parsed) in [(64, true), (65, false), (100_000, false)] {
            for ty in [tuple(depth), marks(depth)] {
                let text = format!("a::b({ty} x) -> Tensor");
                assert_eq!(Schema::parse(&text).is_ok(), parsed, "{depth}");
            }
        }
    }

    #[test]
    fn all_schemas_can_be_parsed() {
        let schemas = crate::LIST.lines().filter(|line| !line.starts_with('#'));
        let wrong: Vec<_> = schemas.filter(|t| Schema::parse(t).is_err()).collect();
        assert!(wrong.iter().all(|text| text.contains("...")), "{wrong:#?}");
    }
}
