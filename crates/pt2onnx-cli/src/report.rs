//! Errors as the command shows them: what is wrong, where, what to do; and the exit codes.

use pt2onnx::{
    Error, Failure, Misfit, Reason, WeightsError,
    aten::LowerError,
    fx,
    ir::ParseError,
    opt::{LegaliseError, TargetError},
    writer::{self, ReadError},
};
use std::{
    fmt::Display,
    fs::File,
    io::{self, Read, Write},
    path::Path,
};

/// Exit codes, as `--help` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Internal = 1,
    Usage = 2,
    Input = 3,
    Program = 4,
    Output = 5,
    Different = 6,
}

pub const REPORT_IT: &str = "this is a bug of pt2onnx, please report it with the archive";

/// An error, in parts.
#[derive(Debug)]
pub struct Report {
    pub code: Code,
    what: String,
    places: Vec<String>,
    help: Option<String>,
}

impl Report {
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), places: Vec::new(), help: None }
    }

    /// Adds where it is.
    pub fn place(mut self, place: impl Display) -> Self {
        self.places.push(place.to_string());
        self
    }

    /// Says what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What is wrong, in a line.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Places and help, a line each.
    pub fn details(&self) -> String {
        let places = self.places.iter().map(|place| format!("  {place}\n"));
        let help = self.help.iter().map(|help| format!("  help: {help}\n"));
        places.chain(help).collect()
    }

    /// Prints it to standard error. If that fails, there is nobody to tell.
    pub fn print(&self) {
        let text = format!("error: {}\n{}", self.what, self.details());
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl From<Error> for Report {
    fn from(error: Error) -> Self {
        match &error {
            Error::Archive(e) => archive(e),
            Error::Program(failures) => program(failures),
            Error::Opset(_)
            | Error::IrVersion(_)
            | Error::Name(_)
            | Error::Dim(_)
            | Error::Domain(_) => Report::new(Code::Usage, error.to_string()),
            Error::Legalise(e) => legalise(e),
            Error::Target(e) => target(e),
            Error::Verify(errors) => {
                let report =
                    Report::new(Code::Internal, "the model that was made is not valid ONNX")
                        .help(REPORT_IT);
                errors.iter().fold(report, Report::place)
            }
            Error::Weights(all) => misfits(all),
            Error::Invalid(errors) => {
                let report = Report::new(Code::Input, "the model is not valid ONNX");
                errors.iter().fold(report, Report::place)
            }
            Error::Warnings(warnings) => {
                let what = "there are warnings, which are errors here";
                let report = Report::new(Code::Program, what);
                let report = warnings.iter().fold(report, Report::place);
                report.help("leave out `--warnings-as-errors`")
            }
            Error::Write(e) => write(e),
            _ => Report::new(Code::Internal, error.to_string()),
        }
    }
}

fn archive(error: &fx::Error) -> Report {
    use fx::Error::*;
    let input = |what: String| Report::new(Code::Input, what);
    let damaged = "the file may be damaged or cut short; export or copy it again";
    match error {
        Io { path, source } => input(format!("the archive cannot be read: {source}")).place(path.display()),
        Layout { place, found } => input(format!("this is not a .pt2 archive: {found}"))
            .place(place)
            .help("write one with `torch.export.save(exported_program, path)`"),
        Saved { place, found } => input(format!("the tensors are not as PyTorch 1.6 and newer save them: {found}"))
            .place(place)
            .help("load them in PyTorch and write them with `torch.save(model.state_dict(), path)`"),
        Zip { place, source } => {
            input(format!("the archive's directory cannot be read: {source}")).place(place).help(damaged)
        }
        Record { place, record, problem } => input(format!("record `{record}` {problem}")).place(place).help(damaged),
        Pickle { place, problem } => input(problem.to_string())
            .place(place)
            .help("only plain tensors are read, and nothing is executed; export the model with plain tensors"),
        WhichModel { place, models } => input(format!("the archive holds several models: {}", models.join(", ")))
            .place(place)
            .help("save the one to convert alone"),
        Json { place, source } => {
            input(format!("the program is not what the export schema asks for: {source}")).place(place).help(damaged)
        }
        SchemaVersion { place, found: (major, minor), torch_version } => {
            let (reads, by) = (fx::SCHEMA_MAJOR, torch_version);
            input(format!("torch {by} wrote this with export schema {major}.{minor}, this pt2onnx reads up to {reads}.x"))
                .place(place)
                .help("use a newer pt2onnx, or an older PyTorch to export")
        }
        Tensor { place, what, name, source } => input(format!("{what} {name}: {source}")).place(place).help(damaged),
        Pickled { place, what, name } => input(format!(
            "{what} {name} is stored as a Python pickle (a tensor subclass?), which is never executed"
        ))
        .place(place)
        .help("export the model with plain tensors"),
        MissingTensor { place, what, name } => {
            input(format!("the program uses {what} {name}, of which there is no data")).place(place).help(damaged)
        }
        Repeated { place, bytes, limit } => input(format!(
            "the tensors take {bytes} bytes more than the records that they are views of hold; an archive that repeats more than {limit} is refused"
        ))
        .place(place)
        .help("save tensors that `expand` made as `contiguous()`, or make them in `forward`"),
        Invalid { place, invalid } if matches!(**invalid, fx::Invalid::Enum { .. }) => {
            input(format!("the program is not valid: {invalid}"))
                .place(place)
                .help("use a newer pt2onnx, or export again")
        }
        Invalid { place, invalid } => input(format!("the program is not valid: {invalid}")).place(place).help(damaged),
        _ => input(error.to_string()),
    }
}

/// A file that should be an ONNX model.
pub fn model(path: &Path, error: &ReadError) -> Report {
    let input = |what: String| Report::new(Code::Input, what);
    match error {
        ReadError::Io { path, doing, source } => {
            input(format!("the file cannot be {doing}: {source}")).place(path.display())
        }
        ReadError::Decode { source } => {
            let report = input(format!("this is not an ONNX model, or a damaged one: {source}"));
            let report = report.place(path.display());
            let zip = File::open(path).and_then(|mut file| {
                let mut magic = [0; 2];
                file.read_exact(&mut magic).map(|()| &magic == b"PK")
            });
            match zip {
                Ok(true) => report.help("of an archive, `pt2onnx inspect` tells what it holds"),
                _ => report,
            }
        }
        ReadError::Invalid { place, invalid } => {
            input(format!("the model cannot be read: {place}: {invalid}")).place(path.display())
        }
        _ => input(error.to_string()).place(path.display()),
    }
}

/// Files that should hold weights.
pub fn weights(error: WeightsError) -> Report {
    use WeightsError::*;
    let input = |what: String| Report::new(Code::Input, what);
    match &error {
        Archive(e) => archive(e),
        Io { path, source } => {
            input(format!("the weights cannot be read: {source}")).place(path.display())
        }
        Safetensors { path, source } => {
            input(format!("the weights are neither safetensors nor an archive: {source}"))
                .place(path.display())
        }
        Tensor { path, name, source } => {
            input(format!("weight {name}: {source}")).place(path.display())
        }
        Type { path, name, dtype } => {
            input(format!("weight {name} has elements of type {dtype}, which are not supported"))
                .place(path.display())
        }
        Index { path, source } => {
            input(format!("the index of the weights is not understood: {source}"))
                .place(path.display())
        }
        Outside { path, file } => input(format!(
            "the index refers to `{file}`, which is not the name of a file beside it"
        ))
        .place(path.display()),
        NotThere { path, name, file } => {
            input(format!("weight {name} is not in {file}, where the index says it is"))
                .place(path.display())
        }
        Twice { folder, name } => input(format!("weight {name} is in several files of the folder"))
            .place(folder.display()),
        NoFile(folder) => {
            input("no file in the folder ends in .safetensors".to_owned()).place(folder.display())
        }
        _ => input(error.to_string()),
    }
}

/// Weights that a model cannot take.
fn misfits(misfits: &[Misfit]) -> Report {
    let what = "the weights are not those of the model";
    let report = { misfits.iter() }.fold(Report::new(Code::Program, what), Report::place);
    let filled = misfits.iter().any(|m| matches!(m, Misfit::Filled(_)));
    match filled {
        true => report
            .help("write the model with `--weights none`, so that nothing is computed from them"),
        false => report,
    }
}

fn program(failures: &[Failure]) -> Report {
    let what = match failures {
        [Failure { site: None, .. }] => "the program cannot be translated".to_owned(),
        [_] => "a node of the program cannot be translated".to_owned(),
        all if all.iter().all(|f| f.site.is_some()) => {
            format!("{} nodes of the program cannot be translated", all.len())
        }
        all => format!("{} parts of the program cannot be translated", all.len()),
    };
    let report = failures.iter().fold(Report::new(Code::Program, what), Report::place);
    let bug = |f: &Failure| {
        matches!(f.reason, Reason::Lower(LowerError::WrongType { .. } | LowerError::Diagnostic(_)))
    };
    let lowered = |f: &Failure| matches!(f.reason, Reason::Lower(_));
    if failures.iter().all(bug) {
        return report.help(REPORT_IT);
    }
    match failures.iter().any(lowered) {
        true => report.help(
            "write these parts of the model in other operations (`pt2onnx ops` lists what is supported), or keep these \
             ops for a runtime that knows them: `--operators fallthrough`",
        ),
        // The others say what to do.
        false => report,
    }
}

/// A text of functions that cannot be read: where, the line, and a caret under the place.
pub fn functions(file: &Path, error: &ParseError) -> Report {
    let (line, column) = (error.line, error.column);
    let mut report =
        Report::new(Code::Usage, &error.what).place(format!("{}:{line}:{column}", file.display()));
    let shown = error.to_string();
    for line in shown.lines().skip(1) {
        report = report.place(line);
    }
    report
}

fn legalise(error: &LegaliseError) -> Report {
    let LegaliseError::Nodes { opset, lowest, failures } = error else {
        return Report::new(Code::Program, error.to_string());
    };
    let report = Report::new(
        Code::Program,
        format!("the model needs operators that opset {opset} does not have"),
    );
    let places = failures.iter().map(|f| format!("{}: {}", f.place, f.reason));
    places.fold(report, Report::place).help(format!("use `--opset {lowest}`"))
}

fn target(error: &TargetError) -> Report {
    let TargetError::Nodes { target, failures } = error else {
        return Report::new(Code::Usage, error.to_string());
    };
    let report = Report::new(Code::Program, format!("{target} cannot run the model"));
    { failures.iter() }
        .map(|f| format!("{}: {}", f.place, f.reason))
        .fold(report, Report::place)
        .help("write these parts of the model in other operations, or leave out `--target` for a model in the standard's operators")
}

fn write(error: &writer::Error) -> Report {
    use writer::Error::*;
    let output = |what: String| Report::new(Code::Output, what);
    match error {
        Io {
            path,
            doing,
            source,
        } => output(format!("cannot {doing}: {source}")).place(path.display()),
        Target { path, what } => output(format!("the output {what}")).place(path.display()),
        Link { path, what } => output(format!("the file with the weights {what}"))
            .place(path.display())
            .help("write the model there, or give --link-outside, or write the weights: `--weights external`"),
        TooLarge(_) => output(
            "with its weights the model has more than the 2 GiB that an ONNX file can have".into(),
        )
        .help("leave out `--weights embed`"),
        NoData(names) => {
            let report = Report::new(
                Code::Program,
                "the archive has no values for weights of the program",
            );
            names
                .iter()
                .fold(report, Report::place)
                .help(
                    "save the program with real weights, not under FakeTensorMode; or write the model without weights: \
                     `--weights none`",
                )
        }
        NoSuchType { .. } => Report::new(Code::Program, error.to_string()),
        Unnamed(_) => Report::new(Code::Internal, error.to_string()).help(REPORT_IT),
        _ => output(error.to_string()),
    }
}
