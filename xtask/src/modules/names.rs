//! Resolves paths to the file that defines the item, through imports, re-exports and globs.

use super::tree::{Definition, MACRO, TYPE, Tree};

/// The item that a path refers to inside the crate.
#[derive(Clone, Copy)]
pub enum Target {
    /// A module, by its scope.
    Module(usize),
    /// An item.
    Item {
        /// The file that defines it.
        file: usize,
        /// Whether it is a trait.
        is_trait: bool,
    },
}

/// The names that are being resolved, so that circular imports end.
type Pending = Vec<(usize, String, u8)>;

impl Tree {
    /// Resolves `path` in `scope` as a name of one of `kinds`. `None` if it is not found or belongs
    /// to another crate.
    pub fn resolve(&self, scope: usize, path: &[String], kinds: u8) -> Option<Target> {
        let found = self.path(scope, path, kinds, &mut Vec::new());
        // A macro that is not found by its path is looked up by its name alone.
        if found.is_none() && kinds == MACRO {
            let files = self.macros.get(path.last()?)?;
            let here = self.scopes[scope].file;
            let file = if files.contains(&here) { here } else { *files.first()? };
            let known = files.len() == 1 || file == here;
            return known.then_some(Target::Item { file, is_trait: false });
        }
        found
    }

    fn path(&self, scope: usize, path: &[String], kinds: u8, at: &mut Pending) -> Option<Target> {
        let kind = |rest: &[String]| if rest.is_empty() { kinds } else { TYPE };
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(self.scopes[scope].module),
            "super" => Target::Module(self.scopes[scope].parent?),
            name => self.in_scope(scope, name, kind(rest), at)?,
        };
        while let (Target::Module(module), Some((name, after))) = (target, rest.split_first()) {
            target = match name.as_str() {
                "super" => Target::Module(self.scopes[module].parent?),
                name => self.in_module(module, name, kind(after), at)?,
            };
            rest = after;
        }
        Some(target)
    }

    /// Resolves a name in the scope and the scopes around it.
    fn in_scope(&self, scope: usize, name: &str, kinds: u8, at: &mut Pending) -> Option<Target> {
        self.in_module(scope, name, kinds, at)
            .or_else(|| self.in_scope(self.scopes[scope].outer?, name, kinds, at))
    }

    /// Resolves a name that `scope` defines or imports.
    fn in_module(&self, scope: usize, name: &str, kinds: u8, at: &mut Pending) -> Option<Target> {
        let entry = (scope, name.to_owned(), kinds);
        if at.contains(&entry) {
            return None;
        }
        at.push(entry);
        let found = self.look_up(scope, name, kinds, at);
        at.pop();
        found
    }

    fn look_up(&self, scope: usize, name: &str, kinds: u8, at: &mut Pending) -> Option<Target> {
        let here = &self.scopes[scope];
        let defined = here.definitions.iter().filter(|(defined, _)| defined == name);
        let defined = defined.map(|(_, definition)| definition).find_map(|definition| {
            Some(match *definition {
                Definition::Module(module) if kinds & TYPE != 0 => Target::Module(module),
                Definition::Item { kinds: own, is_trait } if own & kinds != 0 => {
                    Target::Item { file: here.file, is_trait }
                }
                _ => return None,
            })
        });
        let named = || {
            let imports = here.imports.iter().filter(|import| import.name.as_deref() == Some(name));
            imports.map(|import| &import.path).collect::<Vec<_>>()
        };
        defined
            .or_else(|| named().into_iter().find_map(|path| self.path(scope, path, kinds, at)))
            .or_else(|| {
                let globs = here.imports.iter().filter(|import| import.name.is_none());
                globs.into_iter().find_map(|glob| match self.path(scope, &glob.path, TYPE, at)? {
                    Target::Module(module) => self.in_module(module, name, kinds, at),
                    Target::Item { .. } => None,
                })
            })
            .or_else(|| {
                let made = here.made.contains(name) && named().is_empty();
                made.then_some(Target::Item { file: here.file, is_trait: false })
            })
    }
}
