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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from .._program import ONNXProgram

__all__ = ["SubModel", "export", "generation_models", "register"]


@dataclasses.dataclass(frozen=True)
class SubModel:
    """A model of those that a text generator needs: arguments of ``pt2onnx.export``."""

    model: torch.nn.Module
    kwargs: dict[str, Any]
    dynamic_shapes: dict[str, Any]
    output_names: str | None = None


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
        ValueError: The model does not take ``input_ids``.
    """
    from . import _generation

    parts = _generation.generation_models(model, batch, length, past)
    return {name: SubModel(*part) for name, part in parts.items()}


def export(
    model: torch.nn.Module,
    folder: str | os.PathLike[str],
    *,
    tokenizer: Any = None,
    **options: Any,
) -> dict[str, ONNXProgram]:
    """Exports a model of transformers for text generation, as ``optimum-cli export onnx --task
    text-generation-with-past`` does: the files of ``generation_models``, ``config.json`` and
    ``generation_config.json``.

    With ``target="ort-genai"``, the folder is one that onnxruntime-genai loads: with
    ``genai_config.json``, and with attention that keeps past and present in one buffer. Rows of a
    batch are then padded on the right, as onnxruntime-genai pads them, and ``max_positions`` is the
    number of tokens of the model's configuration. For the targets ``ort`` and
    ``ort-genai``, the opset is 24 if none is given.

    Args:
        model: The model.
        folder: The folder of the files.
        tokenizer: A tokenizer or processor of transformers, whose files are saved, too.
        **options: Those of ``pt2onnx.export``.

    Returns:
        The models by the names of their files, without ``.onnx``.

    Raises:
        ValueError: onnxruntime-genai cannot run the model, with ``target="ort-genai"``.
        Exception: The errors of ``pt2onnx.export`` and ``generation_models``.
    """
    from .._export import export as export_one
    from . import _genai

    genai = _genai.checked(model, options)
    if options.get("target") in ("ort", _genai.TARGET) and options.get("opset_version") is None:
        options["opset_version"] = 24
    if genai and options.get("max_positions") is None:
        options["max_positions"] = _genai.context_length(model)
    os.makedirs(folder, exist_ok=True)
    made: dict[str, ONNXProgram] = {}
    for name, part in generation_models(model).items():
        given: dict[str, Any] = {
            "output_names": part.output_names,
            "dynamic_shapes": part.dynamic_shapes,
            **options,
        }
        path = os.path.join(folder, f"{name}.onnx")
        made[name] = export_one(part.model, (), path, kwargs=part.kwargs, **given)
        if genai:
            cache, program = part.kwargs["past_key_values"], made[name]
            _genai.write(folder, model, cache, program.input_names, program.report)
    # transformers adds attributes that a module does not have.
    of_transformers: Any = model
    for part_of_model in (of_transformers.config, of_transformers.generation_config, tokenizer):
        if part_of_model is not None:
            part_of_model.save_pretrained(folder)
    return made
