//! `bench`: compares whole conversions with `cp` of the archive and with torch.onnx.export. Each
//! runs in its own process.

mod export;
mod measure;
mod page;
mod plot;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::generate::{root, target};
use crate::package;
use crate::python::{output, run, virtual_environment};
use measure::{Run, in_turns};
use page::Row;
use xtask::synth::Script;

/// A part of the measurements.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    Layers,
    Scripts,
    Models,
    Gigabytes,
    /// Exports in Python; needs PT2ONNX_TORCH_PYTHON with transformers and torchvision.
    Python,
    /// Compressed models against those of other tools; needs PT2ONNX_TORCH_PYTHON with transformers
    /// and onnxruntime. Only if it is named.
    Compress,
    /// The time of the optimiser by the size of structured graphs; needs PT2ONNX_TORCH_PYTHON with
    /// onnx. Only if it is named.
    Growth,
    /// Exports of libraries; needs PT2ONNX_TORCH_PYTHON with the packages of bench/libraries.py,
    /// and installs optimum-onnx with its transformers into a separate folder. Only if it is named.
    Libraries,
    /// Decoders of language models against those of onnxruntime-genai's builder and of optimum;
    /// needs PT2ONNX_TORCH_PYTHON with transformers and onnxruntime-genai, and installs
    /// optimum-onnx as `libraries` does. Only if it is named.
    Decoders,
    /// Architectures of language models: their tokens beside those of transformers; needs
    /// PT2ONNX_TORCH_PYTHON with transformers. Only if it is named.
    LanguageModels,
    /// Models whose code looks at sizes; needs PT2ONNX_TORCH_PYTHON with the packages of
    /// bench/sizes.py. Only if it is named.
    Sizes,
    /// Weights of 4 bits by pt2onnx and by ONNX Runtime's quantiser; needs PT2ONNX_TORCH_PYTHON
    /// with transformers and onnxruntime. Only if it is named.
    Int4,
    /// The latency of models that come with Python packages, optimised by pt2onnx, onnxslim and
    /// onnxsim, which are installed into a separate environment. Only if it is named.
    Optimizers,
}

