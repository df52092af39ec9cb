"""The file ``genai_config.json``, by which onnxruntime-genai runs a decoder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .. import _errors
from . import _caches, _json

#: The target whose folders have the file.
TARGET = "ort-genai"

#: The name of the file.
FILE = "genai_config.json"

#: The attention whose past and present are one buffer.
_OPERATOR = "com.microsoft::GroupQueryAttention"

#: Inputs that onnxruntime-genai gives, beside the cache.
_INPUTS = ("input_ids", "attention_mask", "position_ids")

#: Where configurations have the number of tokens that a model was made for.
_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")

#: The number of tokens where a configuration has none.
_DEFAULT_LENGTH = 2048


def write(
    folder: str | os.PathLike[str],
    model: Any,
    cache: object,
    inputs: list[str],
    report: Mapping[str, Any],
) -> None:
    """Writes the file.

    Args:
        folder: Where ``model.onnx`` is.
        model: The model of transformers.
        cache: An example of its cache.
        inputs: The inputs of the ONNX model.
        report: The report of its conversion.

    Raises:
        ValueError: The model has inputs that onnxruntime-genai does not give.
    """
    keys = [name for name in inputs if name.endswith(".key")]
    values = [name for name in inputs if name.endswith(".value")]
    tensors = [] if cache is None else [one for _, one in _caches.named_tensors(cache)]
    unknown = [name for name in inputs if name not in {*_INPUTS, *keys, *values}]
    same = len({tuple(tensor.shape) for tensor in tensors}) == 1
    if unknown or not keys or len(keys) != len(values) or not same:
        what = ", ".join(unknown) if unknown else "caches of different sizes, or none"
        raise ValueError(
            f"onnxruntime-genai runs decoders whose state is one cache of keys and values; "
            f"{type(model).__name__} has {what}: give target='ort'"
        )
    _, shared_heads, _, width = tensors[0].shape
    config = model.config.get_text_config()
    length = context_length(model)
    tokens = _tokens(model)
    # A model that was merged of several has no report of its conversion.
    operators: dict[str, int] = report["model"]["operators"] if report["model"] else {}
    shared = operators.get(_OPERATOR, 0)
    if shared < len(keys):
        _errors.warn(
            f"{len(keys) - shared} of {len(keys)} attentions of the model have a form that "
            f"{_OPERATOR} does not: onnxruntime-genai copies the cache, and rows of a batch must "
            "have the same number of tokens"
        )
    names = {
        "past_key_names": "past_key_values.%d.key",
        "past_value_names": "past_key_values.%d.value",
    }
    made: dict[str, Any] = {
        "model": {
            **tokens,
            "context_length": length,
            "type": "decoder",
            "vocab_size": config.vocab_size,
            "decoder": {
                "session_options": {"log_id": "pt2onnx", "provider_options": []},
                "filename": "model.onnx",
                "head_size": width,
                "hidden_size": config.hidden_size,
                "num_attention_heads": config.num_attention_heads,
                "num_hidden_layers": len(keys),
                "num_key_value_heads": shared_heads,
                "inputs": {**{name: name for name in _INPUTS if name in inputs}, **names},
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {
            **_search(model),
            "max_length": length,
            # Only this operator writes where it reads.
            "past_present_share_buffer": shared == len(keys),
        },
    }
    _json.write(os.path.join(folder, FILE), made)


def context_length(model: Any) -> int:
    """The number of tokens that a model was made for."""
    config = model.config.get_text_config()
    given = [getattr(config, name, None) for name in _LENGTHS]
    return next((number for number in given if number), _DEFAULT_LENGTH)


def _tokens(model: Any) -> dict[str, Any]:
    """The tokens that begin, end and fill a text; 0 where the model has none."""
    generation = getattr(model, "generation_config", None)
    found: dict[str, Any] = {}
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        given = [getattr(of, name, None) for of in (generation, model.config) if of is not None]
        found[name] = next((token for token in given if token is not None), None)
    end: Any = found["eos_token_id"]
    if found["pad_token_id"] is None:
        found["pad_token_id"] = end[0] if isinstance(end, list) else end
    return {name: 0 if token is None else token for name, token in found.items()}


def _search(model: Any) -> dict[str, Any]:
    """How transformers chooses tokens, in onnxruntime-genai's words."""
    generation = getattr(model, "generation_config", None)
    defaults = {"do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "num_beams": 1}
    given = {name: getattr(generation, name, None) for name in defaults}
    return {name: value if given[name] is None else given[name] for name, value in defaults.items()}
