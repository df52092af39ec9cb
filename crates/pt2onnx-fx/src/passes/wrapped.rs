//! Higher-order ops that wrap one operator: `auto_functionalized`, `auto_functionalized_v2`,
//! `with_effects`.

use super::{
    names::{Substitution, Taken, substitute},
    problem::problem,
};
use crate::{
    error::{PassProblem, Result},
    graph::{Argument, ExportedProgram, Graph, Name, NamedArg, Node, OpName, TensorMeta},
};
use pt2onnx_symbolic::Expr;
use std::sync::Arc;

/// Replaces a wrapping op by the operator that it wraps, in bodies too.
///
/// As under `auto_functionalized`, an operator that writes into its arguments returns its own
/// results and then the new value of each tensor that it writes. Tokens of `with_effects` are
/// dropped, as nodes keep their order.
pub fn unwrap_operators(program: &mut ExportedProgram) -> Result<()> {
    unwrap(&mut program.graph)
}

fn unwrap(graph: &mut Graph) -> Result<()> {
    let wraps = |node: &Node| {
        let names = ["auto_functionalized", "auto_functionalized_v2", "with_effects"];
        node.target.is_higher_order() && names.contains(&&*node.target.name)
    };
    if !graph.nodes.iter().any(|node| wraps(node)) {
        return graph.bodies_mut().try_for_each(unwrap);
    }
    let mut taken = Taken::by(graph);
    let mut tokens = Substitution::default();
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes) {
        let mut node = Arc::unwrap_or_clone(node);
        for arg in &mut node.args {
            if !substitute(&mut arg.value, &tokens) {
                return Err(problem(&node, PassProblem::Body));
            }
        }
        node.bodies_mut().try_for_each(unwrap)?;
        if wraps(&node) {
            let one = unwrap_one(node.clone(), graph, &mut taken, &mut tokens, &mut nodes);
            one.ok_or_else(|| problem(&node, PassProblem::Body))?;
        } else {
            nodes.push(node.into());
        }
    }
    graph.nodes = nodes;
    for output in &mut graph.outputs {
        let _ = substitute(output, &tokens);
    }
    Ok(())
}

fn unwrap_one(
    mut node: Node,
    graph: &mut Graph,
    taken: &mut Taken,
    tokens: &mut Substitution,
    nodes: &mut Vec<Arc<Node>>,
) -> Option<()> {
    let effects = &*node.target.name == "with_effects";
    let bases = &*node.target.name == "auto_functionalized_v2";
    let at = usize::from(effects);
    if node.args.len() <= at {
        return None;
    }
    let Argument::Operator(operator) = node.args.remove(at).value else {
        return None;
    };
    node.target = OpName::parse(&operator);
    node.single_return = None;
    if effects {
        let token = node.args.remove(0).value;
        if node.outputs.is_empty() {
            return None;
        }
        if let Some(name) = node.outputs.remove(0).name() {
            tokens.insert(name.clone(), token);
        }
    }
    if bases {
        return unwrap_bases(node, graph, taken, nodes);
    }
    nodes.push(node.into());
    Some(())
}

/// A tensor that `auto_functionalized_v2` writes into: which base, and which slice of it.
struct Written {
    name: Name,
    base: usize,
    slice: Option<[i64; 3]>,
}

/// The writes of `auto_functionalized_v2`: `_NAME_base_index`, `_NAME_alias` or `_NAME_slice_dim`,
/// ... map argument `NAME` to a part of `_all_bases`. `None` in other cases.
fn written(info: &[NamedArg]) -> Option<Vec<Written>> {
    let int = |name: &str| {
        let arg = info.iter().find(|arg| &*arg.name == name)?;
        match arg.value {
            Argument::Int(i) => Some(i),
            _ => None,
        }
    };
    let mut written = Vec::new();
    for arg in info {
        let Some(name) = arg.name.strip_prefix('_').and_then(|n| n.strip_suffix("_base_index"))
        else {
            continue;
        };
        let base = match arg.value {
            Argument::Int(i) => usize::try_from(i).ok()?,
            // An optional tensor that was not given.
            _ => continue,
        };
        let part = |what: &str| int(&format!("_{name}_slice_{what}"));
        let whole = info.iter().any(|arg| *arg.name == *format!("_{name}_alias"));
        let slice = match (part("dim"), part("start"), part("end")) {
            (Some(dim), Some(start), Some(end)) => Some([dim, start, end]),
            _ if whole => None,
            _ => return None,
        };
        written.push(Written { name: name.into(), base, slice });
    }
    Some(written)
}

/// Replaces an `auto_functionalized_v2` by its operator, which gets the tensors that it writes into
/// as arguments. A slice is taken before the operator, and put back after it.
fn unwrap_bases(
    mut node: Node,
    graph: &mut Graph,
    taken: &mut Taken,
    nodes: &mut Vec<Arc<Node>>,
) -> Option<()> {
    let Some(Argument::Tensors(bases)) = node.arg("_all_bases").cloned() else {
        return None;
    };
    let (args, info): (Vec<_>, Vec<_>) =
        std::mem::take(&mut node.args).into_iter().partition(|arg| !arg.name.starts_with('_'));
    let written = written(&info)?;
    let results = node.outputs.len().checked_sub(bases.len())?;
    let news = node.outputs.split_off(results);
    let mut values = bases.clone();
    node.args = args;
    let mut after = Vec::new();
    for (i, Written { name, base, slice }) in written.iter().enumerate() {
        let of = values.get(*base)?.clone();
        let last = written.iter().skip(i + 1).all(|later| later.base != *base);
        let new = news.get(*base)?.name()?.clone();
        let whole = graph.tensor(&of)?.clone();
        let mut value = |hint: &str, meta: TensorMeta| {
            let name = taken.unique(&hint.into());
            graph.values_mut().insert(name.clone(), meta.into());
            name
        };
        let result = if last { new } else { value(name, whole.clone()) };
        let given = match slice {
            None => {
                node.outputs.push(Argument::Tensor(result.clone()));
                of
            }
            Some([dim, start, end]) => {
                let mut part = whole.clone();
                let size = part.sizes.get_mut(usize::try_from(*dim).ok()?)?;
                let end_at = Expr::min(size, &Expr::int(*end));
                *size = &end_at - *start;
                let (shown, written) = (value("slice", part.clone()), value(name, part));
                let range = [("dim", *dim), ("start", *start), ("end", *end)];
                nodes.push(ranged("slice", "Tensor", &[&of], range, &shown, &node).into());
                node.outputs.push(Argument::Tensor(written.clone()));
                let put = [&of, &written];
                let put = ranged("slice_scatter", "default", &put, range, &result, &node);
                after.push(put.into());
                shown
            }
        };
        *values.get_mut(*base)? = result;
        node.args.push(NamedArg::keyword(name, Argument::Tensor(given)));
    }
    nodes.push(node.into());
    nodes.append(&mut after);
    Some(())
}

fn ranged(
    op: &str,
    overload: &str,
    tensors: &[&Name],
    range: [(&str, i64); 3],
    result: &Name,
    from: &Node,
) -> Node {
    let tensors = ["self", "src"].into_iter().zip(tensors);
    let tensors = tensors.map(|(name, t)| (name, Argument::Tensor((*t).clone())));
    let range = range.into_iter().map(|(name, i)| (name, Argument::Int(i)));
    let args = tensors.chain(range).map(|(name, value)| NamedArg::positional(name, value));
    let target = OpName::new("aten", op, overload);
    Node::call(result.clone(), target, args.collect(), from.meta.clone())
}
