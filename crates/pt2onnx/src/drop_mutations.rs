//! Mutations of buffers and inputs, which a model without state drops.

use pt2onnx_fx::{ExportedProgram, Name, OutputKind, OutputSpec, passes::dead};
use std::collections::HashSet;

/// Removes the nodes that only compute mutations, and returns a warning about lost values. The
/// program's list of mutations stays. The tensors `expected`, and those whose new values the
/// program returns, are not lost.
pub(crate) fn drop_mutations(
    program: &mut ExportedProgram,
    expected: &HashSet<Name>,
) -> Option<String> {
    let mutations = std::mem::take(&mut program.mutations);
    if mutations.is_empty() {
        return None;
    }
    dead::remove_dead(program);
    let outputs = program.signature.outputs.iter();
    let outputs = outputs.filter(|output| output.kind == OutputKind::UserOutput);
    let returned: HashSet<&Name> = outputs.filter_map(OutputSpec::name).collect();
    let mut lost =
        mutations.iter().filter(|m| !expected.contains(&m.target) && !returned.contains(&m.value));
    let warning = lost.next().map(|first| {
        let more = match lost.count() {
            0 => String::new(),
            n => format!(" and {n} other tensors"),
        };
        format!(
            "the program writes into {first}{more}: the new values are lost, as ONNX models have no state; \
             the option `mutations` keeps them, set to `outputs` or `pairs`"
        )
    });
    program.mutations = mutations;
    warning
}
