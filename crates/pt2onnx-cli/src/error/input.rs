//! Errors of input files: archives, ONNX models, weights.

use super::{Code, CommandError, DAMAGED};
use pt2onnx::{
    ArrayError, ArraysError, WeightsError,
    fx::{
        self,
        archive::{START, other_file},
    },
    programs, tensor, torchscript,
    writer::ReadError,
};
use std::{io::Read, path::Path};

/// An archive that cannot be read.
pub(super) fn archive(error: &fx::Error) -> CommandError {
    use fx::Error::*;
    let input = |what: String| CommandError::new(Code::Input, what);
    match error {
        Io { path, .. } if path.is_dir() => input("this is a folder, and an archive is one file".to_owned())
            .place(path.display())
            .help("give the `.pt2` file that `torch.export.save` wrote, or a pattern such as `FOLDER/*.pt2`"),
        Io { path, error } => input(format!("the archive cannot be read: {error}")).place(path.display()),
        Layout { place, found } => input(format!("this is not a .pt2 archive: {found}"))
            .place(place)
            .help(instead(found, place)),
        Saved { place, found } => input(format!("the tensors are not as PyTorch 1.6 and newer save them: {found}"))
            .place(place)
            .help("load them in PyTorch and write them with `torch.save(model.state_dict(), path)`"),
        Zip { place, error } => {
            input(format!("the archive's directory cannot be read: {error}")).place(place).help(DAMAGED)
        }
        Record { place, record, problem } => input(format!("record `{record}` {problem}")).place(place).help(DAMAGED),
        Pickle { place, problem } => input(problem.to_string())
            .place(place)
            .help("only plain tensors are read, and nothing is executed; export the model with plain tensors"),
        WhichModel { place, models } => input(format!("the archive holds several models: {}", models.join(", ")))
            .place(place)
            .help("name the one to convert: `--program NAME`; or convert all of them into a folder: `--all -o models/`"),
        NoModel { place, model, models } => {
            input(format!("the archive holds no model `{model}`")).place(place).help(format!("it holds: {}", models.join(", ")))
        }
        Json { place, error } => {
            input(format!("the program does not match the export schema: {error}")).place(place).help(DAMAGED)
        }
        SchemaVersion { place, found: (major, minor), torch_version } => {
            let (reads, by) = (fx::SCHEMA_MAJOR, torch_version);
            input(format!("torch {by} wrote this with export schema {major}.{minor}, this pt2onnx reads up to {reads}.x"))
                .place(place)
                .help("use a newer pt2onnx, or an older PyTorch to export")
        }
        Tensor { place, what, name, error } => input(format!("{what} {name}: {error}")).place(place).help(DAMAGED),
        Pickled { place, what, name } => input(format!(
            "{what} {name} is stored as a Python pickle (a tensor subclass?), which is never executed"
        ))
        .place(place)
        .help("export the model with plain tensors; for torchao: `torchao.utils.unwrap_tensor_subclass(model)` before `torch.export`"),
        MissingTensor { place, what, name } => {
            input(format!("the archive has no data for {what} {name}, which the program uses")).place(place).help(DAMAGED)
        }
        Repeated { place, bytes, limit } => input(format!(
            "the tensors need {bytes} bytes more than their records hold, because views repeat elements; the limit is {limit}"
        ))
        .place(place)
        .help("save tensors that `expand` made as `contiguous()`, or make them in `forward`"),
        Invalid { place, invalid } if matches!(**invalid, fx::Invalid::Enum { .. }) => {
            input(format!("the program is not valid: {invalid}"))
                .place(place)
                .help("use a newer pt2onnx, or export again")
        }
        Invalid { place, invalid } => input(format!("the program is not valid: {invalid}")).place(place).help(DAMAGED),
        _ => input(error.to_string()),
    }
}

/// Advice on a file that is not an archive.
fn instead(found: &fx::NotAnArchive, place: &impl std::fmt::Display) -> String {
    use fx::NotAnArchive::*;
    match found {
        Protobuf => format!(
            "`pt2onnx show {place}` prints an ONNX model, and `pt2onnx optimize {place} -o OUT.onnx` optimises it"
        ),
        TorchSave | Pickle | Tar => "load the model in Python, and write it with \
            `torch.export.save(torch.export.export(model.eval(), inputs), path)`"
            .to_owned(),
        Mobile => "save the scripted or traced module from which it was made with `torch.jit.save(module, path)`".to_owned(),
        _ => "write one with `torch.export.save(exported_program, path)`".to_owned(),
    }
}

