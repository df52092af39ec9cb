//! Parsed code. Every part knows the byte `at` which it starts, for messages and debug information.

#![expect(missing_docs, reason = "the names are the documentation")]

use pt2onnx_fx::Name;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    pub classes: Vec<Class>,
    pub functions: Vec<Arc<Function>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    pub name: Name,
    /// `Module`, `NamedTuple`, `Interface`, `ModuleInterface`, `Enum`; none of an ordinary class.
    pub base: Option<Name>,
    pub methods: Vec<Arc<Function>>,
    /// Attributes with their types, and constants with their values.
    pub attributes: Vec<(Name, Expr, Option<Expr>)>,
    /// Values without a type: members of an Enum, `__parameters__`.
    pub values: Vec<(Name, Expr)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: Name,
    /// Its parameters; that of a method has `self` first.
    pub params: Vec<Param>,
    pub returns: Option<Expr>,
    pub body: Vec<Stmt>,
    pub at: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: Name,
    /// Its type; Tensor if there is none.
    pub ty: Option<Expr>,
    /// Its value if it is not given.
    pub default: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    pub at: u32,
    pub kind: StmtKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    Assign {
        target: Expr,
        ty: Option<Expr>,
        value: Expr,
    },
    Expr(Expr),
    If {
        test: Expr,
        then: Vec<Stmt>,
        other: Vec<Stmt>,
    },
    For {
        target: Expr,
        iter: Expr,
        body: Vec<Stmt>,
    },
    While {
        test: Expr,
        body: Vec<Stmt>,
    },
    With {
        context: Expr,
        target: Option<Expr>,
        body: Vec<Stmt>,
    },
    Def(Arc<Function>),
    /// The calls of modules, by id, in which what follows was traced, outermost first.
    Scope(Arc<[u32]>),
    Return(Option<Expr>),
    Pass,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub at: u32,
    pub kind: ExprKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Name(Name),
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// `1.-2.5j`.
    Complex(f64, f64),
    Str(Arc<str>),
    Neg(Box<Expr>),
    Attr(Box<Expr>, Name),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    Call(Box<Call>),
    Operator(Box<Operator>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub callee: Expr,
    pub args: Vec<Expr>,
    pub kwargs: Vec<(Name, Expr)>,
}

/// An operator such as `aten::add`, with all arguments of its schema by position.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    pub name: Name,
    pub args: Vec<Expr>,
}

impl Expr {
    /// `a.b.c` as a text, if it is a name or attributes of one.
    pub fn dotted(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Name(name) => Some(name.to_string()),
            ExprKind::Attr(base, name) => Some(format!("{}.{name}", base.dotted()?)),
            _ => None,
        }
    }
}

impl Class {
    /// The method of this name.
    pub fn method(&self, name: &str) -> Option<&Arc<Function>> {
        self.methods.iter().find(|m| &*m.name == name)
    }

    /// The strings of a list such as `__parameters__`.
    pub fn names(&self, list: &str) -> Vec<&str> {
        let value = self.values.iter().find(|(name, _)| &**name == list);
        let items = match value.map(|(_, e)| &e.kind) {
            Some(ExprKind::List(items) | ExprKind::Tuple(items)) => items.as_slice(),
            _ => &[],
        };
        items
            .iter()
            .filter_map(|item| match &item.kind {
                ExprKind::Str(text) => Some(&**text),
                _ => None,
            })
            .collect()
    }
}
