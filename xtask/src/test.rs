//! `test`: runs all tests of the workspace with the pinned ONNX Runtime library, and those of the
//! Python package.

use std::env;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::generate::target;
use crate::package;
use crate::python::{pinned, run};

/// The task. `args` are passed to `cargo test`. If they select packages, doc tests are not run,
/// because cargo refuses them for packages without a library, nor those of the Python package.
pub fn test(args: &[OsString]) -> Result<()> {
    let library = onnxruntime()?;
    let chooses = |arg: &OsString| arg == "--package" || arg.as_encoded_bytes().starts_with(b"-p");
    let cargo = |flags: &[&str]| {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.arg("test").args(flags).args(args);
        run(command.env("ORT_DYLIB_PATH", &library))
    };
    if args.iter().any(chooses) {
        return cargo(&["--all-targets"]);
    }
    cargo(&["--workspace", "--all-targets"])?;
    cargo(&["--workspace", "--doc"])?;
    package::test()
}

/// The ONNX Runtime library in `ORT_DYLIB_PATH` if it is set. Otherwise that of the pinned wheel,
/// which is downloaded once and kept below `target/`.
fn onnxruntime() -> Result<PathBuf> {
    if let Some(given) = env::var_os("ORT_DYLIB_PATH") {
        return Ok(given.into());
    }
    let version = pinned("onnxruntime")?;
    let folder = target().join("onnxruntime").join(&version);
    let library = folder.join(format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}"));
    if library.exists() {
        return Ok(library);
    }
    println!("downloading ONNX Runtime {version}");
    fs::create_dir_all(&folder)?;
    let wheel = tempfile::tempdir_in(&folder)?;
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"])
        .arg(format!("onnxruntime=={version}"))
        .arg("--dest")
        .arg(wheel.path()))?;
    let archive = find(wheel.path(), |name| name.ends_with(".whl"))?;
    run(Command::new("python3")
        .args(["-m", "zipfile", "--extract"])
        .args([&archive, wheel.path()]))?;
    // libonnxruntime.so.1.2.3, libonnxruntime.1.2.3.dylib or onnxruntime.dll.
    let prefix = format!("{DLL_PREFIX}onnxruntime.");
    let inside = find(&wheel.path().join("onnxruntime/capi"), |name| name.starts_with(&prefix))?;
    // Renamed at the end, so that an interrupted download does not look complete.
    fs::rename(inside, &library)?;
    Ok(library)
}

/// The file in `folder` whose name matches.
fn find(folder: &Path, fits: impl Fn(&str) -> bool) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().and_then(OsStr::to_str).is_some_and(&fits) {
            return Ok(path);
        }
    }
    Err(anyhow::anyhow!("not found in {}", folder.display())).context("the wheel of ONNX Runtime")
}
