//! Removes writes from the graph: `add_(x, 1)` becomes `add(x, 1)`, and later uses of `x` become
//! uses of the result.
//!
//! [`views`](crate::views) says which operators share memory, `variants` what an operator writes
//! and which functional variant it has. `graph` walks the nodes, `memory` tracks the newest value
//! of each tensor, and `emit` makes the nodes that carry a write to other tensors of the same
//! memory. `rules` and `statistics` treat writes for which a functional variant is not enough,
//! `result_type` says where a result has to be converted.

mod bodies;
mod effects;
mod emit;
mod graph;
mod may_alias;
mod memory;
mod operands;
mod pass;
mod result_type;
mod rules;
mod statistics;
mod tied_parameters;
mod variants;

use crate::{
    error::Result,
    graph::{ExportedProgram, InputSpec, Mutation, MutationKind, Name, OutputKind},
};
use effects::MutatedInput;

/// Replaces operators that write into an argument by functional ones, in bodies too.
///
/// A tensor that shares memory with one that is written has its new content where it is read later:
/// a write to a view is put back into its base (`select_scatter`, ...), and other views are taken
/// again. Sizes in added nodes are integers or [`SymArg::Expr`](crate::graph::SymArg::Expr). Writes
/// into parameters, buffers, constants and inputs are listed in [`ExportedProgram::mutations`],
/// with those that the signature declares.
///
/// - If the functional operator returns another element type than that of the tensor that is
///   written into, `_to_copy` converts its result: `add_(f16, f32)` becomes an `add` that gives
///   f32, and a cast to f16.
/// - Batch normalisation in training mode becomes `_native_batch_norm_legit_functional`, which
///   returns the new running statistics. Instance normalisation has no such variant, so nodes that
///   compute the new statistics are added.
/// - Observers of quantisation-aware training become `_fused_moving_avg_obs_fq_helper_functional`,
///   which returns the new statistics.
/// - An operator of another library that returns nothing gets a result, the new value of the tensor
///   it writes into: its only tensor, or the only one that is not an input of the graph. Among
///   those that return something, the writes of torchaudio's `_lfilter_core_loop` are known;
///   archives do not declare those of others.
///
/// # Errors
/// Returns an error for writes to elements that share memory, for writes of bodies that cannot be
/// returned, `resize_` to more elements, operators without a known functional variant.
pub fn functionalise(program: &mut ExportedProgram) -> Result<()> {
    let specs = &program.signature.inputs;
    let tied = tied_parameters::tied(program);
    let is_users = |at: usize| matches!(specs.get(at), Some(InputSpec::UserInput(_)));
    let mutated = graph::functionalise(&mut program.graph, &program.constraints, tied, &is_users)?;
    for (spec, output) in program.signature.outputs.iter_mut().zip(&program.graph.outputs) {
        if spec.kind == OutputKind::UserOutput || output.name().is_some() {
            spec.value.clone_from(output);
        }
    }
    for MutatedInput { input, value, writer, .. } in mutated {
        let spec = specs.get(input);
        let Some((kind, target)) = spec.and_then(owner) else {
            continue;
        };
        let Some(input) = spec.and_then(InputSpec::name).cloned() else {
            continue;
        };
        let source = writer.site.place();
        let node = Some(writer.site.node);
        program.mutations.push(Mutation { kind, target, input, value, node, source });
    }
    let declared = program.signature.outputs.iter().filter_map(|spec| {
        let kind = match spec.kind {
            OutputKind::BufferMutation => MutationKind::Buffer,
            OutputKind::ParameterMutation => MutationKind::Parameter,
            OutputKind::UserInputMutation => MutationKind::UserInput,
            _ => return None,
        };
        let (target, value) = (spec.target.clone(), spec.name()?.clone());
        let of = |spec: &&InputSpec| owner(spec).is_some_and(|is| is == (kind, target.clone()));
        let input = program.signature.inputs.iter().find(of)?.name()?.clone();
        Some(Mutation { kind, target, input, value, node: None, source: None })
    });
    for declared in declared {
        let same = |m: &&mut Mutation| (m.kind, &m.target) == (declared.kind, &declared.target);
        match program.mutations.iter_mut().find(same) {
            // A declared output comes after all writes.
            Some(written) => written.value = declared.value,
            None => program.mutations.push(declared),
        }
    }
    Ok(())
}

/// The kind of tensor that an input is, and its name outside the graph.
fn owner(spec: &InputSpec) -> Option<(MutationKind, Name)> {
    match spec {
        InputSpec::Parameter { target, .. } => Some((MutationKind::Parameter, target.clone())),
        InputSpec::Buffer { target, .. } => Some((MutationKind::Buffer, target.clone())),
        InputSpec::TensorConstant { target, .. } => Some((MutationKind::Constant, target.clone())),
        InputSpec::UserInput(arg) => Some((MutationKind::UserInput, arg.name()?.clone())),
        _ => None,
    }
}
