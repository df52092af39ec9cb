//! From a program to a model, stage by stage.

use crate::{
    Error, Failure, Options, Registry, Report, State, Warning, WarningKind, Weights,
    dims::{self, Scope},
    domains, error, ir_version, lost_state, metadata, modules, naming, random, ranges, report,
    training::TrainingOps,
    weights::HeldWeights,
};
use pt2onnx_aten::{Detail, Lowering, Originals, emitted};
use pt2onnx_compress::Compressed;
use pt2onnx_fx::{ExportedProgram, graph::Graph, passes};
use pt2onnx_ir::{Model, Value};
use rustc_hash::FxHashSet;

/// A model, and what there is to say about it.
pub(crate) struct Translated {
    pub(crate) model: Model,
    /// The program as the archive has it, perhaps without its graph.
    pub(crate) source: ExportedProgram,
    pub(crate) warnings: Vec<Warning>,
    /// Weights from which nothing was computed.
    pub(crate) untouched: FxHashSet<Value>,
    /// Weights that were compressed.
    pub(crate) compressed: Compressed,
}

/// Translates a program. If that fails, the report keeps the program. `forgets_graph` frees its
/// graph as soon as that is translated.
pub(crate) fn translate(
    program: ExportedProgram,
    options: &Options,
    registry: &Registry,
    forgets_graph: bool,
    report: &mut Report,
) -> Result<Translated, Error> {
    options.check()?;
    options.check_compression()?;
    let passes = options.passes()?;
    report.program(&program);
    let mut source = Archived { program: program.clone(), forgets_graph };
    match stages(program, &mut source, options, passes, registry, report) {
        Ok(Made { model, warnings, untouched, compressed }) => {
            Ok(Translated { model, source: source.program, warnings, untouched, compressed })
        }
        Err(error) => {
            if !forgets_graph {
                report.keep(&source.program);
            }
            Err(error)
        }
    }
}

/// The program as the archive has it.
struct Archived {
    program: ExportedProgram,
    /// Whether its graph is freed when passes are done.
    forgets_graph: bool,
}

impl Archived {
    /// The nodes that passes have rewritten, for metadata. Nothing else is read from the graph any
    /// more.
    fn originals(&mut self, program: &ExportedProgram, options: &Options) -> Originals {
        let (graph, archived) = (&program.graph, &self.program.graph);
        let originals = match options.provenance {
            Detail::Full => Originals::of(graph, archived),
            _ => Originals::default(),
        };
        if self.forgets_graph {
            self.program.graph = Graph::default();
        }
        originals
    }
}

/// What the stages make: [`Translated`] without the program.
struct Made {
    model: Model,
    warnings: Vec<Warning>,
    untouched: FxHashSet<Value>,
    compressed: Compressed,
}

