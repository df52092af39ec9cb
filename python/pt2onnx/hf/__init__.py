"""Models of transformers: their caches as inputs and outputs, and the files that text generation
needs.

``pt2onnx.export`` takes modules whose arguments or results hold caches (``DynamicCache``,
``StaticCache``, ``EncoderDecoderCache`` and their subclasses). Unless names are given, the tensors
of a cache have optimum's names:

* inputs: ``past_key_values.0.key``, ``past_key_values.0.value``, ``past_key_values.1.key``, ...
* outputs: ``present.0.key``, ``present.0.value``, ...; all others after their keys: ``logits``
* of encoder-decoder models: ``past_key_values.0.decoder.key``, ``past_key_values.0.encoder.key``,
  ...

In ``dynamic_shapes``, one entry stands for all tensors of a cache::

    dynamic_shapes={
        "input_ids": {0: "batch", 1: "length"},
        "past_key_values": {0: "batch", 2: "past"},
    }

``pt2onnx.hf.export(model, folder)`` needs no arguments at all.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

    from .._program import ONNXProgram

__all__ = ["SubModel", "export", "generation_models", "register"]


@dataclasses.dataclass(frozen=True)
class SubModel:
    """A model of those that a text generator needs: arguments of ``pt2onnx.export``.

    ``one_token`` are arguments of one token. A model that takes another way for them than for
    several has to be captured twice (``is_twice``), as ``export`` does.
    """

    model: torch.nn.Module
    kwargs: dict[str, Any]
    dynamic_shapes: dict[str, Any]
    output_names: list[str] | str | None = None
    input_names: list[str] | None = None
    one_token: dict[str, Any] | None = None
    is_twice: bool = False


def register() -> None:
    """Makes pytree nodes of the caches of transformers, so that ``torch.export`` takes them.

    Those that transformers or others have registered stay. ``pt2onnx.export`` calls it if
    transformers is loaded.
    """
    from . import _caches

    _caches.register()


def generation_models(
    model: torch.nn.Module, *, batch: int = 2, length: int = 3, past: int = 4
) -> dict[str, SubModel]:
    """The models that text generation with a model of transformers needs.

    A decoder gives one, ``"model"``. It takes ``input_ids`` and ``attention_mask``,
    ``position_ids`` if the model has them, and ``past_key_values``, which has length 0 at the first
    call; it returns ``logits`` and ``present``. An encoder with decoder gives three:
    ``"encoder_model"``, ``"decoder_model"`` for the first token, which computes the cache of the
    encoder's states, and ``"decoder_with_past_model"`` for all others. All sizes of the examples
    are dynamic.

    Args:
        model: The model, which runs once to make the cache.
        batch: The number of rows of the examples.
        length: Their number of tokens.
        past: The number of tokens before them.

    Returns:
        The models by the names that optimum gives to their files.

    Raises:
        ValueError: pt2onnx knows no example for the main input of the model.
    """
    from . import _generation

    parts = _generation.generation_models(model, batch, length, past)
    return {name: SubModel(*part) for name, part in parts.items()}


def export(
    model: torch.nn.Module | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    task: str | None = None,
    *,
    tokenizer: Any = None,
    layout: Literal["optimum", "genai", "transformers.js"] | None = None,
    dtypes: Sequence[str] | None = None,
    merge_decoders: bool = False,
    all_logits: bool = False,
    calibration_text: str | None = None,
    verify: bool = False,
    **options: Any,
) -> dict[str, ONNXProgram]:
    """Exports a model of transformers as a folder that a runtime loads: its ONNX models with the
    names of optimum's, ``config.json``, ``generation_config.json``, and the files of the tokenizer,
    the processor and the chat template. All files are written, or none.

    A model that generates tokens gives the files of ``generation_models``, another one
    ``model.onnx``.

    Args:
        model: The model, or a folder of ``save_pretrained``.
        folder: The folder of the files. Other files in it stay.
        task: A task in optimum's words, such as ``"text-generation"``, ``"fill-mask"`` or
            ``"image-classification"``. By default that of the model's class;
            ``"feature-extraction"`` is that of classes without a head.
        tokenizer: A tokenizer or processor of transformers, whose files are saved, too.
        layout: ``"optimum"`` is the default. ``"genai"``, that of ``target="ort-genai"``, is a
            folder that onnxruntime-genai loads: with ``genai_config.json``, and with attention that
            keeps past and present in one buffer; rows of a batch are then padded on the right, and
            ``max_positions`` is the number of tokens of the model's configuration.
            ``"transformers.js"`` has the models in ``onnx/``, one file for each of ``dtypes``, and
            the decoders in one file.
        dtypes: The element types for transformers.js, all from one capture: ``"fp32"``,
            ``"fp16"``, ``"q8"``, ``"int8"``, ``"uint8"``, ``"q4"``, ``"q4f16"``. By default
            ``["fp32"]``.
        merge_decoders: Whether both decoders of an encoder-decoder model are also one file,
            ``decoder_model_merged.onnx``, whose input ``use_cache_branch`` chooses.
        all_logits: Whether a model for onnxruntime-genai returns the logits of all tokens, as those
            for other runtimes do. It reads those of the last token of each row, which are what it
            gets by default: a prompt then takes less time and memory.
        calibration_text: With ``quantize="int4"``, a text like those that a decoder will get, some
            ten thousand tokens: the model reads it first, and weights make up for the errors of
            others (GPTQ). ``calibration_data`` has the same from files of arrays.
        verify: Whether to compare with the model: its tokens in ONNX Runtime, or its outputs.
        **options: Those of ``pt2onnx.export``. With ``weights="link"``, the model of a folder
            refers to its files of safetensors, and nothing is copied. For the targets ``ort`` and
            ``ort-genai``, the opset is 24 if none is given. ``quantize="int4"`` is for blocks of
            32, with 8 bits where 4 harm most (``mixed``), and for opset 21 at least, if these are
            not given.

    Returns:
        The models by the names of their files, without ``.onnx``.

    Raises:
        ValueError: The options contradict each other, the model does not have the task, a file of
            the folder is missing or damaged, or onnxruntime-genai cannot run the model.
        OSError: Files cannot be written.
        OnnxExporterError: The files generate other tokens than the model, with ``verify=True``.
        Exception: The errors of ``pt2onnx.export``.
    """
    from . import _package

    return _package.export(
        model,
        os.fspath(folder),
        task,
        tokenizer,
        layout,
        dtypes,
        merge_decoders,
        all_logits,
        calibration_text,
        verify,
        options,
    )
