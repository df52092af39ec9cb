//! Options that choose among what the library has, with the help text of each.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Weights {
    /// Into the model file; above 2 GiB, or with a name or size for data files, external
    #[default]
    Auto,
    /// Into the model file
    Embed,
    /// Into a file of their own, which must stay beside OUT.onnx
    External,
    /// Nowhere: OUT.onnx refers to the archive, which must stay where it is, in the same folder or below
    Link,
    /// Nowhere: `pt2onnx apply-weights` completes the model
    None,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Place {
    /// Into the model file; above 2 GiB, or with a name or size for data files, external
    #[default]
    Auto,
    /// Into the model file
    Embed,
    /// Into a file of their own, which must stay beside OUT.onnx
    External,
    /// Nowhere: OUT.onnx refers to the files given, which must stay where they are, in the same folder or below
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
    /// They are lost, with a warning for each
    #[default]
    Drop,
    /// They become outputs, named as the buffer (NAME.next for inputs)
    Outputs,
    /// Buffers become inputs NAME and outputs NAME.next, so that a caller can loop
    Pairs,
    /// They are an error
    Error,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Operators {
    /// They are errors, all of which are listed
    #[default]
    Onnx,
    /// They become nodes of their own domain; ATen's of org.pytorch.aten
    Fallthrough,
    /// ATen's become nodes of org.pytorch.aten, others are errors
    AtenFallback,
    /// All ATen ops become nodes of org.pytorch.aten, also those that can be translated
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
    /// All that torch.onnx.export tells: modules, FX nodes, stack traces, the graph's signature
    #[default]
    Full,
    /// Modules and names, no stack traces and no text of FX nodes
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
    /// The standard; a warning says what ONNX Runtime has no kernel for
    #[default]
    Standard,
    /// ONNX Runtime: as ort-cpu, with its own operator for attention, which takes fewer nodes
    Ort,
    /// ONNX Runtime on the CPU, in ONNX's operators: casts where it has no kernel for an element type
    OrtCpu,
    /// NVIDIA TensorRT: what it cannot run is an error
    #[value(name = "tensorrt")]
    TensorRt,
    /// tract: what it cannot run is an error
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
