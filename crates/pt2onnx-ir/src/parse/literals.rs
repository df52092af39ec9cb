//! Parses types, attributes and tensors.

use super::{grammar::Grammar, tokens::Tokens};
use crate::{
    Attribute, Attributes, TensorType, Type, schema::AttributeKind, types::from_onnx_name,
};
use pt2onnx_symbolic::{
    Expr,
    text::{Parsed, Place, Reader},
};
use pt2onnx_tensor::{DType, Narrow, Scalar, Tensor};

impl Grammar<'_, '_> {
    /// A type: `float[2,N]`, `seq(..)`, `optional(..)`, `map(.., ..)`, `sparse_tensor(..)` or
    /// `opaque(.., ..)`.
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        self.r.enter()?;
        let place = self.r.place();
        let name = self.r.identifier("a type")?;
        let ty = if let Some(dtype) = from_onnx_name(name) {
            Type::Tensor(TensorType { dtype, shape: self.sizes()? })
        } else if ["seq", "optional", "sparse_tensor", "map", "opaque"].contains(&name) {
            self.r.require("(")?;
            let ty = self.composed(place, name)?;
            self.r.require(")")?;
            ty
        } else {
            return Err(self.r.error_at(place, format!("there is no type `{name}`")));
        };
        self.r.leave();
        Ok(ty)
    }

    /// A type of other types or names, between its parentheses.
    fn composed(&mut self, place: Place, name: &str) -> Parsed<Type> {
        match name {
            "map" => {
                let key = self.r.place();
                let name = self.r.identifier("an element type")?;
                let what = format!("there is no type `{name}`");
                let dtype = from_onnx_name(name).ok_or_else(|| self.r.error_at(key, what))?;
                self.r.require(",")?;
                Ok(Type::Map(dtype, Box::new(self.ty()?)))
            }
            "opaque" => {
                let domain = self.r.string()?;
                self.r.require(",")?;
                Ok(Type::Opaque(Box::new((domain, self.r.string()?))))
            }
            _ => match (name, self.ty()?) {
                ("seq", inner) => Ok(Type::Sequence(Box::new(inner))),
                ("optional", inner) => Ok(Type::Optional(Box::new(inner))),
                (_, Type::Tensor(t)) => Ok(Type::Sparse(t)),
                _ => Err(self.r.error_at(place, "sparse_tensor needs the type of a tensor")),
            },
        }
    }

    /// `[2, N, ?, "2*N"]`. `[]` means that the rank is unknown; without brackets, the rank is 0.
    fn sizes(&mut self) -> Parsed<Option<Vec<Expr>>> {
        if !self.r.accept("[") {
            return Ok(Some(Vec::new()));
        }
        if self.r.accept("]") {
            return Ok(None);
        }
        let cx = &self.cx;
        let sizes = self.r.list("]", |r| {
            if r.accept("?") {
                return Ok(cx.unknown_dim());
            }
            if r.sees_string() {
                let text = r.string()?;
                // Texts that do not parse as an expression are symbol names: `"0"`, `"my dim"`.
                let parsed = Expr::parse(&text).ok().filter(|e| !e.is_static());
                return Ok(parsed.unwrap_or_else(|| Expr::symbol(&text)));
            }
            let symbol = r.attempt(|r| r.identifier("").ok());
            match symbol {
                Some(name) => Ok(Expr::symbol(name)),
                None => r.number("a size", |t| {
                    Some(Expr::int(t.parse().ok().filter(|n: &i64| *n >= 0)?))
                }),
            }
        });
        sizes.map(Some)
    }

    /// `<name = value, ...>`, or nothing.
    pub(super) fn attributes(&mut self) -> Parsed<Attributes> {
        if !self.r.accept("<") {
            return Ok(Attributes::new());
        }
        self.list(">", |grammar| {
            let place = grammar.r.place();
            let name = grammar.r.name("an attribute")?;
            Ok((name.into(), grammar.attribute_value(place)?))
        })
    }

    /// `: type = value`, or `= value` if the form of the value shows its type.
    pub(super) fn attribute_value(&mut self, attribute: Place) -> Parsed<Attribute> {
        let kind = if self.r.accept(":") {
            let place = self.r.place();
            let name = self.r.identifier("the attribute's type")?;
            let unknown = || self.r.error_at(place, format!("there is no attribute type `{name}`"));
            Some(AttributeKind::of_name(name).ok_or_else(unknown)?)
        } else {
            None
        };
        self.r.require("=")?;
        let place = self.r.place();
        if self.r.accept("@") {
            let name = self.r.name("an attribute of the function")?;
            let declared = self.function.as_ref().is_none_or(|f| f.attributes.contains(&name));
            if !declared {
                let what = format!("the function has no attribute `{name}`");
                return Err(self.r.error_at(place, what));
            }
            let no_type =
                || self.r.error_at(attribute, "a reference needs a type: `name: float = @other`");
            return Ok(Attribute::Reference { name, kind: kind.ok_or_else(no_type)? });
        }
        match kind {
            Some(kind) => self.value_of(kind, place),
            None => self.untyped(place),
        }
    }

    /// A value of a known type.
    fn value_of(&mut self, kind: AttributeKind, place: Place) -> Parsed<Attribute> {
        Ok(match kind {
            AttributeKind::Int => Attribute::Int(self.r.number("an integer", int)?),
            AttributeKind::Float => Attribute::Float(self.r.number("a number", float)?),
            AttributeKind::String => Attribute::String(self.r.string()?),
            AttributeKind::Tensor => Attribute::Tensor(self.tensor()?),
            AttributeKind::Graph => Attribute::Region(self.body()?),
            AttributeKind::TypeProto => Attribute::Type(self.ty()?),
            AttributeKind::Ints => {
                Attribute::Ints(self.several(|grammar| grammar.r.number("an integer", int))?)
            }
            AttributeKind::Floats => {
                Attribute::Floats(self.several(|grammar| grammar.r.number("a number", float))?)
            }
            AttributeKind::Strings => {
                Attribute::Strings(self.several(|grammar| grammar.r.string())?)
            }
            AttributeKind::Tensors => Attribute::Tensors(self.several(Self::tensor)?),
            AttributeKind::TypeProtos => Attribute::Types(self.several(Self::ty)?),
            AttributeKind::Graphs => Attribute::Regions(self.several(Self::body)?),
            AttributeKind::SparseTensor | AttributeKind::SparseTensors => {
                return Err(self.r.error_at(place, "the textual syntax has no sparse tensors"));
            }
        })
    }

    /// A list in brackets.
    fn several<T>(&mut self, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.r.require("[")?;
        self.list("]", item)
    }

    /// A value whose form shows its type: `1`, `0.5`, `"text"`, a tensor, a graph, or a list of one
    /// of these.
    fn untyped(&mut self, place: Place) -> Parsed<Attribute> {
        let list = self.r.sees("[");
        let kinds = self.r.peek(|r| {
            let _ = list && r.accept("[");
            if r.sees_string() {
                return Some((AttributeKind::String, AttributeKind::Strings));
            }
            let token = r.number("a value", |t| Some(t.to_owned())).ok()?;
            Some(if int(&token).is_some() {
                (AttributeKind::Int, AttributeKind::Ints)
            } else if float(&token).is_some() {
                (AttributeKind::Float, AttributeKind::Floats)
            } else if from_onnx_name(&token).is_some() {
                (AttributeKind::Tensor, AttributeKind::Tensors)
            } else {
                (AttributeKind::Graph, AttributeKind::Graphs)
            })
        });
        match kinds {
            Some((_, several)) if list => self.value_of(several, place),
            Some((one, _)) => self.value_of(one, place),
            None => {
                Err(self.r.expected("a value that shows its type (or write `name: type = value`)"))
            }
        }
    }

    /// `float[2] {1, 2}` or `float[2] name = {1, 2}`.
    fn tensor(&mut self) -> Parsed<Tensor> {
        let place = self.r.place();
        let ty = self.ty()?;
        let _ = self.r.attempt(|r| r.name("").ok());
        let _ = self.r.accept("=");
        self.elements(place, Some(&ty))
    }

    /// The elements of a tensor of type `ty`: `{1, 2}`, or `{...}` if the text does not have them.
    pub(super) fn elements(&mut self, place: Place, ty: Option<&Type>) -> Parsed<Tensor> {
        let sizes = |t: &TensorType| -> Option<Vec<usize>> {
            let sizes = t.shape.as_ref()?.iter();
            sizes.map(|d| usize::try_from(d.as_int()?).ok()).collect()
        };
        let tensor = ty.and_then(Type::as_tensor);
        let Some((dtype, sizes)) = tensor.and_then(|t| Some((t.dtype, sizes(t)?))) else {
            let what = "a constant needs the type of a tensor with known sizes";
            return Err(self.r.error_at(place, what));
        };
        self.r.require("{")?;
        let made = if self.r.accept("...") {
            self.r.require("}")?;
            Tensor::absent(dtype, sizes)
        } else if dtype == DType::String {
            let texts = self.r.list("}", Reader::string)?;
            let texts: Vec<bytes::Bytes> = texts.into_iter().map(Into::into).collect();
            Tensor::strings(sizes, texts)
        } else {
            let mut elements = Vec::new();
            self.r.list("}", |r| {
                if let Some(narrow) = Narrow::of(dtype) {
                    elements.push(r.number("an element", |t| narrow.exact(t.parse().ok()?))?);
                    return Ok(());
                }
                let element = r.number("an element", |t| element(t, dtype))?;
                elements.extend_from_slice(&element.to_bytes());
                Ok(())
            })?;
            match dtype.bits() {
                0..8 => Tensor::from_codes(dtype, sizes, &elements),
                _ => Tensor::new(dtype, sizes, elements),
            }
        };
        made.map_err(|e| self.r.error_at(place, e.to_string()))
    }
}

