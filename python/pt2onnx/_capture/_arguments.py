"""The arguments and dynamic shapes of a call as captures take them."""

from __future__ import annotations

from typing import cast

import torch

from .. import _dynamic_axes, _errors, _pytree
from .._types import Args, Kwargs, Model


def unalias(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments with distinct tensors: torch.export and the tracer take a tensor that is there
    twice for one input."""
    leaves, tree = _pytree.flatten((args, kwargs))
    seen: set[int] = set()
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and id(leaf) in seen:
            leaves[at] = leaf.detach().clone().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
    if len(seen) == len(leaves):
        # Containers that are made anew may lose what is not in their leaves.
        return args, kwargs
    return cast(tuple[Args, Kwargs], _pytree.unflatten(leaves, tree))


def from_axes(
    model: Model, args: Args, kwargs: Kwargs, axes: _dynamic_axes.DynamicAxes, ignore_unknown: bool
) -> object:
    """Dynamic shapes for ``dynamic_axes``.

    Args:
        model: The module.
        args: The positional arguments.
        kwargs: The keyword arguments.
        axes: The axes.
        ignore_unknown: Whether names that no input has are left out, without a warning.

    Raises:
        RuntimeError: There are none.
    """
    if not ignore_unknown:
        _errors.warn(
            "# 'dynamic_axes' is not recommended when dynamo=True, and may lead to "
            "'torch._dynamo.exc.UserError: Constraints violated.' "
            "Supply the 'dynamic_shapes' argument instead if export is unsuccessful.",
            UserWarning,
        )
    try:
        return _dynamic_axes.to_shapes(model, args, kwargs, axes, ignore_unknown=ignore_unknown)
    except Exception as error:
        raise RuntimeError(
            "# Failed to convert 'dynamic_axes' to 'dynamic_shapes'. Please provide "
            "'dynamic_shapes' directly. Refer to the documentation for 'torch.export.export' for "
            "more information on dynamic shapes."
        ) from error
