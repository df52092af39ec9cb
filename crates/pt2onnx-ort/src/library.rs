//! Where the library of ONNX Runtime is: `ORT_DYLIB_PATH`, the Python package `onnxruntime`, or
//! where the system finds it.

use crate::error::RunError;
use ort::{LoadDynamicError, environment::Environment, logging::LogLevel};
use std::{
    env::{
        self,
        consts::{DLL_PREFIX, DLL_SUFFIX},
    },
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Loads ONNX Runtime: from `ORT_DYLIB_PATH`; if that is not set, from a Python package
/// `onnxruntime` of the active virtual environment or of the `python3` in `PATH`; else from where
/// the system finds it. Python is not run. A process has one environment: create your own sessions
/// in this one. Logging is off, as failures are returned as errors.
///
/// # Errors
/// [`RunError::Library`].
pub fn ort_environment() -> Result<Environment, RunError> {
    load(|| {
        let given = env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty());
        let system = || format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}").into();
        given.map(PathBuf::from).or_else(of_python).unwrap_or_else(system)
    })
}

/// Loads ONNX Runtime from this library, for all that runs models afterwards. It has no effect if
/// it was loaded before.
///
/// # Errors
/// [`RunError::Library`].
pub fn load_ort(library: impl AsRef<Path>) -> Result<Environment, RunError> {
    load(|| library.as_ref().to_path_buf())
}

fn load(library: impl FnOnce() -> PathBuf) -> Result<Environment, RunError> {
    static ENVIRONMENT: Mutex<Option<Environment>> = Mutex::new(None);
    let mut known = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = &*known {
        return Ok(environment.clone());
    }
    let path = library();
    let failed = |reason: String| RunError::Library { path: path.display().to_string(), reason };
    let builder = ort::init_from(&path).map_err(|e| failed(reason(&e)))?;
    let environment = builder.build().map_err(|e| failed(e.to_string()))?;
    environment.set_log_level(LogLevel::Fatal);
    Ok(known.insert(environment).clone())
}

/// The reason why a library is not loaded, in the words of the system if there are any.
fn reason(error: &LoadDynamicError) -> String {
    let reason = match error {
        LoadDynamicError::Dlopen { error, .. } => error.source().map(ToString::to_string),
        _ => None,
    };
    reason.unwrap_or_else(|| error.to_string())
}

/// The library inside of a Python package.
fn of_python() -> Option<PathBuf> {
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os);
    let path = env::var_os("PATH").unwrap_or_default();
    let programs = env::split_paths(&path).map(|folder| folder.join("python3"));
    let found =
        programs.filter(|p| p.is_file()).filter_map(|p| Some(p.parent()?.parent()?.to_path_buf()));
    active.map(PathBuf::from).chain(found).find_map(|prefix| in_prefix(&prefix))
}

/// The library in an installation of Python.
fn in_prefix(prefix: &Path) -> Option<PathBuf> {
    let entries = |folder: PathBuf| {
        let read = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = read.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let starts = |path: &Path, start: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let pythons = entries(prefix.join("lib")).into_iter().filter(|p| starts(p, "python3"));
    let of_system = prefix.join("local/lib");
    let pythons = pythons.chain(entries(of_system).into_iter().filter(|p| starts(p, "python3")));
    let packages =
        pythons.flat_map(|p| ["site-packages", "dist-packages"].map(|name| p.join(name)));
    let name = format!("{DLL_PREFIX}onnxruntime");
    packages
        .flat_map(|p| entries(p.join("onnxruntime/capi")))
        .find(|p| starts(p, &format!("{name}.")) && !p.to_string_lossy().contains("providers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_in_its_prefix() {
        let prefix = tempfile::tempdir().expect("a folder");
        assert_eq!(in_prefix(prefix.path()), None);
        let capi = prefix.path().join("lib/python3.12/site-packages/onnxruntime/capi");
        fs::create_dir_all(&capi).expect("a folder");
        for name in
            ["_ld_preload.py", "libonnxruntime_providers_shared.so", "libonnxruntime.so.1.31.0"]
        {
            fs::write(capi.join(name), "").expect("a file");
        }
        let found = in_prefix(prefix.path());
        assert_eq!(found, (DLL_SUFFIX == ".so").then(|| capi.join("libonnxruntime.so.1.31.0")));
    }
}
