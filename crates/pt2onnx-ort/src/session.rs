//! Models loaded into ONNX Runtime.

use crate::{
    error::RunError,
    library::ort_environment,
    tensors::{element_type, from_ort, to_ort},
};
use indexmap::IndexMap;
use ort::{
    ep::ExecutionProviderDispatch,
    session::{
        Session as OrtSession, SessionInputValue,
        builder::{GraphOptimizationLevel, SessionBuilder},
    },
    value::ValueType,
};
use pt2onnx_ir::Model;
use pt2onnx_tensor::{DType, Tensor};
use pt2onnx_writer::{SaveOptions, Weights};
use std::{fmt, path::Path};
use tempfile::TempDir;

/// Options of a [`Session`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Number of threads that work on one operator; 0 leaves it to the runtime.
    pub threads: usize,
    /// Whether the runtime optimises the graph before it runs it.
    pub optimize: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { threads: 0, optimize: true }
    }
}

impl SessionOptions {
    /// The defaults of the runtime.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of threads that work on one operator; 0, the default, leaves it to the
    /// runtime.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets whether the runtime optimises the graph before it runs it; true by default.
    pub fn optimize(mut self, optimize: bool) -> Self {
        self.optimize = optimize;
        self
    }
}

/// A model loaded into ONNX Runtime.
pub struct Session {
    session: OrtSession,
    /// The folder of its weights, if they are not in memory.
    _weights: Option<TempDir>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inputs, outputs): (Vec<_>, Vec<_>) =
            (self.input_names().collect(), self.output_names().collect());
        f.debug_struct("Session")
            .field("inputs", &inputs)
            .field("outputs", &outputs)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Loads a model. Execution providers are tried in order, the CPU last.
    ///
    /// # Errors
    /// [`RunError::Library`], [`RunError::Load`], [`RunError::IrVersion`]; [`RunError::Write`] if
    /// weights have no values.
    pub fn new(
        model: &Model,
        options: &SessionOptions,
        providers: &[ExecutionProviderDispatch],
    ) -> Result<Self, RunError> {
        let load = RunError::refused;
        let mut builder = configured(options, providers)?;
        match pt2onnx_writer::to_bytes_unverified(model) {
            Ok(bytes) => Ok(Self {
                session: builder.commit_from_memory(&bytes).map_err(load)?,
                _weights: None,
            }),
            Err(pt2onnx_writer::Error::TooLarge(_)) => {
                let folder = tempfile::tempdir().map_err(RunError::Folder)?;
                let path = folder.path().join("model.onnx");
                let options = SaveOptions { verify: false, ..Weights::External.into() };
                pt2onnx_writer::save(model, &path, options)?;
                Ok(Self {
                    session: builder.commit_from_file(path).map_err(load)?,
                    _weights: Some(folder),
                })
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Loads the model of a file, unchanged. Execution providers are tried in order, the CPU last.
    ///
    /// # Errors
    /// [`RunError::Library`], [`RunError::Load`], [`RunError::IrVersion`].
    pub fn open(
        path: impl AsRef<Path>,
        options: &SessionOptions,
        providers: &[ExecutionProviderDispatch],
    ) -> Result<Self, RunError> {
        let session = configured(options, providers)?.commit_from_file(path);
        Ok(session.map_err(RunError::refused)?.into())
    }

    /// The types of the inputs, in the graph's order.
    ///
    /// # Errors
    /// [`RunError::Input`] if one is not a tensor, or of a type that cannot be passed.
    pub fn inputs(&self) -> Result<Vec<InputType>, RunError> {
        let one = |input: &ort::value::Outlet| {
            let name = input.name().to_owned();
            let found = match input.dtype() {
                ValueType::Tensor { ty, shape, dimension_symbols } => {
                    let dims = shape.iter().zip(dimension_symbols.iter());
                    let dims = dims.map(|(&size, symbol)| match usize::try_from(size) {
                        Ok(size) => Dim::Size(size),
                        Err(_) => Dim::Symbol(symbol.clone()),
                    });
                    element_type(*ty).map(|dtype| (dtype, dims.collect()))
                }
                other => Err(format!("it takes {other}, which is no tensor")),
            };
            match found {
                Ok((dtype, dims)) => Ok(InputType { name, dtype, dims }),
                Err(reason) => Err(RunError::Input { name, reason }),
            }
        };
        self.session.inputs().iter().map(one).collect()
    }

    /// Names of the inputs, in the graph's order.
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        self.session.inputs().iter().map(|i| i.name())
    }

    /// Names of the outputs, in the graph's order.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        self.session.outputs().iter().map(|o| o.name())
    }

    /// Whether each output can be read, in the graph's order: it is a tensor, and not one of texts.
    pub fn readable_outputs(&self) -> impl Iterator<Item = bool> {
        self.session.outputs().iter().map(|output| match output.dtype() {
            ValueType::Tensor { ty, .. } => {
                element_type(*ty).is_ok_and(|dtype| dtype != DType::String)
            }
            _ => false,
        })
    }

    /// Runs the model. Inputs and outputs are in the graph's order.
    ///
    /// # Errors
    /// [`RunError::Inputs`], [`RunError::Input`], [`RunError::Run`] and [`RunError::Output`].
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, RunError> {
        let names: Vec<String> = self.input_names().map(str::to_owned).collect();
        if names.len() != inputs.len() {
            let given = inputs.len();
            return Err(RunError::Inputs { given, names });
        }
        let outputs = self.session.outputs();
        if let Some(output) = outputs.iter().find(|o| matches!(o.dtype(), ValueType::Optional(_))) {
            let reason = "it may be None, which `ort` has no value for; run the model in Python";
            return Err(RunError::Output { name: output.name().to_owned(), reason: reason.into() });
        }
        let mut fed: Vec<(String, SessionInputValue)> = Vec::new();
        for (name, tensor) in names.into_iter().zip(inputs) {
            let value =
                to_ort(tensor).map_err(|reason| RunError::Input { name: name.clone(), reason })?;
            fed.push((name, value.into()));
        }
        let outputs = self.session.run(fed).map_err(RunError::Run)?;
        let outputs = outputs.iter().map(|(name, value)| {
            from_ort(&value).map_err(|reason| RunError::Output { name: name.to_owned(), reason })
        });
        outputs.collect()
    }

    /// Runs the model with inputs by name. Returns the outputs by name, in the graph's order.
    ///
    /// # Errors
    /// Those of [`run`](Self::run); [`RunError::Missing`] for an input that is not given,
    /// [`RunError::Unknown`] for one that the model does not have.
    pub fn run_named(
        &mut self,
        inputs: &IndexMap<String, Tensor>,
    ) -> Result<IndexMap<String, Tensor>, RunError> {
        let names: Vec<String> = self.input_names().map(str::to_owned).collect();
        if let Some(name) = inputs.keys().find(|name| !names.contains(name)) {
            return Err(RunError::Unknown { name: name.clone(), names });
        }
        let given = names.iter().map(|name| {
            let tensor = inputs.get(name).cloned();
            tensor.ok_or_else(|| RunError::Missing { name: name.clone() })
        });
        let results = self.run(&given.collect::<Result<Vec<_>, _>>()?)?;
        Ok(self.output_names().map(str::to_owned).zip(results).collect())
    }
}

/// A session of `ort`, made in [`ort_environment`].
impl From<OrtSession> for Session {
    fn from(session: OrtSession) -> Self {
        Self { session, _weights: None }
    }
}

/// The type of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputType {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its dimensions.
    pub dims: Vec<Dim>,
}

/// A dimension of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A fixed size.
    Size(usize),
    /// A size that inputs choose, by its name; without a name, it is empty.
    Symbol(String),
}

fn configured(
    options: &SessionOptions,
    providers: &[ExecutionProviderDispatch],
) -> Result<SessionBuilder, RunError> {
    let load = RunError::refused;
    let mut builder = OrtSession::builder(&ort_environment()?).map_err(load)?;
    if options.threads > 0 {
        let set = builder.with_intra_threads(options.threads);
        builder = set.map_err(|e| load(e.into()))?;
    }
    if !options.optimize {
        let set = builder.with_optimization_level(GraphOptimizationLevel::Disable);
        builder = set.map_err(|e| load(e.into()))?;
    }
    let set = builder.with_execution_providers(providers);
    set.map_err(|e| load(e.into()))
}