/// Options of `bench`.
#[derive(Args)]
pub struct Options {
    /// Measure only these parts.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Numbers of layers.
    #[arg(long, value_delimiter = ',', default_values_t = [32, 128, 512, 2048, 4096])]
    layers: Vec<u64>,
    /// Sizes of archives in gigabytes.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    gigabytes: Vec<u64>,
    /// How often each command is run. Medians are reported.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// The command to measure. Without it, a release is built, of the command and of the Python
    /// module.
    #[arg(long)]
    pt2onnx: Option<PathBuf>,
    /// Layers of the models that are compressed.
    #[arg(long, default_value_t = 12)]
    depth: usize,
    /// Only these models of `libraries`, `sizes`, `language-models` or `optimizers`, by name: `timm
    /// resnet18`, `Bert`, `llama`, `rapidocr`. Their tables are not written into the page.
    #[arg(long)]
    only: Vec<String>,
    /// Folder for archives and models, by default below `target/`. Archives made with PyTorch stay
    /// there for the next run.
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// The task.
pub fn bench(options: &Options) -> Result<()> {
    let wanted = |part| options.parts.is_empty() || options.parts.contains(&part);
    let pt2onnx = match &options.pt2onnx {
        Some(built) => built.clone(),
        None if matches!(
            options.parts[..],
            [Part::Python
                | Part::Libraries
                | Part::Decoders
                | Part::LanguageModels
                | Part::Sizes
                | Part::Int4]
        ) =>
        {
            PathBuf::new()
        }
        None => {
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            run(Command::new(cargo).args(["build", "--release", "--package", "pt2onnx-cli"]))?;
            target().join("release/pt2onnx")
        }
    };
    let bench = Bench {
        pt2onnx,
        python: env::var_os("PT2ONNX_TORCH_PYTHON").map(PathBuf::from),
        folder: options.folder.clone().unwrap_or_else(|| target().join("bench")),
        runs: options.runs,
    };
    fs::create_dir_all(&bench.folder)?;
    if wanted(Part::Layers) {
        page::layers(&bench.layers(&options.layers)?)?;
    }
    if wanted(Part::Scripts) {
        page::rows("scripts", &bench.scripts()?)?;
    }
    if wanted(Part::Models) {
        page::rows("models", &bench.models()?)?;
    }
    if wanted(Part::Gigabytes) {
        page::gigabytes(&bench.gigabytes(&options.gigabytes)?)?;
    }
    if options.parts.contains(&Part::Compress) {
        let tables = bench.compress(options.depth)?;
        println!("{tables}");
        page::section("compress", &tables)?;
    }
    if options.parts.contains(&Part::Optimizers) {
        let table = bench.optimizers(&options.only)?;
        println!("{table}");
        if options.only.is_empty() {
            page::section("optimizers", &table)?;
        }
    }
    if options.parts.contains(&Part::Growth) {
        let table = bench.growth()?;
        println!("{table}");
        page::section("growth", &table)?;
    }
    let is_named = options.parts.contains(&Part::Python);
    if is_named || (wanted(Part::Python) && bench.python.is_some()) {
        let python = bench.python()?;
        if options.pt2onnx.is_none() {
            package::build(&["--release"])?;
        }
        page::section("python", &export::table(python, options.runs)?)?;
    }
    tables(&bench, options)
}

/// Measures the parts of scripts that print tables, if they are named.
fn tables(bench: &Bench, options: &Options) -> Result<()> {
    let parts = [Part::Sizes, Part::Libraries, Part::Decoders, Part::LanguageModels, Part::Int4];
    if options.pt2onnx.is_none() && parts.iter().any(|part| options.parts.contains(part)) {
        package::build(&["--release"])?;
    }
    let only = &options.only;
    let show = |table: String, section: &str| {
        println!("{table}");
        if only.is_empty() { page::section(section, &table) } else { Ok(()) }
    };
    if options.parts.contains(&Part::Sizes) {
        show(bench.exports("sizes", &[], only)?, "sizes")?;
    }
    if options.parts.contains(&Part::Libraries) {
        show(bench.libraries(only)?, "libraries")?;
        show(bench.optimum(only)?, "optimum")?;
        show(bench.optimum_folders(only)?, "optimum-folders")?;
    }
    if options.parts.contains(&Part::Decoders) {
        show(bench.decoders(only)?, "decoders")?;
    }
    if options.parts.contains(&Part::LanguageModels) {
        show(bench.language_models(only)?, "language-models")?;
    }
    if options.parts.contains(&Part::Int4) {
        show(output(&mut bench.script("int4", &[])?)?, "int4")?;
    }
    Ok(())
}

/// Makes an archive in a separate process: the peak memory of a process includes that of the
/// process that started it.
fn synth<'a>(args: impl IntoIterator<Item = &'a str>, archive: &Path) -> Result<()> {
    run(Command::new(env::current_exe()?).arg("synth").args(args).arg(archive))
}

/// The folder below this one for installed packages. pt2onnx takes Python files outside of a folder
/// of this name for the user's, whose objects it restores.
fn site_packages(folder: &Path) -> PathBuf {
    folder.join("site-packages")
}

/// Installs the packages of `bench/{name}.txt`, without what they need, and returns their folder.
fn packages(python: &Path, name: &str, folder: &Path) -> Result<PathBuf> {
    let (packages, list) = (site_packages(folder), root().join(format!("bench/{name}.txt")));
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"];
    run(Command::new(python).args(pip).arg(&packages).arg("--requirement").arg(list))?;
    Ok(packages)
}

struct Bench {
    pt2onnx: PathBuf,
    /// An interpreter with PyTorch.
    python: Option<PathBuf>,
    folder: PathBuf,
    runs: usize,
}

impl Bench {
    /// The interpreter with PyTorch.
    fn python(&self) -> Result<&Path> {
        self.python.as_deref().context("PT2ONNX_TORCH_PYTHON is not set")
    }

    /// Measures narrow decoders, for which the graph takes nearly all the time.
    fn layers(&self, layers: &[u64]) -> Result<Vec<(u64, Row)>> {
        let rows = layers.iter().map(|&layers| {
            let archive = self.folder.join(format!("{layers} layers.pt2"));
            synth([layers.to_string().as_str(), "--hidden", "16"], &archive)?;
            let mut runs = vec![self.convert(&archive, "embed")];
            // PyTorch takes minutes for more layers.
            if layers <= 32 {
                runs.extend(self.torch(&archive));
            }
            let row = self.row(&archive, runs)?;
            fs::remove_file(archive)?;
            Ok((layers, row))
        });
        rows.collect()
    }

