"""Samples of texts, for weights of 4 bits."""

from __future__ import annotations

import importlib
from typing import Any

import numpy

from . import _caches
from ._generation import Part

#: The tokens of a sample, and how many samples there are at most.
_LENGTH, _MOST = 512, 128


def tokens(text: str, tokenizer: Any, source: str | None, context: int) -> numpy.ndarray[Any, Any]:
    """The tokens of a text in rows.

    Args:
        text: The text.
        tokenizer: The tokenizer; without, that of the folder.
        source: The folder of the model.
        context: The number of tokens that the model was made for.

    Raises:
        ValueError: There is no tokenizer, or the text is empty.
    """
    if tokenizer is None and source is not None:
        tokenizer = importlib.import_module("transformers").AutoTokenizer.from_pretrained(
            source, local_files_only=True
        )
    if tokenizer is None:
        raise ValueError("calibration_text needs a tokenizer: give tokenizer=, too")
    ids = numpy.array(tokenizer(text)["input_ids"], numpy.int64)
    length = min(_LENGTH, context, len(ids))
    if length == 0:
        raise ValueError("calibration_text has no tokens: give a text of some ten thousand")
    rows = min(len(ids) // length, _MOST)
    return ids[: rows * length].reshape(rows, length)


def write(path: str, part: Part, rows: numpy.ndarray[Any, Any]) -> None:
    """Writes the inputs of a decoder for rows of tokens, each a sample without a past.

    Raises:
        ValueError: The model has other inputs than tokens and a cache of keys.
    """
    cache = part.kwargs.get("past_key_values")
    if cache is None:
        raise ValueError(
            "calibration_text is for decoders with a cache of keys and values: give "
            "calibration_data, arrays of all inputs"
        )
    given: numpy.ndarray[Any, Any] = rows[:, None]
    ones: numpy.ndarray[Any, Any] = numpy.ones_like(given)
    positions: numpy.ndarray[Any, Any] = ones.cumsum(-1) - 1
    values = {"input_ids": given, "attention_mask": ones, "position_ids": positions}
    arrays: dict[str, numpy.ndarray[Any, Any]] = {
        name: values[name] for name in values if name in part.kwargs
    }
    for name, tensor in _caches.named_tensors(cache):
        _, heads, _, width = tensor.shape
        kind = str(tensor.dtype).removeprefix("torch.")
        arrays[f"past_key_values.{name}"] = numpy.zeros((len(rows), 1, heads, 0, width), kind)
    numpy.savez(path, allow_pickle=False, **arrays)
