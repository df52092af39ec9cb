//! A model, ready to be written.

mod choose;
mod claims;
mod reporting;
mod rewriting;
mod saving;

pub use choose::SizesOfInputs;

use crate::{domains, error::Error, naming, runtime::Loaded};
use bytes::Bytes;
use pt2onnx_compress::{Compressed, CompressedWeight};
use pt2onnx_fx::ExportedProgram;
use pt2onnx_ir::{Model, Value, schema, verify, verify_imported};
use pt2onnx_report::{Report, Warning, WarningKind};
use pt2onnx_writer::{Inputs, Reading, SaveOptions, Weights};
use rustc_hash::FxHashSet;
use std::{collections::BTreeSet, fmt, path::Path};

/// An ONNX model, the program that it was made from, and the report about it.
pub struct OnnxProgram {
    model: Model,
    pub(crate) source: Option<ExportedProgram>,
    /// Whether the program has its graph.
    pub(crate) has_graph: bool,
    report: Report,
    save: SaveOptions,
    /// The files that it was read from.
    pub(crate) inputs: Inputs,
    /// Weights from which nothing was computed.
    pub(crate) replaceable: FxHashSet<Value>,
    /// Whether the model may have changed since it was verified.
    edited: bool,
    /// Whether the caller may have changed it: by `model_mut`.
    edited_by_caller: bool,
    /// Whether it was read from a file.
    imported: bool,
    /// Whether it was read from a file with what only its runtime knows ([`verify_imported`]).
    lenient: bool,
    pub(crate) compressed: Compressed,
    pub(crate) session: Loaded,
}

impl fmt::Debug for OnnxProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnnxProgram").field("report", &self.report).finish_non_exhaustive()
    }
}

impl OnnxProgram {
    pub(crate) fn new(model: Model, report: Report, mut save: SaveOptions) -> Self {
        // Weights were left out before anything was computed from them. Weights that are given
        // later are written.
        if save.weights == Weights::None {
            save.weights = Weights::Auto;
        }
        Self {
            model,
            source: None,
            has_graph: false,
            report,
            save,
            inputs: Inputs::new(),
            replaceable: FxHashSet::default(),
            edited: false,
            edited_by_caller: false,
            imported: false,
            lenient: false,
            compressed: Compressed::default(),
            session: Loaded::default(),
        }
    }

    pub(crate) fn with_report(self, report: Report) -> Self {
        Self { report, ..self }
    }

