//! `release`: checks here what a release needs, as far as one machine can. The workflow
//! `.github/workflows/release.yml` publishes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::generate::{root, target};
use crate::python::{self, run};
use crate::{book, walk};

/// The variable of an interpreter with PyTorch.
const TORCH: &str = "PT2ONNX_TORCH_PYTHON";

/// Options of `release`.
#[derive(Args)]
pub struct Options {
    /// Check all that can be checked on this machine, and publish nothing.
    #[arg(long, required_unless_present = "tag")]
    dry_run: bool,
    /// Check only that the version is that of a tag, such as v0.1.0.
    #[arg(long, conflicts_with = "dry_run")]
    tag: Option<String>,
    /// Do only these steps.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEPS")]
    only: Vec<Step>,
    /// Build with this profile, such as `dev`, which takes less time, in place of those of
    /// releases.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// A step of the dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The version is the same everywhere, and the changelog has it.
    Version,
    /// The documentation of the crates, and the book.
    Docs,
    /// `cargo publish --dry-run` of the workspace.
    Publish,
    /// `cargo install` of the command from the packaged crates.
    Install,
    /// A wheel, installed without a compiler.
    Wheel,
    /// README.md and docs/first-steps.md, each block run as printed, where the wheel is installed.
    Walk,
}

/// The folder of what the steps make.
fn folder() -> PathBuf {
    target().join("release-check")
}

/// The folder of the environment into which the step `wheel` installs.
fn environment() -> PathBuf {
    folder().join("venv")
}

/// The folder of its programs.
fn bin() -> Result<PathBuf> {
    let name = if cfg!(windows) { "Scripts" } else { "bin" };
    Ok(std::path::absolute(environment().join(name))?)
}

