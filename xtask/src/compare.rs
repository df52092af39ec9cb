//! `compare`: checks that two builds of the command write the same models for many archives.
//!
//! This shows that a change of the code does not change the models.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

/// How many archives were compared, and the results.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All compared archives.
    pub archives: usize,
    /// Archives that both commands convert.
    pub converted: usize,
    /// Archives for which files or exit codes differ.
    pub differ: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { archives, converted, differ } = self;
        write!(f, "{archives} archives compared, {converted} converted by both, {differ} differ")
    }
}

/// Runs `COMMAND ARCHIVE -o NAME.onnx ARGS` with `old` and `new` in an empty folder, for each
/// `*.pt2` and `*.pt` below `folder`, or for about `sample` of them. Prints the differences: exit
/// codes, names of files, contents.
pub fn compare(
    old: &Path,
    new: &Path,
    folder: &Path,
    sample: Option<usize>,
    args: &[OsString],
) -> Result<Counts> {
    let absolute = |path: &Path| path.canonicalize().with_context(|| path.display().to_string());
    let (old, new) = (absolute(old)?, absolute(new)?);
    let mut archives = archives(&absolute(folder)?)?;
    if let Some(sample) = sample {
        let step = archives.len().div_ceil(sample.max(1)).max(1);
        archives = archives.into_iter().step_by(step).collect();
    }
    ensure!(!archives.is_empty(), "there are no archives in {}", folder.display());
    let one = |archive: &PathBuf| -> Result<Counts> {
        let (before, after) = (convert(&old, archive, args)?, convert(&new, archive, args)?);
        let differences = before.differences(&after);
        if !differences.is_empty() {
            println!("{}: {}", archive.display(), differences.join(", "));
        }
        let converted = before.code == Some(0) && after.code == Some(0);
        let differ = usize::from(!differences.is_empty());
        Ok(Counts { archives: 1, converted: converted.into(), differ })
    };
    archives.par_iter().map(one).try_reduce(Counts::default, |a, b| {
        Ok(Counts {
            archives: a.archives + b.archives,
            converted: a.converted + b.converted,
            differ: a.differ + b.differ,
        })
    })
}

/// All archives below `folder`, sorted.
fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "pt2" || e == "pt") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The result of a command.
struct Outcome {
    /// The exit code. `None` if a signal stopped the command.
    code: Option<i32>,
    files: BTreeMap<OsString, Vec<u8>>,
}

fn convert(command: &Path, archive: &Path, args: &[OsString]) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let model = Path::new(archive.file_stem().context("the path of an archive has no file name")?)
        .with_extension("onnx");
    let status = Command::new(command)
        .arg(archive)
        .arg("-o")
        .arg(model)
        .args(args)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("starting {}", command.display()))?;
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        files.insert(entry.file_name(), fs::read(entry.path())?);
    }
    Ok(Outcome { code: status.code(), files })
}

impl Outcome {
    fn differences(&self, new: &Outcome) -> Vec<String> {
        let mut differences = Vec::new();
        if self.code != new.code {
            let code = |code: Option<i32>| code.map_or("a signal".to_owned(), |c| c.to_string());
            differences.push(format!("exit code {} became {}", code(self.code), code(new.code)));
        }
        for (name, old) in &self.files {
            let shown = name.display();
            match new.files.get(name) {
                None => differences.push(format!("{shown} is not written any more")),
                Some(new) if new != old => {
                    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
                    differences.push(format!("{shown} differs from byte {same} on"));
                }
                Some(_) => {}
            }
        }
        let added = new.files.keys().filter(|name| !self.files.contains_key(*name));
        differences.extend(added.map(|name| format!("{} is new", name.display())));
        differences
    }
}
