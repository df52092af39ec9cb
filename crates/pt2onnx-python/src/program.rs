//! Gives Python a model, which stays in Rust's memory.

use crate::{
    errors,
    interrupt::{self, detached},
    memory::{self, Buffer, Lent, Row},
    options,
};
use pt2onnx::{
    DiffOptions, Error, OnnxProgram, Unused, Warning,
    ir::{Model, Value},
    writer::Batch,
};
use pyo3::{exceptions::PyException, prelude::*, types::PyBytes};
use std::{
    cell::Cell,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// An ONNX model in Rust's memory. Its methods may be called from several threads.
#[pyclass(frozen, module = "pt2onnx._pt2onnx")]
pub struct Program(Mutex<OnnxProgram>);

impl From<OnnxProgram> for Program {
    fn from(program: OnnxProgram) -> Self {
        Self(Mutex::new(program))
    }
}

/// How long messages about progress are apart.
const OFTEN: Duration = Duration::from_millis(100);

/// Weights of as many bytes are shared by copies of a model.
const LARGE: u64 = 1024;

/// Name, element type and dimensions of an input or output; no type if it is not a tensor, no
/// dimensions if their number is unknown.
type End = (String, Option<String>, Option<Vec<String>>);

/// The model file without large weights, and these: name, element type (of `TensorProto.DataType`),
/// dimensions, elements.
type Parts<'py> = (Bound<'py, PyBytes>, Vec<(String, i64, Vec<usize>, Buffer)>);

impl Program {
    fn lock(&self) -> MutexGuard<'_, OnnxProgram> {
        // A panic in another thread left a whole program.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same model, with the weights of this one.
    pub fn shared(&self) -> OnnxProgram {
        self.lock().shared()
    }

    /// Runs `work`, while other Python threads continue.
    fn work<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut OnnxProgram) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        detached(py, || work(&mut self.lock()))?.map_err(|e| errors::error(py, e))
    }
}

