//! The casts of `torch.autocast`, which the graph does not show.
//!
//! `autocast.txt` lists the operators and their policies.

use super::{names::Taken, problem::problem};
use crate::error::{PassProblem, Result};
use crate::graph::{
    Argument, ExportedProgram, Graph, Name, NamedArg, Node, OpName, TensorMeta, ValueMeta,
};
use pt2onnx_tensor::DType;
use std::sync::Arc;

/// The type that autocast converts the tensors of an operator to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// The type that autocast was given.
    Lower,
    /// float32.
    Single,
    /// float32 if one of them is, else the type that autocast was given.
    Widest,
}

/// Operators that convert types themselves: autocast leaves them alone.
static CONVERSIONS: &[&str] = &["_to_copy", "to", "type_as"];

/// Autocast for the devices of one kind.
#[derive(Clone, Debug)]
struct Autocast {
    device: Name,
    dtype: DType,
}

/// Adds the casts of autocast to the bodies of `wrap_with_autocast`, and to a program that was
/// captured under autocast, as `_to_copy` nodes. The ops themselves stay.
pub(super) fn write_casts(program: &mut ExportedProgram) -> Result<()> {
    let mut around = Vec::new();
    find_around(&program.graph, &mut around);
    write(&mut program.graph, &around)
}