/// One line for each stage, in the order in which they run.
fn stages(
    mut program: ExportedProgram,
    source: &mut Archived,
    options: &Options,
    passes: pt2onnx_opt::Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<Made, Error> {
    // The program: its graph becomes a pure function.
    let training = TrainingOps::find(&mut program, options.training);
    let mut program = run_passes(program, &source.program, &training, options, registry, report)?;
    let lost = report.stage("drop state", || {
        let statistics = training.statistics(&mut program);
        let drops = options.mutations == State::Drop;
        drops.then(|| lost_state::drop_state(&mut program, &statistics)).flatten()
    });
    let mut held = HeldWeights::take(&mut program, options)?;

    // The model.
    let originals = source.originals(&program, options);
    let lowering = lower(&program, &originals, options, registry, report)?;
    let Lowering { mut model, warnings } = lowering;
    let mut warnings: Vec<Warning> = Warning::all(WarningKind::Output, warnings).collect();
    warnings.extend(Warning::all(WarningKind::Training, training.warning()));
    warnings.extend(Warning::all(WarningKind::State, lost));
    warnings.extend(Warning::all(WarningKind::Weights, held.warning(options)));
    held.find(&model);
    metadata::write(&mut model, options);
    let renamed =
        report.stage("interface", || naming::name(&mut model, Some(&program), options))?;
    report.stage("dimensions", || {
        dims::apply(&mut model, Scope::Model, &program.constraints, options)
    })?;
    drop(program); // The stages to come can have its memory.
    if options.inline {
        registry.copy_functions(&mut model);
        report.stage("inline", || domains::inline(&mut model))?;
    }
    report.stage("optimise", || optimise(&mut model, options, passes));
    let random = report.stage("seed", || random::seed(&mut model, options.seed));
    warnings.extend(Warning::all(WarningKind::Random, random));
    registry.copy_functions(&mut model);
    report
        .stage("domains", || domains::import(&mut model, &options.custom_opset, &mut warnings))?;
    report.stage("legalise", || {
        pt2onnx_opt::legalise_for(&mut model, options.opset, options.target)
    })?;
    domains::functions(&mut model)?;
    let compressed = compress(&mut model, options, report)?;
    warnings.extend(Warning::all(WarningKind::Compression, compressed.warnings().to_vec()));
    let lacking = report.stage("target", || pt2onnx_opt::fit(&mut model, options.target))?;
    warnings.extend(Warning::all(WarningKind::Target, lacking));
    report.stage("functions", || {
        modules::outline(&mut model, &options.module_functions, &mut warnings)
    })?;
    ir_version::set(&mut model, options.ir_version)?;
    report.stage("names", || naming::finish(&mut model, options, &renamed))?;
    let untouched = held.put_back(&mut model);
    report.stage("verify", || pt2onnx_ir::verify(&model)).map_err(Error::Verify)?;
    Ok(Made { model, warnings, untouched, compressed })
}

/// The program as it is translated: after all passes over it.
pub(crate) fn prepared(
    mut program: ExportedProgram,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<ExportedProgram, Error> {
    let source = program.clone();
    let training = TrainingOps::find(&mut program, options.training);
    run_passes(program, &source, &training, options, registry, report)
}

/// Runs the passes over the program's graph. If one fails, everything that prevents conversion is
/// the error: `source`, the program as the archive has it, is looked through.
fn run_passes(
    mut program: ExportedProgram,
    source: &ExportedProgram,
    training: &TrainingOps,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<ExportedProgram, Error> {
    let failures = training.failures();
    let refused = !failures.is_empty()
        || passes::PASSES
            .iter()
            .any(|(name, pass)| report.stage(name, || pass(&mut program)).is_err());
    if refused {
        let mut archived = source.clone();
        // Switches ops to evaluation, as it did in `program`.
        TrainingOps::find(&mut archived, options.training);
        return Err(obstacles(archived, failures, options, registry, report));
    }
    if let Some(summary) = &mut report.program {
        summary.writes(&program.mutations);
    }
    Ok(program)
}

/// Everything that prevents the conversion of a program that is refused: the given failures, what
/// passes cannot treat, and what could not be lowered then.
fn obstacles(
    program: ExportedProgram,
    mut failures: Vec<Failure>,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Error {
    let (program, errors) = passes::prepare_all(program);
    for failure in error::of_passes(errors) {
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
                failures.extend(error::of_lowering(error));
                emitted
            }
        };
        report.ops = report::ops(&program, registry, &emitted, &failures);
    }
    Error::Program(failures)
}

/// How nodes are translated, for a model without metadata.
fn lowering_options(options: &Options) -> pt2onnx_aten::Options<'static> {
    pt2onnx_aten::Options {
        state: options.mutations,
        operators: options.unsupported_ops,
        aten_nodes: options.aten_nodes,
        default_dtype: options.default_dtype.dtype(),
        assume_finite: options.assume_finite,
        metadata: Detail::None,
        strip_paths: options.strip_paths,
        originals: None,
        modules: false,
    }
}

/// Translates the nodes of the program, and reports its ops.
fn lower(
    program: &ExportedProgram,
    originals: &Originals,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<Lowering, Error> {
    let lowering = pt2onnx_aten::Options {
        metadata: options.provenance,
        originals: Some(originals),
        modules: !options.module_functions.is_empty(),
        ..lowering_options(options)
    };
    let lowered = report.stage("lower", || pt2onnx_aten::lower(program, registry, lowering));
    lowered
        .inspect(|made| report.ops = report::ops(program, registry, &emitted(&made.model), &[]))
        .map_err(|mut error| {
            let emitted = std::mem::take(&mut error.emitted);
            let failures: Vec<Failure> = error::of_lowering(error).collect();
            report.ops = report::ops(program, registry, &emitted, &failures);
            Error::Program(failures)
        })
}

/// Compresses weights. They have names then, which options and messages use.
fn compress(
    model: &mut Model,
    options: &Options,
    report: &mut Report,
) -> Result<Compressed, Error> {
    let mut compression = options.compression();
    if compression.is_off() {
        return Ok(Compressed::default());
    }
    model.assign_names();
    if !options.calibration_data.is_empty() {
        let ranges = || ranges::of_samples(model, &compression, options);
        compression.ranges = report.stage("calibrate", ranges)?;
    }
    let compressed =
        report.stage("compress", || pt2onnx_compress::compress(model, &compression))?;
    model.assign_names();
    Ok(compressed)
}

/// Folds, simplifies and fuses. Weights that the model refers to in the archive stay as they are.
fn optimise(model: &mut Model, options: &Options, mut passes: pt2onnx_opt::Options) {
    passes.replace_weights &= options.weights != Weights::Link;
    pt2onnx_opt::optimize(model, &passes);
}
