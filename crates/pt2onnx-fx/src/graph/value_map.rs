//! Maps from values of a graph to anything.

use super::{node::Graph, value::Values};
use rustc_hash::FxHashMap;

/// A map from values of a graph, by name. Entries are stored in the order of [`Graph::values`], so
/// that those of neighbouring nodes are close in memory, which matters in long graphs.
#[derive(Clone, Debug)]
pub struct ValueMap<'a, T> {
    values: &'a Values,
    entries: Vec<Option<T>>,
    /// Entries of names that are not in the graph.
    others: FxHashMap<Box<str>, T>,
    /// The place after the entry that was set last. The results of nodes are mostly set in order.
    next: usize,
}

impl<'a, T> ValueMap<'a, T> {
    /// An empty map for the values of a graph.
    pub fn new(graph: &'a Graph) -> Self {
        let mut entries = Vec::new();
        entries.resize_with(graph.values.len(), || None);
        Self { values: &graph.values, entries, others: FxHashMap::default(), next: 0 }
    }

    /// The entry of a value.
    pub fn get(&self, name: &str) -> Option<&T> {
        match self.values.get_index_of(name) {
            Some(index) => self.entries.get(index)?.as_ref(),
            None => self.others.get(name),
        }
    }

    /// Sets the entry of a value. Returns the previous one.
    pub fn insert(&mut self, name: &str, entry: T) -> Option<T> {
        let next = self.values.get_index(self.next).filter(|(known, _)| *known == name);
        let index = next.map(|_| self.next).or_else(|| self.values.get_index_of(name));
        match index.and_then(|i| Some((i, self.entries.get_mut(i)?))) {
            Some((index, place)) => {
                self.next = index + 1;
                place.replace(entry)
            }
            None => self.others.insert(name.into(), entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ValueMeta;

    #[test]
    fn names_that_the_graph_knows_and_others() {
        let mut graph = Graph::default();
        let class = "C".into();
        let meta = ValueMeta::CustomObj { class };
        for name in ["a", "b", "c"] {
            graph.values_mut().insert(name.into(), meta.clone());
        }
        // In the order of the values, and in others.
        for names in [["a", "b", "c", "other"], ["c", "a", "other", "b"], ["other", "c", "b", "a"]]
        {
            let mut map = ValueMap::new(&graph);
            for (name, i) in names.into_iter().zip(0..) {
                assert_eq!(map.get(name), None);
                assert_eq!(map.insert(name, -1), None);
                assert_eq!(map.insert(name, i), Some(-1));
            }
            for (name, i) in names.into_iter().zip(0..) {
                assert_eq!(map.get(name), Some(&i));
            }
        }
    }
}
