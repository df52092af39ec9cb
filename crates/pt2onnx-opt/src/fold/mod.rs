//! Constant folding: nodes whose inputs are known become constants.

mod bytes;
mod cone;
mod replace;
mod weights;

use crate::{
    Changed, GraphMut, Options, Pass, Target, Walk, analysis::users, eval,
    folded_constants::FoldedConstants, pass::Run, pool,
};
use bytes::{bytes_of, is_narrow, result_bytes};
use pt2onnx_ir::{Def, Model, Node, NodeId, Use, Value, attrs, conforms, schema};
use pt2onnx_tensor::Tensor;
use rustc_hash::FxHashSet;

pub(crate) static FOLD: Pass = Pass {
    name: "fold",
    description: "Replaces nodes by constants if their inputs are constants or their result \
                  follows from the types. Several nodes may become a larger constant than one. \
                  Weights that are filled with one number become constants. In models of other \
                  producers, constants may have 128 times as many bytes, but quantized weights \
                  stay.",
    precondition: "The operator is not for random numbers, and the node has the form of the newest \
                   opset. DequantizeLinear of a constant stays, unless the result is quantized \
                   again.",
    run: Run::Graph(run),
    ..Pass::SIMPLIFICATION
};

fn run(graph: &mut GraphMut<'_>, options: &Options) -> Changed {
    let constants = FoldedConstants::default();
    let mut fold = Fold { options, generated: 0, constants: &constants };
    let mut changed = false;
    let mut nodes = graph.nodes();
    let model = &mut *graph.model;
    if options.max_folded_bytes > 0 {
        changed |= weights::run(model, &nodes);
    }
    // Weights may have taken nodes in.
    nodes.retain(|&node| model.contains(node));
    // Nodes that may be folded now, with their results if these are computed already.
    let found = pool::find(&nodes, |node| {
        let operands = operands(model, node, options);
        let computed = || operands.map(|operands| fold.cheap(model, node, &operands));
        may_be_known(&model[node]).then_some(None).or_else(computed)
    });
    let mut found = found.into_iter().peekable();
    // Nodes that have a new constant as input.
    let mut fed = FxHashSet::default();
    let mut walk = Walk::new(nodes.iter().copied().enumerate().collect(), graph.budget);
    while let Some((place, node)) = walk.next(model) {
        let found = found.next_if(|(at, _)| *at == place).map(|(_, results)| results);
        if !model.contains(node) || found.is_none() && !fed.contains(&node) {
            continue;
        }
        if let Some(results) = found.flatten().or_else(|| fold.results(model, node)) {
            fed.extend(users(model, node));
            changed |= replace::by_constants(model, node, &[node], results);
        }
    }
    changed | cone::run(graph, &nodes, options, &constants)
}

/// Whether a node may be folded although its inputs are no constants.
fn may_be_known(node: &Node) -> bool {
    matches!(node.op(), "Constant" | "Shape" | "Size")
}

/// Makes the values of `Constant` nodes constants.
pub(crate) fn constants(graph: &mut GraphMut<'_>) {
    let mut walk = graph.walk();
    while let Some(id) = walk.next(graph.model) {
        let model = &mut *graph.model;
        let constant = Some(&model[id]).filter(|n| n.is("Constant"));
        let tensor = constant.and_then(Node::given_tensor);
        if let Some(tensor) = tensor {
            replace::by_constants(model, id, &[id], vec![tensor]);
        }
    }
}

/// The most bytes above [`Options::max_folded_bytes`] that single nodes make in one run.
const MAX_GENERATED: usize = 64 << 20;

struct Fold<'a> {
    options: &'a Options,
    /// See [`MAX_GENERATED`].
    generated: usize,
    constants: &'a FoldedConstants,
}

