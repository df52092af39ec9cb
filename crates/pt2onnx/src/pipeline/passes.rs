//! The passes over the program's graph.

use crate::{
    error::{Error, Failure, of_lowering, of_passes},
    options::Options,
    training::{Training, TrainingOps},
};
use pt2onnx_aten::{Provenance, Registry, emitted};
use pt2onnx_fx::{ExportedProgram, passes};
use pt2onnx_report::{Report, ops};

/// Runs the passes over the program's graph. Returns the program and the ops that behave as in
/// training. If a pass fails, `source`, the program as the archive has it, is searched for
/// everything that prevents conversion.
pub(super) fn run(
    mut program: ExportedProgram,
    source: &ExportedProgram,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<(ExportedProgram, TrainingOps), Error> {
    let training = TrainingOps::find(&mut program, options.training);
    let failures = training.failures();
    let refused = !failures.is_empty()
        || passes::PASSES.iter().any(|(name, pass)| {
            pt2onnx_cancel::check();
            report.stage(name, || pass(&mut program)).is_err()
        });
    if refused {
        let mut archived = source.clone();
        // Switches ops to evaluation, as in `program`.
        TrainingOps::find(&mut archived, options.training);
        return Err(obstacles(archived, failures, options, registry, report));
    }
    if let Some(summary) = &mut report.program {
        summary.writes(&program.mutations);
    }
    Ok((program, training))
}

/// Everything that prevents the conversion of a program: the given failures, failures of passes,
/// and failures of the lowering after them.
fn obstacles(
    program: ExportedProgram,
    mut failures: Vec<Failure>,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Error {
    let (program, errors) = passes::prepare_all(program);
    for failure in of_passes(errors) {
        match failure {
            Ok(failure) => failures.push(failure),
            Err(error) => return Error::Archive(error),
        }
    }
    if let Some(program) = program {
        let emitted = match pt2onnx_aten::lower(&program, registry, lowering_options(options)) {
            Ok(lowering) => emitted(&lowering.model),
            Err(mut error) => {
                let emitted = std::mem::take(&mut error.emitted);
                failures.extend(of_lowering(error));
                emitted
            }
        };
        let sites = failures.iter().filter_map(|f| f.site.as_ref());
        report.ops = ops(&program, registry, &emitted, sites);
    }
    Error::Program(failures)
}

/// The options of the lowering, for a model without metadata.
pub(super) fn lowering_options(options: &Options) -> pt2onnx_aten::Options<'static> {
    pt2onnx_aten::Options {
        state: options.mutations,
        operators: options.unsupported_ops,
        aten_nodes: options.aten_nodes,
        default_dtype: options.default_dtype.dtype(),
        assume_finite: options.assume_finite,
        training_nodes: options.training == Training::Train,
        metadata: Provenance::None,
        strip_paths: options.strip_paths,
        originals: None,
        modules: false,
    }
}
