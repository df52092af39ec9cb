//! Parses the modules of a crate: what each defines and imports.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Expr, ExprLit, Item, Lit, UseTree, Visibility};

/// The kind of names of types, traits and modules.
pub const TYPE: u8 = 1;
/// The kind of names of functions, constants, and constructors of structs.
pub const VALUE: u8 = 2;
/// The kind of names of macros.
pub const MACRO: u8 = 4;

/// A crate.
#[derive(Default)]
pub struct Tree {
    /// Its files.
    pub files: Vec<PathBuf>,
    /// Its modules, the root first, then blocks that contain items.
    pub scopes: Vec<Scope>,
    /// The files that define a macro, by its name.
    pub macros: HashMap<String, BTreeSet<usize>>,
}

/// A module, or a block with items.
#[derive(Default)]
pub struct Scope {
    /// Its file.
    pub file: usize,
    /// The module that `self` refers to.
    pub module: usize,
    /// The module that `super` refers to.
    pub parent: Option<usize>,
    /// The scope around a block.
    pub outer: Option<usize>,
    /// Its definitions.
    pub definitions: Vec<(String, Definition)>,
    /// Its imports.
    pub imports: Vec<Import>,
    /// Names that macro calls in it probably define.
    pub made: HashSet<String>,
    /// The items of the module, until they are visited.
    pub items: Vec<Item>,
}

/// The item that a name refers to in the scope that defines it.
pub enum Definition {
    /// A module, by its scope.
    Module(usize),
    /// Anything else.
    Item {
        /// The kinds of the name: [`TYPE`], [`VALUE`], [`MACRO`].
        kinds: u8,
        /// Whether it is a trait, whose methods can be called after it is imported.
        is_trait: bool,
    },
}

/// One name of a `use`.
#[derive(Clone)]
pub struct Import {
    /// Its name here. `None` for a glob.
    pub name: Option<String>,
    /// The imported path.
    pub path: Vec<String>,
    /// Whether it is a re-export.
    pub public: bool,
    /// Its line.
    pub line: usize,
}

impl Tree {
    /// The modules below the root file of a crate.
    pub fn parse(root: &Path) -> Result<Tree> {
        let mut tree = Tree::default();
        let folder = root.parent().unwrap_or(root);
        tree.load(root, folder, None)?;
        Ok(tree)
    }

    /// Adds the module in the file `path`, whose submodules are in `folder`.
    fn load(&mut self, path: &Path, folder: &Path, parent: Option<usize>) -> Result<usize> {
        let source =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let parsed =
            syn::parse_file(&source).with_context(|| format!("parsing {}", path.display()))?;
        self.files.push(path.to_owned());
        self.module(self.files.len() - 1, parsed.items, folder, parent)
    }

    fn module(
        &mut self,
        file: usize,
        items: Vec<Item>,
        folder: &Path,
        parent: Option<usize>,
    ) -> Result<usize> {
        let id = self.scopes.len();
        self.scopes.push(Scope { file, module: id, parent, ..Scope::default() });
        for item in &items {
            if for_tests(attributes(item)) {
                continue;
            }
            let Item::Mod(module) = item else {
                self.declare(id, item);
                continue;
            };
            let name = module.ident.to_string();
            let below = folder.join(&name);
            let child = match (&module.content, elsewhere(&module.attrs)) {
                (Some((_, items)), _) => self.module(file, items.clone(), &below, Some(id))?,
                (None, Some(path)) => {
                    let path = self.files[file].with_file_name(path);
                    self.load(&path, path.parent().unwrap_or(folder), Some(id))?
                }
                (None, None) => {
                    let beside = folder.join(format!("{name}.rs"));
                    let path = if beside.exists() { beside } else { below.join("mod.rs") };
                    self.load(&path, &below, Some(id))?
                }
            };
            self.scopes[id].definitions.push((name, Definition::Module(child)));
        }
        self.scopes[id].items = items;
        Ok(id)
    }

