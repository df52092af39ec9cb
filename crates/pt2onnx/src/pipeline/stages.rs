//! The functions of stages. A stage that has nothing to work on does nothing.

use super::{
    cx::StageCx,
    passes::{self, lowering_options},
};
use crate::{
    dims::{self, Scope},
    domains,
    drop_mutations::drop_mutations,
    error::{Error, Failure, of_lowering},
    ir_version, metadata, modules, naming, random, running,
    weights::{self, DetachedWeights},
};
use pt2onnx_aten::{Lowering, Mutations, Originals, Provenance, emitted};
use pt2onnx_compress::Calibrated;
use pt2onnx_fx::graph::Graph;
use pt2onnx_opt::Target;
use pt2onnx_report::{Warning, WarningKind, ops};
use pt2onnx_symbolic::Constraints;
use pt2onnx_writer::Weights;

pub(super) fn passes(cx: &mut StageCx) -> Result<(), Error> {
    let (Some(program), Some(source), Some(registry)) =
        (cx.program.take(), &cx.source, cx.registry)
    else {
        return Ok(());
    };
    let (program, training) = passes::run(program, source, cx.options, registry, cx.report)?;
    cx.warn(WarningKind::Training, training.warning());
    (cx.program, cx.training) = (Some(program), training);
    Ok(())
}

pub(super) fn drop_state(cx: &mut StageCx) -> Result<(), Error> {
    let Some(program) = &mut cx.program else { return Ok(()) };
    let statistics = cx.training.statistics(program);
    if cx.options.mutations == Mutations::Drop {
        let lost = drop_mutations(program, &statistics);
        cx.warn(WarningKind::State, lost);
    }
    Ok(())
}

pub(super) fn detach_weights(cx: &mut StageCx) -> Result<(), Error> {
    let Some(program) = &mut cx.program else { return Ok(()) };
    cx.weights = DetachedWeights::detach(program, cx.options)?;
    let warning = cx.weights.warning(cx.options);
    cx.warn(WarningKind::Weights, warning);
    Ok(())
}

/// Translates the nodes of the program, and reports its ops.
pub(super) fn lower(cx: &mut StageCx) -> Result<(), Error> {
    let (Some(program), Some(source), Some(registry)) = (&cx.program, &mut cx.source, cx.registry)
    else {
        return Ok(());
    };
    // The nodes that passes have rewritten, for metadata. The archive's graph is not read again.
    let originals = match cx.options.provenance {
        Provenance::Full => Originals::of(&program.graph, &source.graph),
        _ => Originals::default(),
    };
    if cx.forget_graph {
        source.to_mut().graph = Graph::default();
    }
    let options = pt2onnx_aten::Options {
        metadata: cx.options.provenance,
        originals: Some(&originals),
        modules: !cx.options.module_functions.is_empty() || cx.options.scoped_names,
        ..lowering_options(cx.options)
    };
    match pt2onnx_aten::lower(program, registry, options) {
        Ok(Lowering { model, warnings }) => {
            cx.report.ops = ops(program, registry, &emitted(&model), []);
            cx.model = model;
            // Warnings about outputs come first.
            cx.warnings.splice(0..0, Warning::all(WarningKind::Output, warnings));
        }
        Err(mut error) => {
            let emitted = std::mem::take(&mut error.emitted);
            let failures: Vec<Failure> = of_lowering(error).collect();
            let sites = failures.iter().filter_map(|f| f.site.as_ref());
            cx.report.ops = ops(program, registry, &emitted, sites);
            return Err(Error::Program(failures));
        }
    }
    cx.weights.find(&cx.model);
    cx.conditions.find_places(&cx.model);
    metadata::write(&mut cx.model, cx.options);
    Ok(())
}

pub(super) fn inline(cx: &mut StageCx) -> Result<(), Error> {
    if let Some(registry) = cx.registry {
        registry.copy_functions(&mut cx.model);
    }
    domains::inline(&mut cx.model)?;
    if cx.is_finished() {
        domains::import(&mut cx.model, &[], &mut Vec::new())?;
    }
    Ok(())
}

