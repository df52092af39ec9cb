//! The imports of a Python package: which of its files imports which other.
//!
//! Imports in functions count. Those below `if TYPE_CHECKING:` do not: they have no effect when the
//! package runs.

use std::path::{Path, PathBuf};

/// An import of a file of the package.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    /// Its line, from 1.
    pub line: usize,
    /// The imported file, relative to the package.
    pub file: PathBuf,
    /// The path as it is written.
    pub path: String,
}

/// The imports of a file of a package.
///
/// `package` is the package's name, `file` is relative to it, and `exists` is whether the package
/// has a file.
pub fn imports(
    package: &str,
    file: &Path,
    source: &str,
    exists: impl Fn(&Path) -> bool,
) -> Vec<Import> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for (line, statement) in statements(source) {
        let mut add = |folder: &Path, path: &str, name: &str| {
            if let Some(file) = resolve(folder, path, name, &exists) {
                let separator = if path.is_empty() || name.is_empty() { "" } else { "." };
                found.push(Import { line, file, path: format!("{path}{separator}{name}") });
            }
        };
        if let Some(rest) = statement.strip_prefix("from ") {
            let Some((from, names)) = rest.split_once(" import ") else { continue };
            let path = from.trim_start_matches('.');
            let level = from.len() - path.len();
            let base = folder.ancestors().nth(level.saturating_sub(1));
            let inside = path.strip_prefix(package).and_then(|rest| match rest {
                "" => Some(rest),
                _ => rest.strip_prefix('.'),
            });
            let (base, path) = match (level, base, inside) {
                (0, _, Some(inside)) => (Path::new(""), inside),
                (1.., Some(base), _) => (base, path),
                _ => continue,
            };
            let names = names.trim_matches(['(', ')', ' ']).split(',');
            for name in names.filter_map(|name| name.split_whitespace().next()) {
                add(base, path, name);
            }
        } else if let Some(names) = statement.strip_prefix("import ") {
            for name in names.split(',').filter_map(|name| name.split_whitespace().next()) {
                if let Some(path) = name.strip_prefix(package).and_then(|p| p.strip_prefix('.')) {
                    add(Path::new(""), path, "");
                }
            }
        }
    }
    found
}

/// The file of a module `path` in a folder, or of its submodule `name`.
fn resolve(
    folder: &Path,
    path: &str,
    name: &str,
    exists: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let module: PathBuf = folder.join(path.split('.').collect::<PathBuf>());
    let file = |module: &Path| {
        let package = module.join("__init__.py");
        let file = module.with_extension("py");
        [package, file].into_iter().find(|file| exists(file))
    };
    let inner = (!name.is_empty()).then(|| file(&module.join(name))).flatten();
    inner.or_else(|| file(&module))
}

/// The logical lines that import, without those of type checking, each with its number from 1.
fn statements(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut depth, mut start, mut statement) = (0, 1, String::new());
    // The indentation of the block of type checking.
    let mut skipped: Option<usize> = None;
    for (at, line) in code(source).lines().enumerate() {
        if statement.is_empty() {
            start = at + 1;
        }
        statement += line.strip_suffix('\\').unwrap_or(line);
        depth += line.matches(['(', '[', '{']).count();
        depth = depth.saturating_sub(line.matches([')', ']', '}']).count());
        if depth > 0 || line.ends_with('\\') {
            statement.push(' ');
            continue;
        }
        let text = statement.trim().to_owned();
        let indentation = statement.len() - statement.trim_start().len();
        statement.clear();
        if text.is_empty() {
            continue;
        }
        skipped = skipped.filter(|block| indentation > *block);
        if skipped.is_some() {
            continue;
        }
        if text == "if TYPE_CHECKING:" || text == "if typing.TYPE_CHECKING:" {
            skipped = Some(indentation);
        }
        if text.starts_with("import ") || text.starts_with("from ") {
            found.push((start, text.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    found
}

/// The source with empty strings, and without comments.
fn code(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        if first == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if first == '"' || first == '\'' {
            let triple = first.to_string().repeat(3);
            let quote = if rest.starts_with(&triple) { triple } else { first.to_string() };
            let inside = &rest[quote.len()..];
            let end = end_of_string(inside, &quote);
            let text = &inside[..end];
            out.extend(text.chars().filter(|c| *c == '\n'));
            rest = inside.get(end + quote.len()..).unwrap_or_default();
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// The place of the quote that ends a string.
fn end_of_string(text: &str, quote: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if !escaped && text[at..].starts_with(quote) {
            return at;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}