    /// Adds a block with `items`, which are not modules.
    pub fn block<'a>(&mut self, outer: usize, items: impl Iterator<Item = &'a Item>) -> usize {
        let Scope { file, module, parent, .. } = self.scopes[outer];
        let id = self.scopes.len();
        self.scopes.push(Scope { file, module, parent, outer: Some(outer), ..Scope::default() });
        items.for_each(|item| self.declare(id, item));
        id
    }

    /// Adds the names of an item other than a module to `scope`.
    fn declare(&mut self, scope: usize, item: &Item) {
        let (name, kinds) = match item {
            Item::Const(item) => (&item.ident, VALUE),
            Item::Enum(item) => (&item.ident, TYPE),
            Item::Fn(item) => (&item.sig.ident, VALUE),
            Item::Static(item) => (&item.ident, VALUE),
            Item::Struct(item) => (&item.ident, TYPE | VALUE),
            Item::Trait(item) => (&item.ident, TYPE),
            Item::TraitAlias(item) => (&item.ident, TYPE),
            Item::Type(item) => (&item.ident, TYPE),
            Item::Union(item) => (&item.ident, TYPE),
            Item::Macro(item) => {
                let Some(name) = &item.ident else {
                    made(item.mac.tokens.clone(), &mut self.scopes[scope].made);
                    return;
                };
                let file = self.scopes[scope].file;
                self.macros.entry(name.to_string()).or_default().insert(file);
                (name, MACRO)
            }
            Item::Use(item) => {
                if item.leading_colon.is_none() {
                    let public = !matches!(item.vis, Visibility::Inherited);
                    flatten(&item.tree, &mut Vec::new(), public, &mut self.scopes[scope].imports);
                }
                return;
            }
            _ => return,
        };
        let is_trait = matches!(item, Item::Trait(_) | Item::TraitAlias(_));
        let definition = Definition::Item { kinds, is_trait };
        self.scopes[scope].definitions.push((name.to_string(), definition));
    }
}

/// The file of a module with `#[path = ".."]`.
fn elsewhere(attributes: &[Attribute]) -> Option<String> {
    let path = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    match &path.meta.require_name_value().ok()?.value {
        Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
        _ => None,
    }
}

/// The names that a `use` imports.
fn flatten(tree: &UseTree, path: &mut Vec<String>, public: bool, imports: &mut Vec<Import>) {
    let mut import = |name: Option<String>, last: Option<String>, line: usize| {
        let path = path.iter().cloned().chain(last.filter(|last| last != "self")).collect();
        imports.push(Import { name, path, public, line });
    };
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            flatten(&inner.tree, path, public, imports);
            path.pop();
        }
        UseTree::Name(leaf) => {
            let last = leaf.ident.to_string();
            let name = if last == "self" { path.last().cloned() } else { Some(last.clone()) };
            import(name, Some(last), leaf.ident.span().start().line);
        }
        UseTree::Rename(leaf) => {
            let name = leaf.rename.to_string();
            import(Some(name), Some(leaf.ident.to_string()), leaf.ident.span().start().line);
        }
        UseTree::Glob(leaf) => import(None, None, leaf.star_token.spans[0].start().line),
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| flatten(tree, path, public, imports));
        }
    }
}

/// The names that a macro call between items may define: those after a keyword such as `struct`, or
/// all names if there is no keyword.
fn made(tokens: TokenStream, names: &mut HashSet<String>) {
    const KEYWORDS: &[&str] = &["struct", "enum", "fn", "const", "static", "trait", "type"];
    let mut identifiers = Vec::new();
    collect(tokens, &mut identifiers);
    let defined: Vec<_> = identifiers
        .windows(2)
        .filter(|pair| KEYWORDS.contains(&&*pair[0]))
        .map(|pair| pair[1].clone())
        .collect();
    names.extend(if defined.is_empty() { identifiers } else { defined });
}

fn collect(tokens: TokenStream, identifiers: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => identifiers.push(name.to_string()),
            TokenTree::Group(group) => collect(group.stream(), identifiers),
            _ => {}
        }
    }
}

/// Whether an item is compiled only for tests.
pub fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| demands_test(list.tokens.clone()))
    })
}

fn demands_test(tokens: TokenStream) -> bool {
    let mut negated = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => {
            negated = name == "not";
            name == "test"
        }
        TokenTree::Group(group) => !negated && demands_test(group.stream()),
        _ => false,
    })
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
