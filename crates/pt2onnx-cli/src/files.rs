//! Paths of the files that are read and written.

use crate::error::{Code, CommandError};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A path that identifies a file, even if the file does not exist yet.
pub fn absolute(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).unwrap_or_default();
    let named = folder.join(path.file_name().unwrap_or_default());
    fs::canonicalize(path).unwrap_or(named)
}

/// The file of external weights.
pub fn data(output: &Path, name: Option<&str>) -> PathBuf {
    match name {
        Some(name) => output.with_file_name(name),
        None => {
            let mut data = output.as_os_str().to_owned();
            data.push(".data");
            data.into()
        }
    }
}

/// An error if a file to be written is the one to be read.
pub fn refuse_to_overwrite(
    what: &str,
    read: &Path,
    written: [&Path; 2],
) -> Result<(), CommandError> {
    let Ok(read) = fs::canonicalize(read) else {
        return Ok(());
    };
    for written in written {
        if fs::canonicalize(written).is_ok_and(|w| w == read) {
            return Err(CommandError::new(
                Code::Usage,
                format!("the output would overwrite the {what} to be read"),
            )
            .place(written.display())
            .help("give another name with -o"));
        }
    }
    Ok(())
}
