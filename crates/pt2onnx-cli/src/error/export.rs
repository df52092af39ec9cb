//! Turns the errors of an export into those of the command.

use super::{
    CUSTOM_OPS, Code, CommandError, DAMAGED, REPORT_IT,
    input::{archive, torchscript},
};
use pt2onnx::{
    Error, Failure, JoinError, Misfit, Reason, RunError,
    aten::LowerError,
    compress, group, grouped,
    ir::Diagnostic,
    opt::{LegaliseError, TargetError},
    writer,
};
use std::io::ErrorKind;

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        match &error {
            Error::Archive(e) => archive(e),
            Error::TorchScript(e) => torchscript(e),
            Error::Program(failures) => program(failures),
            Error::Compress(compress::Error::Opset { needs, .. }) => {
                CommandError::new(Code::Usage, error.to_string()).help(use_opset(*needs))
            }
            Error::Join(e) if matches!(**e, JoinError::Function(_) | JoinError::Captured(_)) => {
                CommandError::new(Code::Usage, error.to_string()).help("use `--inline`")
            }
            Error::Options(_)
            | Error::IrVersion(_)
            | Error::Name(_)
            | Error::Dim(_)
            | Error::Domain(_)
            | Error::Extract(_)
            | Error::Join(_)
            | Error::Choose(_)
            | Error::Module(_)
            | Error::Compress(_) => CommandError::new(Code::Usage, error.to_string()),
            Error::Legalise(e) => legalise(e),
            Error::Target(e) => target(e),
            Error::Verify(errors) => {
                let report =
                    CommandError::new(Code::Internal, "the exported model is not valid ONNX")
                        .help(REPORT_IT);
                errors.iter().fold(report, CommandError::place)
            }
            Error::Weights(all) => misfits(all),
            Error::Invalid(errors) | Error::Edited(errors) => {
                let report = CommandError::new(Code::Input, "the model is not valid ONNX");
                errors.iter().fold(report, CommandError::place)
            }
            Error::Warnings(warnings) => {
                let what = "there are warnings, and warnings are errors";
                let report = CommandError::new(Code::Program, what);
                let groups = grouped(warnings.iter().map(|warning| (&(), warning)));
                let report = groups.iter().fold(report, CommandError::place);
                report.help("leave out `--warnings-as-errors`")
            }
            Error::Write(e) => write(e),
            Error::Run(RunError::Samples { .. }) => {
                CommandError::new(Code::Input, error.to_string())
            }
            Error::Run(_) => CommandError::new(Code::Runtime, error.to_string()),
            _ => CommandError::new(Code::Internal, error.to_string()),
        }
    }
}

/// Weights that a model cannot take.
fn misfits(misfits: &[Misfit]) -> CommandError {
    let unused = misfits.iter().filter(|m| matches!(m, Misfit::Unused(_))).count();
    let what = "the weights do not fit the model";
    let report =
        { misfits.iter() }.fold(CommandError::new(Code::Program, what), CommandError::place);
    let filled = misfits.iter().any(|m| matches!(m, Misfit::Filled(_)));
    match filled || unused > 0 {
        _ if unused == misfits.len() => report.help(
            "rename them, or export the model with `--weights none`; or ignore them: `--allow-unused`",
        ),
        true => report
            .help("write the model with `--weights none`, so that nothing is computed from them"),
        false => report,
    }
}

fn program(failures: &[Failure]) -> CommandError {
    let what = match failures {
        [Failure { site: None, .. }] => "the program cannot be translated".to_owned(),
        [_] => "a node of the program cannot be translated".to_owned(),
        all if all.iter().all(|f| f.site.is_some()) => {
            format!("{} nodes of the program cannot be translated", all.len())
        }
        all => format!("{} parts of the program cannot be translated", all.len()),
    };
    let report = places(failures)
        .into_iter()
        .fold(CommandError::new(Code::Program, what), CommandError::place);
    let bug = |f: &Failure| {
        matches!(
            f.reason,
            Reason::Lower(
                LowerError::WrongType { .. } | LowerError::Diagnostic(Diagnostic::Wrong(_))
            )
        )
    };
    let lowered = |f: &Failure| matches!(f.reason, Reason::Lower(_));
    if failures.iter().all(bug) {
        return report.help(REPORT_IT);
    }
    let custom = |f: &Failure| matches!(&f.reason, Reason::Lower(LowerError::UnknownOp { op, .. }) if !op.starts_with("aten"));
    let missing =
        |f: &Failure| matches!(f.reason, Reason::Lower(LowerError::MissingArgument { .. }));
    if failures.iter().all(missing) {
        return report.help(DAMAGED);
    }
    if failures.iter().all(custom) {
        return report.help(CUSTOM_OPS);
    }
    if failures.iter().any(custom) {
        return report.help(format!(
            "for ops of other libraries, {}. Write the other parts of the model in other operations (`pt2onnx ops` lists what is \
             supported)",
            CUSTOM_OPS
        ));
    }
    if failures.iter().any(lowered) {
        report.help(
            "write these parts of the model in other operations (`pt2onnx ops` lists what is supported), or keep these \
             ops for a runtime that knows them: `--unsupported-ops fallthrough`",
        )
    } else {
        // The others say what to do.
        report
    }
}