fn int(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn float(text: &str) -> Option<f32> {
    text.parse().ok()
}

/// A number as a 0-d tensor; `None` if the element type cannot hold it.
fn element(text: &str, dtype: DType) -> Option<Tensor> {
    if let (DType::U64, Ok(large)) = (dtype, text.parse::<u64>()) {
        return Some(Tensor::scalar(large));
    }
    let Some(int) = int(text) else {
        return match (text, dtype) {
            ("true", DType::Bool) => Some(Tensor::scalar(true)),
            ("false", DType::Bool) => Some(Tensor::scalar(false)),
            (_, d) if d.is_float() => Scalar::Float(text.parse().ok()?).to_tensor(dtype),
            _ => None,
        };
    };
    let held = match dtype {
        DType::I8 => i8::try_from(int).is_ok(),
        DType::I16 => i16::try_from(int).is_ok(),
        DType::I32 => i32::try_from(int).is_ok(),
        DType::U8 => u8::try_from(int).is_ok(),
        DType::U16 => u16::try_from(int).is_ok(),
        DType::U32 => u32::try_from(int).is_ok(),
        DType::U64 => false,
        DType::Bool => matches!(int, 0 | 1),
        _ => true,
    };
    // As a float, `-0` is not 0.
    let number =
        if dtype.is_float() { Scalar::Float(text.parse().ok()?) } else { Scalar::Int(int) };
    number.to_tensor(dtype).filter(|_| held)
}