/// Whether a finished model gets other operators: for an opset, or a runtime that lacks some.
pub(super) fn converts(cx: &StageCx) -> bool {
    cx.opset.is_some() || cx.options.target.is_subset()
}

pub(super) fn convert(cx: &mut StageCx) -> Result<(), Error> {
    let opset = cx.opset.unwrap_or(cx.model.opset);
    let stays = opset == cx.model.opset;
    let done = pt2onnx_opt::convert_for(&mut cx.model, opset, cx.options.target);
    // At the same opset, `fit` reports what the runtime lacks.
    if stays { Ok(()) } else { Ok(done?) }
}

pub(super) fn folds_inputs(cx: &StageCx) -> bool {
    cx.imported && !cx.options.keep_initializers_as_inputs
}

/// Makes weights constants that are inputs as well, if all weights are: exporters wrote them so
/// that followed IR version 3. Callers can then give them no other values, which is a warning.
pub(super) fn fold_weight_inputs(cx: &mut StageCx) -> Result<(), Error> {
    let count = weights::make_constants(&mut cx.model);
    if count > 0 {
        let text = format!(
            "all {count} weights are inputs as well, as older exporters wrote them: they are constants now; \
             the option `keep-initializers-as-inputs` keeps them"
        );
        cx.warnings.push(Warning::new(WarningKind::Inputs, text));
    }
    Ok(())
}

pub(super) fn interface(cx: &mut StageCx) -> Result<(), Error> {
    let program = cx.program.as_ref().or(cx.source.as_deref());
    cx.renamed = naming::name(&mut cx.model, program, cx.options)?;
    Ok(())
}

pub(super) fn dimensions(cx: &mut StageCx) -> Result<(), Error> {
    let program = cx.program.as_ref().or(cx.source.as_deref());
    let none = Constraints::new();
    let constraints = program.map_or(&none, |program| &program.constraints);
    dims::apply(&mut cx.model, Scope::of(cx.imported), constraints, cx.options)?;
    // The memory of the program is free for the next stages.
    cx.program = None;
    Ok(())
}

/// Writes the conditions on sizes into the metadata, and warns of them: whoever converts an archive
/// may not know them.
pub(super) fn size_conditions(cx: &mut StageCx) -> Result<(), Error> {
    cx.conditions.rename(&cx.model);
    if cx.options.provenance != Provenance::None {
        cx.conditions.write(&mut cx.model);
    }
    if cx.archived {
        cx.warnings.extend(cx.conditions.warning(cx.options.size_checks));
    }
    Ok(())
}

/// Makes the model fail where the conditions on sizes do not hold.
pub(super) fn size_checks(cx: &mut StageCx) -> Result<(), Error> {
    let left = cx.conditions.check(&mut cx.model);
    let text = |condition| {
        format!("the option `size-checks` has no effect on the condition `{condition}`")
    };
    cx.warn(WarningKind::Specialised, left.into_iter().map(text));
    Ok(())
}

/// Folds, simplifies and fuses. Weights that the model links to stay unchanged.
pub(super) fn optimise(cx: &mut StageCx) -> Result<(), Error> {
    let mut passes = std::mem::take(&mut cx.passes);
    if cx.is_finished() {
        passes.opset = cx.model.opset;
    }
    passes.replace_weights &= cx.options.weights != Weights::Link;
    let optimize = if cx.imported { pt2onnx_opt::optimize_imported } else { pt2onnx_opt::optimize };
    for endless in optimize(&mut cx.model, &passes) {
        cx.warnings.push(Warning::new(WarningKind::Unoptimised, endless.to_string()));
    }
    Ok(())
}

pub(super) fn seed(cx: &mut StageCx) -> Result<(), Error> {
    let warning = random::seed(&mut cx.model, cx.options.seed);
    cx.warn(WarningKind::Random, warning);
    Ok(())
}

