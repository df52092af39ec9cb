//! Shares the names, texts and expressions that a program repeats.

use crate::{
    error::Invalid,
    graph::{ModuleFrame, Name, OpName},
    printer::brief,
    schema as s,
};
use indexmap::{IndexMap, IndexSet};
use pt2onnx_symbolic::Expr;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::sync::Arc;

/// A part of a program, or what is wrong with the JSON.
pub(super) type Built<T> = Result<T, Invalid>;

/// Caches of names, texts and expressions that a program repeats. Large ones are `IndexMap`s and
/// `IndexSet`s, which keep the hashes and grow without hashing the long texts again.
#[derive(Default)]
pub(super) struct Builder {
    /// Names that are too long to be stored inline.
    pub(super) names: IndexSet<Name, FxBuildHasher>,
    pub(super) texts: IndexSet<Arc<str>, FxBuildHasher>,
    pub(super) exprs: FxHashMap<Box<str>, Expr>,
    pub(super) targets: FxHashMap<Box<str>, OpName>,
    pub(super) stacks: IndexMap<Box<str>, Arc<[ModuleFrame]>, FxBuildHasher>,
}

impl Builder {
    pub(super) fn name(&mut self, text: &str) -> Name {
        let known = || self.names.get(text).cloned();
        match (text.len() > Name::INLINE_CAP).then(known) {
            None => Name::new(text),
            Some(Some(name)) => name,
            Some(None) => {
                let name = Name::new(text);
                self.names.insert(name.clone());
                name
            }
        }
    }

    /// A text that nodes may share.
    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }

    pub(super) fn all<S, T>(
        &mut self,
        from: &[S],
        build: impl Fn(&mut Self, &S) -> Built<T>,
    ) -> Built<Vec<T>> {
        // `collect` of results does not know the number of items, so it would reserve too much.
        let mut all = Vec::with_capacity(from.len());
        for item in from {
            all.push(build(self, item)?);
        }
        Ok(all)
    }

    pub(super) fn expr(&mut self, text: &str, owner: impl Fn() -> String) -> Built<Expr> {
        if let Some(expr) = self.exprs.get(text) {
            return Ok(expr.clone());
        }
        let expr = Expr::parse(text).map_err(|error| Invalid::Expression {
            owner: owner(),
            text: brief(text),
            error,
        })?;
        self.exprs.insert(text.into(), expr.clone());
        Ok(expr)
    }

    pub(super) fn size(&mut self, name: &str, size: &s::SymInt) -> Built<Expr> {
        match size {
            s::SymInt::Int(i) => Ok(Expr::int(*i)),
            s::SymInt::Expr(e) => self.expr(&e.expr_str, || owner(name)),
        }
    }
}

/// Names a value in a message.
pub(super) fn owner(name: &str) -> String {
    format!("value {name}")
}