    /// Reads an ONNX model of any producer and any known opset, with bodies, functions, nodes of
    /// other domains and weights in other files. Files with weights are mapped, and must not change
    /// while the result lives. Parts of the file that are not kept are warnings.
    ///
    /// ```no_run
    /// use pt2onnx::{OnnxProgram, opt};
    ///
    /// let mut program = OnnxProgram::open("model.onnx")?;
    /// program.optimize(opt::Options::default());
    /// program.save("optimised.onnx")?;
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::Invalid`] if it is not valid ONNX.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let mut report = Report::default();
        report.read(path.as_ref());
        let mapped = pt2onnx_writer::ExternalData::Mapped;
        let reading = report.stage("read", || pt2onnx_writer::read_with(path, mapped))?;
        Self::of_reading(reading, report)
    }

    /// Does the same as [`open`](Self::open) with a model in memory. Its external data are `data`,
    /// by location ([`InParts::weights`](pt2onnx_writer::InParts::weights)). Nothing of these is
    /// copied.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn from_bytes(
        bytes: impl Into<Bytes>,
        data: impl IntoIterator<Item = (String, Bytes)>,
    ) -> Result<Self, Error> {
        let mut report = Report::default();
        let reading = report.stage("read", || pt2onnx_writer::read_parts(bytes, data))?;
        Self::of_reading(reading, report)
    }

    fn of_reading(reading: Reading, mut report: Report) -> Result<Self, Error> {
        let mut model = reading.model;
        // Names of nodes may clash in files, and those of values in bodies that do not see each
        // other.
        model.assign_names();
        domains::import_known(&mut model);
        let checked = report.stage("verify", || {
            verify_imported(&model)?;
            // Files need not declare the types of results.
            pt2onnx_opt::infer_output_types(&mut model);
            let mut typed = model.clone();
            pt2onnx_opt::infer_types(&mut typed);
            let lenient = verify(&typed).is_err();
            if lenient {
                verify_imported(&typed)?;
            }
            let ends = model.output_values().zip(typed.output_values());
            let wrong =
                ends.filter_map(|(claimed, made)| claims::mismatch(&model, claimed, &typed, made));
            match wrong.collect::<Vec<_>>() {
                wrong if wrong.is_empty() => {
                    Ok((lenient, claims::drop_wrong_sizes(&mut model, &typed)))
                }
                wrong => Err(wrong),
            }
        });
        let (lenient, wrong) = checked.map_err(Error::Invalid)?;
        let lost = reading.lost.iter();
        let lost = lost.map(|lost| format!("the model has {lost}, which are not kept"));
        let mut warnings: Vec<Warning> = Warning::all(WarningKind::NotKept, lost).collect();
        warnings.extend(Warning::all(WarningKind::NotKept, wrong));
        warnings.extend(foreign(&model));
        report.done(&model, &warnings);
        let mut program = Self::new(model, report, SaveOptions::default());
        (program.imported, program.inputs) = (true, reading.inputs);
        program.lenient = lenient;
        Ok(program)
    }

    /// The model. Its weights are views of the archive's file.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The names of the inputs, in their order.
    ///
    /// ```
    /// # let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/mlp.pt2");
    /// let program = pt2onnx::Exporter::new().export(archive)?;
    /// assert_eq!(program.input_names().next(), Some("tensor_x"));
    /// assert_eq!(program.output_names().collect::<Vec<_>>(), ["linear_4"]);
    /// # Ok::<(), pt2onnx::Error>(())
    /// ```
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        self.model.inputs().iter().map(|input| self.model[*input].name.as_deref().unwrap_or(""))
    }

    /// The names of the outputs, in their order.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        self.model.output_values().map(|output| self.model[output].name.as_deref().unwrap_or(""))
    }

    /// The program that it was made from, as the archive has it; `None` for a model that was read
    /// from a file, and after [`Exporter::forget_graph`](crate::Exporter::forget_graph).
    pub fn exported_program(&self) -> Option<&ExportedProgram> {
        self.source.as_ref().filter(|_| self.has_graph)
    }

    /// The model, to be changed. It is verified again before it is written, which gives
    /// [`Error::Edited`] if it is not valid. New values need names: call [`Model::assign_names`].
    pub fn model_mut(&mut self) -> &mut Model {
        self.changed();
        self.edited_by_caller = true;
        &mut self.model
    }

    /// Finds a value by its name, or an input or output by its name in the program; values in
    /// functions, and in bodies of operators of other domains, come last.
    pub fn value(&self, name: &str) -> Option<Value> {
        naming::find(&self.model, name)
    }

    /// The weights that were compressed. Entries of written weights have the loss.
    pub fn compressed(&self) -> Vec<CompressedWeight> {
        self.compressed.weights()
    }

    /// The warnings, for example about outputs that were left out.
    pub fn warnings(&self) -> &[Warning] {
        &self.report.warnings
    }

    /// The report of the export. It does not list the files that [`save`](Self::save) wrote:
    /// [`Report::saved`] adds them.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The model in ONNX's textual syntax; large weights are shortened.
    pub fn to_text(&self) -> String {
        self.model.to_string()
    }

    /// The files that it was read from: the archive or the model, with its data. None of them is
    /// written, under whatever name; but an ONNX model that was [opened](Self::open) may be saved
    /// under its own.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn changed(&mut self) {
        self.edited = true;
        self.replaceable.clear();
        self.session = Loaded::default();
    }

    pub(crate) fn verified(&self) -> Result<(), Error> {
        if !self.edited {
            return Ok(());
        }
        let by_caller = self.edited_by_caller;
        let verify = if self.lenient { verify_imported } else { verify };
        verify(&self.model).map_err(if by_caller { Error::Edited } else { Error::Verify })
    }
}