/// The state of autocast in which a program was captured, which shows only by recorded types:
/// `around` gets it for each kind of device.
fn find_around(graph: &Graph, around: &mut Vec<Autocast>) {
    let mut types = graph.values.values().filter_map(ValueMeta::tensor).map(|meta| meta.dtype);
    let has_half = types.any(is_half);
    for node in &graph.nodes {
        if node.target.is_higher_order() {
            if &*node.target.name != "wrap_with_autocast" {
                node.bodies().for_each(|body| find_around(body, around));
            }
        } else if has_half
            && let Some(found) = shown_by(node, graph)
            && !around.iter().any(|a| a.device == found.device)
        {
            around.push(found);
        }
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// The state of autocast that the recorded types of a node show: it has float32 operands and a
/// result of 16 bits, or the reverse, although its operator converts none of them.
fn shown_by(node: &Node, graph: &Graph) -> Option<Autocast> {
    let op = node.target.schema_name().strip_prefix("aten::")?;
    let result = recorded(node, graph).filter(|dtype| is_half(*dtype) || *dtype == DType::F32)?;
    let names = node.input_names();
    let operands = names.iter().filter_map(|name| graph.tensor(name));
    let floats = Vec::from_iter(operands.filter(|t| t.dtype == DType::F32 || is_half(t.dtype)));
    let is_other = |t: &&TensorMeta| is_half(t.dtype) != is_half(result);
    let other = floats.iter().copied().find(is_other)?;
    if matches!(node.arg("dtype"), Some(Argument::DType(_))) {
        return None;
    }
    let dtype = match listed(op, &*other.device.kind == "cpu")? {
        Policy::Lower => result,
        Policy::Single if floats.iter().all(is_other) => other.dtype,
        _ => return None,
    };
    let device = floats.first()?.device.kind.clone();
    is_half(dtype).then_some(Autocast { device, dtype })
}

fn write(graph: &mut Graph, within: &[Autocast]) -> Result<()> {
    for node in graph.nodes.iter_mut().filter(|n| n.target.is_higher_order()) {
        let node = Arc::make_mut(node);
        let inside = match &*node.target.name {
            "wrap_with_autocast" => entered(node, within),
            _ => within.to_vec(),
        };
        node.bodies_mut().try_for_each(|body| write(body, &inside))?;
    }
    if within.is_empty() || !graph.nodes.iter().any(|n| &*n.target.namespace == "aten") {
        return Ok(());
    }
    let mut taken = Taken::by(graph);
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for mut node in std::mem::take(&mut graph.nodes) {
        for autocast in within {
            cast(Arc::make_mut(&mut node), autocast, graph, &mut taken, &mut nodes)?;
        }
        nodes.push(node);
    }
    graph.nodes = nodes;
    Ok(())
}

/// The state of autocast within `wrap_with_autocast(device, dtype, enabled, cache_enabled, body,
/// ...)`.
fn entered(node: &Node, within: &[Autocast]) -> Vec<Autocast> {
    let mut inside = within.to_vec();
    let arg = |i: usize| node.args.get(i).map(|a| &a.value);
    let Some(Argument::String(device)) = arg(0) else {
        return inside;
    };
    inside.retain(|a| a.device != *device);
    if arg(2) == Some(&Argument::Bool(true)) {
        let dtype = match arg(1) {
            Some(Argument::DType(dtype)) => *dtype,
            _ if &**device == "cpu" => DType::BF16,
            _ => DType::F16,
        };
        let device = device.clone();
        inside.push(Autocast { device, dtype });
    }
    inside
}

/// The policy of `autocast.txt`.
fn listed(op: &str, on_cpu: bool) -> Option<Policy> {
    let mut rows = include_str!("autocast.txt").lines().map(|row| row.split(' '));
    let mut policies = rows.find_map(|mut words| (words.next() == Some(op)).then_some(words))?;
    match policies.nth(usize::from(!on_cpu))? {
        "lower" => Some(Policy::Lower),
        "single" => Some(Policy::Single),
        "widest" => Some(Policy::Widest),
        _ => None,
    }
}

fn policy(node: &Node, autocast: &Autocast, types: &[DType], graph: &Graph) -> Option<Policy> {
    let op = &node.target;
    // `sum(x, dtype=...)` says itself what it wants.
    let own = matches!(node.arg("dtype"), Some(Argument::DType(_)));
    let name = op.schema_name().strip_prefix("aten::")?;
    if let Some(policy) = listed(name, &*autocast.device == "cpu") {
        return (!own).then_some(policy);
    }
    // An operator that calls one of those (`einsum` on a CPU, `lstm`) shows by its recorded type.
    let calls = recorded(node, graph) == Some(autocast.dtype)
        && !own
        && !CONVERSIONS.contains(&&*op.name)
        && !op.name.ends_with('_')
        && !types.is_empty()
        && !types.contains(&autocast.dtype);
    calls.then_some(Policy::Lower)
}

/// Casts the operands of a node as autocast does, by nodes that it appends to `nodes`.
///
/// # Errors
/// [`PassProblem::WithoutAutocast`]: the recorded types are those without autocast.
fn cast(
    node: &mut Node,
    autocast: &Autocast,
    graph: &mut Graph,
    taken: &mut Taken,
    nodes: &mut Vec<Arc<Node>>,
) -> Result<()> {
    // 64-bit floats are left alone.
    let eligible = |name: &Name, graph: &Graph| {
        let meta = graph.tensor(name)?;
        let float = matches!(meta.dtype, DType::F32 | DType::F16 | DType::BF16);
        (float && meta.device.kind == autocast.device).then_some(meta.dtype)
    };
    let names = node.input_names();
    let types: Vec<DType> = names.iter().filter_map(|n| eligible(n, graph)).collect();
    let Some(policy) = policy(node, autocast, &types, graph) else {
        return Ok(());
    };
    let dtype = match policy {
        Policy::Lower => autocast.dtype,
        Policy::Single => DType::F32,
        Policy::Widest if types.contains(&DType::F32) => DType::F32,
        Policy::Widest => autocast.dtype,
    };
    // The types of the operands are then wrong, too, and those of all that follows.
    let recorded = recorded(node, graph);
    if policy == Policy::Lower
        && !types.is_empty()
        && recorded == Some(DType::F32)
        && dtype != DType::F32
    {
        return Err(problem(node, PassProblem::WithoutAutocast));
    }
    let meta = node.meta.clone();
    for arg in &mut node.args {
        arg.value.for_each_name_mut(&mut |name| {
            if eligible(name, graph).is_none_or(|from| from == dtype) {
                return;
            }
            let Some(mut to) = graph.tensor(name).cloned() else {
                return;
            };
            to.dtype = dtype;
            let new = taken.unique(&"_to_copy".into());
            graph.values_mut().insert(new.clone(), to.into());
            let args = vec![
                NamedArg::positional("self", Argument::Tensor(name.clone())),
                NamedArg::keyword("dtype", Argument::DType(dtype)),
            ];
            let target = OpName::new("aten", "_to_copy", "default");
            nodes.push(Node::call(new.clone(), target, args, meta.clone()).into());
            *name = new;
        });
    }
    Ok(())
}

/// The recorded type of the first result.
fn recorded(node: &Node, graph: &Graph) -> Option<DType> {
    node.output_names().into_iter().find_map(|n| graph.tensor(&n).map(|m| m.dtype))
}
