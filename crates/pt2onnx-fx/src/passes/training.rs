//! Training mode: finds the ops that behave as in training, and switches them to evaluation.

use crate::graph::{Argument, ExportedProgram, Graph, Name, NamedArg, Node, OpName, Site};
use std::{collections::HashSet, sync::Arc};

/// The ops that behave as in training, in execution order, bodies included: dropout that drops
/// something, normalisation with the batch's own statistics although running statistics are given,
/// `rrelu` with random slopes.
pub fn training_ops(program: &ExportedProgram) -> Vec<Site> {
    fn collect(graph: &Graph, sites: &mut Vec<Site>) {
        for node in &graph.nodes {
            sites.extend(is_training(node).then(|| Site::of(node)));
            node.bodies().for_each(|body| collect(body, sites));
        }
    }
    let mut sites = Vec::new();
    collect(&program.graph, &mut sites);
    sites
}

/// Switches all [`training_ops`] to evaluation: dropout keeps everything, and normalisation uses
/// the running statistics.
pub fn evaluate(program: &mut ExportedProgram) {
    fn switch_all(graph: &mut Graph) {
        for node in graph.nodes.iter_mut().filter(|node| is_training(node)) {
            switch(Arc::make_mut(node));
        }
        graph.bodies_mut().for_each(switch_all);
    }
    switch_all(&mut program.graph);
}

/// The targets of the mutations with which these [`training_ops`] update statistics, given the
/// program after [`functionalise`](super::functionalise::functionalise): running means and
/// variances, and the number of batches that PyTorch keeps beside them.
pub fn statistics(program: &ExportedProgram, ops: &[Site]) -> HashSet<Name> {
    let ops: HashSet<&Name> = ops.iter().map(|op| &op.node).collect();
    let nodes = program.graph.nodes.iter().filter(|node| ops.contains(&node.name));
    let results: HashSet<Name> = nodes.flat_map(|node| node.output_names()).collect();
    let by_op = program.mutations.iter().filter(|m| {
        results.contains(&m.value) || m.node.as_ref().is_some_and(|node| ops.contains(node))
    });
    let mut targets: HashSet<Name> = by_op.map(|m| m.target.clone()).collect();
    if !ops.is_empty() {
        let counters = program.mutations.iter().map(|m| &m.target);
        targets.extend(counters.filter(|t| is_counter(t, program)).cloned());
    }
    targets
}

/// Whether a buffer is the `num_batches_tracked` of one of `torch.nn`'s normalisations, which also
/// has a `running_mean`.
fn is_counter(target: &Name, program: &ExportedProgram) -> bool {
    target.strip_suffix("num_batches_tracked").is_some_and(|module| {
        let mean = format!("{module}running_mean");
        program.signature.inputs.iter().any(|input| input.target().is_some_and(|t| **t == *mean))
    })
}

/// Parameters that switch an op between training and evaluation.
const SWITCHES: [&str; 3] = ["train", "training", "use_input_stats"];

/// Whether an op without a parameter of such a name behaves the same in training.
fn decides(parameter: &str) -> bool {
    SWITCHES.contains(&parameter) || matches!(parameter, "dropout_p" | "running_mean")
}

fn is_training(node: &Node) -> bool {
    let op = &node.target;
    // Most ops have none of the parameters that decide.
    if !node.args.iter().any(|arg| decides(&arg.name)) {
        return false;
    }
    if &*op.namespace != "aten" || op.name.ends_with("_backward") {
        return false;
    }
    let on = |name: &&str| match node.arg(name) {
        Some(Argument::Bool(on)) => *on,
        // `native_dropout` takes None for true.
        Some(Argument::None) => true,
        _ => false,
    };
    let given = |name| node.arg(name).and_then(Argument::name).is_some();
    let drops = |name| match node.arg(name) {
        Some(Argument::Float(p)) => *p > 0.0,
        Some(Argument::Int(p)) => *p > 0,
        _ => false,
    };
    if op.name.contains("norm") {
        return given("running_mean")
            && (op.name.starts_with("_batch_norm_with_update") || SWITCHES.iter().any(on));
    }
    if op.name.contains("rrelu") {
        return SWITCHES.iter().any(on);
    }
    // Recurrent networks drop between layers only.
    let layered = || !matches!(node.arg("num_layers"), Some(Argument::Int(1)));
    drops("dropout_p") || SWITCHES.iter().any(on) && (drops("p") || drops("dropout") && layered())
}

fn switch(node: &mut Node) {
    match &*node.target.name {
        "_batch_norm_with_update" => {
            node.target = OpName::new("aten", "_batch_norm_no_update", "default");
        }
        // The same without the fourth result, which only gradients need.
        "_batch_norm_with_update_functional" => {
            node.target = OpName::new("aten", "_native_batch_norm_legit_functional", "default");
            if node.outputs.len() > 3 {
                node.outputs.remove(3);
            }
            node.args.push(NamedArg::keyword("training", Argument::Bool(false)));
        }
        _ => {
            for arg in &mut node.args {
                match &*arg.name {
                    "dropout_p" => arg.value = Argument::Float(0.0),
                    name if SWITCHES.contains(&name) => arg.value = Argument::Bool(false),
                    _ => {}
                }
            }
        }
    }
}
