//! Types in the text: `f32[s0, 8]`, `Sym(s0)`.

use super::{grammar::Grammar, tokens::Tokens, words::SHORT};
use crate::{
    graph::{Device, Layout, TensorMeta, ValueMeta},
    strides::contiguous,
};
use pt2onnx_symbolic::{
    Expr,
    text::{Parsed, Reader},
};
use pt2onnx_tensor::DType;

impl Grammar<'_> {
    /// `f32[s0, 8]`, `Sym(s0)`, `SymFloat(..)`, `SymBool(..)`, `Object('class')`. `None` for a
    /// `Token()`, which has no type.
    pub(super) fn ty(&mut self) -> Parsed<Option<ValueMeta>> {
        let place = self.r.place();
        let word = self.r.word("a type")?;
        if let Some((dtype, _)) = SHORT.iter().find(|(_, name)| *name == word) {
            return self.tensor(*dtype).map(|meta| Some(meta.into()));
        }
        if !["Sym", "SymFloat", "SymBool", "Object", "Token"].contains(&word) {
            let known = SHORT.map(|(_, name)| name).join(", ");
            let what = format!("`{word}` is no type; element types are {known}");
            return Err(self.r.error_at(place, what));
        }
        self.r.require("(")?;
        let hint = None;
        let meta = match word {
            "Sym" => ValueMeta::SymInt { expr: self.expression()?, hint },
            "SymFloat" => ValueMeta::SymFloat { expr: self.expression()?, hint },
            "SymBool" => ValueMeta::SymBool { expr: self.expression()?, hint },
            "Object" => ValueMeta::CustomObj { class: self.r.string()?.into() },
            _ => return self.r.require(")").map(|()| None),
        };
        self.r.require(")")?;
        Ok(Some(meta))
    }

    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.r.expression("an expression")
    }

    /// Sizes, strides, storage offset and device of a tensor, which follow its element type.
    fn tensor(&mut self, dtype: DType) -> Parsed<TensorMeta> {
        let size = |r: &mut Reader| r.expression("a size");
        self.r.require("[")?;
        let sizes = self.r.list("]", size)?;
        let place = self.r.place();
        let strides = if self.r.accept("[") { self.r.list("]", size)? } else { contiguous(&sizes) };
        if strides.len() != sizes.len() {
            return Err(self.r.error_at(place, format!("expected {} strides", sizes.len())));
        }
        let mut storage_offset = Expr::ZERO;
        if self.r.accept("@") {
            self.r.require("(")?;
            storage_offset = self.expression()?;
            self.r.require(")")?;
        }
        let device = if self.r.sees_string() {
            self.device()?
        } else {
            Device { kind: "cpu".into(), index: None }
        };
        let (requires_grad, layout) = (false, Layout::Strided);
        Ok(TensorMeta { dtype, sizes, strides, storage_offset, requires_grad, device, layout })
    }

    pub(super) fn device(&mut self) -> Parsed<Device> {
        let place = self.r.place();
        let text = self.r.string()?;
        let Some((kind, index)) = text.split_once(':') else {
            return Ok(Device { kind: text.into(), index: None });
        };
        let index = index
            .parse()
            .map_err(|_| self.r.error_at(place, format!("`{index}` is no number of a device")))?;
        Ok(Device { kind: kind.into(), index: Some(index) })
    }
}