impl Fold<'_> {
    /// The node's outputs, if they are known and may become constants.
    fn results(&mut self, model: &Model, id: NodeId) -> Option<Vec<Tensor>> {
        let node = &model[id];
        let is_used = || node.domain.is_empty() && !model.is_unused(id);
        match node.op() {
            "Constant" if is_used() => return Some(vec![node.given_tensor()?]),
            "Shape" | "Size" if is_used() => return Some(vec![static_shape(model, node)?]),
            _ => {}
        }
        let inputs = operands(model, id, self.options)?;
        let small = self.options.max_folded_bytes;
        let kept = |t: &&Tensor| !self.options.replace_weights && t.nbytes() > small;
        let generated = if inputs.iter().flatten().any(kept) {
            0
        } else {
            self.options.max_generated_bytes.min(MAX_GENERATED - self.generated)
        };
        let narrow = || node.inputs().iter().flatten().any(|&v| is_narrow(model, v, id, small));
        let large = result_bytes(model, id).filter(|&n| n > small && n <= generated && !narrow());
        if let Some(large) = large.filter(|_| self.may_read(&inputs))
            && let Some(results) = eval::evaluate(node, &inputs, large)
        {
            self.generated += large;
            return Some(results);
        }
        self.cheap(model, id, &inputs)
    }

    /// The node's outputs, if they are small or replace as many bytes, whatever is folded before.
    fn cheap(&self, model: &Model, id: NodeId, inputs: &[Option<&Tensor>]) -> Option<Vec<Tensor>> {
        let small = self.options.max_folded_bytes;
        let results = |bytes| eval::evaluate(&model[id], inputs, bytes);
        if self.may_read(inputs)
            && let Some(results) = results(small)
        {
            return Some(results);
        }
        let freed = if self.options.replace_weights { self.freed(model, id) } else { 0 };
        let results = (freed > small).then(|| results(freed))??;
        (bytes_of(model, id, &results)? <= freed).then_some(results)
    }

    /// Whether so many bytes may be read for results that replace none.
    fn may_read(&self, inputs: &[Option<&Tensor>]) -> bool {
        let read = inputs.iter().flatten().try_fold(0usize, |n, t| n.checked_add(t.nbytes()));
        read.is_some_and(|read| read <= self.options.max_read_bytes)
    }

    /// Bytes of the constants that only this node uses, and that share no memory.
    fn freed(&self, model: &Model, id: NodeId) -> usize {
        let inputs: FxHashSet<Value> = model[id].inputs().iter().copied().flatten().collect();
        let mut bytes = 0usize;
        for &value in &inputs {
            let data = &model[value];
            let only_here = data.uses().all(|u| matches!(u, Use::Input(user, _) if user == id));
            let Some(tensor) = data.constant().filter(|_| only_here) else { continue };
            if self.constants.is_alone(model, value) {
                bytes = bytes.saturating_add(tensor.nbytes());
            }
        }
        bytes
    }
}

/// The inputs of a node that can be computed, all of them constants.
fn operands<'m>(
    model: &'m Model,
    id: NodeId,
    options: &Options,
) -> Option<Vec<Option<&'m Tensor>>> {
    let node = &model[id];
    let constant = |v: Value| model[v].constant().filter(|t| t.has_data());
    let known = node.inputs().iter().flatten().all(|&v| constant(v).is_some());
    if !known || !node.domain.is_empty() || model.is_unused(id) {
        return None;
    }
    match node.op() {
        // The clean-up keeps an `Identity` only if it is needed.
        "Identity" => return None,
        // The quantized constant is the smaller one, and runtimes look for the node.
        "DequantizeLinear" => return None,
        // TensorRT reads weights in front of the pair of nodes.
        "QuantizeLinear" if options.target == Target::TensorRt => return None,
        op if !eval::knows(op) => return None,
        op => conforms(model, node, schema::lookup(op, schema::CANONICAL_OPSET)?).ok()?,
    }
    Some(node.inputs().iter().map(|v| v.and_then(constant)).collect())
}

/// `Shape` or `Size` of a value whose type has all the sizes needed.
fn static_shape(model: &Model, node: &Node) -> Option<Tensor> {
    let input = node.input(0)?;
    if let Def::Constant(t) = model[input].def()
        && node.is("Size")
    {
        return Some(Tensor::scalar(i64::try_from(t.numel()).ok()?));
    }
    let dims = model.shape(input)?;
    let known = |dims: &[pt2onnx_symbolic::Expr]| {
        dims.iter().map(|d| d.as_int()).collect::<Option<Vec<i64>>>()
    };
    if node.is("Size") {
        let sizes = known(dims)?;
        return Some(Tensor::scalar(sizes.iter().try_fold(1i64, |n, &s| n.checked_mul(s))?));
    }
    let range = attrs::Shape::read(node).ok()?;
    let asked = eval::shape_range(dims, range.start, range.end);
    Some(Tensor::vector(&known(asked)?))
}
