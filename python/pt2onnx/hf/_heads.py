"""Models with one task that compute all of their outputs at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .._types import is_items
from ._generation import Part
from ._inputs import BATCH, HEIGHT, IMAGES, TEXTS, WIDTH, Examples, Input
from ._tasks import Task

#: Fields of configurations of models that cut images into windows, whose number a capture fixes.
_WINDOWS = ("window_size",)


class Head(torch.nn.Module):
    """A model whose outputs are those of a task."""

    def __init__(self, model: torch.nn.Module, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self._outputs = outputs
        self.train(model.training)

    def forward(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, Any]:
        """The outputs by name."""
        return self.chosen(self.model(**inputs))

    def chosen(self, result: Any) -> dict[str, Any]:
        """The outputs of the task in a result; all tensors if it has none of them."""
        fields: dict[str, Any] = dict(result)
        found = {name: fields[name] for name in self._outputs if _is_output(fields.get(name))}
        return found or {name: value for name, value in fields.items() if _is_output(value)}


def _is_output(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    return is_items(value) and bool(value) and all(isinstance(one, torch.Tensor) for one in value)


def part(model: Any, task: Task, processor: Any = None) -> Part:
    """The model with example inputs.

    Raises:
        ValueError: pt2onnx knows no example for an input that the model needs.
    """
    examples = Examples(model, choices=task.name == "multiple-choice", processor=processor)
    inputs = examples.make(task.inputs)
    if not inputs:
        raise ValueError(
            f"pt2onnx does not know the inputs of {type(model).__name__}: call pt2onnx.export with "
            "example arguments"
        )
    head = Head(model, task.outputs)
    device = model.device
    inputs = {name: one._replace(value=one.value.to(device)) for name, one in inputs.items()}
    if _takes_more_images(head, inputs):
        inputs = {name: one._replace(axes=_apart(one.axes)) for name, one in inputs.items()}
    if not _takes_other_images(head, inputs):
        inputs = {
            name: one._replace(axes=_without_images(one.axes)) for name, one in inputs.items()
        }
    return Part(
        head,
        {"inputs": {name: one.value for name, one in inputs.items()}},
        {"inputs": {name: one.axes for name, one in inputs.items()}},
        "from-tree",
        list(inputs),
    )


def _without_images(axes: Mapping[int, str]) -> dict[int, str]:
    return {axis: name for axis, name in axes.items() if name not in (HEIGHT, WIDTH)}


def _takes_more_images(head: Head, inputs: Mapping[str, Input]) -> bool:
    """Whether the model takes another number of images than of texts."""
    images = {name: one for name, one in inputs.items() if HEIGHT in one.axes.values()}
    if not images or len(images) == len(inputs):
        return False
    more = {name: torch.cat([one.value, one.value[:1]]) for name, one in images.items()}
    return _runs(head, {**{name: one.value for name, one in inputs.items()}, **more})


def _apart(axes: Mapping[int, str]) -> dict[int, str]:
    """The axes with names for the numbers of texts and of images."""
    batch = IMAGES if HEIGHT in axes.values() else TEXTS
    return {axis: batch if name == BATCH else name for axis, name in axes.items()}


def _takes_other_images(head: Head, inputs: Mapping[str, Input]) -> bool:
    """Whether the model takes images of other sizes."""
    if not any(HEIGHT in one.axes.values() for one in inputs.values()):
        return True
    if any(hasattr(head.model.config, name) for name in _WINDOWS):
        return False
    return _runs(head, {name: _larger(one) for name, one in inputs.items()})


def _runs(head: Head, inputs: Mapping[str, torch.Tensor]) -> bool:
    try:
        with torch.no_grad():
            head(inputs)
    except Exception:
        return False
    return True


def _larger(one: Input) -> torch.Tensor:
    value = one.value
    for axis, name in one.axes.items():
        if name in (HEIGHT, WIDTH):
            value = torch.cat([value, value], axis)
    return value
