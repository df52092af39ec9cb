//! Removes run-time assertions. Their conditions on sizes become constraints.

use crate::graph::{Argument, ExportedProgram, Graph, Node, ValueMeta};
use pt2onnx_symbolic::{Constraints, Range};

const ASSERTIONS: &[&str] = &[
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
];

/// Removes the operators that only check, in bodies too. The nodes that computed their arguments
/// stay until `dead` removes them. Assertions of the main graph on symbols are added to the
/// program's constraints; those of bodies are not, as a body may never run.
pub fn remove_assertions(program: &mut ExportedProgram) {
    for node in program.graph.nodes.iter().filter(|n| is_assertion(n)) {
        assume(node, &program.graph, &mut program.constraints);
    }
    clean(&mut program.graph);
}

/// Run-time checks of a program apart from types and ranges of symbols: each condition with the
/// user's line, in the order of the graph, bodies included. An ONNX model has none of them.
pub fn checks(program: &ExportedProgram) -> Vec<String> {
    let mut all = Vec::new();
    checks_of(&program.graph, &program.constraints, &mut all);
    all.dedup();
    all
}

fn checks_of(graph: &Graph, constraints: &Constraints, all: &mut Vec<String>) {
    for node in &graph.nodes {
        let condition = is_assertion(node).then(|| condition(node, graph, constraints));
        if let Some(condition) = condition.flatten() {
            let place = node.meta.place().map(|place| format!(" at {place}"));
            all.push(condition + &place.unwrap_or_default());
        }
        node.bodies().for_each(|body| checks_of(body, constraints, all));
    }
}

/// The condition of an assertion. `None` if its value is known.
fn condition(node: &Node, graph: &Graph, constraints: &Constraints) -> Option<String> {
    let value = node.args.first().map(|a| &a.value)?;
    let known = value.name().and_then(|name| graph.values.get(name));
    match (&*node.target.name, known) {
        ("_assert_scalar", Some(ValueMeta::SymBool { expr, .. })) => {
            (constraints.decide(expr) != Some(true)).then(|| expr.to_string())
        }
        ("_assert_scalar" | "_assert_async", _) => {
            let message = node.args.iter().skip(1).find_map(|arg| match &arg.value {
                Argument::String(text) if !text.is_empty() => Some(text.to_string()),
                _ => None,
            });
            message.or_else(|| value.name().map(|name| format!("`{name}`")))
        }
        // Those on ranges are facts about symbols.
        _ => None,
    }
}

fn assume(node: &Node, graph: &Graph, constraints: &mut Constraints) {
    let name = node.args.first().and_then(|arg| arg.value.name());
    let Some(ValueMeta::SymInt { expr: value, .. } | ValueMeta::SymBool { expr: value, .. }) =
        name.and_then(|name| graph.values.get(name))
    else {
        return;
    };
    let bound = |name| node.arg(name).and_then(Argument::as_int);
    match &*node.target.name {
        "_assert_scalar" => constraints.assume(value),
        "sym_constrain_range" => {
            constraints.constrain(value, Range::new(bound("min"), bound("max")));
        }
        "sym_constrain_range_for_size" => {
            let min = bound("min").unwrap_or(0).max(0);
            constraints.constrain(value, Range::new(Some(min), bound("max")));
        }
        _ => {}
    }
}

fn clean(graph: &mut Graph) {
    graph.nodes.retain(|node| !is_assertion(node));
    graph.bodies_mut().for_each(clean);
}

fn is_assertion(node: &Node) -> bool {
    let no_results = node.outputs.iter().all(|o| *o == Argument::None);
    no_results && ASSERTIONS.iter().any(|name| node.target.is_aten(name))
}