    /// Measures TorchScript files of doubling sizes.
    fn scripts(&self) -> Result<Vec<Row>> {
        let sizes = [25_000, 50_000, 100_000].map(|count| (Script::Trace, "calls", count));
        let branches = [50, 100, 200].map(|count| (Script::Branches, "branches", count));
        let rows = sizes.into_iter().chain(branches).map(|(script, unit, count)| {
            let archive = self.folder.join(format!("{count} {unit}.pt"));
            script.write(count, &archive)?;
            let mut command = self.command(&archive);
            command.args(["--input", "x=float32[n,4]", "--optimize", "0"]);
            let row = self.row(&archive, vec![Run::new("convert", self.out(), &command)])?;
            fs::remove_file(archive)?;
            Ok(row)
        });
        rows.collect()
    }

    /// Measures decoders that consist almost only of weights.
    fn gigabytes(&self, gigabytes: &[u64]) -> Result<Vec<(u64, Row)>> {
        let rows = gigabytes.iter().map(|&gigabytes| {
            let archive = self.folder.join(format!("{gigabytes} GB.pt2"));
            synth([format!("{gigabytes}GB").as_str()], &archive)?;
            let runs = vec![
                self.copy(&archive),
                self.convert(&archive, "external"),
                self.convert(&archive, "link"),
            ];
            let row = self.row(&archive, runs)?;
            fs::remove_file(archive)?;
            Ok((gigabytes, row))
        });
        rows.collect()
    }

    /// Measures models of transformers if there is PyTorch, otherwise the archives of the
    /// repository.
    fn models(&self) -> Result<Vec<Row>> {
        let folder = match &self.python {
            Some(python) => {
                run(Command::new(python)
                    .arg(root().join("xtask/python/bench_models.py"))
                    .arg(&self.folder))?;
                self.folder.clone()
            }
            None => root().join("testdata/models"),
        };
        let mut archives: Vec<PathBuf> =
            fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        archives.retain(|path| path.extension() == Some(OsStr::new("pt2")));
        archives.sort();
        let rows = archives.iter().map(|archive| {
            let mut runs = vec![self.copy(archive), self.convert(archive, "external")];
            runs.extend(self.torch(archive));
            self.row(archive, runs)
        });
        rows.collect()
    }

    /// Exports by the code of libraries. Returns the table.
    fn libraries(&self, only: &[String]) -> Result<String> {
        self.exports("libraries", &[], only)
    }

    /// Exports by optimum-onnx, which needs an older transformers: both are installed into a
    /// separate folder first. Returns the table.
    fn optimum(&self, only: &[String]) -> Result<String> {
        let python = self.python()?;
        let packages = packages(python, "optimum_onnx", &self.folder.join("optimum"))
            .context("optimum-onnx cannot be installed, so that its exports are not measured")?;
        self.exports("optimum_onnx", &[packages], only)
    }

    /// Folders in the classes of optimum that `optimum` installs. Returns the table.
    fn optimum_folders(&self, only: &[String]) -> Result<String> {
        self.exports("optimum_folders", &[site_packages(&self.folder.join("optimum"))], only)
    }

    /// Tokens of language models beside those of transformers. Returns the table.
    fn language_models(&self, only: &[String]) -> Result<String> {
        output(self.script("language_models", &[])?.args(only))
    }

    /// Decoders in ONNX Runtime, those of optimum too if it can be installed. Returns the table.
    fn decoders(&self, only: &[String]) -> Result<String> {
        let python = self.python()?;
        let mut command = self.script("decoders", &[])?;
        match packages(python, "optimum_onnx", &self.folder.join("optimum")) {
            Ok(optimum) => {
                command.arg("--optimum").arg(optimum);
            }
            Err(error) => eprintln!("optimum's decoders are not measured: {error:#}"),
        }
        output(command.args(only))
    }

