//! Arguments of calls in the text.

use super::{
    grammar::Grammar,
    tokens::{Number, Tokens},
};
use crate::graph::{ArgKind, Argument, Layout, MemoryFormat, Name, NamedArg, SymArg};
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

    pub(super) fn value(&mut self) -> Parsed<Argument> {
        self.r.enter()?;
        let value = self.any_value();
        self.r.leave();
        value
    }

    fn any_value(&mut self) -> Parsed<Argument> {
        let place = self.r.place();
        if self.r.accept("[") {
            return self.list_of(place, Self::value);
        }
        if self.r.accept("{") {
            let entries = self.list("}", |grammar| {
                let key = grammar.r.string()?;
                grammar.r.require(":")?;
                Ok((key.into(), grammar.value()?))
            })?;
            return Ok(Argument::Dict(Box::new(entries.into_iter().collect())));
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
        let keywords = ["None", "True", "False", "graph", "Sym"];
        Ok(match keywords.into_iter().find(|keyword| self.r.accept_keyword(keyword)) {
            Some("None") => Argument::None,
            Some("graph") => return self.body(),
            Some("Sym") => {
                self.r.require("(")?;
                let expr = self.expression()?;
                self.r.require(")")?;
                Argument::SymInt(SymArg::Expr(expr))
            }
            Some(truth) => Argument::Bool(truth == "True"),
            None => match self.r.number("a value")? {
                Number::Int(int) => Argument::Int(int),
                Number::Float(float) => Argument::Float(float),
                Number::Imaginary(im) => Argument::Complex(0.0, im),
            },
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
        let wrong = "a complex number is written `(1+2j)` or `2j`";
        let re = match self.r.number("a complex number")? {
            Number::Int(int) => int as f64,
            Number::Float(float) => float,
            Number::Imaginary(_) => return Err(self.r.error_at(place, wrong)),
        };
        let Number::Imaginary(im) = self.r.number("an imaginary part")? else {
            return Err(self.r.error_at(place, wrong));
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
        let dtype = DType::from_name(name).map(Argument::DType);
        let known = dtype
            .or(Layout::of_name(path).map(Argument::Layout))
            .or(MemoryFormat::of_name(path).map(Argument::MemoryFormat));
        known.ok_or_else(|| {
            let what = "is not an element type, layout or memory format";
            self.r.error_at(place, format!("`{path}` {what}"))
        })
    }
}
