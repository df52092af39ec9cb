//! Models loaded into ONNX Runtime.

use super::{
    RunError,
    tensors::{from_ort, to_ort},
};
use crate::{Error, Weights};
use ort::{
    environment::Environment,
    ep::ExecutionProviderDispatch,
    logging::LogLevel,
    session::{Session as OrtSession, SessionInputValue, builder::GraphOptimizationLevel},
};
use pt2onnx_ir::Model;
use pt2onnx_tensor::Tensor;
use std::{
    env::{
        self,
        consts::{DLL_PREFIX, DLL_SUFFIX},
    },
    fmt,
    sync::{Mutex, PoisonError},
};
use tempfile::TempDir;

/// How ONNX Runtime runs a model.
#[derive(Clone, Debug)]
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

    /// Sets the number of threads that work on one operator; 0, the default, leaves it to the runtime.
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

/// Loads ONNX Runtime from `ORT_DYLIB_PATH`, or from where the system finds it. A process has one environment: create
/// your own sessions in this one. Logging is off, as failures are returned as errors.
///
/// # Errors
/// [`RunError::Library`].
pub fn ort_environment() -> Result<Environment, RunError> {
    static ENVIRONMENT: Mutex<Option<Environment>> = Mutex::new(None);
    let mut known = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = &*known {
        return Ok(environment.clone());
    }
    let path = env::var("ORT_DYLIB_PATH")
        .ok()
        .filter(|p| !p.is_empty())
        .unwrap_or_else(|| format!("{DLL_PREFIX}onnxruntime{DLL_SUFFIX}"));
    let failed = |reason: String| RunError::Library { path: path.clone(), reason };
    let builder = ort::init_from(&path).map_err(|e| failed(e.to_string()))?;
    let environment = builder.build().map_err(|e| failed(e.to_string()))?;
    environment.set_log_level(LogLevel::Fatal);
    Ok(known.insert(environment).clone())
}

impl Session {
    /// Loads a model. Execution providers are tried in order, the CPU last.
    ///
    /// # Errors
    /// [`Error::Run`] if ONNX Runtime cannot be loaded or refuses the model; [`Error::Write`] if weights have no
    /// values.
    pub fn new(
        model: &Model,
        options: &SessionOptions,
        providers: &[ExecutionProviderDispatch],
    ) -> Result<Self, Error> {
        let load = |e: ort::Error| RunError::Load(e);
        let configure = || -> Result<_, RunError> {
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
        };
        let mut builder = configure()?;
        match pt2onnx_writer::to_bytes(model) {
            Ok(bytes) => Ok(Self {
                session: builder.commit_from_memory(&bytes).map_err(load)?,
                _weights: None,
            }),
            Err(pt2onnx_writer::Error::TooLarge(_)) => {
                let folder = tempfile::tempdir().map_err(RunError::Folder)?;
                let path = folder.path().join("model.onnx");
                pt2onnx_writer::save(model, &path, Weights::External)?;
                Ok(Self {
                    session: builder.commit_from_file(path).map_err(load)?,
                    _weights: Some(folder),
                })
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Names of the inputs, in the graph's order.
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        self.session.inputs().iter().map(|i| i.name())
    }

    /// Names of the outputs, in the graph's order.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        self.session.outputs().iter().map(|o| o.name())
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
}
