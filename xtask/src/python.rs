//! The Python interpreter with the pinned packages, for tasks that read from them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::generate::{root, target};

/// The interpreter in `PT2ONNX_PYTHON` if it is set. Otherwise that of a virtual environment below
/// `target/` with the packages of `requirements.txt`, which is created if it is missing or out of
/// date.
pub fn interpreter() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("PT2ONNX_PYTHON") {
        return Ok(given.into());
    }
    let requirements = fs::read_to_string(requirements_file())?;
    virtual_environment(&target().join("venv"), &[requirements_file()], &requirements, |_| Ok(()))
}

/// The interpreter of a virtual environment with the packages of files of requirements, and what
/// `more` installs. It is made anew if it is missing, or was made for something else than is
/// `wanted`.
pub fn virtual_environment(
    venv: &Path,
    requirements: &[PathBuf],
    wanted: &str,
    more: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let stamp = venv.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    for file in requirements {
        pip.arg("--requirement").arg(file);
    }
    if !requirements.is_empty() {
        run(&mut pip)?;
    }
    more(&python)?;
    fs::write(stamp, wanted)?;
    Ok(python)
}

/// Runs a script of `xtask/python`. Returns what it prints.
pub fn script(interpreter: &Path, name: &str) -> Result<String> {
    let path = root().join("xtask/python").join(name);
    output(Command::new(interpreter).arg(&path)).with_context(|| name.to_owned())
}

/// Runs `command` and returns what it prints.
pub fn output(command: &mut Command) -> Result<String> {
    let name = format!("{:?}", command.get_program());
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting {name}"))?;
    ensure!(output.status.success(), "{name}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// The version that `requirements.txt` pins `package` to.
pub fn pinned(package: &str) -> Result<String> {
    let requirements = fs::read_to_string(requirements_file())?;
    requirements
        .lines()
        .filter_map(|line| line.split_once("=="))
        .find(|(name, _)| *name == package)
        .map(|(_, version)| version.to_owned())
        .with_context(|| format!("`{package}` is not in xtask/python/requirements.txt"))
}

/// Runs `command` and waits for it. Returns an error if it cannot start or does not succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let name = format!("{:?}", command.get_program());
    let status = command.status().with_context(|| format!("starting {name}"))?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// The file with the pinned packages.
pub fn requirements_file() -> PathBuf {
    root().join("xtask/python/requirements.txt")
}
