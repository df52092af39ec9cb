//! What the driver knows of the graph being translated: recorded types, and what its values became.

use pt2onnx_fx::graph::{Graph, Name, ValueMap, ValueMeta};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;

/// A graph being translated. Bodies are closed: each knows its own names.
pub(crate) struct Scope<'a> {
    graph: &'a Graph,
    values: ValueMap<'a, Value>,
    /// Values that some node or output reads.
    read: ValueMap<'a, ()>,
}

impl<'a> Scope<'a> {
    pub fn of(graph: &'a Graph) -> Self {
        let mut read = ValueMap::new(graph);
        let args = graph.nodes.iter().flat_map(|n| &n.args).map(|a| &a.value);
        for arg in args.chain(&graph.outputs) {
            arg.for_each_name(&mut |name| _ = read.insert(name, ()));
        }
        Self { graph, values: ValueMap::new(graph), read }
    }

    /// The tensor that an FX value became.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.values.get(name).copied()
    }

    /// Says what an FX value became.
    pub fn define(&mut self, name: &str, value: Value) {
        self.values.insert(name, value);
    }

    /// What PyTorch recorded of an FX value.
    pub fn meta(&self, name: &str) -> Option<&'a ValueMeta> {
        self.graph.values.get(name)
    }

    /// The expression of an FX integer.
    pub fn sym_int(&self, name: &str) -> Option<Expr> {
        match self.meta(name)? {
            ValueMeta::SymInt { expr, .. } => Some(expr.clone()),
            _ => None,
        }
    }

    /// Counts FX values as read that no node or output of the graph reads: new values of what the program writes into.
    pub fn keep<'n>(&mut self, names: impl Iterator<Item = &'n Name>) {
        names.for_each(|name| _ = self.read.insert(name, ()));
    }

    /// Whether something reads an FX value.
    pub fn reads(&self, name: &str) -> bool {
        self.read.get(name).is_some()
    }

    /// Whether an FX value is a complex tensor.
    pub fn is_complex(&self, name: &str) -> bool {
        matches!(self.meta(name), Some(ValueMeta::Tensor(meta)) if meta.dtype.is_complex())
    }
}
