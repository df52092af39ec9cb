"""Options as keywords. `cargo xtask regen-options` generates this file from Rust's declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal, TypedDict

Path = str | PathLike[str]


class SaveOptions(TypedDict, total=False):
    """How a model is written."""

    weights: Literal["auto", "embed", "external", "link", "none"] | None
    """Where to write weights. Default: auto."""
    weights_file: str | None
    """Name of the file with external weights, beside the model. Default: OUT.onnx.data."""
    external_threshold: int | str | None
    """Weights of fewer bytes stay in the model file. Default: 1024."""
    shard_size: int | str | None
    """Largest size of a data file (4096, 500MB, 2GiB), above which there are several. Default:
    no limit."""
    alignment: int | str | None
    """External weights start at multiples of this; Windows can map them at 64KiB. Default:
    4096."""
    allow_external_paths: bool | None
    """Let ``link`` refer to files outside the model's folder, which many runtimes refuse."""


class RewriteOptions(TypedDict, total=False):
    """Options that ``export`` and ``optimize`` share."""

    opset: int | None
    """Opset of the ONNX operators, 7 to 26. Default: 20; for ``optimize``, that of the model."""
    target: (
        Literal[
            "standard",
            "ort",
            "ort-cpu",
            "ort-genai",
            "tensorrt",
            "tract",
            "portable",
            "openvino",
            "rten",
            "mnn",
            "opencv",
            "iree",
            "tflite",
            "reference",
            "web",
            "coreml",
        ]
        | None
    )
    """The runtime to write for. Default: standard."""
    max_positions: int | None
    """The number of tokens of the longest sequence that a language model is run for: the target
    ``ort-genai`` then keeps the angles of so many positions in the model. Default: angles are
    computed."""
    skip_pass: str | Sequence[str] | None
    """Leave out passes that ``pt2onnx passes`` lists."""
    rules: Path | Sequence[Path] | None
    """Apply the rewriting rules of a file, in ONNX's textual syntax, at every level."""
    fold_limit: int | str | None
    """Fold constants of up to this many bytes, ``optimize`` those of up to 128 times as many;
    larger ones only if the file gets no larger. Default: 8192."""
    dedup_weights: bool | None
    """Write weights of equal content once; ``apply-weights`` then knows them by the name of the
    first."""
    cast_weights: Literal["float16", "bfloat16"] | None
    """Store weights in a smaller type, with a Cast after each."""
    precision: Literal["keep", "float16"] | None
    """Compute in another element type; inputs and outputs keep theirs. Default: keep."""
    cast_io: bool | None
    """Give inputs and outputs the element type of ``precision``, too."""
    quantize: Literal["int8", "int4", "float8", "dynamic-int8", "static-int8"] | None
    """Quantise weights."""
    block_size: int | None
    """Elements that share a scale: 16, 32, 64, 128 or 256. Default: those of a channel."""
    mixed: bool | None
    """Keep 8 bits in ``int4`` for weights that 4 bits harm most: those of the last products,
    and those with a few large numbers."""
    zero_points: bool | None
    """Give quantised weights zero points."""
    signed: bool | None
    """Give weights of ``dynamic-int8`` and ``static-int8`` a sign: faster on processors with
    VNNI, wrong on older x86 ones."""
    accuracy_level: int | None
    """``accuracy_level`` of ONNX Runtime's MatMulNBits, 0 to 4; 4 computes with integers of 8
    bits. Default: 4 for ``ort-genai``, else ONNX Runtime's."""
    compress_include: str | Sequence[str] | None
    """Compress only these weights, by name or by operator: ``encoder.*``, ``MatMul``."""
    compress_exclude: str | Sequence[str] | None
    """Do not compress these weights, by name or by operator."""
    min_elements: int | None
    """Do not compress weights of fewer elements. Default: 1024."""
    calibration_data: Path | Sequence[Path] | None
    """Samples of the inputs, as arrays by their names: for ``static-int8``, and for ``int4``,
    whose weights then make up for the errors of others (GPTQ)."""
    calibration_method: Literal["min-max", "percentile", "entropy"] | None
    """How the ranges of activations are found from samples. Default: min-max."""
    inline: bool | None
    """Replace calls of functions by their bodies."""
    kv_names: str | None
    """Names of keys and values in caches. Default: with ``from-tree``,
    past_key_values.{layer}.{part},present.{layer}.{part}."""
    rename: Mapping[str, str] | None
    """Rename a value of the model."""
    rename_dim: Mapping[str, str] | None
    """Name a dynamic dimension, by its symbol or an axis: ``s77=batch``, ``x.0=batch``."""
    fix_dim: Mapping[str, int] | None
    """Make a dynamic dimension static: ``batch=1``, ``s77=1``, ``x.0=1``."""
    input_shape: Mapping[str, str] | None
    """Sizes of all dimensions of an input: ``x=1,3,h,?``. A name names the dimension, ``?``
    keeps it."""
    warnings_as_errors: bool | None
    """If there are warnings, write nothing and report them as an error."""


