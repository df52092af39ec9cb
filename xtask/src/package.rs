//! The Python package: builds its native half and runs its tests, those without PyTorch (part of
//! `test`) and those with it (`python`).

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::generate::{root, target};
use crate::python::{self, run};

/// Options of `python`.
#[derive(Args)]
pub struct Options {
    /// The version of PyTorch, installed below target/. By default, the PyTorch of the interpreter
    /// in PT2ONNX_TORCH_PYTHON if that is set, else the pinned version.
    #[arg(long)]
    torch: Option<String>,
    /// Run the tests that need no PyTorch instead; `cargo xtask test` does so as well.
    #[arg(long)]
    without_torch: bool,
    /// Check the types of the package instead, with mypy and pyright, and the names in all Python
    /// sources, with ruff.
    #[arg(long)]
    types: bool,
    /// Arguments for pytest.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// The version of PyTorch that the tests run with.
const TORCH: &str = "2.15.0";

/// Bundles of testdata/ that the tests read.
const BUNDLES: [&str; 4] = ["archives/archives", "cases/custom", "cases/edges", "cases/interface"];

/// Runs the tests that need no PyTorch.
pub fn test() -> Result<()> {
    build(&[])?;
    let cases = unpacked()?;
    let tests = root().join("python/tests");
    let mut command = Command::new(python::interpreter()?);
    command.args(["-m", "unittest", "discover", "--start-directory"]).arg(tests);
    run(command.env("PYTHONPATH", root().join("python")).env("PT2ONNX_CASES", cases))
}

/// The task: runs the tests that need PyTorch, or what its options say.
pub fn python(options: &Options) -> Result<()> {
    if options.without_torch {
        return test();
    }
    let given = std::env::var_os("PT2ONNX_TORCH_PYTHON").filter(|_| options.torch.is_none());
    let interpreter: PathBuf = match given {
        Some(given) => given.into(),
        None => with_version(options.torch.as_deref().unwrap_or(TORCH))?,
    };
    if options.types {
        return types(&interpreter);
    }
    build(&[])?;
    let mut command = Command::new(interpreter);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(&options.args);
    // Paths among the arguments are relative to the tests.
    command.current_dir(root().join("python/tests/torch"));
    run(command.env("PYTHONPATH", root().join("python")))
}

/// Checks the types of the package against the packages of an interpreter, and that all Python
/// sources use each name that they define or import: of two tests of one name, the first would
/// never run.
fn types(interpreter: &Path) -> Result<()> {
    let tools = root().join("python/tests/types.txt");
    let wanted = fs::read_to_string(&tools)?;
    let python =
        python::virtual_environment(&target().join("types"), &[tools], &wanted, |_| Ok(()))?;
    for (tool, flag) in [("mypy", "--python-executable"), ("pyright", "--pythonpath")] {
        let mut command = Command::new(&python);
        command.args(["-m", tool, flag]).arg(interpreter);
        run(command.current_dir(root()))?;
    }
    run(Command::new(&python).args(["-m", "ruff", "check", "--quiet"]).current_dir(root()))
}

/// Builds the native half with these flags for cargo, and puts it beside the package's modules.
pub fn build(flags: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).args(["build", "--package", "pt2onnx-python"]).args(flags))?;
    let profile = if flags.contains(&"--release") { "release" } else { "debug" };
    let built = target().join(profile).join(format!("{DLL_PREFIX}_pt2onnx{DLL_SUFFIX}"));
    let name = if cfg!(windows) { "_pt2onnx.pyd" } else { "_pt2onnx.abi3.so" };
    let package = root().join("python/pt2onnx");
    // Processes may have the old one open.
    let copy = tempfile::Builder::new().tempfile_in(&package)?.into_temp_path();
    fs::copy(&built, &copy).with_context(|| format!("copying {}", built.display()))?;
    Ok(copy.persist(package.join(name))?)
}

/// The folder with the unpacked bundles.
fn unpacked() -> Result<PathBuf> {
    let cases = target().join("testdata");
    for bundle in BUNDLES {
        let packed = root().join("testdata").join(bundle).with_extension("tar.zst");
        let name = Path::new(bundle).file_name().context("a bundle has a name")?;
        let mut bytes = Vec::new();
        ruzstd::decoding::StreamingDecoder::new(fs::File::open(&packed)?)?
            .read_to_end(&mut bytes)
            .with_context(|| packed.display().to_string())?;
        let folder = cases.join(name);
        // Cases that were removed since.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        tar::Archive::new(bytes.as_slice()).unpack(folder)?;
    }
    Ok(cases)
}

/// The interpreter of a virtual environment below target/ with this version of PyTorch, which is
/// made if it is missing or out of date. NVIDIA's packages are left out: stubs stand in for their
/// libraries.
fn with_version(version: &str) -> Result<PathBuf> {
    let own = root().join("python/tests/torch/requirements.txt");
    let requirements = [python::requirements_file(), own];
    let venv = target().join("torch").join(version);
    let stubs = root().join("xtask/python/stub_libraries.py");
    let parts = requirements.iter().chain([&stubs]);
    let wanted = parts.map(fs::read_to_string).collect::<Result<String, _>>()?;
    let interpreter = python::virtual_environment(&venv, &requirements, &wanted, |interpreter| {
        let pip = |words: &[&str]| run(Command::new(interpreter).args(["-m", "pip"]).args(words));
        pip(&["install", "--quiet", "--no-cache-dir", "--no-deps", &format!("torch=={version}")])?;
        let program = "import sysconfig; print(sysconfig.get_path('purelib'))";
        let site = Command::new(interpreter).args(["-c", program]).output()?;
        let site = PathBuf::from(String::from_utf8(site.stdout)?.trim());
        if cfg!(target_os = "linux") {
            run(Command::new(interpreter).arg(&stubs).arg(site.join("torch/lib")))?;
        }
        Ok(())
    });
    interpreter.with_context(|| format!("installing PyTorch {version}"))
}
