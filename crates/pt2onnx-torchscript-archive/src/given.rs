//! The types and values of inputs, as the user or a trace gives them.

use crate::{quantized::Kind, types::Type};
use pt2onnx_tensor::DType;
use std::fmt;

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

    /// Why a text is neither a type nor a value that it seems to be.
    pub fn flaw(text: &str) -> Option<String> {
        if text.is_empty() {
            return Some("there is nothing behind `=`".to_owned());
        }
        let number = text.parse::<f64>().is_ok();
        let large = number.then(|| format!("`{text}` is too large for a number"));
        Self::tensor(text).err().flatten().or(large)
    }

    /// How an input of this type can be given.
    pub fn example(path: &str, ty: &Type) -> String {
        let value = match ty {
            Type::Int | Type::Number => "16000",
            Type::Float => "0.5",
            Type::Bool => "true",
            Type::Str => "text",
            Type::Optional(_) | Type::None => "none",
            Type::List(item) => return Self::example(&format!("{path}.0"), item),
            Type::Tuple(items) if !items.is_empty() => {
                return Self::example(&format!("{path}.0"), &items[0]);
            }
            Type::Dict(_, item) => return Self::example(&format!("{path}.key"), item),
            _ => "float32[batch,3,224,224]",
        };
        format!("{path}={value}")
    }

    /// Parses `float32[n,4]`. The error says why the text is not the type of a tensor, if it has
    /// brackets.
    fn tensor(text: &str) -> Result<Self, Option<String>> {
        let (dtype, rest) = text.split_once('[').ok_or(None)?;
        let (own, kind) = (DType::from_name(dtype.trim()), Kind::named(dtype.trim()));
        let of: fn(DType, Vec<Size>) -> Self =
            if own.is_some() { Self::Tensor } else { Self::Quantized };
        let Some(ints) = own.or(kind.map(Kind::ints)) else {
            return Err(Some(format!("`{dtype}` is not an element type")));
        };
        let sizes =
            rest.strip_suffix(']').ok_or_else(|| "the sizes do not end in `]`".to_owned())?;
        let sizes = sizes.split(',').map(str::trim).filter(|size| !size.is_empty());
        let sizes = sizes.map(|size| {
            Size::parse(size)
                .ok_or_else(|| format!("`{size}` is neither a size nor the name of one"))
        });
        let sizes = sizes.collect::<Result<Vec<_>, String>>()?;
        // As in ONNX models.
        let count = sizes.iter().try_fold(1usize, |all, size| match size {
            Size::Known(n) => all.checked_mul((*n).max(1)).filter(|n| *n <= 1 << 48),
            _ => Some(all),
        });
        count.ok_or_else(|| "no tensor has so many elements".to_owned())?;
        Ok(of(ints, sizes))
    }
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
