"""``dynamic_axes`` of torch.onnx.export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import torch

from . import _errors, _leaves, _pytree
from ._shapes import axes_of, by_name, from_front
from ._types import Args, Kwargs, Model


class DynamicAxes(NamedTuple):
    """``dynamic_axes`` of torch.onnx.export, and the names of inputs and outputs that belong to
    it."""

    axes: Mapping[str, object] | None
    input_names: Sequence[str] | None
    output_names: Sequence[str] | str | None


def to_shapes(
    model: Model, args: Args, kwargs: Kwargs, given: DynamicAxes, *, ignore_unknown: bool
) -> dict[str, object]:
    """``dynamic_axes`` of torch.onnx.export as dynamic shapes by name of argument.

    The names are those of ``input_names`` or of the model's parameters; where they are neither, the
    axes are in the order of the inputs. Names of outputs have no effect on shapes.

    Args:
        model: The module.
        args: The positional arguments.
        kwargs: The keyword arguments.
        given: The axes.
        ignore_unknown: Whether other names have no effect but a warning.

    Raises:
        ValueError: Axes are not understood, or an input does not exist.
    """
    arguments = by_name(model, args, kwargs)
    leaves, tree = _pytree.flatten(list(arguments.values()))
    outputs = set[str](given.output_names or ())
    pairs = (given.axes or {}).items()
    by_input = {name: axes_of(name, axes) for name, axes in pairs if name not in outputs}
    input_names = given.input_names or ()
    paths = _paths(arguments)
    places = _places(input_names, leaves, numbers=ignore_unknown)
    # A parameter that is given another name is not known by its own.
    unnamed = {name: at for name, at in paths.items() if at not in places.values()}
    known = {**unnamed, **places}
    unknown = [name for name in by_input if name not in known]
    if ignore_unknown:
        for name in unknown:
            warn_unknown(name)
    elif unknown and by_input.keys() <= paths.keys():
        known = paths
    elif unknown:
        count = len(input_names)
        surplus = len(by_input) > len(leaves) or count >= len(leaves)
        if surplus or len(unknown) < len(by_input) or (count and len(by_input) != len(leaves)):
            raise ValueError(f"dynamic_axes has {unknown[:3]}, which are not names of inputs")
        known = {name: at for at, name in enumerate(by_input)}
    places = known
    by_place = {places[name]: found for name, found in by_input.items() if name in places}
    shapes = _from_front([by_place.get(at) for at in range(len(leaves))], leaves)
    nested = cast(list[object], _pytree.unflatten(shapes, tree))
    return dict(zip(arguments, nested, strict=False))


def _paths(arguments: Mapping[str, object]) -> dict[str, int]:
    """The places of values among the leaves of the arguments, by their names in models: ``x``,
    ``pair_a``, and the path ``pair.a``."""
    places: dict[str, int] = {}
    start = 0
    for name, argument in arguments.items():
        parts = _leaves.flatten({name: argument}, None)
        paths = [part.path for part in parts if _pytree.leaves(part.value)]
        count = len(_pytree.leaves(argument))
        if len(paths) != count:
            # A list of a class that pytrees do not know.
            paths = [name] if count == 1 else []
        for at, path in enumerate(paths, start):
            places.setdefault(path, at)
            places.setdefault(path.replace(".", "_"), at)
        start += count
    return places


def warn_unknown(name: str) -> None:
    """Warns of an entry of ``dynamic_axes`` that belongs to no input, as torch.onnx does."""
    text = f"Provided key {name} for dynamic axes is not a valid input/output name"
    _errors.warn(text, UserWarning)


def _places(
    names: Sequence[str], leaves: Sequence[object], *, numbers: bool = False
) -> dict[str, int]:
    """The places of inputs among the arguments. Names are those of tensors, and of numbers if these
    are inputs, unless there are more names."""
    kinds = (torch.Tensor, bool, int, float) if numbers else (torch.Tensor,)
    places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, kinds)]
    fit = len(names) <= len(places)
    return dict(zip(names, places if fit else range(len(leaves)), strict=False))


def _from_front(
    shapes: Sequence[Mapping[int, object] | None], leaves: Sequence[object]
) -> list[object]:
    """The axes of each input, counted from the first. Warns of axes that it does not have, which
    are left out."""
    counted: list[object] = []
    for axes, leaf in zip(shapes, leaves, strict=True):
        rank = getattr(leaf, "ndim", 0)
        found = from_front(axes or {}, rank)
        for axis in [axis for axis in found if not 0 <= axis < rank]:
            text = f"dynamic_axes has axis {axis} of an input that has {rank} dimensions"
            _errors.warn(text, UserWarning)
            del found[axis]
        counted.append(found or None)
    return counted