pub(super) fn domains(cx: &mut StageCx) -> Result<(), Error> {
    if let Some(registry) = cx.registry {
        registry.copy_functions(&mut cx.model);
    }
    Ok(domains::import(&mut cx.model, &cx.options.custom_opset, &mut cx.warnings)?)
}

pub(super) fn legalise(cx: &mut StageCx) -> Result<(), Error> {
    pt2onnx_opt::legalise_for(&mut cx.model, cx.options.opset, cx.options.target)?;
    Ok(domains::functions(&mut cx.model)?)
}

pub(super) fn compresses(cx: &StageCx) -> bool {
    !cx.options.compression().is_off()
}

/// Keeps what norms say of the inputs of weights, which optimisations fold into others.
pub(super) fn channel_moments(cx: &mut StageCx) -> Result<(), Error> {
    cx.calibrated.channels = pt2onnx_compress::channel_moments(&cx.model, &cx.compression());
    Ok(())
}

pub(super) fn calibrates(cx: &StageCx) -> bool {
    compresses(cx) && !cx.options.calibration_data.is_empty()
}

pub(super) fn calibrate(cx: &mut StageCx) -> Result<(), Error> {
    cx.model.assign_names();
    if cx.is_finished() {
        verify(cx)?;
    }
    let channels = std::mem::take(&mut cx.calibrated.channels);
    let seen = running::calibrated(&cx.model, &cx.compression(), cx.options)?;
    cx.calibrated = Calibrated { channels, ..seen };
    Ok(())
}

/// Compresses weights. They have names before, which options and messages use.
pub(super) fn compress(cx: &mut StageCx) -> Result<(), Error> {
    cx.model.assign_names();
    if cx.is_finished() {
        // Files need not declare the types of results.
        pt2onnx_opt::infer_types(&mut cx.model);
    }
    let compression = cx.compression();
    cx.compressed = pt2onnx_compress::compress(&mut cx.model, &compression)?;
    cx.model.assign_names();
    let warnings = cx.compressed.warnings().to_vec();
    cx.warn(WarningKind::Compression, warnings);
    Ok(())
}

/// A finished model that stays at its opset is for any runtime as much as it was.
pub(super) fn fits(cx: &StageCx) -> bool {
    !cx.is_finished() || cx.opset.is_some() || cx.options.target != Target::Standard
}

pub(super) fn fit(cx: &mut StageCx) -> Result<(), Error> {
    let fit = if cx.imported { pt2onnx_opt::fit_imported } else { pt2onnx_opt::fit };
    let lacking = fit(&mut cx.model, cx.options.target)?;
    cx.warn(WarningKind::Target, lacking);
    Ok(())
}

pub(super) fn functions(cx: &mut StageCx) -> Result<(), Error> {
    let attributes = cx.options.module_attributes.as_ref();
    Ok(modules::outline(&mut cx.model, &cx.options.module_functions, attributes, &mut cx.warnings)?)
}

pub(super) fn ir_version(cx: &mut StageCx) -> Result<(), Error> {
    Ok(ir_version::set(&mut cx.model, cx.options.ir_version)?)
}

pub(super) fn names(cx: &mut StageCx) -> Result<(), Error> {
    Ok(naming::finish(&mut cx.model, cx.options, &cx.renamed)?)
}

pub(super) fn attach_weights(cx: &mut StageCx) -> Result<(), Error> {
    let program = cx.program.as_ref().or(cx.source.as_deref());
    cx.replaceable = std::mem::take(&mut cx.weights).attach(&mut cx.model, program);
    Ok(())
}

pub(super) fn verify(cx: &mut StageCx) -> Result<(), Error> {
    let verify = if cx.imported { pt2onnx_ir::verify_imported } else { pt2onnx_ir::verify };
    verify(&cx.model).map_err(Error::Verify)
}
