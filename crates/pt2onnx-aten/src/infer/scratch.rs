//! A model of one node: its operands as inputs or constants, of the types that they have in ONNX or
//! in PyTorch.

use super::{Contents, Facts};
use crate::{
    Options, Registry,
    driver::{Driver, onnx_type},
};
use pt2onnx_fx::graph::{Argument, Graph, Name, Node, SymArg, TensorMeta, ValueMeta};
use pt2onnx_ir::{Builder, Model, Type, Value};
use pt2onnx_symbolic::{Expr, Symbol};
use pt2onnx_tensor::DType;
use std::{collections::BTreeSet, sync::Arc};

/// The name of result `i`. No operand is called so.
pub(super) fn result(i: usize) -> Name {
    format!("%{i}").into()
}

/// A graph with the node and the types of what it reads. `known` are the types of the results,
/// where they are known.
pub(super) fn graph(
    node: &Node,
    outputs: Vec<Argument>,
    facts: &Facts,
    known: &[Option<TensorMeta>],
) -> Graph {
    let mut graph = Graph::default();
    let values = Arc::make_mut(&mut graph.values);
    for name in node.input_names() {
        values.extend(facts.values.get(&name).map(|meta| (name.clone(), meta.clone())));
    }
    let known = known.iter().enumerate();
    values.extend(known.filter_map(|(i, meta)| Some((result(i), meta.clone()?.into()))));
    graph.outputs.clone_from(&outputs);
    graph.nodes.push(Node { outputs, ..node.clone() }.into());
    graph
}

/// The types that values get in the scratch model.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Types {
    /// Those of ONNX: complex tensors are real/imaginary pairs.
    Onnx,
    /// Those of PyTorch.
    Torch,
}

/// A driver that can translate the only node of a graph.
pub(super) fn driver<'a>(
    model: &'a mut Model,
    graph: &'a Graph,
    registry: &'a Registry,
    facts: &Facts,
    types: Types,
) -> Driver<'a> {
    let builder =
        Builder::new(model, pt2onnx_ir::InsertPoint::End(Model::MAIN), facts.constraints.clone());
    let options = Options { default_dtype: facts.default_dtype, ..Options::default() };
    let mut driver = Driver::new(builder, graph, registry, options);
    bind_symbols(&driver.builder, &symbols(graph, facts));
    for (name, meta) in graph.values.iter() {
        if let ValueMeta::Tensor(meta) = meta {
            let value = operand(&driver.builder, meta, facts.contents.get(name), types);
            driver.scope.define(name, value);
        }
    }
    driver
}

/// All symbols that the node reads.
pub(super) fn symbols(graph: &Graph, facts: &Facts) -> BTreeSet<Symbol> {
    let mut found = BTreeSet::new();
    let mut add = |e: &Expr| found.extend(e.symbols());
    for (name, meta) in graph.values.iter() {
        match meta {
            ValueMeta::Tensor(meta) => meta.sizes.iter().for_each(&mut add),
            ValueMeta::SymInt { expr, .. }
            | ValueMeta::SymFloat { expr, .. }
            | ValueMeta::SymBool { expr, .. } => add(expr),
            ValueMeta::CustomObj { .. } => {}
        }
        if let Some(Contents::Exprs(exprs)) = facts.contents.get(name) {
            exprs.iter().for_each(&mut add);
        }
    }
    for arg in graph.nodes.iter().flat_map(|n| &n.args) {
        match &arg.value {
            Argument::SymInt(SymArg::Expr(e)) => add(e),
            Argument::SymInts(all) => all.iter().for_each(|a| {
                if let SymArg::Expr(e) = a {
                    add(e)
                }
            }),
            _ => {}
        }
    }
    found
}

/// Binds each symbol to a separate input.
fn bind_symbols(builder: &Builder, symbols: &BTreeSet<Symbol>) {
    for symbol in symbols {
        let dtype = if Expr::symbol(symbol).is_integer() { DType::I64 } else { DType::F64 };
        let value = builder.edit(|m| m.add_input(Model::MAIN, Some(Type::tensor(dtype, []))));
        builder.bind_scalar(Expr::symbol(symbol), value);
    }
}

/// An operand: a constant, a vector of sizes or an input.
fn operand(
    builder: &Builder,
    meta: &TensorMeta,
    contents: Option<&Contents>,
    types: Types,
) -> Value {
    let is_index = !meta.dtype.is_float() && !meta.dtype.is_complex();
    match contents {
        Some(Contents::Exact(tensor)) if !meta.dtype.is_complex() => {
            builder.constant(tensor.clone())
        }
        Some(Contents::Exprs(exprs)) if is_index => {
            let vector = builder.cast(builder.sizes(exprs), meta.dtype);
            let value = builder.reshape(vector, &meta.sizes);
            builder.set_contents(value, exprs.clone());
            value
        }
        _ => {
            let ty = match types {
                Types::Onnx => onnx_type(meta),
                Types::Torch => Type::tensor(meta.dtype, meta.sizes.clone()),
            };
            builder.edit(|m| m.add_input(Model::MAIN, Some(ty)))
        }
    }
}
