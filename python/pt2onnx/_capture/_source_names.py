"""PyTorch's names of the inputs of captures and of their sizes: ``L['x'].size()[1]``."""

from __future__ import annotations

import re

import torch
from torch.utils import _pytree as torch_pytree

from .. import _pytree, _shapes
from .._types import Args, Kwargs, Model

#: The name of an axis of an input: the input, and the axis.
_AXIS = re.compile(r"(L\[.*)\.size\(\)\[(\d+)\]")


def axis(source: str) -> tuple[str, int] | None:
    """The input and axis of a size; None if it is not that of an input."""
    found = _AXIS.fullmatch(source)
    return (found[1], int(found[2])) if found else None


def tensors(model: Model, args: Args, kwargs: Kwargs) -> dict[str, torch.Tensor]:
    """The tensors of a call by name: ``L['x'][0]``, ``L['flat_args'][0]``."""
    try:
        bound = _shapes.signature(model).bind(*args, **kwargs).arguments
    except TypeError:
        bound = {}
    given: list[tuple[str, object]] = [
        ("L", {**kwargs, **bound}),
        ("L['flat_args']", _pytree.leaves((args, kwargs))),
        # PyTorch 2.6.
        ("L['args']", (args, kwargs)),
    ]
    found: dict[str, torch.Tensor] = {}
    for start, values in given:
        for path, leaf in torch_pytree.tree_flatten_with_path(values)[0]:
            if isinstance(leaf, torch.Tensor):
                found.setdefault(start + torch_pytree.keystr(path), leaf)
    return found
