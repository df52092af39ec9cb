//! Arguments of calls in the text.

use super::{
    grammar::Grammar,
    lists::{MIXED, list},
    tokens::{Number, Tokens},
};
use crate::graph::{ArgKind, Argument, Layout, MemoryFormat, Name, NamedArg, SymArg};
use indexmap::IndexMap;
use pt2onnx_symbolic::text::{Parsed, Place};
use pt2onnx_tensor::DType;
use std::mem::take;

impl Grammar<'_> {
    /// Arguments up to `)`.
    pub(super) fn args(&mut self) -> Parsed<Vec<NamedArg>> {
        let (mut args, mut first): (Vec<NamedArg>, _) = (Vec::new(), true);
        while self.r.goes_on(")", take(&mut first))? {
            if self.r.accept("*") {
                args.iter_mut().for_each(|arg| arg.kind = ArgKind::Positional);
                continue;
            }
            let name = self.r.attempt(|r| {
                let word = r.accept_word()?;
                r.accept("=").then(|| Name::new(word.text()))
            });
            let kind = match name {
                Some(_) => ArgKind::Keyword,
                None => ArgKind::Positional,
            };
            args.push(NamedArg { name: name.unwrap_or_default(), kind, value: self.value()? });
        }
        Ok(args)
    }

    pub(super) fn values_up_to(&mut self, close: &str) -> Parsed<Vec<Argument>> {
        let mut values = Vec::new();
        while self.r.goes_on(close, values.is_empty())? {
            values.push(self.value()?);
        }
        Ok(values)
    }

    pub(super) fn value(&mut self) -> Parsed<Argument> {
        self.r.enter()?;
        let value = self.any_value();
        self.r.leave();
        value
    }

    fn any_value(&mut self) -> Parsed<Argument> {
        let place = self.r.place();
        if self.r.accept("[") {
            let items = self.values_up_to("]")?;
            return list(items).ok_or_else(|| self.r.error_at(place, MIXED));
        }
        if self.r.accept("{") {
            let (mut entries, mut first) = (IndexMap::new(), true);
            while self.r.goes_on("}", take(&mut first))? {
                let key = self.r.string()?;
                self.r.require(":")?;
                entries.insert(key.into(), self.value()?);
            }
            return Ok(Argument::Dict(Box::new(entries)));
        }
        if self.r.accept("(") {
            return self.complex(place);
        }
        if self.r.sees_string() {
            return Ok(Argument::String(self.r.string()?.into()));
        }
        if self.r.sees("torch.") {
            return self.of_torch();
        }
        if let Some(name) = self.defined_name() {
            return self.named(place, name);
        }
        for (keyword, value) in [
            ("None", Argument::None),
            ("True", Argument::Bool(true)),
            ("False", Argument::Bool(false)),
        ] {
            if self.r.accept_keyword(keyword) {
                return Ok(value);
            }
        }
        if self.r.accept_keyword("graph") {
            return self.body();
        }
        if self.r.accept_keyword("Sym") {
            self.r.require("(")?;
            let expr = self.expression()?;
            self.r.require(")")?;
            return Ok(Argument::SymInt(SymArg::Expr(expr)));
        }
        Ok(match self.r.number("a value")? {
            Number::Int(int) => Argument::Int(int),
            Number::Float(float) => Argument::Float(float),
            Number::Imaginary(im) => Argument::Complex(0.0, im),
        })
    }

    /// A value by name. In a call, a name that `: type` follows is a new input.
    fn named(&mut self, place: Place, name: Name) -> Parsed<Argument> {
        if self.declared.is_some() && self.r.accept(":") {
            let meta = self.ty()?;
            let input = self.define((place, name, meta))?;
            self.declared.get_or_insert_default().push(input.clone());
            return Ok(input);
        }
        let what = match self.declared {
            Some(_) => format!("input `{name}` needs a type: `{name}: f32[2, 3]`"),
            None => format!("no value `{name}` is defined before this"),
        };
        self.scope.get(&name).ok_or_else(|| self.r.error_at(place, what))
    }

    /// `(1+2j)`, after the parenthesis.
    fn complex(&mut self, place: Place) -> Parsed<Argument> {
        let re = match self.r.number("a complex number")? {
            Number::Int(int) => int as f64,
            Number::Float(float) => float,
            Number::Imaginary(_) => {
                return Err(self.r.error_at(place, "a complex number is written `(1+2j)` or `2j`"));
            }
        };
        let Number::Imaginary(im) = self.r.number("an imaginary part")? else {
            return Err(self.r.error_at(place, "a complex number is written `(1+2j)` or `2j`"));
        };
        self.r.require(")")?;
        Ok(Argument::Complex(re, im))
    }

    /// `torch.float32`, `torch.strided`, `torch.device('cpu')`, `torch.ops.aten.add.Tensor`, ...
    fn of_torch(&mut self) -> Parsed<Argument> {
        let place = self.r.place();
        let path = self.r.path("a name of `torch`")?;
        if path == "torch.device" {
            self.r.require("(")?;
            let device = self.device()?;
            self.r.require(")")?;
            return Ok(Argument::Device(device));
        }
        if path.starts_with("torch.ops.") {
            return Ok(Argument::Operator(path.into()));
        }
        let name = path.strip_prefix("torch.").unwrap_or(path);
        let dtype = DType::ALL.into_iter().find(|d| d.name() == name).map(Argument::DType);
        let layout = LAYOUTS.into_iter().find(|l| l.to_string() == path).map(Argument::Layout);
        let format = FORMATS.into_iter().find(|f| f.to_string() == path);
        let known = dtype.or(layout).or(format.map(Argument::MemoryFormat));
        known.ok_or_else(|| {
            let what = "is no element type, layout or memory format";
            self.r.error_at(place, format!("`{path}` {what}"))
        })
    }
}

const LAYOUTS: [Layout; 7] = [
    Layout::Strided,
    Layout::SparseCoo,
    Layout::SparseCsr,
    Layout::SparseCsc,
    Layout::SparseBsr,
    Layout::SparseBsc,
    Layout::Mkldnn,
];

const FORMATS: [MemoryFormat; 4] = [
    MemoryFormat::Contiguous,
    MemoryFormat::ChannelsLast,
    MemoryFormat::ChannelsLast3d,
    MemoryFormat::Preserve,
];
