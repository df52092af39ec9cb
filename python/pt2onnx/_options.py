"""The options of conversions as keywords, from ``pt2onnx::Options`` (docs/options.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TypedDict

Path = str | PathLike[str]
Axes = Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]]


class SaveOptions(TypedDict, total=False):
    """How a model is written."""

    alignment: int | str | None
    allow_external_paths: bool | None
    external_threshold: int | str | None
    shard_size: int | str | None
    weights: str | None
    weights_file: str | None


class RewriteOptions(TypedDict, total=False):
    """Options that ``export`` and ``optimize`` share."""

    accuracy_level: int | None
    block_size: int | None
    calibration_data: Path | Sequence[Path] | None
    calibration_method: str | None
    cast_io: bool | None
    cast_weights: str | None
    compress_exclude: str | Sequence[str] | None
    compress_include: str | Sequence[str] | None
    dedup_weights: bool | None
    fix_dim: Mapping[str, int] | None
    fold_limit: int | str | None
    inline: bool | None
    input_shape: Mapping[str, str] | None
    kv_names: str | None
    min_elements: int | None
    opset: int | None
    precision: str | None
    quantize: str | None
    rename: Mapping[str, str] | None
    rename_dim: Mapping[str, str] | None
    rules: Sequence[Path] | None
    signed: bool | None
    skip_pass: Sequence[str] | None
    target: str | None
    zero_points: bool | None


class OptimizeOptions(RewriteOptions, SaveOptions, total=False):
    """The options of ``optimize``."""

    dynamic_axes: Axes | None
    input_names: str | Sequence[str] | None
    optimize: bool | int | None
    output_names: str | Sequence[str] | None


class ExportOptions(RewriteOptions, SaveOptions, total=False):
    """The options of ``export``, without those that are its parameters."""

    assume_finite: bool | None
    aten_nodes: bool | None
    custom_opset: Mapping[str, int] | None
    default_dtype: str | None
    input: Mapping[str, str] | None
    ir_version: int | None
    metadata_prop: Mapping[str, str] | None
    method: str | None
    model_doc: str | None
    model_version: int | None
    module_functions: str | Sequence[str] | None
    mutations: str | None
    node_docs: bool | None
    op_functions: Sequence[Path] | None
    producer: str | None
    provenance: str | None
    seed: int | None
    strip_paths: bool | None
    unsupported_ops: str | None
    warnings_as_errors: bool | None


class ConvertOptions(ExportOptions, total=False):
    """The options of ``convert``, ``inspect`` and ``check``."""

    dynamic_axes: Axes | None
    input_names: str | Sequence[str] | None
    keep_initializers_as_inputs: bool | None
    optimize: bool | int | None
    output_names: str | Sequence[str] | None
    program: str | None
    training: str | None
