//! Flags that choose one of several values, with a help text for each value.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Weights {
    /// Embed them; above 2 GiB, or if a name or size of data files is given, as `external`
    #[default]
    Auto,
    /// Write them into the model file
    Embed,
    /// Write them into a data file, which must stay beside OUT.onnx
    External,
    /// Write none: OUT.onnx refers to the archive, which must stay in the same folder or below
    Link,
    /// Write none: `pt2onnx apply-weights` adds them later
    None,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Place {
    /// Embed them; above 2 GiB, or if a name or size of data files is given, as `external`
    #[default]
    Auto,
    /// Write them into the model file
    Embed,
    /// Write them into a data file, which must stay beside OUT.onnx
    External,
    /// Write none: OUT.onnx refers to the given files, which must stay in the same folder or below. Transposing weights is left to the runtime
    Link,
}

impl From<Place> for pt2onnx::Weights {
    fn from(place: Place) -> Self {
        match place {
            Place::Auto => Self::Auto,
            Place::Embed => Self::Embed,
            Place::External => Self::External,
            Place::Link => Self::Link,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum State {
    /// Drop them, with a warning
    #[default]
    Drop,
    /// Make them outputs with the name of the buffer (NAME.next for inputs)
    Outputs,
    /// Make buffers inputs NAME and outputs NAME.next, so that a caller can loop
    Pairs,
    /// Report an error
    Error,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Training {
    /// Let them behave the same in the model, with a warning
    #[default]
    Preserve,
    /// Let them behave as after `model.eval()`: dropout keeps everything, norms use running statistics
    Eval,
    /// Report an error that lists all of them
    Error,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Operators {
    /// Report an error that lists all of them
    #[default]
    Onnx,
    /// Make them nodes of their own domain, those of ATen of org.pytorch.aten
    Fallthrough,
    /// Make those of ATen nodes of org.pytorch.aten; report an error for others
    AtenFallback,
    /// Make all ATen ops nodes of org.pytorch.aten, even those that have a translation
    Aten,
}

impl From<Operators> for pt2onnx::Operators {
    fn from(operators: Operators) -> Self {
        match operators {
            Operators::Onnx => Self::Onnx,
            Operators::Fallthrough => Self::Fallthrough,
            Operators::AtenFallback => Self::AtenFallback,
            Operators::Aten => Self::Aten,
        }
    }
}

impl From<Training> for pt2onnx::Training {
    fn from(training: Training) -> Self {
        match training {
            Training::Preserve => Self::Preserve,
            Training::Eval => Self::Eval,
            Training::Error => Self::Error,
        }
    }
}

impl From<State> for pt2onnx::State {
    fn from(state: State) -> Self {
        match state {
            State::Drop => Self::Drop,
            State::Outputs => Self::Outputs,
            State::Pairs => Self::Pairs,
            State::Error => Self::Error,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Metadata {
    /// As torch.onnx.export: modules, FX nodes, stack traces, the graph's signature
    #[default]
    Full,
    /// Modules and names, without stack traces and FX nodes
    Basic,
    /// Nothing
    None,
}

impl From<Metadata> for pt2onnx::Detail {
    fn from(metadata: Metadata) -> Self {
        match metadata {
            Metadata::Full => Self::Full,
            Metadata::Basic => Self::Basic,
            Metadata::None => Self::None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Target {
    /// Any runtime; a warning tells which operators ONNX Runtime has no kernel for
    #[default]
    Standard,
    /// ONNX Runtime: as ort-cpu, and with its own attention operator
    Ort,
    /// ONNX Runtime on the CPU: with casts where it has no kernel for an element type
    OrtCpu,
    /// NVIDIA TensorRT: report an error for operators that it cannot run
    #[value(name = "tensorrt")]
    TensorRt,
    /// tract: report an error for operators that it cannot run
    Tract,
}

impl From<Target> for pt2onnx::Target {
    fn from(target: Target) -> Self {
        match target {
            Target::Standard => Self::Standard,
            Target::Ort => Self::Ort,
            Target::OrtCpu => Self::OrtCpu,
            Target::TensorRt => Self::TensorRt,
            Target::Tract => Self::Tract,
        }
    }
}

impl From<Weights> for pt2onnx::Weights {
    fn from(weights: Weights) -> Self {
        match weights {
            Weights::Auto => Self::Auto,
            Weights::Embed => Self::Embed,
            Weights::External => Self::External,
            Weights::Link => Self::Link,
            Weights::None => Self::None,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DefaultDtype {
    /// That of a new process
    Float32,
    /// Double precision
    Float64,
    /// IEEE's half
    Float16,
    /// The upper half of a float32
    Bfloat16,
}

impl From<DefaultDtype> for pt2onnx::DefaultDtype {
    fn from(dtype: DefaultDtype) -> Self {
        match dtype {
            DefaultDtype::Float32 => Self::Float32,
            DefaultDtype::Float64 => Self::Float64,
            DefaultDtype::Float16 => Self::Float16,
            DefaultDtype::Bfloat16 => Self::Bfloat16,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CastWeights {
    /// IEEE's half
    Float16,
    /// The upper half of a float32
    Bfloat16,
}

impl From<CastWeights> for pt2onnx::compress::CastWeights {
    fn from(to: CastWeights) -> Self {
        match to {
            CastWeights::Float16 => Self::Float16,
            CastWeights::Bfloat16 => Self::Bfloat16,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Precision {
    /// That of the program
    #[default]
    Keep,
    /// float16, but for operators that need float32
    Float16,
}

impl From<Precision> for pt2onnx::compress::Precision {
    fn from(to: Precision) -> Self {
        match to {
            Precision::Keep => Self::Keep,
            Precision::Float16 => Self::Float16,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Quantize {
    /// 8 bits, restored by DequantizeLinear
    Int8,
    /// 4 bits, restored by DequantizeLinear; for `--target ort`, MatMulNBits and GatherBlockQuantized
    Int4,
    /// float8 (E4M3FN), restored by DequantizeLinear
    Float8,
    /// 8 bits, and products of integers
    DynamicInt8,
    /// 8 bits, also for activations, with scales from samples (`--calibrate`)
    StaticInt8,
}

impl From<Quantize> for pt2onnx::compress::Quantize {
    fn from(to: Quantize) -> Self {
        match to {
            Quantize::Int8 => Self::Int8,
            Quantize::Int4 => Self::Int4,
            Quantize::Float8 => Self::Float8,
            Quantize::DynamicInt8 => Self::DynamicInt8,
            Quantize::StaticInt8 => Self::StaticInt8,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Calibration {
    /// From the smallest to the largest number
    MinMax,
    /// Without the 0.005 % of the numbers at each end
    Percentile,
    /// So that the codes tell most about the distribution of the numbers
    Entropy,
}

impl From<Calibration> for pt2onnx::compress::Calibration {
    fn from(method: Calibration) -> Self {
        match method {
            Calibration::MinMax => Self::MinMax,
            Calibration::Percentile => Self::Percentile,
            Calibration::Entropy => Self::Entropy,
        }
    }
}