class OptimizeOptions(RewriteOptions, SaveOptions, total=False):
    """The options of ``optimize``."""

    optimize: Literal[0, 1, 2] | bool | None
    """How far to optimise: 0 not at all, 1 fold and simplify, 2 also fuse. Default: 2."""
    input_names: Sequence[str] | Literal["from-tree"] | None
    """Names of the inputs, in order; ``from-tree`` uses the parameters of ``forward`` and the
    keys of dicts."""
    output_names: Sequence[str] | Literal["from-tree"] | None
    """Names of the outputs, in order; ``from-tree`` uses the keys of the dict or dataclass that
    the program returns."""
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None
    """Name axes as torch.onnx.export does: ``{"x": {"0": "batch"}}``, or ``{"x": [0]}`` for
    ``x_dynamic_axes_1``."""
    keep_initializers_as_inputs: bool | None
    """Make weights inputs of the model as well, so that callers can pass other values.
    ``optimize`` keeps those that are inputs, and otherwise makes them constants if all are."""


class ExportOptions(RewriteOptions, SaveOptions, total=False):
    """The options of ``export``, without its parameters."""

    input: Mapping[str, str] | None
    """TorchScript: the type or value of an input, by name, position or path:
    ``x=float32[batch,3,224,224]``, ``1=16000``, ``images.0=none``. Default: those of the trace."""
    method: str | None
    """TorchScript: the method to convert. Default: forward."""
    default_dtype: Literal["float32", "float64", "float16", "bfloat16"] | None
    """TorchScript: the type of floats that have no other, such as quotients of integers:
    ``torch.get_default_dtype()``. Default: float32."""
    mutations: Literal["drop", "outputs", "pairs", "error"] | None
    """How to treat values that the program writes into its buffers and inputs. Default: drop."""
    ir_version: int | None
    """Version of the ONNX file format, for runtimes that refuse newer ones. Default: the lowest
    that can hold the model."""
    seed: int | None
    """Seed of the first node that draws random numbers, to make them repeatable; the following
    nodes count up from it."""
    assume_finite: bool | None
    """Leave out nodes that only make NaN and infinities come out as in PyTorch."""
    size_checks: bool | None
    """Make the model fail for sizes of inputs for which the program was not exported, with the
    reason as the name of the node that fails."""
    unsupported_ops: Literal["onnx", "fallthrough", "aten-fallback", "aten"] | None
    """How to treat ops that have no translation. Default: onnx."""
    aten_nodes: bool | None
    """Write ATen ops that have no translation as nodes ``ATen`` with the op in an attribute, as
    torch.onnx's older exporter does."""
    op_functions: Path | Sequence[Path] | None
    """Translate ops by functions in ONNX's textual syntax, or those of an ONNX model."""
    module_functions: str | Sequence[str] | None
    """Make functions of the calls of modules: of all, by class, or by path: ``all``,
    ``BertLayer``, ``encoder.layer.*``."""
    custom_opset: Mapping[str, int] | None
    """Version at which the model imports a domain of custom ops. Default: 1."""
    provenance: Literal["full", "basic", "none"] | None
    """How much the model records of the program it comes from. Default: full."""
    strip_paths: bool | None
    """Write files in stack traces without their folders."""
    scoped_names: bool | None
    """Name nodes and values by modules and operators, as torch.onnx.export does for traces:
    ``/conv1/Conv`` and ``/conv1/Conv_output_0``."""
    node_docs: bool | None
    """Write the source lines of each node into its ``doc_string``."""
    metadata_prop: Mapping[str, str] | None
    """Add an entry to the model's ``metadata_props``."""
    model_doc: str | None
    """A description of the model: its ``doc_string``."""
    model_version: int | None
    """Your version number of the model."""
    producer: str | None
    """The name of the model's producer. Default: pt2onnx."""


class ConvertOptions(ExportOptions, total=False):
    """The options of ``convert``, ``inspect`` and ``check``."""

    program: str | None
    """The program to convert, of an archive that has several. Default: the only one, or
    ``model``."""
    training: Literal["preserve", "eval", "error", "train"] | None
    """How to treat ops that behave as in training, because the model was exported without
    ``model.eval()``. Default: preserve."""
    optimize: Literal[0, 1, 2] | bool | None
    """How far to optimise: 0 not at all, 1 fold and simplify, 2 also fuse. Default: 2."""
    input_names: Sequence[str] | Literal["from-tree"] | None
    """Names of the inputs, in order; ``from-tree`` uses the parameters of ``forward`` and the
    keys of dicts."""
    output_names: Sequence[str] | Literal["from-tree"] | None
    """Names of the outputs, in order; ``from-tree`` uses the keys of the dict or dataclass that
    the program returns."""
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None
    """Name axes as torch.onnx.export does: ``{"x": {"0": "batch"}}``, or ``{"x": [0]}`` for
    ``x_dynamic_axes_1``."""
    keep_initializers_as_inputs: bool | None
    """Make weights inputs of the model as well, so that callers can pass other values.
    ``optimize`` keeps those that are inputs, and otherwise makes them constants if all are."""


#: Keywords before 0.1, which 0.2 drops, and their new spellings.
RENAMED = {
    "asymmetric": "zero_points",
    "block": "block_size",
    "calibrate": "calibration_data",
    "calibration": "calibration_method",
    "compress_min": "min_elements",
    "dim": "rename_dim",
    "doc_string": "model_doc",
    "doc_strings": "node_docs",
    "fix": "fix_dim",
    "functions": "op_functions",
    "functions_of": "module_functions",
    "link_outside": "allow_external_paths",
    "merge_weights": "dedup_weights",
    "meta": "metadata_prop",
    "metadata": "provenance",
    "model": "program",
    "operators": "unsupported_ops",
    "opset_version": "opset",
    "state": "mutations",
}