/// The task.
pub fn release(options: &Options) -> Result<()> {
    if let Some(tag) = &options.tag {
        let version = version()?;
        ensure!(*tag == format!("v{version}"), "the tag is {tag}, the version is {version}");
        return check_version();
    }
    ensure!(options.dry_run, "the workflow release.yml publishes, when a tag is pushed");
    fs::create_dir_all(folder())?;
    for &step in Step::value_variants() {
        if !options.only.is_empty() && !options.only.contains(&step) {
            continue;
        }
        let start = Instant::now();
        match step {
            Step::Version => check_version(),
            Step::Docs => docs(),
            Step::Publish => publish(),
            Step::Install => install(options.profile.as_deref()),
            Step::Wheel => wheel(options.profile.as_deref()),
            Step::Walk => walk::walk(&bin()?, env::var_os(TORCH).is_some()),
        }
        .with_context(|| format!("the step {step:?} of the release"))?;
        println!("{step:?}: {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// The version of the workspace.
fn version() -> Result<String> {
    let manifest = read("Cargo.toml")?;
    let package = manifest.split("[workspace.package]").nth(1).context("no [workspace.package]")?;
    let line = package.lines().find_map(|line| line.strip_prefix("version = "));
    Ok(line.context("the workspace has no version")?.trim_matches('"').to_owned())
}

/// Checks that dependencies between the crates, the changelog and the citation file have the
/// version of the workspace.
fn check_version() -> Result<()> {
    let version = version()?;
    for line in read("Cargo.toml")?.lines().filter(|l| l.contains("path = \"crates/")) {
        let same = line.contains(&format!("version = \"{version}\""));
        ensure!(same, "the version is {version}, but Cargo.toml has `{line}`");
    }
    let changes = read("CHANGELOG.md")?;
    let first = changes.lines().find_map(|line| line.strip_prefix("## ["));
    let first = first.context("CHANGELOG.md has no versions")?;
    ensure!(
        first.starts_with(&format!("{version}] - ")),
        "CHANGELOG.md begins with [{first}, the version is {version}"
    );
    let citation = read("CITATION.cff")?;
    ensure!(
        citation.lines().any(|line| line == format!("version: {version}")),
        "CITATION.cff has another version than {version}"
    );
    Ok(())
}

fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

fn docs() -> Result<()> {
    run(cargo()
        .args(["doc", "--quiet", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings"))?;
    book::book()
}

/// The folder in which cargo packs the crates.
fn packed() -> PathBuf {
    folder().join("target")
}

fn publish() -> Result<()> {
    // Cargo would take crates of the same version that it keeps from an earlier run.
    remove(&packed())?;
    if let Some(home) = env::var_os("CARGO_HOME") {
        forget(&PathBuf::from(home).join("registry"))?;
    } else if let Some(home) = env::home_dir() {
        forget(&home.join(".cargo/registry"))?;
    }
    run(cargo()
        .args(["publish", "--workspace", "--dry-run", "--allow-dirty", "--quiet", "--target-dir"])
        .arg(std::path::absolute(packed())?))
}

/// Removes what cargo keeps of our crates from a dry run, whose registries have names of dashes.
fn forget(registry: &Path) -> Result<()> {
    for kind in ["src", "cache"] {
        let Ok(registries) = fs::read_dir(registry.join(kind)) else { continue };
        for one in registries {
            let one = one?.path();
            if !one.file_name().is_some_and(|name| name.to_string_lossy().starts_with('-')) {
                continue;
            }
            for entry in fs::read_dir(&one)? {
                let entry = entry?.path();
                let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if name.starts_with("pt2onnx") {
                    remove(&entry)?;
                }
            }
        }
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)?;
    } else if path.exists() {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Installs the command from the packaged crates, and runs it.
fn install(profile: Option<&str>) -> Result<()> {
    let version = version()?;
    run(cargo()
        .args(["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"])
        .arg("--target-dir")
        .arg(std::path::absolute(packed())?))?;
    // Outside of the repository, whose workspace does not have the unpacked crates.
    let sources = tempfile::tempdir()?;
    // Not `--locked`: the lock file names a registry for our crates, which does not have them yet.
    let mut command = cargo();
    command.args(["install", "--quiet", "--force", "--profile", profile.unwrap_or("release")]);
    command.arg("--root").arg(std::path::absolute(folder().join("installed"))?);
    for entry in fs::read_dir(packed().join("package"))? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(package) = name.strip_suffix(&format!("-{version}.crate")) else { continue };
        run(Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(sources.path()))?;
        let unpacked = sources.path().join(format!("{package}-{version}"));
        if package == "pt2onnx-cli" {
            command.arg("--path").arg(&unpacked);
        } else {
            let place = unpacked.display();
            command.args(["--config", &format!("patch.crates-io.{package}.path='{place}'")]);
        }
    }
    command.arg("--target-dir").arg(std::path::absolute(packed())?);
    run(&mut command)?;
    let model = root().join("testdata/models/mlp.pt2");
    run(Command::new(folder().join("installed/bin/pt2onnx"))
        .arg(model)
        .arg("-o")
        .arg(folder().join("mlp.onnx")))
}

/// The program that the wheel must run, without PyTorch.
const CONVERT: &str = "\
import pt2onnx, sys
program = pt2onnx.convert(sys.argv[1])
assert program.input_names, program
print('pt2onnx', pt2onnx.__version__, 'converts')
";

/// The program that it must run with PyTorch.
const EXPORT: &str = "\
import pt2onnx, torch, torchvision
model = torchvision.models.resnet18().eval()
program = pt2onnx.export(model, (torch.randn(1, 3, 224, 224),), verify=True)
assert program.verification is None or program.verification.ok
print('a ResNet is exported')
";

/// Builds the wheel, installs it into a fresh virtual environment where no compiler is found, and
/// uses it there.
fn wheel(profile: Option<&str>) -> Result<()> {
    let wheels = folder().join("wheels");
    remove(&wheels)?;
    let tools = folder().join("tools");
    let tool = python::virtual_environment(&tools, &[], "pip", |_| Ok(()))?;
    let mut pip = Command::new(&tool);
    pip.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]).arg(&wheels);
    if let Some(profile) = profile {
        pip.env("MATURIN_PEP517_ARGS", format!("--profile {profile}"));
    }
    run(pip.arg(root()))?;
    let [wheel] = fs::read_dir(&wheels)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?
        .try_into()
        .map_err(|found| anyhow::anyhow!("not one wheel but {found:?}"))?;
    println!("{} ({} bytes)", wheel.display(), fs::metadata(&wheel)?.len());
    remove(&environment())?;
    run(Command::new("python3").args(["-m", "venv"]).arg(environment()))?;
    let bin = bin()?;
    let interpreter = bin.join("python");
    // Neither cargo nor a C compiler is on such a path.
    let alone = |command: &mut Command| run(command.env("PATH", &bin).env_remove("PYTHONPATH"));
    let start = Instant::now();
    alone(
        Command::new(&interpreter)
            .args(["-m", "pip", "install", "--quiet", "--no-index"])
            .arg(&wheel),
    )?;
    let seconds = start.elapsed().as_secs_f64();
    println!("installed in {seconds:.1} s");
    ensure!(seconds < 10.0, "the wheel took {seconds:.1} s to install");
    let model = root().join("testdata/models/mlp.pt2");
    let here = folder();
    alone(Command::new(&interpreter).args(["-c", CONVERT]).arg(&model).current_dir(&here))?;
    let out = std::path::absolute(folder().join("wheel.onnx"))?;
    alone(Command::new(bin.join("pt2onnx")).arg(&model).arg("-o").arg(out).current_dir(&here))?;
    let Some(torch) = env::var_os(TORCH) else {
        println!("{TORCH} is not set: no module is exported");
        return Ok(());
    };
    let paths = Command::new(torch)
        .args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        .output()?;
    let site = Command::new(&interpreter)
        .args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        .output()?;
    let site = PathBuf::from(String::from_utf8(site.stdout)?.trim());
    // The packages of the other interpreter, after those of this one.
    fs::write(site.join("torch.pth"), paths.stdout)?;
    alone(Command::new(&interpreter).args(["-c", EXPORT]).current_dir(&here))
}
