//! Methods as lines of Python.

use crate::{
    syntax::{Expr, ExprKind, Function, Param},
    types::Type,
};

impl Function {
    /// A line of Python: `forward(x: Tensor, scale: float = 2.0) -> Tensor`; `self` is left out.
    pub fn signature(&self) -> String {
        let params = self.inputs().map(|param| {
            let default = param.default.as_ref().map(|value| format!(" = {}", literal(value)));
            format!("{}: {}{}", param.name, param.declared_type(), default.unwrap_or_default())
        });
        let params: Vec<String> = params.collect();
        let returns = self.returns.as_ref().map(|ty| format!(" -> {}", Type::of(ty)));
        format!("{}({}){}", self.name, params.join(", "), returns.unwrap_or_default())
    }

    /// The parameters of a method without `self`.
    pub fn inputs(&self) -> impl Iterator<Item = &Param> + Clone {
        self.params.iter().skip(1)
    }
}

impl Param {
    /// Its type; Tensor if the code has none.
    pub fn declared_type(&self) -> Type {
        self.ty.as_ref().map_or(Type::Tensor, Type::of)
    }
}

/// The text of a literal; `...` for other expressions.
fn literal(value: &Expr) -> String {
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
