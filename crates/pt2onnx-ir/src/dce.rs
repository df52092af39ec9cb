//! Functions that nothing calls.

use crate::Model;
use rustc_hash::FxHashSet;

impl Model {
    /// Drops the functions that neither the main graph nor a function in use calls.
    pub fn drop_unused_functions(&mut self) {
        let index = self.function_index();
        let mut used = FxHashSet::default();
        let mut todo = self.graph_nodes();
        while let Some(node) = todo.pop() {
            if let Some(function) = index.called(self, &self[node])
                && used.insert(function.body)
            {
                todo.extend(self.nodes_in(&[function.body]));
            }
        }
        self.functions.retain(|f| used.contains(&f.body));
        self.functions.sort_by_key(|f| f.body);
    }
}
