//! Functionalisation leaves programs alone that write nowhere: checked on every case that does not.

use crate::case::Case;
use pt2onnx::fx::{Graph, archive, passes};
use std::sync::Arc;

/// Whether no op of the program, by its name, writes into a tensor.
fn writes_nowhere(graph: &Graph) -> bool {
    graph.nodes.iter().all(|node| {
        let name = &*node.target.name;
        let in_place = name.ends_with('_') && !name.ends_with("__");
        let statistics = ["batch_norm", "instance_norm", "moving_avg_obs"]
            .iter()
            .any(|part| name.contains(part));
        let aten = &*node.target.namespace == "aten" || node.target.is_higher_order();
        let bodies = node.bodies().all(writes_nowhere);
        aten && bodies
            && !in_place
            && !statistics
            && !node.target.overload.contains("out")
            && !name.starts_with("__i")
    })
}

/// Runs the pass on all cases that write nowhere; an error names those it changed.
pub fn check(cases: &[Arc<Case>]) -> Result<(), String> {
    let mut changed = Vec::new();
    let mut seen = 0;
    for case in cases.iter().filter(|case| !case.is_torchscript()) {
        let mut program = archive::read(case.archive.path()).map_err(|e| e.to_string())?;
        if !writes_nowhere(&program.graph) {
            continue;
        }
        seen += 1;
        let before = program.graph.clone();
        passes::functionalise::functionalise(&mut program)
            .map_err(|e| format!("{}: {e}", case.name))?;
        // Mutations in the signature of a functional program are not writes of nodes.
        let writes = program.mutations.iter().any(|m| m.node.is_some());
        // NaN among the arguments equals itself only as text.
        let differs =
            program.graph != before && format!("{:?}", program.graph) != format!("{before:?}");
        if differs || writes {
            changed.push(case.name.as_str());
        }
    }
    match (changed.as_slice(), seen) {
        ([], 0) => Err("no case writes nowhere".to_owned()),
        ([], _) => Ok(()),
        _ => Err(format!("{} of {seen} programs changed: {}", changed.len(), changed.join(", "))),
    }
}
