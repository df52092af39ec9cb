"""Compares the tokens that a folder generates with those of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch

from .._errors import OnnxExporterError
from .._program import ONNXProgram
from . import _runner
from ._inputs import Examples
from ._tasks import Task

#: New tokens of each text.
_STEPS = 8

#: Texts of unequal length, as positions in the vocabulary.
_LENGTHS = (7, 4)


def check(
    model: Any, task: Task, made: Mapping[str, ONNXProgram], folder: str, rows_alone: bool
) -> None:
    """Compares a model with its files.

    Args:
        model: The model.
        task: Its task.
        made: The models of the files.
        folder: Where these are.
        rows_alone: Whether the files do not take rows that are filled on the left.

    Raises:
        OnnxExporterError: They differ.
    """
    if not task.generates:
        # It was compared when it was exported.
        return
    runner = _runner.Runner(folder, _runner.Settings.of(model))
    steps = {"max_new_tokens": _STEPS, "min_new_tokens": _STEPS}
    for lengths in [(one,) for one in _LENGTHS] if rows_alone else [_LENGTHS]:
        inputs = _inputs_of(model, lengths)
        given = {name: value.to(model.device) for name, value in inputs.items()}
        found: torch.Tensor = model.generate(**given, do_sample=False, num_beams=1, **steps)
        expected = found.cpu()[:, -_STEPS:]
        arrays = {name: value.numpy() for name, value in inputs.items()}
        own = torch.tensor(runner.greedy(arrays, _STEPS))
        if own.shape != expected.shape or not bool((own == expected).all()):
            texts = [str(cast(Any, tokens).tolist()) for tokens in (own, expected)]
            raise OnnxExporterError(
                f"the files of {type(model).__name__} ({', '.join(made)}) generate other tokens "
                f"than the model: {texts[0]}, not {texts[1]}"
            )


def _inputs_of(model: Any, lengths: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """The main input of rows of these lengths; texts are padded on the side that the model
    takes."""
    name: str = model.main_input_name
    if name != "input_ids":
        return {name: Examples(model).make((name,))[name].value}
    both = bool(model.config.is_encoder_decoder)
    vocabulary = int(model.config.get_text_config().vocab_size)
    longest = max(lengths)
    ids = torch.zeros(len(lengths), longest, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    places = torch.Generator().manual_seed(0)
    for row, length in enumerate(lengths):
        at = slice(0, length) if both else slice(longest - length, longest)
        low = min(3, vocabulary - 1)
        ids[row, at] = torch.randint(low, vocabulary, (length,), generator=places)
        mask[row, at] = 1
    return {"input_ids": ids, "attention_mask": mask}
