//! Functions that nothing calls.

use crate::Model;

impl Model {
    /// Drops the functions that neither the main graph nor a function in use calls.
    pub fn drop_unused_functions(&mut self) {
        let mut unused = std::mem::take(&mut self.functions);
        let mut used = Vec::new();
        let mut todo = self.graph_nodes();
        while let Some(node) = todo.pop() {
            if let Some(i) = unused.iter().position(|f| f.is_called_by(&self[node])) {
                let function = unused.remove(i);
                todo.extend(self.nodes_in(&[function.body]));
                used.push(function);
            }
        }
        used.sort_by_key(|f| f.body);
        self.functions = used;
    }
}
