//! `pt2onnx optimize`: folds, simplifies and fuses any ONNX model.

use crate::{
    args::{Cut, Optimize, defaults},
    error::{self, Code, CommandError},
    files::{check_data_file, output},
    log,
    process::Process,
    progress::{say, tell, tell_losses, watched},
};
use pt2onnx::{
    Error, OnnxProgram, OptionError, Options, Warning, WarningKind, Weights,
    ir::Model,
    opt::{OPTIMISED_OPSETS, PassStats},
    writer::Batch,
};
use std::path::Path;

pub fn optimize(args: Optimize, process: Process) -> Result<(), CommandError> {
    log::init(args.verbose, false);
    process.take_part();
    let mut options = defaults();
    let has_opset = args.flags.has("opset");
    args.flags.put(&mut options);
    args.level.put(&mut options);
    options.check()?;
    options.check_rewrite()?;
    if options.weights == Weights::None {
        let what = "`--weights none` is for conversions: `optimize` writes the model's weights";
        return Err(CommandError::new(Code::Usage, what));
    }
    let opset = has_opset.then_some(options.opset);
    // `requires` of clap does not hold for what excludes the model.
    if args.merge.is_none() && !args.connect.is_empty() {
        let text = |text| options.spelling.text(text);
        return Err(OptionError::needs(text("{connect}"), text("{merge}")).into());
    }
    check_data_file(&options)?;
    let read = |path: &Path| -> Result<OnnxProgram, CommandError> {
        let mut program = open(path)?;
        if options.inline {
            program.inline()?;
        }
        Ok(program)
    };
    let mut program = match (&args.merge, &args.model) {
        _ if !args.choose.is_empty() => {
            let programs: Vec<OnnxProgram> =
                args.choose.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
            OnnxProgram::choose_by_conditions(&programs.iter().collect::<Vec<_>>())?
        }
        (Some((first, second)), _) => {
            let mut program = read(first)?;
            program.join(&read(second)?, &args.connect)?;
            program
        }
        (None, Some(model)) => read(model)?,
        // One of them is required.
        (None, None) => return Ok(()),
    };
    let mut warnings = program.warnings().to_vec();
    let left = left_alone(program.model()).filter(|_| opset.is_none());
    warnings.extend(left.map(|text| Warning::new(WarningKind::Unoptimised, text)));
    warn(&warnings, options.warnings_as_errors)?;
    let before = program.model().all_nodes().len();
    if let Some(Cut { inputs, outputs }) = &args.extract {
        program.extract(inputs, outputs)?;
    }
    let stats = PassStats::default();
    let known = program.warnings().len();
    let program = program.rewritten(&options, opset, args.explain.then(|| stats.clone()))?;
    // Other weights do not become inputs.
    options.keep_initializers_as_inputs = false;
    warn(&program.warnings()[known..], options.warnings_as_errors)?;
    let effects: Vec<String> = stats.effects().iter().map(|e| format!("{e}\n")).collect();
    if args.explain && effects.is_empty() {
        say("no pass changed anything\n")
    } else {
        say(&effects.concat())
    }
    let refusals: Vec<String> = stats.refusals().iter().map(|r| format!("{r}\n")).collect();
    say(&refusals.concat());
    tracing::info!("{before} nodes became {}", program.model().all_nodes().len());
    write(&program, &options, &args.output)
}

/// Writes the model, and reports what was written.
fn write(program: &OnnxProgram, options: &Options, to: &Path) -> Result<(), CommandError> {
    let saved = watched(|progress| -> Result<_, Error> {
        let mut inputs = program.inputs().clone();
        options.files().for_each(|(what, path)| inputs.add(what, path));
        let mut files = Batch::new(inputs);
        let saving = Some(options.saving());
        let saved = program.save_in(&mut files, output(to), saving, progress)?;
        files.commit()?;
        Ok(saved)
    })?;
    tell(to, &saved);
    tell_losses(program);
    Ok(())
}

/// Shows warnings, or makes them an error.
fn warn(warnings: &[Warning], as_errors: bool) -> Result<(), Error> {
    if as_errors && !warnings.is_empty() {
        return Err(Error::Warnings(warnings.to_vec()));
    }
    log::warn(warnings);
    Ok(())
}

fn open(path: &Path) -> Result<OnnxProgram, CommandError> {
    OnnxProgram::open(path).map_err(|error| match error {
        Error::Read(error) => error::model(path, &error),
        error => CommandError::from(error).place(path.display()),
    })
}

/// A warning if graphs of the model's opset are not optimised.
fn left_alone(model: &Model) -> Option<String> {
    let (first, last) = (OPTIMISED_OPSETS.start(), OPTIMISED_OPSETS.end());
    let opset = Some(model.opset).filter(|o| *o > 0 && !OPTIMISED_OPSETS.contains(o))?;
    let help = if opset < *first { ": `--opset` rewrites it for one of them" } else { "" };
    Some(format!(
        "the model is of opset {opset}, and only graphs of opsets {first} to {last} are optimised{help}"
    ))
}
