//! The graph of the files of a crate, with an edge if a file uses an item of another, and its
//! circles; and that of the files of a Python package, with an edge for an import.
//!
//! None of the files of a circle can be understood without the others. `cargo xtask circles` prints
//! them.
//!
//! Sources are parsed, not compiled. Paths in imports, expressions, patterns, types and the tokens
//! of macro calls are resolved. Method calls, derives and doc links are not. Test code is ignored.

mod names;
mod python;
mod references;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use references::references;
use tree::Tree;

/// How many uses of an edge are printed.
const SHOWN: usize = 6;

/// A file, and another whose items it uses. Both paths are relative to the crate's `src`.
pub type Edge = (PathBuf, PathBuf);

/// Which file of a crate uses which other.
#[derive(Debug, Default)]
pub struct Graph {
    /// The edges, each with the uses in its first file: line and path.
    pub edges: BTreeMap<Edge, BTreeSet<(usize, String)>>,
}

impl Graph {
    /// Parses the library and the program of the crate in `folder`.
    ///
    /// # Errors
    /// A source file cannot be read or parsed.
    pub fn of_crate(folder: &Path) -> Result<Graph> {
        let src = folder.join("src");
        let mut graph = Graph::default();
        for root in ["lib.rs", "main.rs"].map(|root| src.join(root)) {
            if !root.exists() {
                continue;
            }
            let mut tree = Tree::parse(&root)?;
            let found = references(&mut tree);
            let name = |file: usize| {
                let path = &tree.files[file];
                path.strip_prefix(&src).unwrap_or(path).to_owned()
            };
            for reference in found {
                let edge = (name(reference.from), name(reference.to));
                graph.edges.entry(edge).or_default().insert((reference.line, reference.path));
            }
        }
        Ok(graph)
    }

    /// Parses the Python package in `folder`, whose name is the package's.
    ///
    /// # Errors
    /// A source file cannot be read.
    pub fn of_python(folder: &Path) -> Result<Graph> {
        let package = folder.file_name().and_then(|name| name.to_str());
        let package = package.context("the folder of a package has no name")?;
        let mut graph = Graph::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "py") {
                    let name = path.strip_prefix(folder).unwrap_or(&path).to_owned();
                    let source = fs::read_to_string(&path)?;
                    let exists = |file: &Path| folder.join(file).is_file();
                    for import in python::imports(package, &name, &source, exists) {
                        let edge = (name.clone(), import.file);
                        graph.edges.entry(edge).or_default().insert((import.line, import.path));
                    }
                }
            }
        }
        Ok(graph)
    }

    /// The parts of the graph in which every file uses every other, directly or through others.
    pub fn circles(&self) -> Vec<Graph> {
        let graph: DiGraphMap<&Path, ()> =
            self.edges.keys().map(|(from, to)| (from.as_path(), to.as_path())).collect();
        let circles = tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1);
        circles
            .map(|files| {
                let inside = |(from, to): &Edge| files.contains(&&**from) && files.contains(&&**to);
                let edges = self.edges.iter().filter(|(edge, _)| inside(edge));
                Graph { edges: edges.map(|(edge, sites)| (edge.clone(), sites.clone())).collect() }
            })
            .collect()
    }

    /// The files of all edges, sorted.
    pub fn files(&self) -> BTreeSet<&Path> {
        self.edges.keys().flat_map(|(from, to)| [from.as_path(), to.as_path()]).collect()
    }
}

/// A line for each edge, with its first uses and how many there are.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((from, to), sites) in &self.edges {
            let shown = sites.iter().take(SHOWN).map(|(line, path)| format!("{line} {path}"));
            let shown = shown.collect::<Vec<_>>().join(", ");
            writeln!(f, "  {} -> {}: {shown} ({})", from.display(), to.display(), sites.len())?;
        }
        Ok(())
    }
}
