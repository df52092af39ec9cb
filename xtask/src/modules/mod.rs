//! Which file of a crate uses items of which other, and the circles in that: files that none can be read without the
//! others. `cargo xtask circles` prints them.
//!
//! Sources are parsed, not compiled. Resolved are paths in imports, expressions, patterns, types and (by their tokens)
//! macro calls. Not resolved are method calls, derives and doc links. Code for tests does not count.

mod names;
mod references;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use references::references;
use tree::Tree;

/// How many uses are shown of an edge.
const SHOWN: usize = 6;

/// A file and one that it uses items of, both from the crate's `src`.
pub type Edge = (PathBuf, PathBuf);

/// The files of a crate.
#[derive(Debug, Default)]
pub struct Graph {
    /// Each edge with the lines of its first file that make it, and the paths that stand there.
    pub edges: BTreeMap<Edge, BTreeSet<(usize, String)>>,
}

impl Graph {
    /// The graph of the crate in `folder`, of its library and its program.
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

    /// The parts of the graph in which each file uses each other, directly or not.
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

    /// The files, in order.
    pub fn files(&self) -> BTreeSet<&Path> {
        self.edges.keys().flat_map(|(from, to)| [from.as_path(), to.as_path()]).collect()
    }
}

/// A line for each edge, with the first uses that make it and how many there are.
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
