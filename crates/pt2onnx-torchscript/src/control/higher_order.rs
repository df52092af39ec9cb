//! Bodies of higher-order ops: separate graphs, which get all that they read as operands.

use crate::eval::{Evaluator, Step, to_fx::positional};
use indexmap::IndexSet;
use pt2onnx_fx::{Argument, Graph, Name, NamedArg, Node, OpName, SymArg, ValueMeta, Values};
use pt2onnx_symbolic::{Expr, Range};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A body: its own inputs, its nodes, and the tensors that it returns.
#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) name: &'static str,
    pub(crate) inputs: Vec<Name>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<Name>,
}

pub(crate) fn made_by(nodes: &[Node]) -> FxHashSet<Name> {
    let mut made = FxHashSet::default();
    let mut open: Vec<&Node> = nodes.iter().collect();
    while let Some(node) = open.pop() {
        made.extend(node.output_names());
        open.extend(node.bodies().flat_map(|body| body.nodes.iter().map(|node| &**node)));
    }
    made
}

impl Evaluator<'_> {
    /// A call with `first` before the bodies, and `then` between them and the operands.
    pub(crate) fn higher_order<const N: usize>(
        &mut self,
        op: &str,
        first: &[Argument],
        bodies: [Body; N],
        then: &[Argument],
        results: Vec<Name>,
    ) -> Step<Node> {
        let mut captured: IndexSet<Name> = IndexSet::new();
        for body in &bodies {
            let mut made: FxHashSet<Name> = body.inputs.iter().cloned().collect();
            for node in &body.nodes {
                captured.extend(node.input_names().into_iter().filter(|name| !made.contains(name)));
                made.extend(node.output_names());
            }
            captured.extend(body.outputs.iter().filter(|name| !made.contains(*name)).cloned());
        }
        let captured: Vec<Name> = captured.into_iter().collect();
        let positional = |value| positional("", value);
        let mut args: Vec<NamedArg> = first.iter().cloned().map(positional).collect();
        for body in bodies {
            let name = self.fresh(body.name);
            let graph = Box::new(self.graph(body, &captured));
            args.push(positional(Argument::Graph { name, graph }));
        }
        args.extend(then.iter().cloned().map(positional));
        let mut node = self.node(OpName::new("higher_order", op, ""), args)?;
        let operands: Vec<Argument> =
            captured.iter().map(|name| self.value_argument(name)).collect();
        if operands.iter().all(|operand| matches!(operand, Argument::Tensor(_))) {
            node.args.push(positional(Argument::Tensors(captured)));
        } else {
            node.args.extend(operands.into_iter().map(positional));
        }
        node.outputs = vec![Argument::Tensors(results)];
        node.single_return = Some(false);
        Ok(node)
    }

    fn graph(&self, body: Body, captured: &[Name]) -> Graph {
        let made = body.nodes.iter().flat_map(Node::output_names);
        let names = body.inputs.iter().chain(captured).cloned().chain(made);
        let meta =
            |name: Name| self.state.facts.values.get(&name).cloned().map(|meta| (name, meta));
        let values: Values = names.filter_map(meta).collect();
        let inputs =
            body.inputs.iter().chain(captured).map(|name| self.value_argument(name)).collect();
        Graph {
            nodes: body.nodes.into_iter().map(Arc::new).collect(),
            inputs,
            outputs: body.outputs.into_iter().map(Argument::Tensor).collect(),
            values: Arc::new(values),
            is_single_tensor_return: false,
        }
    }

    pub(crate) fn value_argument(&self, name: &Name) -> Argument {
        let named = name.clone();
        match self.state.facts.values.get(name) {
            Some(ValueMeta::SymInt { .. }) => Argument::SymInt(SymArg::Name(named)),
            Some(ValueMeta::SymFloat { .. }) => Argument::SymFloat(SymArg::Name(named)),
            Some(ValueMeta::SymBool { .. }) => Argument::SymBool(SymArg::Name(named)),
            _ => Argument::Tensor(named),
        }
    }

    pub(crate) fn size_symbol(&mut self) -> Expr {
        let symbol = self.state.facts.symbols.next(false);
        self.state.facts.constraints.constrain(&symbol, Range::at_least(0));
        symbol
    }
}