#[pymethods]
impl Program {
    /// Writes the model; without options, with those of the export. Returns the number of bytes.
    /// `progress` gets the bytes written so far, and in all, now and then.
    #[pyo3(signature = (path, options=None, progress=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        options: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let options = options.map(options::saving).transpose()?;
        let saved = self.work(py, |program| {
            let last = Cell::new(None::<Instant>);
            let show = |done: u64, total: u64| {
                let is_due = last.get().is_none_or(|last| last.elapsed() > OFTEN);
                let Some(progress) = progress.as_ref().filter(|_| is_due) else { return };
                last.set(Some(Instant::now()));
                Python::attach(|py| match progress.call1(py, (done, total)) {
                    Err(raised) if !raised.is_instance_of::<PyException>(py) => {
                        interrupt::end(raised)
                    }
                    // An error of a message changes nothing about the file.
                    _ => (),
                });
            };
            let mut files = Batch::new(program.inputs().clone());
            let saved = program.save_in(&mut files, path, options, &show)?;
            files.commit()?;
            Ok(saved)
        });
        Ok(saved?.bytes)
    }

    /// The model as the bytes of one file, with all weights.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.work(py, |program| program.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The model file without its weights of at least `threshold` bytes, and these. In the file
    /// they are external data `pt2onnx:0`, `pt2onnx:1`, ...
    fn to_parts<'py>(&self, py: Python<'py>, threshold: u64) -> PyResult<Parts<'py>> {
        let parts = self.work(py, |program| program.to_parts(threshold))?;
        let weights = parts.weights.into_iter().map(|weight| {
            let (tensor, name) = (weight.tensor, weight.name);
            let dtype = pt2onnx::ir::schema::data_type(tensor.dtype());
            (name, dtype, tensor.shape().to_vec(), Buffer::of(&tensor))
        });
        Ok((PyBytes::new(py, &parts.model), weights.collect()))
    }

    /// The inputs.
    fn inputs(&self) -> Vec<End> {
        let program = self.lock();
        let model = program.model();
        model.inputs().iter().map(|input| end(model, *input)).collect()
    }

    /// The outputs.
    fn outputs(&self) -> Vec<End> {
        let program = self.lock();
        let model = program.model();
        let outputs = model.outputs().iter().zip(model.output_values());
        outputs
            .map(|(output, value)| {
                let (name, dtype, dims) = end(model, value);
                (output.name.as_ref().map_or(name, ToString::to_string), dtype, dims)
            })
            .collect()
    }

    /// The opset of ONNX's own operators.
    fn opset(&self) -> u32 {
        self.lock().model().opset
    }

    /// Gives values to weights. Returns the names of those that the model has no use for.
    fn apply_weights(
        &self,
        py: Python<'_>,
        storages: Vec<Lent>,
        state: Vec<Row>,
    ) -> PyResult<Vec<String>> {
        let storages = memory::storages(storages)?;
        let state = memory::tensors(state, &storages)?;
        self.work(py, |program| program.apply_weights_with(&state, Unused::Allow))
    }

    /// Renames dynamic dimensions: pairs of a symbol or an axis (`x.0`) and a name.
    fn rename_axes(&self, py: Python<'_>, names: Vec<(String, String)>) -> PyResult<()> {
        self.work(py, |program| program.rename_axes(names))
    }

    /// Names axes of outputs: output, axis and name of each. Returns the reasons why some cannot
    /// have theirs.
    fn name_output_axes(
        &self,
        py: Python<'_>,
        names: Vec<(String, i64, String)>,
    ) -> PyResult<Vec<String>> {
        self.work(py, |program| Ok(program.name_output_axes(&names)))
    }

    /// Rewrites the model for another opset, names values, fixes sizes, optimises and compresses:
    /// what `options` ask for.
    fn optimize(&self, py: Python<'_>, options: &str) -> PyResult<()> {
        let opset = options::opset(options);
        let options = options::read(options)?;
        self.work(py, |program| {
            let known = program.warnings().len();
            program.rewrite(&options, opset, None)?;
            match program.warnings().get(known..) {
                Some(new) if options.warnings_as_errors && !new.is_empty() => {
                    Err(Error::Warnings(new.to_vec()))
                }
                _ => Ok(()),
            }
        })
    }

    /// The positions of the inputs that nothing uses.
    fn unused_inputs(&self, py: Python<'_>) -> Vec<usize> {
        py.detach(|| {
            let program = self.lock();
            let model = program.model();
            let inputs = model.inputs().iter().enumerate();
            let unused = inputs.filter(|(_, value)| model[**value].uses().len() == 0);
            unused.map(|(position, _)| position).collect()
        })
    }

    /// Removes the inputs that nothing uses, except for those at some positions. Returns the
    /// positions of those that it removed.
    fn drop_unused_inputs(&self, py: Python<'_>, keep: Vec<usize>) -> PyResult<Vec<usize>> {
        self.work(py, |program| Ok(program.model_mut().remove_unused_inputs(&keep)))
    }

    /// Another model that is the same, as if it had been read. Weights are shared.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let made = self.work(py, |program| {
            let parts = program.to_parts(LARGE)?;
            let weights = parts.weights.iter().enumerate();
            let weights =
                weights.map(|(i, w)| (format!("pt2onnx:{i}"), Buffer::of(&w.tensor).bytes));
            OnnxProgram::from_bytes(parts.model, weights)
        });
        made.map(Self::from)
    }

    /// The model in ONNX's textual syntax.
    fn to_text(&self, py: Python<'_>) -> String {
        py.detach(|| self.lock().to_text())
    }

    /// How another model differs from this one, as text; empty if it does not.
    fn diff(&self, py: Python<'_>, other: &Self) -> String {
        // One lock after the other: two threads may compare the same models in both orders.
        py.detach(|| {
            let other = other.lock().model().clone();
            pt2onnx::diff(self.lock().model(), &other, &DiffOptions::default()).to_string()
        })
    }

    /// The warnings: kind and text; `grouped`, many of the same are one.
    fn warnings(&self, grouped: bool) -> Vec<(String, String)> {
        let kind = |w: &Warning| serde_json::json!(w.kind).as_str().unwrap_or_default().to_owned();
        let program = self.lock();
        let all = program.warnings().iter();
        if grouped {
            pt2onnx::grouped(all.map(|w| (&(), w)))
                .iter()
                .map(|group| (kind(group.example), group.to_string()))
                .collect()
        } else {
            all.map(|w| (kind(w), w.message.clone())).collect()
        }
    }

    /// The report, as JSON or in Markdown.
    fn report(&self, markdown: bool) -> String {
        let program = self.lock();
        if !markdown {
            return program.report().to_json();
        }
        let mut report = program.report().clone();
        program.put_texts(&mut report);
        report.to_markdown()
    }
}

fn end(model: &Model, value: Value) -> End {
    let data = &model[value];
    let tensor = data.ty.as_ref().and_then(|ty| ty.as_tensor());
    let dims = tensor.and_then(|t| t.shape.as_ref());
    (
        data.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        tensor.map(|t| t.dtype.to_string()),
        dims.map(|dims| dims.iter().map(ToString::to_string).collect()),
    )
}
