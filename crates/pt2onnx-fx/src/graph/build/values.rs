//! Builds a graph and the types of its values.

use super::{
    builder::{Builder, Built, owner},
    enums::{dtype, layout},
};
use crate::{
    error::Invalid,
    graph::{Argument, Device, Graph, Hint, Node, TensorMeta, ValueMap, ValueMeta, Values},
    schema as s,
};
use pt2onnx_symbolic::{Expr, is_possible};
use pt2onnx_tensor::DType;
use std::sync::Arc;

/// The part of a graph that is built while the rest of it is read.
#[derive(Default)]
pub(super) struct Begun {
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) values: Values,
}

impl Builder {
    pub(super) fn graph(&mut self, g: &s::Graph) -> Built<Graph> {
        self.graph_of(g, Begun::default())
    }

    /// The graph whose first nodes and types are built.
    pub(super) fn graph_of(&mut self, g: &s::Graph, begun: Begun) -> Built<Graph> {
        let Begun { mut nodes, mut values } = begun;
        values.reserve(g.tensor_values.0.len() + g.sym_int_values.0.len());
        for (name, meta) in &g.tensor_values.0 {
            let meta = self.tensor_meta(name, meta)?;
            values.insert(self.name(name), meta.into());
        }
        for (name, value) in &g.sym_int_values.0 {
            let (expr, hint) = match value {
                s::SymInt::Int(i) => (Expr::int(*i), None),
                s::SymInt::Expr(e) => self.hinted(name, e)?,
            };
            values.insert(self.name(name), ValueMeta::SymInt { expr, hint });
        }
        for (name, value) in &g.sym_float_values.0 {
            let (expr, hint) = match value {
                s::SymFloat::Float(f) => (Expr::float(f.0), None),
                s::SymFloat::Expr(e) => self.hinted(name, e)?,
            };
            values.insert(self.name(name), ValueMeta::SymFloat { expr, hint });
        }
        for (name, value) in &g.sym_bool_values.0 {
            let (expr, hint) = match value {
                s::SymBool::Bool(b) => (Expr::bool(*b), None),
                s::SymBool::Expr(e) => self.hinted(name, e)?,
            };
            values.insert(self.name(name), ValueMeta::SymBool { expr, hint });
        }
        for (name, object) in &g.custom_obj_values.0 {
            let class = self.name(&object.class_fqn);
            values.insert(self.name(name), ValueMeta::CustomObj { class });
        }
        nodes.append(&mut self.all(&g.nodes, |cx, node| cx.node(node).map(Arc::new))?);
        let graph = Graph {
            inputs: self.all(&g.inputs, Self::argument)?,
            nodes,
            outputs: self.all(&g.outputs, Self::argument)?,
            values: Arc::new(values),
            is_single_tensor_return: g.is_single_tensor_return,
        };
        defined_before_use(&graph)?;
        Ok(graph)
    }

    fn hinted(&mut self, name: &str, e: &s::SymExpr) -> Built<(Expr, Option<Hint>)> {
        let hint = e.hint.map(|hint| match hint {
            s::SymExprHint::Int(i) => Hint::Int(i),
            s::SymExprHint::Bool(b) => Hint::Bool(b),
            s::SymExprHint::Float(f) => Hint::Float(f.0),
        });
        Ok((self.expr(&e.expr_str, || owner(name))?, hint))
    }

    pub(super) fn tensor_meta(&mut self, name: &str, m: &s::TensorMeta) -> Built<TensorMeta> {
        let mut exprs = |sizes: &[s::SymInt]| -> Built<Vec<Expr>> {
            self.all(sizes, |cx, size| cx.size(name, size))
        };
        let (mut sizes, mut strides) = (exprs(&m.sizes)?, exprs(&m.strides)?);
        let mut storage_offset = self.size(name, &m.storage_offset)?;
        let dtype = dtype(m.dtype, || owner(name))?;
        if dtype == DType::F4E2M1 {
            // PyTorch counts pairs, along the last dimension.
            let (last, others) = (sizes.last_mut(), strides.split_last_mut());
            last.into_iter().for_each(|size| *size = &*size * 2);
            others.into_iter().flat_map(|(_, all)| all).for_each(|stride| *stride = &*stride * 2);
            storage_offset = storage_offset * 2;
        }
        if !is_possible(&sizes) {
            let sizes: Vec<String> = sizes.iter().map(Expr::to_string).collect();
            return Err(Invalid::Impossible { owner: owner(name), sizes: sizes.join(", ") });
        }
        Ok(TensorMeta {
            dtype,
            sizes,
            strides,
            storage_offset,
            requires_grad: m.requires_grad,
            device: self.device(&m.device),
            layout: layout(m.layout, || owner(name))?,
        })
    }

    pub(super) fn device(&mut self, d: &s::Device) -> Device {
        Device { kind: self.name(&d.kind), index: d.index }
    }
}

/// Records the values that an output or input defines. It is an error if one is defined already.
fn define(argument: &Argument, defined: &mut ValueMap<()>) -> Built<()> {
    let mut twice = None;
    argument.for_each_name(&mut |name| {
        if defined.insert(name, ()).is_some() {
            twice = Some(Invalid::DefinedTwice(name.clone()));
        }
    });
    twice.map_or(Ok(()), Err)
}

/// Checks that each value is defined once, and before anything reads it.
fn defined_before_use(graph: &Graph) -> Built<()> {
    let mut defined = ValueMap::new(graph);
    let mut wrong = None;
    for input in &graph.inputs {
        define(input, &mut defined)?;
    }
    for node in &graph.nodes {
        for arg in &node.args {
            arg.value.for_each_name(&mut |name| {
                if defined.get(name).is_none() {
                    wrong = Some(name.clone());
                }
            });
        }
        if let Some(name) = wrong {
            let node = node.name.clone();
            return Err(Invalid::Undefined { node, name });
        }
        for output in &node.outputs {
            define(output, &mut defined)?;
        }
    }
    Ok(())
}