/// The failures in their order. Five or more of one op for one reason become one, with their
/// number.
fn places(failures: &[Failure]) -> Vec<String> {
    let groups = group(failures.iter().enumerate(), 5, |(i, failure)| {
        let op = failure.site.as_ref().map(|s| s.target.schema_name());
        (op.ok_or(*i), failure.reason.to_string())
    });
    let line = |group: Vec<(usize, &Failure)>| match group.as_slice() {
        [(_, first), rest @ ..] if !rest.is_empty() => {
            Some(format!("{first}, and {} more nodes for this reason", rest.len()))
        }
        all => all.first().map(|(_, failure)| failure.to_string()),
    };
    groups.into_iter().filter_map(line).collect()
}

fn legalise(error: &LegaliseError) -> CommandError {
    if let LegaliseError::Newer { from, failures } = error {
        let what = format!("the model of opset {from} cannot be rewritten for another opset");
        let places = failures.iter().map(|f| format!("{}: {}", f.place, f.reason));
        return places.fold(CommandError::new(Code::Program, what), CommandError::place);
    }
    let LegaliseError::Nodes { opset, lowest, failures } = error else {
        let report = CommandError::new(Code::Program, error.to_string());
        return match error {
            LegaliseError::Functions => report.help("use `--inline`"),
            _ => report,
        };
    };
    let report = CommandError::new(
        Code::Program,
        format!("the model needs operators that opset {opset} does not have"),
    );
    let places = failures.iter().map(|f| format!("{}: {}", f.place, f.reason));
    places.fold(report, CommandError::place).help(use_opset(*lowest))
}

fn use_opset(lowest: u32) -> String {
    format!("use `--opset {lowest}`")
}

fn target(error: &TargetError) -> CommandError {
    let TargetError::Nodes { target, failures } = error else {
        return CommandError::new(Code::Usage, error.to_string());
    };
    let report = CommandError::new(Code::Program, format!("{target} cannot run the model"));
    { failures.iter() }
        .map(|f| format!("{}: {}", f.place, f.reason))
        .fold(report, CommandError::place)
        .help("write these parts of the model in other operations, or leave out `--target` for a model in the standard's operators")
}

fn write(error: &writer::Error) -> CommandError {
    use writer::Error::*;
    let output = |what: String| CommandError::new(Code::Output, what);
    match error {
        Io {
            path,
            doing,
            error,
        } => {
            let report = output(format!("cannot {doing}: {error}")).place(path.display());
            match error.kind() {
                ErrorKind::NotFound => report.help("make the folder first, or give a name in another one"),
                _ => report,
            }
        }
        Target { path, what } => output(format!("the output {what}")).place(path.display()),
        Link { path, what } => output(format!("the file with the weights {what}"))
            .place(path.display())
            .help("write the model there, or give --allow-external-paths, or write the weights: `--weights external`"),
        Overwrites { path, output, other, other_path } => {
            let what = format!("the {output} would overwrite {other}");
            let report = CommandError::new(Code::Usage, what).place(path.display());
            let report = if path == other_path { report } else { report.place(format_args!("the same file as {}", other_path.display())) };
            report.help(match *output {
                "output" | "outputs" => "give another name with -o",
                "page" => "give another name with --html",
                "report" => "give another name with --report",
                _ => "give another name with --weights-file",
            })
        }
        DataName { .. } => CommandError::new(Code::Usage, error.to_string())
            .help("give the name of a file beside the model with --weights-file"),
        NoFolder(path) => {
            let what = "weights cannot be beside a model that is written to a stream";
            CommandError::new(Code::Usage, what)
                .place(path.display())
                .help("leave out the options for weights, which are then in the model, or give the name of a file with -o")
        }
        TooLarge(_) => output(
            "with its weights the model has more than the 2 GiB that an ONNX file can have".into(),
        )
        .help("leave out `--weights embed`"),
        NoData(names) => {
            let report = CommandError::new(
                Code::Program,
                "the archive has no values for weights of the program",
            );
            names
                .iter()
                .fold(report, CommandError::place)
                .help(
                    "save the program with real weights, not under FakeTensorMode; or write the model without weights: \
                     `--weights none`",
                )
        }
        NoSuchType { .. } | Values(_) => CommandError::new(Code::Program, error.to_string()),
        Unnamed(_) => CommandError::new(Code::Internal, error.to_string()).help(REPORT_IT),
        _ => output(error.to_string()),
    }
}
