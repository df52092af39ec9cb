//! The exporter: options, translations, and the ways to start an export.

mod setters;
mod source;

pub use source::Source;

use crate::{
    archives,
    error::{Error, Failed},
    options::{OptionError, Options},
    pipeline,
    program::OnnxProgram,
    source_program::SourceProgram,
};
use pt2onnx_aten::Registry;
use pt2onnx_fx::archive::Records;
use pt2onnx_ir::ParseError;
use pt2onnx_report::{Report, ReportedOptions};
use pt2onnx_writer::Inputs;
use std::{fmt, io};

/// Turns exported programs into ONNX models.
///
/// It holds [`Options`], with a method for each, and the [`Registry`] of translations.
#[derive(Clone, Default)]
#[must_use = "methods give the exporter back"]
pub struct Exporter {
    options: Options,
    registry: Registry,
    forgets_graph: bool,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Exporter {
    /// An exporter with default options and the built-in translations.
    pub fn new() -> Self {
        Self::default()
    }

    /// An exporter with these options and the built-in translations. Reads the files of
    /// [`Options::op_functions`] and [`Options::rules`].
    ///
    /// # Errors
    /// An option has a value that it cannot have ([`Options::check`]), or a file cannot be read.
    pub fn with_options(options: Options) -> Result<Self, OptionError> {
        options.check()?;
        // Rules with errors are reported before an archive is read.
        options.passes()?;
        let mut registry = Registry::default();
        for path in &options.op_functions {
            let unread = |error| OptionError::FunctionFile { path: path.clone(), error };
            let bytes = pt2onnx_tensor::read(path).map_err(unread)?;
            match pt2onnx_writer::from_bytes(bytes.clone()) {
                // Text is hardly ever a valid protobuf message.
                Ok(model) if !model.functions.is_empty() => registry.add_function_library(model),
                _ => {
                    let neither = "they are neither text nor a model with functions";
                    let text = str::from_utf8(&bytes)
                        .map_err(|_| unread(io::Error::new(io::ErrorKind::InvalidData, neither)))?;
                    registry
                        .add_functions(text)
                        .map_err(|error| OptionError::Functions { path: path.clone(), error })?;
                }
            }
        }
        Ok(Self { options, registry, forgets_graph: false })
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Replaces the translations, and with them any given by [`functions`](Self::functions) before.
    /// By default all built-in translations are used.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Sets whether the graph of the program is freed when it is no longer needed; false by
    /// default. It takes as much memory as that of the model. Without it,
    /// [`OnnxProgram::exported_program`] is `None`, and reports do not show the program.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().forget_graph(true).export(archive)?;
    /// assert!(program.exported_program().is_none());
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn forget_graph(mut self, forget: bool) -> Self {
        self.forgets_graph = forget;
        self
    }

    /// The translations, to be extended.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Adds functions in ONNX's textual syntax, as translations of the ops that they are named
    /// after ([`Registry::add_functions`]). Can be called several times.
    ///
    /// # Errors
    /// The text cannot be parsed.
    pub fn functions(mut self, text: &str) -> Result<Self, ParseError> {
        self.registry.add_functions(text)?;
        Ok(self)
    }

    /// Translates a program, and reads it first if it is in an archive.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn export<'a>(&self, source: impl Into<Source<'a>>) -> Result<OnnxProgram, Error> {
        self.attempt(source).map_err(|failed| failed.error)
    }

    /// Does the same as [`export`](Self::export), but an error comes with a [`Report`]. A program
    /// has one, too.
    ///
    /// ```
    /// # use pt2onnx::Exporter;
    /// let report = match Exporter::new().attempt("no/such/file.pt2") {
    ///     Ok(program) => program.report().clone(),
    ///     Err(failed) => *failed.report,
    /// };
    /// assert!(report.to_markdown().contains("**Failed:**"));
    /// ```
    ///
    /// # Errors
    /// See [`Error`].
    pub fn attempt<'a>(&self, source: impl Into<Source<'a>>) -> Result<OnnxProgram, Failed> {
        let source = source.into();
        let mut report = Report::new(Some((&self.options).into()));
        let mut inputs = Inputs::new();
        if let Some(archive) = source.path() {
            report.read(archive);
            inputs.add("archive", archive);
        }
        self.options.files().for_each(|(what, path)| inputs.add(what, path));
        let convert = |source, report| {
            let Self { options, registry, forgets_graph } = self;
            pipeline::convert(source, options, registry, *forgets_graph, report)
        };
        let mut read = match report.stage_with("read", |report| self.read(source, report)) {
            Ok(read) => read,
            Err(error) => return Err(Failed::new(error, report)),
        };
        let case_split = read.case_split.take();
        let made = convert(read, report).or_else(|failed| match case_split {
            Some(read) if !matches!(failed.error, Error::Warnings(_)) => {
                convert(*read, *failed.report)
            }
            _ => Err(failed),
        });
        made.map(|mut program| {
            program.inputs = inputs;
            program
        })
    }

    /// The program as PyTorch's `print(ep)` shows it. Without `raw` it is shown as it is
    /// translated, after all passes over it.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let text = pt2onnx::Exporter::new().program_text(archive, true)?;
    /// assert!(text.starts_with("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n"));
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// The archive cannot be read, or a pass refuses the program.
    pub fn program_text<'a>(
        &self,
        source: impl Into<Source<'a>>,
        raw: bool,
    ) -> Result<String, Error> {
        let mut report = Report::default();
        let mut program = self.read(source.into(), &mut report)?.program;
        if !raw {
            program = pipeline::prepared(program, &self.options, &self.registry, &mut report)?;
        }
        Ok(pt2onnx_fx::readable(&program).to_string())
    }

    fn read(&self, source: Source<'_>, report: &mut Report) -> Result<SourceProgram, Error> {
        let records = match source {
            Source::File(path) => Records::open(&path),
            Source::Bytes(bytes) => Records::from_bytes(bytes),
            Source::Records(records) => Ok(records),
            Source::Program(program) => return SourceProgram::exported(*program, &self.options),
        };
        archives::read(records.map_err(Error::Archive)?, &self.options, &self.registry, report)
    }
}

impl From<&Options> for ReportedOptions {
    fn from(options: &Options) -> Self {
        let all = match serde_json::to_value(options) {
            Ok(serde_json::Value::Object(all)) => all,
            _ => serde_json::Map::new(),
        };
        Self { all, changed: options.changed() }
    }
}
