//! Flags that choose one of several values, with a help text for each value.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pt2onnx::{DefaultDtype, Detail, Operators, State, Target, Training, Weights, compress};
use std::str::FromStr;

/// Takes these values, given by name and help text.
fn one_of<T>(values: &[(&'static str, &'static str)]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: std::error::Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    let values = values.iter().map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

pub fn weights() -> impl TypedValueParser<Value = Weights> {
    one_of(&[
        (
            "auto",
            "Embed them; above 2 GiB, or if a name or size of data files is given, as `external`",
        ),
        ("embed", "Write them into the model file"),
        ("external", "Write them into a data file, which must stay beside OUT.onnx"),
        (
            "link",
            "Write none: OUT.onnx refers to the archive, which must stay in the same folder or below",
        ),
        ("none", "Write none: `pt2onnx apply-weights` adds them later"),
    ])
}

/// Where the weights of a model that exists are written.
pub fn weights_of_models() -> impl TypedValueParser<Value = Weights> {
    one_of(&[
        (
            "auto",
            "Embed them; above 2 GiB, or if a name or size of data files is given, as `external`",
        ),
        ("embed", "Write them into the model file"),
        ("external", "Write them into a data file, which must stay beside OUT.onnx"),
        (
            "link",
            "Write none: OUT.onnx refers to the given files, which must stay in the same folder or below. Transposing weights is left to the runtime",
        ),
    ])
}

pub fn state() -> impl TypedValueParser<Value = State> {
    one_of(&[
        ("drop", "Drop them, with a warning"),
        ("outputs", "Make them outputs with the name of the buffer (NAME.next for inputs)"),
        ("pairs", "Make buffers inputs NAME and outputs NAME.next, so that a caller can loop"),
        ("error", "Report an error"),
    ])
}

pub fn training() -> impl TypedValueParser<Value = Training> {
    one_of(&[
        ("preserve", "Let them behave the same in the model, with a warning"),
        (
            "eval",
            "Let them behave as after `model.eval()`: dropout keeps everything, norms use running statistics",
        ),
        ("error", "Report an error that lists all of them"),
    ])
}

pub fn operators() -> impl TypedValueParser<Value = Operators> {
    one_of(&[
        ("onnx", "Report an error that lists all of them"),
        ("fallthrough", "Make them nodes of their own domain, those of ATen of org.pytorch.aten"),
        (
            "aten-fallback",
            "Make those of ATen nodes of org.pytorch.aten; report an error for others",
        ),
        ("aten", "Make all ATen ops nodes of org.pytorch.aten, even those that have a translation"),
    ])
}

pub fn metadata() -> impl TypedValueParser<Value = Detail> {
    one_of(&[
        ("full", "As torch.onnx.export: modules, FX nodes, stack traces, the graph's signature"),
        ("basic", "Modules and names, without stack traces and FX nodes"),
        ("none", "Nothing"),
    ])
}

pub fn target() -> impl TypedValueParser<Value = Target> {
    one_of(&[
        ("standard", "Any runtime; a warning tells which operators ONNX Runtime has no kernel for"),
        ("ort", "ONNX Runtime: as ort-cpu, and with its own attention operator"),
        (
            "ort-cpu",
            "ONNX Runtime on the CPU: with casts where it has no kernel for an element type",
        ),
        ("tensorrt", "NVIDIA TensorRT: report an error for operators that it cannot run"),
        ("tract", "tract: report an error for operators that it cannot run"),
    ])
}

pub fn default_dtype() -> impl TypedValueParser<Value = DefaultDtype> {
    one_of(&[
        ("float32", "That of a new process"),
        ("float64", "Double precision"),
        ("float16", "IEEE's half"),
        ("bfloat16", "The upper half of a float32"),
    ])
}

pub fn cast_weights() -> impl TypedValueParser<Value = compress::CastWeights> {
    one_of(&[("float16", "IEEE's half"), ("bfloat16", "The upper half of a float32")])
}

pub fn precision() -> impl TypedValueParser<Value = compress::Precision> {
    one_of(&[
        ("keep", "That of the program"),
        ("float16", "float16, but for operators that need float32"),
    ])
}

pub fn quantize() -> impl TypedValueParser<Value = compress::Quantize> {
    one_of(&[
        ("int8", "8 bits, restored by DequantizeLinear"),
        (
            "int4",
            "4 bits, restored by DequantizeLinear; for `--target ort`, MatMulNBits and GatherBlockQuantized",
        ),
        ("float8", "float8 (E4M3FN), restored by DequantizeLinear"),
        ("dynamic-int8", "8 bits, and products of integers"),
        (
            "static-int8",
            "8 bits, also for activations, with scales from samples (`--calibration-data`)",
        ),
    ])
}

pub fn calibration() -> impl TypedValueParser<Value = compress::Calibration> {
    one_of(&[
        ("min-max", "From the smallest to the largest number"),
        ("percentile", "Without the 0.005 % of the numbers at each end"),
        ("entropy", "So that the codes tell most about the distribution of the numbers"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that a flag takes are those of the library.
    fn all<T: FromStr<Err: std::fmt::Display>>(flag: impl TypedValueParser<Value = T>) {
        let known = "?".parse::<T>().err().unwrap().to_string();
        let names = flag.possible_values().unwrap().map(|value| format!("`{}`", value.get_name()));
        let names: Vec<_> = names.collect();
        assert_eq!(
            known.split("expected ").nth(1).unwrap().replace("one of ", "").replace(" or ", ", "),
            names.join(", ")
        );
    }

    #[test]
    fn each_value_of_the_library_can_be_given() {
        all(weights());
        all(state());
        all(training());
        all(operators());
        all(metadata());
        all(target());
        all(default_dtype());
        all(cast_weights());
        all(quantize());
        all(calibration());
    }
}
