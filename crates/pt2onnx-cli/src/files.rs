//! The files that a command reads and writes.

use crate::error::{Code, CommandError};
use pt2onnx::{
    Error, Options, Weights,
    writer::{self, Batch, Inputs, Output},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The output that `-o` names: a file, or with `-` standard output.
pub fn output(path: &Path) -> Output {
    if path == Path::new("-") { Output::Stdout } else { Output::from(path) }
}

/// Whether a path names a folder: one that is there, or a new one by a slash at its end.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with(['/', '\\'])
}

/// A folder for several files.
#[derive(Debug)]
pub struct NewFolder(Vec<PathBuf>);

impl NewFolder {
    /// Makes a folder and those around it, if they are not there. `what` it is stands in the error.
    pub fn make(what: &str, folder: &Path) -> Result<Self, CommandError> {
        let new = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists());
        let new = Self(new.map(Path::to_owned).collect());
        fs::create_dir_all(folder).map_err(|e| {
            let what = format!("{what} cannot be made: {e}");
            CommandError::new(Code::Output, what).place(folder.display())
        })?;
        Ok(new)
    }
}

impl Drop for NewFolder {
    /// Removes what was made and stayed empty: folders that have files cannot be removed so.
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The files that a conversion reads besides the archive: that of options, and those that options
/// name.
pub fn read_with(file: Option<&Path>, options: &Options) -> Inputs {
    let mut inputs = Inputs::new();
    file.iter().for_each(|path| inputs.add("options", path));
    options.files().for_each(|(what, path)| inputs.add(what, path));
    inputs
}

/// Checks before the work what would be an error after it: that no output is a file that is read,
/// or is written twice.
pub fn check_outputs(
    inputs: &Inputs,
    model: &Path,
    options: &Options,
    reports: &[PathBuf],
) -> Result<(), CommandError> {
    let mut planned = Batch::new(inputs.clone());
    let model = output(model);
    let mut claim = |what, to: Output| match planned.claim(what, to) {
        Err(error @ writer::Error::Overwrites { .. }) => Err(Error::Write(error)),
        // An export that fails reports more, and may not even write this file.
        _ => Ok(()),
    };
    claim("output", model.clone())?;
    if let Output::File(model) = model
        && !matches!(options.weights, Weights::Embed | Weights::Link)
    {
        claim("data file", data(&model, options.weights_file.as_deref()).into())?;
    }
    for report in reports {
        planned.check("report", report).map_err(Error::Write)?;
    }
    Ok(())
}

/// An error if options for data files are given, but no data file will be written.
pub fn check_data_file(options: &Options) -> Result<(), CommandError> {
    let named = options.weights_file.is_some() || options.shard_size.is_some();
    if named && matches!(options.weights, Weights::Embed | Weights::Link) {
        let what = "--weights-file and --shard-size are given, but there will be no data file";
        let error = CommandError::new(Code::Usage, what);
        return Err(error.help("leave them out, or use `--weights external`"));
    }
    Ok(())
}

/// The file of external weights.
fn data(output: &Path, name: Option<&str>) -> PathBuf {
    match name {
        Some(name) => output.with_file_name(name),
        None => {
            let mut data = output.as_os_str().to_owned();
            data.push(".data");
            data.into()
        }
    }
}
