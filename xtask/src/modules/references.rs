//! Finds every use of an item of another file of the same crate.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::mem;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::names::Target;
use super::tree::{MACRO, TYPE, Tree, VALUE, attributes, for_tests};

/// One use.
pub struct Reference {
    /// The file with the use.
    pub from: usize,
    /// The file that defines the used item.
    pub to: usize,
    /// The line of the use.
    pub line: usize,
    /// The path in the source.
    pub path: String,
}

/// All references of a crate.
pub fn references(tree: &mut Tree) -> Vec<Reference> {
    let modules = tree.scopes.len();
    let mut finder = Finder { tree, scope: 0, locals: HashSet::new(), found: Vec::new() };
    for module in 0..modules {
        finder.scope = module;
        finder.imports();
        for item in mem::take(&mut finder.tree.scopes[module].items) {
            finder.visit_item(&item);
        }
    }
    finder.found
}

struct Finder<'a> {
    tree: &'a mut Tree,
    scope: usize,
    /// The names of the function's parameters and variables.
    locals: HashSet<String>,
    found: Vec<Reference>,
}

impl Finder<'_> {
    /// Records what `path` refers to, as the first of `kinds` that can be resolved.
    fn reference(&mut self, path: &[String], kinds: &[u8], line: usize) {
        let resolved = kinds.iter().find_map(|&kind| self.tree.resolve(self.scope, path, kind));
        let from = self.tree.scopes[self.scope].file;
        if let Some(Target::Item { file, .. }) = resolved
            && file != from
        {
            self.found.push(Reference { from, to: file, line, path: path.join("::") });
        }
    }

    /// Records the imports of the scope. The root of a crate or folder re-exports items that others
    /// use. Only a trait is used by its import alone.
    fn imports(&mut self) {
        let from = self.tree.scopes[self.scope].file;
        let name = self.tree.files[from].file_name().and_then(OsStr::to_str);
        let gathers = matches!(name, Some("mod.rs" | "lib.rs" | "main.rs"));
        for import in self.tree.scopes[self.scope].imports.clone() {
            if import.name.is_none() {
                continue;
            }
            for kind in [TYPE, VALUE, MACRO] {
                let target = self.tree.resolve(self.scope, &import.path, kind);
                let own = matches!(target, Some(Target::Item { is_trait: true, .. }));
                if !gathers || own && !import.public {
                    self.reference(&import.path, &[kind], import.line);
                }
            }
        }
    }

    /// Records a path in the source. A single lower-case name may be a variable.
    fn path(&mut self, path: &syn::Path, kinds: &[u8]) {
        if path.leading_colon.is_none() {
            let segments: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            let line = path.segments.first().map_or(0, |s| s.ident.span().start().line);
            self.reference(&segments, kinds, line);
        }
        visit::visit_path(self, path);
    }

    /// Records paths in a macro call, or after `$crate` in the rules of a macro.
    fn tokens(&mut self, tokens: TokenStream, rules: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let punct = |i: usize, c: char| match tokens.get(i) {
            Some(TokenTree::Punct(punct)) => punct.as_char() == c,
            _ => false,
        };
        let mut i = 0;
        while i < tokens.len() {
            let start = i;
            i += 1;
            let first = match &tokens[start] {
                TokenTree::Group(group) => {
                    self.tokens(group.stream(), rules);
                    continue;
                }
                TokenTree::Ident(first) => first,
                _ => continue,
            };
            let mut path = vec![first.to_string()];
            while let (true, true, Some(TokenTree::Ident(next))) =
                (punct(i, ':'), punct(i + 1, ':'), tokens.get(i + 2))
            {
                path.push(next.to_string());
                i += 3;
            }
            let before = |c| start > 0 && punct(start - 1, c);
            let field = before('.') && !(start > 1 && punct(start - 2, '.'));
            let variable = before('$') && first != "crate";
            let lead = before(':') && start > 1 && punct(start - 2, ':');
            if field || variable || lead || before('\'') || rules && first != "crate" {
                continue;
            }
            let group = |i: usize| matches!(tokens.get(i), Some(TokenTree::Group(_)));
            if punct(i, '!') && group(i + 1) {
                self.reference(&path, &[MACRO], line(first));
                continue;
            }
            let named = punct(i, ':') || punct(i, '=') && !punct(i + 1, '=') && !punct(i + 1, '>');
            let called = match tokens.get(i) {
                Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
                _ => false,
            };
            let local = self.locals.contains(&path[0]) && !called;
            if path.len() > 1 || !named && !local {
                self.reference(&path, &[VALUE, TYPE], line(first));
            }
        }
    }

    /// Visits a function with the parameters and variables `locals`.
    fn function(&mut self, locals: Locals, visit: impl FnOnce(&mut Self)) {
        let outer = mem::replace(&mut self.locals, locals.0);
        self.locals.extend(outer.iter().cloned());
        visit(self);
        self.locals = outer;
    }
}

fn line(name: &Ident) -> usize {
    name.span().start().line
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        // Modules are visited separately, imports with their scope.
        if !for_tests(attributes(item)) && !matches!(item, syn::Item::Mod(_) | syn::Item::Use(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !for_tests(&function.attrs) {
            let mut locals = Locals::default();
            locals.visit_impl_item_fn(function);
            self.function(locals, |this| visit::visit_impl_item_fn(this, function));
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        let mut locals = Locals::default();
        locals.visit_trait_item_fn(function);
        self.function(locals, |this| visit::visit_trait_item_fn(this, function));
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        let mut locals = Locals::default();
        locals.visit_item_fn(function);
        self.function(locals, |this| visit::visit_item_fn(this, function));
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        let items = || {
            block.stmts.iter().filter_map(|statement| match statement {
                syn::Stmt::Item(item) => Some(item),
                _ => None,
            })
        };
        let outer = self.scope;
        if items().next().is_some() {
            self.scope = self.tree.block(outer, items());
            self.imports();
        }
        visit::visit_block(self, block);
        self.scope = outer;
    }

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}

    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.path(path, &[TYPE, VALUE]);
    }

    fn visit_expr_path(&mut self, expr: &'a syn::ExprPath) {
        let local = expr.path.get_ident().is_some_and(|i| self.locals.contains(&i.to_string()));
        if expr.qself.is_some() {
            visit::visit_expr_path(self, expr);
        } else if !local {
            self.path(&expr.path, &[VALUE, TYPE]);
        }
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        match &*call.func {
            // A variable may have the same name as the function whose result it holds.
            syn::Expr::Path(function) if function.qself.is_none() => {
                self.path(&function.path, &[VALUE, TYPE]);
            }
            function => self.visit_expr(function),
        }
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.path(&call.path, &[MACRO]);
        self.tokens(call.tokens.clone(), false);
    }

    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        match item.ident {
            Some(_) => self.tokens(item.mac.tokens.clone(), true),
            None => self.visit_macro(&item.mac),
        }
    }
}

/// The names that patterns bind.
#[derive(Default)]
struct Locals(HashSet<String>);

impl<'a> Visit<'a> for Locals {
    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        let name = pattern.ident.to_string();
        // Upper-case names are constants.
        if name.starts_with(|c: char| c.is_lowercase() || c == '_') {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}
