"""The modules that functions use, and their state."""

from __future__ import annotations

import functools
import types
from typing import Any, cast

import torch


def owners(model: object) -> list[torch.nn.Module]:
    """The modules of a module or function: it is one, a method of one, or uses some that it is
    defined with."""
    if isinstance(model, torch.nn.Module):
        return [model]
    if isinstance(model, functools.partial):
        return owners(cast(Any, model).func)
    owner = getattr(model, "__self__", None)
    if owner is not None:
        return owners(owner) if isinstance(owner, torch.nn.Module) else []
    function: Any = getattr(model, "_torchdynamo_orig_callable", model)
    cells = getattr(function, "__closure__", None) or ()
    held = (cell.cell_contents for cell in cells if cell != types.CellType())
    return [one for one in held if isinstance(one, torch.nn.Module)]


def state_of(model: object) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a module or function by name."""
    return {
        name: tensor
        for owner in owners(model)
        for named in (owner.named_parameters, owner.named_buffers)
        for name, tensor in named(remove_duplicate=False)
    }
