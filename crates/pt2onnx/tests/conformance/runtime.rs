//! ONNX Runtime, for running a model on tensors.

use half::{bf16, f16};
use ort::{
    environment::Environment,
    logging::LogLevel,
    session::{Session as OrtSession, SessionInputValue},
    value::{DynValue, PrimitiveTensorElementType, Tensor as OrtTensor, TensorElementType},
};
use pt2onnx_tensor::{DType, Element, Tensor};
use std::{fmt::Debug, sync::OnceLock};

/// A loaded model.
pub struct Session {
    session: OrtSession,
}

/// One for the process; ONNX Runtime's own warnings stay out of the test's output.
fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let environment = ort::init()
            .build()
            .expect("ONNX Runtime loads: run `cargo xtask test`");
        environment.set_log_level(LogLevel::Fatal);
        environment
    })
}

impl Session {
    /// Loads a model from its bytes.
    pub fn new(model: &[u8]) -> ort::Result<Self> {
        let builder = OrtSession::builder(environment())?;
        let mut builder = builder.with_intra_threads(1)?;
        Ok(Self {
            session: builder.commit_from_memory(model)?,
        })
    }

    /// Names of the graph's inputs.
    pub fn input_names(&self) -> Vec<String> {
        self.session
            .inputs()
            .iter()
            .map(|i| i.name().to_owned())
            .collect()
    }

    /// The outputs for these inputs, both in the graph's order.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let names = self.input_names();
        if names.len() != inputs.len() {
            return Err(format!(
                "{} graph inputs, the program has {}",
                names.len(),
                inputs.len()
            ));
        }
        let mut fed: Vec<(String, SessionInputValue)> = Vec::new();
        for (name, tensor) in names.into_iter().zip(inputs) {
            fed.push((name, to_ort(tensor)?.into()));
        }
        let outputs = self.session.run(fed).map_err(|e| e.to_string())?;
        outputs.values().map(|value| from_ort(&value)).collect()
    }
}

fn to_ort(t: &Tensor) -> Result<DynValue, String> {
    fn of<T: Element + PrimitiveTensorElementType + Debug>(t: &Tensor) -> Result<DynValue, String> {
        let elements = t.to_vec::<T>().ok_or("no values")?;
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
        other => Err(format!("no inputs of type {other}")),
    }
}

fn from_ort(value: &DynValue) -> Result<Tensor, String> {
    fn of<T: Element + PrimitiveTensorElementType>(value: &DynValue) -> Result<Tensor, String> {
        let (shape, elements) = value.try_extract_tensor::<T>().map_err(|e| e.to_string())?;
        let shape: Vec<usize> = shape.iter().map(|&s| s as usize).collect();
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
        other => Err(format!("no outputs of type {other:?}")),
    }
}