/// Warnings of operators that ONNX never had: those of a runtime, such as the plugins of TensorRT.
fn foreign(model: &Model) -> impl Iterator<Item = Warning> {
    let nodes = model.all_nodes().into_iter().map(|id| &model[id]);
    let foreign = nodes.filter(|n| n.domain.is_empty() && schema::versions(n.op()).is_empty());
    let names: BTreeSet<&str> = foreign.map(|n| n.op()).collect();
    let text = |name| {
        format!("ONNX has no operator {name}: its nodes are kept, for a runtime that has it")
    };
    Warning::all(WarningKind::Unoptimised, names.into_iter().map(text).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that the caller broke is not reported as a bug of pt2onnx.
    #[test]
    fn edits_that_break_a_model() {
        let text = "g (float[2] x) => (float[2] y) { y = Relu (x) }";
        let model: Model = text.parse().unwrap();
        let bytes = pt2onnx_writer::to_bytes_unverified(&model).unwrap();
        let mut program = OnnxProgram::from_bytes(bytes, []).unwrap();
        let model = program.model_mut();
        let node = model.nodes(Model::MAIN).next().unwrap();
        model.set_op(node, "NoSuchOperator");
        let error = program.to_bytes().unwrap_err();
        assert!(matches!(&error, Error::Edited(all) if all.len() == 1));
        let text = error.to_string();
        assert!(text.starts_with("the model is not valid ONNX after it was edited:\n"), "{text}");
    }

    /// As the plugins of TensorRT: the nodes stay, at other opsets, too.
    #[test]
    fn operators_that_onnx_never_had() {
        let text = "<ir_version: 7, opset_import: [\"\" : 11]>
            g (float[N,4] x) => (float[N,2] y, float[N,4] z) {
                b = EfficientNMS_TRT <limit = 3> (x)
                y = Clip (b)
                z = Softmax <axis = 1> (x)
            }";
        let model: Model = text.parse().unwrap();
        let bytes = pt2onnx_writer::to_bytes_unverified(&model).unwrap();
        let read = || OnnxProgram::from_bytes(bytes.clone(), []).unwrap();
        let program = read();
        let warnings: Vec<_> = program.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "ONNX has no operator EfficientNMS_TRT: its nodes are kept, for a runtime that has it"
            ]
        );
        for opset in [11, 20] {
            let mut program = read();
            program.rewrite(&crate::Options::default(), Some(opset), None).unwrap();
            let text = program.to_text();
            assert!(text.contains("b = EfficientNMS_TRT <limit: int = 3> (x)"), "{text}");
            program.to_bytes().unwrap();
        }
    }

    /// ONNX Runtime's tools write such files: they know the domain, and need no types of outputs.
    #[test]
    fn imports_and_types_that_runtimes_do_not_need() {
        let text = "<ir_version: 8, opset_import: [\"\" : 9]>
            g (float[N,2] x) => (y, z) {
                y = com.microsoft.Gelu (x)
                sliced = Slice <starts = [0], ends = [1], axes = [1]> (x)
                z = Cast <to = 7> (sliced)
            }";
        let mut model: Model = text.parse().unwrap();
        model.name.clear();
        let bytes = pt2onnx_writer::to_bytes_unverified(&model).unwrap();
        let program = OnnxProgram::from_bytes(bytes, []).unwrap();
        let text = program.to_text();
        assert!(text.contains("(float[N,2] x) => (float[N,2] y, int64[N,1] z)"), "{text}");
        assert_eq!(program.model().imports.get("com.microsoft"), Some(&1));
        assert_eq!(program.model().name, "main_graph");
        // An unknown domain may be a mistake.
        let model: Model = "g (float[2] x) => (float[2] y) { y = own.F (x) }".parse().unwrap();
        let bytes = pt2onnx_writer::to_bytes_unverified(&model).unwrap();
        let error = OnnxProgram::from_bytes(bytes, []).unwrap_err().to_string();
        assert!(error.contains("the domain own is not imported"), "{error}");
    }
}
