//! A graph while it is translated: the recorded types, and the ONNX values of its values so far.

use pt2onnx_fx::graph::{Graph, Name, ValueMap, ValueMeta};
use pt2onnx_ir::Value;
use pt2onnx_symbolic::Expr;
use std::cell::{Cell, OnceCell};

/// A graph while it is translated. The body of a higher-order op has a separate scope, because it
/// cannot use names of the graph around it.
pub struct Scope<'a> {
    graph: &'a Graph,
    values: ValueMap<'a, Value>,
    /// Whether the graph has complex tensors.
    complex: bool,
    /// Values that count as read, though no node or output reads them.
    kept: Vec<Name>,
    /// The values that are read. Few translations ask for them.
    read: OnceCell<ValueMap<'a, ()>>,
    /// Whether a lowering asked for a type that the graph does not have.
    asked: Cell<bool>,
}

impl<'a> Scope<'a> {
    /// The scope of a graph before its first node.
    pub fn of(graph: &'a Graph) -> Self {
        Self {
            graph,
            values: ValueMap::new(graph),
            complex: graph.has_complex(),
            kept: Vec::new(),
            read: OnceCell::new(),
            asked: Cell::new(false),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The ONNX value of an FX value.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.values.get(name).copied()
    }

    /// Sets the ONNX value of an FX value.
    pub fn define(&mut self, name: &str, value: Value) {
        self.values.insert(name, value);
    }

    /// PyTorch's record of an FX value.
    pub fn meta(&self, name: &str) -> Option<&'a ValueMeta> {
        self.graph.values.get(name)
    }

    /// Notes that a lowering asked for the recorded type of a result.
    pub fn ask(&self, name: &str) {
        self.asked.set(self.asked.get() || self.meta(name).is_none());
    }

    /// Whether a lowering asked for a type that the graph does not have.
    pub fn was_asked(&self) -> bool {
        self.asked.get()
    }

    /// The expression of an FX integer.
    pub fn sym_int(&self, name: &str) -> Option<Expr> {
        match self.meta(name)? {
            ValueMeta::SymInt { expr, .. } => Some(expr.clone()),
            _ => None,
        }
    }

    /// Counts these FX values as read, though no node or output of the graph reads them: the new
    /// values of state.
    pub fn keep<'n>(&mut self, names: impl Iterator<Item = &'n Name>) {
        self.kept.extend(names.cloned());
        self.read = OnceCell::new();
    }

    /// Whether something reads an FX value.
    pub fn reads(&self, name: &str) -> bool {
        self.read.get_or_init(|| self.all_read()).get(name).is_some()
    }

    fn all_read(&self) -> ValueMap<'a, ()> {
        let mut read = ValueMap::new(self.graph);
        let args = self.graph.nodes.iter().flat_map(|n| &n.args).map(|a| &a.value);
        for arg in args.chain(&self.graph.outputs) {
            arg.for_each_name(&mut |name| _ = read.insert(name, ()));
        }
        self.kept.iter().for_each(|name| _ = read.insert(name, ()));
        read
    }

    /// Whether the graph has complex tensors.
    pub fn has_complex(&self) -> bool {
        self.complex
    }

    /// Whether an FX value is a complex tensor.
    pub fn is_complex(&self, name: &str) -> bool {
        self.complex && self.graph.tensor(name).is_some_and(|meta| meta.dtype.is_complex())
    }
}
