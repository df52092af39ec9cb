//! Models in ONNX Runtime (feature `ort`): a session for a program, tensors in and out, values in between.

use crate::{Error, OnnxProgram, Weights, naming::find};
use half::{bf16, f16};
use ort::{
    environment::Environment,
    ep::ExecutionProviderDispatch,
    logging::LogLevel,
    session::{Session as OrtSession, SessionInputValue, builder::GraphOptimizationLevel},
    value::{DynValue, PrimitiveTensorElementType, Tensor as OrtTensor, TensorElementType},
};
use pt2onnx_ir::{Def, Model, Value};
use pt2onnx_tensor::{DType, Element, Tensor};
use std::{
    env::{
        self,
        consts::{DLL_PREFIX, DLL_SUFFIX},
    },
    fmt::Debug,
    sync::{Mutex, PoisonError},
};
use tempfile::TempDir;

/// Why a model does not run in ONNX Runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// ONNX Runtime is not there.
    #[error(
        "ONNX Runtime cannot be loaded from {path}: {reason}; set ORT_DYLIB_PATH to its library, version {} or newer",
        ort::MINOR_VERSION
    )]
    Library {
        /// Where it was looked for.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// ONNX Runtime does not take the model.
    #[error("ONNX Runtime refuses the model: {0}")]
    Load(#[source] ort::Error),
    /// More or fewer tensors than the model has inputs.
    #[error("{given} tensors for the {} inputs {}", .names.len(), .names.join(", "))]
    Inputs {
        /// How many were given.
        given: usize,
        /// The inputs.
        names: Vec<String>,
    },
    /// A tensor that cannot be passed on.
    #[error("input {name}: {reason}")]
    Input {
        /// The input.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// More or fewer tensors expected than the model has outputs.
    #[error("{given} tensors are expected of the {} outputs {}", .names.len(), .names.join(", "))]
    Outputs {
        /// How many were given.
        given: usize,
        /// The outputs.
        names: Vec<String>,
    },
    /// ONNX Runtime fails.
    #[error("ONNX Runtime cannot run the model: {0}")]
    Run(#[source] ort::Error),
    /// An output that is no tensor, or of a type that tensors cannot have here.
    #[error("output {name}: {reason}")]
    Output {
        /// The output.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no such value outside of the bodies of control flow.
    #[error(
        "the model computes no value {0}; only values outside of the bodies of If, Loop and Scan can be computed"
    )]
    NoValue(
        /// The name asked for.
        String,
    ),
    /// A folder for weights that do not fit into a model in memory.
    #[error("no temporary folder for the weights: {0}")]
    Folder(#[source] std::io::Error),
}

/// How ONNX Runtime runs a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Threads that work on one operator; 0 leaves it to the runtime.
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
    /// The runtime's own defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Threads that work on one operator; 0, the default, leaves it to the runtime.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Whether the runtime optimises the graph before it runs it; true by default.
    pub fn optimize(mut self, optimize: bool) -> Self {
        self.optimize = optimize;
        self
    }
}

/// A model loaded into ONNX Runtime.
pub struct Session {
    session: OrtSession,
    /// Where its weights are, if not in memory.
    _weights: Option<TempDir>,
}

/// ONNX Runtime, loaded from `ORT_DYLIB_PATH` or as the system finds it. A process has one environment: who makes sessions of
/// their own makes them in this. Its own messages are off: what goes wrong comes back as errors.
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
    /// Loads a model. Providers are tried in order, the CPU last.
    ///
    /// # Errors
    /// [`Error::Run`] where ONNX Runtime is not there or refuses the model, [`Error::Write`] where weights have no values.
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

    /// The outputs for these inputs, both in the graph's order.
    ///
    /// # Errors
    /// [`RunError`], of the kinds that say inputs, outputs or running.
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

fn to_ort(t: &Tensor) -> Result<DynValue, String> {
    fn of<T: Element + PrimitiveTensorElementType + Debug>(t: &Tensor) -> Result<DynValue, String> {
        let elements = t.to_vec::<T>().ok_or("it has no values")?;
        OrtTensor::from_array((t.shape().to_vec(), elements))
            .map(|v| v.into_dyn())
            .map_err(|e| e.to_string())
    }
    match t.dtype() {
        DType::F64 => of::<f64>(t),
        DType::F32 => of::<f32>(t),
        DType::F16 => of::<f16>(t),
        DType::BF16 => of::<bf16>(t),
        DType::I64 => of::<i64>(t),
        DType::I32 => of::<i32>(t),
        DType::I16 => of::<i16>(t),
        DType::I8 => of::<i8>(t),
        DType::U64 => of::<u64>(t),
        DType::U32 => of::<u32>(t),
        DType::U16 => of::<u16>(t),
        DType::U8 => of::<u8>(t),
        DType::Bool => of::<bool>(t),
        other => Err(format!("tensors of {other} cannot be passed")),
    }
}

fn from_ort(value: &DynValue) -> Result<Tensor, String> {
    fn of<T: Element + PrimitiveTensorElementType>(value: &DynValue) -> Result<Tensor, String> {
        let (shape, elements) = value.try_extract_tensor::<T>().map_err(|e| e.to_string())?;
        let shape = shape.iter().map(|&s| usize::try_from(s));
        let shape: Vec<usize> = shape.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        Tensor::from_slice(shape, elements).map_err(|e| e.to_string())
    }
    match value.dtype().tensor_type() {
        Some(TensorElementType::Float64) => of::<f64>(value),
        Some(TensorElementType::Float32) => of::<f32>(value),
        Some(TensorElementType::Float16) => of::<f16>(value),
        Some(TensorElementType::Bfloat16) => of::<bf16>(value),
        Some(TensorElementType::Int64) => of::<i64>(value),
        Some(TensorElementType::Int32) => of::<i32>(value),
        Some(TensorElementType::Int16) => of::<i16>(value),
        Some(TensorElementType::Int8) => of::<i8>(value),
        Some(TensorElementType::Uint64) => of::<u64>(value),
        Some(TensorElementType::Uint32) => of::<u32>(value),
        Some(TensorElementType::Uint16) => of::<u16>(value),
        Some(TensorElementType::Uint8) => of::<u8>(value),
        Some(TensorElementType::Bool) => of::<bool>(value),
        Some(other) => Err(format!("tensors of {other} cannot be read")),
        None => Err("it is no tensor".to_owned()),
    }
}

/// Running (feature `ort`). ONNX Runtime is loaded when it is first needed, from `ORT_DYLIB_PATH` or where the system looks.
impl OnnxProgram {
    /// Loads the model into ONNX Runtime and keeps it there for [`OnnxProgram::run`], in place of what was there. Providers
    /// are tried in order, the CPU last.
    ///
    /// # Errors
    /// [`Error::Run`]; [`Error::Write`] where weights have no values; [`Error::Verify`] after wrong changes.
    pub fn session(
        &mut self,
        options: &SessionOptions,
        providers: &[ExecutionProviderDispatch],
    ) -> Result<&mut Session, Error> {
        self.verified()?;
        self.session = None;
        let session = Session::new(self.model(), options, providers)?;
        Ok(self.session.insert(session))
    }

    /// The outputs for these inputs, both in the order of the model. Without [`OnnxProgram::session`] before, the CPU runs it.
    ///
    /// # Errors
    /// As [`OnnxProgram::session`] and [`Session::run`].
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        if self.session.is_none() {
            self.session(&SessionOptions::default(), &[])?;
        }
        match &mut self.session {
            Some(session) => Ok(session.run(inputs)?),
            None => Ok(Vec::new()),
        }
    }

    /// Gives back what the session holds, if there is one.
    pub fn release(&mut self) {
        self.session = None;
    }

    /// The values of these names, in their order, for these inputs: inputs, weights, outputs and whatever nodes outside of
    /// bodies compute.
    ///
    /// # Errors
    /// [`RunError::NoValue`], and as [`OnnxProgram::run`].
    pub fn compute_values<N: AsRef<str>>(
        &self,
        names: &[N],
        inputs: &[Tensor],
    ) -> Result<Vec<Tensor>, Error> {
        self.verified()?;
        let mut model = self.model().clone();
        let values = names.iter().map(|name| {
            let name = name.as_ref();
            let value = find(&model, name).filter(|v| outside_of_bodies(&model, *v));
            value.ok_or_else(|| RunError::NoValue(name.to_owned()))
        });
        let values = values.collect::<Result<Vec<Value>, _>>()?;
        let mut computed: Vec<Value> = Vec::new();
        for &value in &values {
            if matches!(model[value].def(), Def::Node(..)) && !computed.contains(&value) {
                computed.push(value);
            }
        }
        let ends: Vec<Value> = model.inputs().to_vec();
        if ends.len() != inputs.len() {
            let name = |v: &Value| model[*v].name.as_deref().unwrap_or_default().to_owned();
            let (given, names) = (inputs.len(), ends.iter().map(name).collect());
            return Err(RunError::Inputs { given, names }.into());
        }
        let mut results = Vec::new();
        if !computed.is_empty() {
            model.set_outputs(Model::MAIN, &computed);
            let mut session = Session::new(&model, &SessionOptions::default(), &[])?;
            results = session.run(inputs)?;
        }
        let known = ends.into_iter().zip(inputs.iter().cloned());
        let known: Vec<(Value, Tensor)> = known.chain(computed.into_iter().zip(results)).collect();
        let tensors = values.iter().map(|value| match model[*value].constant() {
            Some(weight) => Some(weight.clone()),
            None => known.iter().find(|(v, _)| v == value).map(|(_, t)| t.clone()),
        });
        // Every value is one of the three.
        Ok(tensors.flatten().collect())
    }
}

fn outside_of_bodies(model: &Model, value: Value) -> bool {
    match model[value].def() {
        Def::Node(node, _) => model[*node].region() == Model::MAIN,
        Def::Input(region, _) => *region == Model::MAIN,
        Def::Constant(_) => true,
    }
}
