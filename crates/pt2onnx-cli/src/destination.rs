//! The output of a conversion: the file or the folder that `-o` names.

use crate::{
    error::{Code, CommandError},
    files::is_folder,
};
use std::path::{Path, PathBuf};

/// The archives and their models.
#[derive(Debug, PartialEq)]
pub enum Destination {
    /// One archive, and the file of its model.
    File(PathBuf, PathBuf),
    /// Each archive with the file of its model, in one folder.
    Folder(PathBuf, Vec<(PathBuf, PathBuf)>),
}

impl Destination {
    /// A folder for the programs of archives.
    pub fn into_folder(self) -> Result<Self, CommandError> {
        let Self::File(archive, output) = self else {
            return Ok(self);
        };
        if output.as_os_str() == "-" || output.extension().is_some() {
            let what = "--all writes several models, and needs a folder for them";
            return Err(CommandError::new(Code::Usage, what)
                .place(format!("-o {}", output.display()))
                .help("name a folder: `-o models/`"));
        }
        let model = output.join(archive.file_name().unwrap_or_default());
        Ok(Self::Folder(output, vec![(archive, model.with_extension("onnx"))]))
    }
}

/// A conversion of several.
#[derive(Debug, PartialEq)]
pub struct Task {
    pub archive: PathBuf,
    /// The name of the program, if the archive has several.
    pub program: Option<String>,
    /// The file of the model.
    pub to: PathBuf,
}

impl Task {
    /// The only program of an archive, or the one called `model`.
    pub fn of_archive((archive, to): (PathBuf, PathBuf)) -> Self {
        Self { archive, program: None, to }
    }
}

/// A conversion for each program of the archives. An archive that cannot be read fails when it is
/// converted.
pub fn each_program(
    folder: &Path,
    archives: Vec<(PathBuf, PathBuf)>,
) -> Result<Vec<Task>, CommandError> {
    let several = archives.len() > 1;
    let mut tasks: Vec<Task> = Vec::new();
    for (archive, to) in archives {
        let names = pt2onnx::programs(&archive).unwrap_or_default();
        if names.len() < 2 {
            tasks.push(Task::of_archive((archive, to)));
            continue;
        }
        for name in names {
            // The name is the archive's: it must not lead out of the folder.
            let plain = name.replace(['/', '\\', ':'], "_");
            let plain = plain.trim_start_matches('.');
            let file = if several {
                format!("{}.{plain}.onnx", to.file_stem().unwrap_or_default().display())
            } else {
                format!("{plain}.onnx")
            };
            let to = folder.join(file);
            tasks.push(Task { archive: archive.clone(), program: Some(name), to });
        }
    }
    for (i, task) in tasks.iter().enumerate() {
        if let Some(other) = tasks[..i].iter().find(|other| other.to == task.to) {
            let what = format!("two programs would both become {}", task.to.display());
            return Err(CommandError::new(Code::Usage, what)
                .place(other.archive.display())
                .place(task.archive.display())
                .help("convert them one by one: `--program NAME`"));
        }
    }
    Ok(tasks)
}

/// Pairs the archives with the files to write.
pub fn destination(
    models: Vec<PathBuf>,
    output: Option<PathBuf>,
) -> Result<Destination, CommandError> {
    let Some(output) = output else {
        return Err(no_output(&models));
    };
    let folder = is_folder(&output);
    let mut models = models;
    match (models.pop(), models.is_empty()) {
        (Some(model), true) if !folder => return Ok(Destination::File(model, output)),
        (Some(last), _) => models.push(last),
        (None, _) => return Err(CommandError::new(Code::Usage, "no archive is given")),
    }
    if !folder {
        let what = "several archives need a folder for their models";
        return Err(CommandError::new(Code::Usage, what)
            .place(format!("-o {}", output.display()))
            .help("end the name of a new folder with a slash: `-o models/`"));
    }
    let pairs: Vec<(PathBuf, PathBuf)> = models
        .into_iter()
        .map(|model| {
            let file = output.join(model.file_name().unwrap_or_default()).with_extension("onnx");
            (model, file)
        })
        .collect();
    for (i, (model, file)) in pairs.iter().enumerate() {
        if let Some((other, _)) = pairs[..i].iter().find(|(_, earlier)| earlier == file) {
            let what = format!("two archives would both become {}", file.display());
            return Err(CommandError::new(Code::Usage, what)
                .place(other.display())
                .place(model.display())
                .help("convert them into different folders"));
        }
    }
    Ok(Destination::Folder(output, pairs))
}

/// No `-o` is given; perhaps the output is there without it.
fn no_output(models: &[PathBuf]) -> CommandError {
    let onnx = |path: &Path| path.extension().is_some_and(|e| e == "onnx");
    let error = CommandError::new(Code::Usage, "no output is given");
    match models {
        [model, output] if onnx(output) => error.help(format!(
            "the output follows -o: `pt2onnx {} -o {}`",
            model.display(),
            output.display()
        )),
        [model] if onnx(model) => error.help(format!(
            "`pt2onnx show {0}` prints an ONNX model, and `pt2onnx optimize {0} -o OUT.onnx` optimises it",
            model.display()
        )),
        [model] if model.is_dir() => error.help(format!(
            "name archives and a folder for their models: `pt2onnx {} -o models/`",
            model.join("*.pt2").display()
        )),
        [model] => {
            let output = model.with_extension("onnx");
            let output = output.file_name().unwrap_or_default().to_string_lossy();
            error.help(format!("name the file to write: `pt2onnx {} -o {output}`", model.display()))
        }
        _ => error.help("name a folder for the models: `-o models/`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders() {
        let of = |models: &[&str], output: &str| {
            let models = models.iter().map(PathBuf::from).collect();
            destination(models, Some(output.into())).map_err(|e| e.what().to_owned())
        };
        let pair = |a: &str, b: &str| (PathBuf::from(a), PathBuf::from(b));
        let file = |a: &str, b: &str| Ok(Destination::File(a.into(), b.into()));
        assert_eq!(of(&["a.pt2"], "m.onnx"), file("a.pt2", "m.onnx"));
        assert_eq!(of(&["a.pt2"], "-"), file("a.pt2", "-"));
        let folder = |pairs| Ok(Destination::Folder("new/".into(), pairs));
        assert_eq!(of(&["x/a.pt2"], "new/"), folder(vec![pair("x/a.pt2", "new/a.onnx")]));
        let two = vec![pair("a.pt2", "new/a.onnx"), pair("b.pt", "new/b.onnx")];
        assert_eq!(of(&["a.pt2", "b.pt"], "new/"), folder(two));
        for (models, output, what) in [
            (&["a.pt2", "b.pt2"][..], "m.onnx", "several archives need a folder for their models"),
            (&["x/a.pt2", "y/a.pt2"], "new/", "two archives would both become new/a.onnx"),
        ] {
            assert_eq!(of(models, output), Err(what.to_owned()));
        }
    }
}