    /// The table of a script of exports, which finds packages in these folders.
    fn exports(&self, script: &str, packages: &[PathBuf], only: &[String]) -> Result<String> {
        let mut command = self.script(script, packages)?;
        output(command.args(["--runs", &self.runs.to_string()]).args(only))
    }

    /// A script of `bench/`, which finds the Python module and packages in these folders.
    fn script(&self, name: &str, packages: &[PathBuf]) -> Result<Command> {
        let python = self.python()?;
        let own = root().join("python");
        let mut command = Command::new(python);
        command.env("PYTHONPATH", env::join_paths(packages.iter().chain([&own]))?);
        command.env("OMP_NUM_THREADS", "1");
        command.arg(root().join("bench").join(name).with_extension("py"));
        Ok(command)
    }

    /// Compresses models, also with other tools, which are installed into a separate folder
    /// first. Returns the tables.
    fn compress(&self, layers: usize) -> Result<String> {
        let python = self.python()?;
        let folder = self.folder.join("compress");
        let packages = packages(python, "compress", &folder)?;
        let mut command = Command::new(python);
        command.env("PYTHONPATH", &packages).arg(root().join("bench/compress.py"));
        command.arg("--bin").arg(&self.pt2onnx).arg("--folder").arg(&folder);
        command.args(["--layers", &layers.to_string(), "--runs", &self.runs.to_string()]);
        output(&mut command)
    }

    /// Measures the optimiser on graphs of several sizes.
    fn growth(&self) -> Result<String> {
        let python = self.python()?;
        let mut command = Command::new(python);
        command.arg(root().join("bench/growth.py")).arg("--bin").arg(&self.pt2onnx);
        output(command.args(["--runs", &self.runs.to_string()]))
    }

    /// Latency of models of other producers, before and after several optimisers.
    fn optimizers(&self, only: &[String]) -> Result<String> {
        let folder = self.folder.join("optimizers");
        let list = root().join("bench/optimizers.txt");
        let wanted = fs::read_to_string(&list)?;
        let python = virtual_environment(&folder.join("venv"), &[list], &wanted, |_| Ok(()))?;
        let mut command = Command::new(python);
        command.env("OMP_NUM_THREADS", "1").arg(root().join("bench/optimizers.py"));
        command.arg("--bin").arg(&self.pt2onnx).arg("--folder").arg(&folder);
        command.args(["--latency", "--only", "pt2onnx,onnxslim,onnxsim"]);
        output(command.args(only))
    }

    /// Runs all commands in turns. Archives that were made here are removed afterwards.
    fn row(&self, archive: &Path, runs: Vec<Run>) -> Result<Row> {
        let name = archive
            .file_stem()
            .and_then(OsStr::to_str)
            .context("the path of an archive has no file name")?
            .to_owned();
        println!("{name}");
        let bytes = fs::metadata(archive)?.len();
        let measured = in_turns(&runs, self.runs)?;
        for (run, measured) in runs.iter().zip(&measured) {
            println!("  {:<18} {measured}", run.name);
        }
        let names = runs.iter().map(|run| run.name);
        Ok(Row { archive: name, bytes, runs: names.zip(measured).collect() })
    }

    fn out(&self) -> PathBuf {
        self.folder.join("out")
    }

    fn copy(&self, archive: &Path) -> Run {
        let to = self.out().join("copy.pt2");
        Run::new("cp", self.out(), Command::new("cp").arg(archive).arg(to))
    }

    fn command(&self, archive: &Path) -> Command {
        let mut command = Command::new(&self.pt2onnx);
        command.arg(archive).arg("-o").arg(self.out().join("model.onnx"));
        command
    }

    /// The command for pt2onnx. Its name in tables is where the weights are written.
    fn convert(&self, archive: &Path, weights: &'static str) -> Run {
        let mut command = self.command(archive);
        command.args(["--weights", weights]);
        if weights == "link" {
            // The archive is next to the folder of the output.
            command.arg("--allow-external-paths");
        }
        Run::new(weights, self.out(), &command)
    }

    fn torch(&self, archive: &Path) -> Option<Run> {
        let mut command = Command::new(self.python.as_ref()?);
        command
            .arg(root().join("xtask/python/bench_torch.py"))
            .arg(archive)
            .arg(self.out().join("model.onnx"));
        Some(Run::new("torch.onnx.export", self.out(), &command).once())
    }
}
