//! The flags of `run` and `verify`: where inputs come from, how they are compared.

use super::values;
use clap::Args;
use std::path::PathBuf;

/// Where inputs come from, and which library runs the model.
#[derive(Debug, Args)]
pub struct Running {
    /// Inputs by name (or as input.0, input.1, ... or arr_0, arr_1, ...): a .npz, .npy or
    /// .safetensors file, or a dict of torch.save
    #[arg(long, value_name = "FILE", help_heading = "Inputs")]
    pub inputs: Option<PathBuf>,
    /// The archive that the model was made from: without --inputs, its sample inputs are used
    #[arg(long, value_name = "MODEL.pt2", help_heading = "Inputs")]
    pub archive: Option<PathBuf>,
    /// For random inputs, the size of a dynamic dimension: its name, or an axis such as `x.0`; can
    /// be given several times [default: 2]
    #[arg(long, alias = "fix", value_name = "DIM=SIZE", value_parser = values::pair::<i64>, allow_negative_numbers = true, conflicts_with_all = ["inputs", "archive"], help_heading = "Inputs")]
    pub fix_dim: Vec<(String, i64)>,
    /// The seed of random inputs, which are used without --inputs and --archive
    #[arg(long, value_name = "N", default_value_t, value_parser = values::input_seed, allow_negative_numbers = true, conflicts_with_all = ["inputs", "archive"], help_heading = "Inputs")]
    pub seed: u64,
    /// The library of ONNX Runtime [default: ORT_DYLIB_PATH, the Python package onnxruntime, or
    /// where the system finds it]
    #[arg(long, value_name = "libonnxruntime.so", help_heading = "Runtime")]
    pub ort: Option<PathBuf>,
    /// Print JSON
    #[arg(long, help_heading = "Diagnostics")]
    pub json: bool,
}

/// The flags of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The model
    #[arg(value_name = "MODEL.onnx")]
    pub model: PathBuf,
    /// Write the outputs by name
    #[arg(short, long, value_name = "OUT.npz|OUT.safetensors", value_parser = values::arrays, help_heading = "Inputs")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub running: Running,
}

/// The flags of `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The model
    #[arg(value_name = "MODEL.onnx")]
    pub model: PathBuf,
    /// The expected outputs by name (or as output.0, ... or arr_0, ...), in the formats of --inputs
    #[arg(
        long,
        value_name = "FILE",
        requires = "inputs",
        conflicts_with = "against",
        help_heading = "Inputs"
    )]
    pub outputs: Option<PathBuf>,
    /// A model that computes what is expected from the same inputs
    #[arg(long, value_name = "OTHER.onnx", help_heading = "Inputs")]
    pub against: Option<PathBuf>,
    /// Compare all values that have the same name in both models, and show the first that differs
    #[arg(long, conflicts_with = "outputs", help_heading = "Comparison")]
    pub each: bool,
    /// Relative tolerance [default: by element type, 1e-3 for float32]
    #[arg(long, value_name = "X", value_parser = values::tolerance, allow_negative_numbers = true, help_heading = "Comparison")]
    pub rtol: Option<f64>,
    /// Absolute tolerance [default: by element type, 1e-4 for float32]
    #[arg(long, value_name = "X", value_parser = values::tolerance, allow_negative_numbers = true, help_heading = "Comparison")]
    pub atol: Option<f64>,
    #[command(flatten)]
    pub running: Running,
}