/// A TorchScript archive that cannot be read or flattened.
pub(super) fn torchscript(error: &torchscript::Error) -> CommandError {
    use torchscript::{Error::*, archive::Error as Unreadable};
    match error {
        Archive(Unreadable::Records(e)) => archive(e),
        Archive(Unreadable::Layout { place, found }) => {
            CommandError::new(Code::Input, format!("this is not a TorchScript archive: {found}"))
                .place(place)
        }
        Archive(Unreadable::Syntax { place, line, what }) => {
            let what = format!("the code of the archive cannot be parsed: {what}");
            CommandError::new(Code::Input, what)
                .place(format_args!("{place}, line {line}"))
                .help("the file may be damaged, or of a newer PyTorch")
        }
        Untold { missing, example } => {
            let what = "the types of the inputs are not known";
            let report = CommandError::new(Code::Usage, what);
            let report = missing.iter().fold(report, CommandError::place);
            report.help(format!("give the type of each: `--input {example}`"))
        }
        NoMethod { .. } | Misfit { .. } | NoPart { .. } | InputTwice(_) | NoInput { .. } => {
            CommandError::new(Code::Usage, error.to_string())
        }
        Run { site, problem } => {
            CommandError::new(Code::Program, format!("the program cannot be translated: {problem}"))
                .place(site)
        }
        _ => CommandError::new(Code::Program, error.to_string()),
    }
}

/// A file that should be an ONNX model.
pub fn model(path: &Path, error: &ReadError) -> CommandError {
    let input = |what: String| CommandError::new(Code::Input, what);
    match error {
        ReadError::Io { path, doing, error } => not_onnx(path).unwrap_or_else(|| {
            input(format!("the file cannot be {doing}: {error}")).place(path.display())
        }),
        ReadError::Nested => input(error.to_string())
            .place(path.display())
            .help("give a model with less control flow within each other"),
        ReadError::Decode { error } => {
            let what = format!("this is not an ONNX model, or a damaged one: {error}");
            not_onnx(path).unwrap_or_else(|| {
                input(what).place(path.display()).help("the file may be cut short; copy it again")
            })
        }
        ReadError::Invalid { place, invalid } => not_onnx(path).unwrap_or_else(|| {
            input(format!("the model cannot be read: {place}: {invalid}")).place(path.display())
        }),
        _ => input(error.to_string()).place(path.display()),
    }
}

/// The error of a file that is a folder, an archive or of another known kind instead of an ONNX
/// model.
pub fn not_onnx(path: &Path) -> Option<CommandError> {
    let error = |what: String| CommandError::new(Code::Input, what).place(path.display());
    if path.is_dir() {
        return Some(error("this is a folder, and a model is one file".to_owned()));
    }
    let mut start = Vec::new();
    tensor::open(path).ok()?.take(START as u64).read_to_end(&mut start).ok()?;
    let no_model = |what: String| Some(error(format!("this is not an ONNX model: {what}")));
    if start.starts_with(b"PK") {
        if programs(path).is_err() {
            return no_model("it is a zip file".to_owned());
        }
        let onnx = path.with_extension("onnx");
        let onnx =
            if onnx == path { "OUT.onnx".as_ref() } else { onnx.file_name().unwrap_or_default() };
        let (path, onnx) = (path.display(), onnx.display());
        let help = format!(
            "convert it first: `pt2onnx {path} -o {onnx}`; `pt2onnx inspect {path}` shows what it holds"
        );
        return Some(error("this is an archive, not an ONNX model".to_owned()).help(help));
    }
    match other_file(&start) {
        fx::NotAnArchive::Protobuf | fx::NotAnArchive::NotZip => None,
        fx::NotAnArchive::Json => no_model("it is JSON text".to_owned()),
        found => no_model(found.to_string()),
    }
}

/// Files that should hold weights.
pub fn weights(error: WeightsError) -> CommandError {
    use WeightsError::*;
    let input = |what: String| CommandError::new(Code::Input, what);
    match &error {
        Archive(e) => archive(e),
        TorchScript(e) => torchscript(e),
        Io { path, error } => {
            input(format!("the weights cannot be read: {error}")).place(path.display())
        }
        Safetensors { path, error } => {
            input(format!("the weights are neither safetensors nor an archive: {error}"))
                .place(path.display())
        }
        Tensor { path, name, error } => {
            input(format!("weight {name}: {error}")).place(path.display())
        }
        Type { path, name, dtype } => {
            input(format!("weight {name} has elements of type {dtype}, which are not supported"))
                .place(path.display())
        }
        Index { path, error } => {
            input(format!("the index of the weights is not understood: {error}"))
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

/// Arrays that cannot be read.
pub fn arrays(error: ArraysError, path: &Path) -> CommandError {
    match error {
        ArraysError::Weights(WeightsError::Safetensors { error, .. }) => {
            let what = format!("the file has no arrays in a format that is known: {error}");
            CommandError::new(Code::Input, what)
                .place(path.display())
                .help("give a .npz, .npy or .safetensors file, or a dict of tensors of torch.save")
        }
        ArraysError::Weights(error) => weights(error),
        ArraysError::Numpy(ArrayError::Zip(error)) => archive(&error),
        ArraysError::Numpy(ArrayError::Io { error, .. }) => {
            CommandError::new(Code::Input, format!("the arrays cannot be read: {error}"))
                .place(path.display())
        }
        error => CommandError::new(Code::Input, error.to_string()).place(path.display()),
    }
}
