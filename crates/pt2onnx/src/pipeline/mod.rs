//! The stages from a program to a model. Rewriting a finished model runs the same list.

mod cx;
mod passes;
mod stages;

pub(crate) use cx::{Pipeline, StageCx};

use crate::{
    error::{Error, Failed},
    options::Options,
    program::OnnxProgram,
    size_conditions::SizeConditions,
    source_program::SourceProgram,
};
use Pipeline::{Export, Optimise};
use pt2onnx_aten::Registry;
use pt2onnx_fx::ExportedProgram;
use pt2onnx_ir::Model;
use pt2onnx_report::Report;
use std::borrow::Cow;

/// A step of pipelines.
struct Stage {
    /// Its name, in reports and logs.
    name: &'static str,
    applies_to: &'static [Pipeline],
    /// Whether the options ask for it.
    when: fn(&StageCx) -> bool,
    run: fn(&mut StageCx) -> Result<(), Error>,
}

impl Stage {
    /// A stage that always runs.
    const fn new(
        name: &'static str,
        applies_to: &'static [Pipeline],
        run: fn(&mut StageCx) -> Result<(), Error>,
    ) -> Self {
        Self { name, applies_to, when: |_| true, run }
    }

    const fn when(self, when: fn(&StageCx) -> bool) -> Self {
        Self { when, ..self }
    }
}

/// All stages, in order.
#[rustfmt::skip]
const STAGES: &[Stage] = &[
    // The program: its graph becomes a pure function.
    Stage::new("passes", &[Export], stages::passes),
    Stage::new("drop state", &[Export], stages::drop_state),
    Stage::new("detach weights", &[Export], stages::detach_weights),
    // The model.
    Stage::new("lower", &[Export], stages::lower),
    Stage::new("inline", &[Export, Optimise], stages::inline).when(|cx| cx.options.inline),
    Stage::new("convert", &[Optimise], stages::convert).when(stages::converts),
    Stage::new("weight inputs", &[Optimise], stages::fold_weight_inputs).when(stages::folds_inputs),
    Stage::new("interface", &[Export, Optimise], stages::interface),
    Stage::new("dimensions", &[Export, Optimise], stages::dimensions),
    Stage::new("size conditions", &[Export], stages::size_conditions),
    Stage::new("channel moments", &[Export, Optimise], stages::channel_moments).when(stages::compresses),
    Stage::new("optimise", &[Export, Optimise], stages::optimise),
    Stage::new("size checks", &[Export], stages::size_checks).when(|cx| cx.options.size_checks),
    Stage::new("seed", &[Export], stages::seed),
    Stage::new("domains", &[Export], stages::domains),
    Stage::new("legalise", &[Export], stages::legalise),
    Stage::new("calibrate", &[Export, Optimise], stages::calibrate).when(stages::calibrates),
    Stage::new("compress", &[Export, Optimise], stages::compress).when(stages::compresses),
    Stage::new("target", &[Export, Optimise], stages::fit).when(stages::fits),
    Stage::new("functions", &[Export], stages::functions),
    Stage::new("ir version", &[Export], stages::ir_version).when(|cx| cx.options.ir_version.is_some()),
    Stage::new("names", &[Export, Optimise], stages::names),
    Stage::new("attach weights", &[Export], stages::attach_weights),
    Stage::new("verify", &[Export], stages::verify),
];

/// Runs the stages of the context's pipeline, and records their times.
///
/// # Errors
/// That of the first stage that fails.
pub(crate) fn run(cx: &mut StageCx) -> Result<(), Error> {
    for stage in STAGES {
        let asked_for = match cx.only {
            Some(names) => names.contains(&stage.name),
            None => stage.applies_to.contains(&cx.pipeline) && (stage.when)(cx),
        };
        if !asked_for {
            continue;
        }
        pt2onnx_cancel::check();
        let timer = cx.report.begin();
        let done = (stage.run)(cx);
        if cx.is_finished() {
            cx.model.assign_names();
        }
        cx.report.end(stage.name, timer);
        done?;
    }
    Ok(())
}

/// Converts a program. The report of a failure shows the program. `forget_graph` frees its graph as
/// soon as that is translated.
pub(crate) fn convert(
    source: SourceProgram,
    options: &Options,
    registry: &Registry,
    forget_graph: bool,
    mut report: Report,
) -> Result<OnnxProgram, Failed> {
    match converted(source, options, registry, forget_graph, &mut report) {
        Ok(program) => Ok(program.with_report(report)),
        Err(error) => Err(Failed::new(error, report)),
    }
}

fn converted(
    source: SourceProgram,
    options: &Options,
    registry: &Registry,
    forget_graph: bool,
    report: &mut Report,
) -> Result<OnnxProgram, Error> {
    options.check()?;
    options.check_compression()?;
    report.program(&source.program);
    let mut cx =
        StageCx::new(Export, options, options.passes()?, report, Model::new(options.opset));
    cx.registry = Some(registry);
    cx.archived = source.archived;
    cx.conditions = SizeConditions::new(source.program.size_conditions());
    cx.source = Some(Cow::Owned(source.program.clone()));
    cx.program = Some(source.program);
    cx.forget_graph = forget_graph;
    let done = run(&mut cx);
    let StageCx { model, source: program, warnings, replaceable, compressed, .. } = cx;
    let program = program.map(Cow::into_owned);
    if let Err(error) = done {
        if let Some(program) = program.filter(|_| !forget_graph) {
            report.keep(&program);
        }
        return Err(error);
    }
    let warnings = [source.warnings, warnings].concat();
    if options.warnings_as_errors && !warnings.is_empty() {
        return Err(Error::Warnings(warnings));
    }
    report.done(&model, &warnings);
    let mut made = OnnxProgram::new(model, Report::default(), options.saving());
    (made.source, made.has_graph) = (program, !forget_graph);
    (made.replaceable, made.compressed) = (replaceable, compressed);
    Ok(made)
}

/// The program as it is translated: after all passes over it.
pub(crate) fn prepared(
    program: ExportedProgram,
    options: &Options,
    registry: &Registry,
    report: &mut Report,
) -> Result<ExportedProgram, Error> {
    let source = program.clone();
    Ok(passes::run(program, &source, options, registry, report)?.0)
}
