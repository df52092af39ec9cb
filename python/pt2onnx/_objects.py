"""Objects among the arguments and results of modules."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import cast

import torch

from . import _leaves, _pytree, _shapes
from ._types import Args, Kwargs, Model, class_of, is_items

#: How deep objects are looked into.
_DEPTH = 4

#: Objects whose tensors are no arguments: weights, and code.
_OTHERS = (torch.nn.Module, type, types.FunctionType, types.MethodType, types.ModuleType)


def problem(model: Model, args: Args, kwargs: Kwargs) -> TypeError | None:
    """The error of an argument whose tensors would become constants, if there is one. Errors of
    arguments that do not fit are left to torch.export."""
    try:
        arguments = _shapes.by_name(model, args, kwargs)
    except TypeError:
        return None
    for leaf in _leaves.flatten(arguments, None):
        if isinstance(leaf.value, torch.Tensor) or not _holds_tensors(leaf.value, _DEPTH, set()):
            continue
        kind = class_of(leaf.value)
        return TypeError(
            f"the argument `{leaf.path}` is a {kind.__module__}.{kind.__qualname__}, whose tensors "
            "would be constants: give a tensor, a list, a tuple or a dict, or make the class a "
            "pytree by torch.export.register_dataclass or torch.utils._pytree.register_pytree_node"
        )
    return None


def _holds_tensors(value: object, depth: int, seen: set[int]) -> bool:
    if isinstance(value, torch.Tensor) or _is_array(value):
        return True
    if depth < 0 or id(value) in seen or _is_other(value):
        return False
    seen.add(id(value))
    return any(_holds_tensors(part, depth - 1, seen) for part in _parts(value))


def _is_other(value: object) -> bool:
    return isinstance(value, (*_OTHERS, str, bytes))


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _parts(value: object) -> Iterator[object]:
    """The values that an object holds."""
    yield from _items(value)
    attributes: dict[str, object] = getattr(value, "__dict__", {})
    yield from attributes.values()
    for kind in class_of(value).__mro__:
        slots: str | Iterable[str] = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)


def _items(value: object) -> Iterator[object]:
    """The values of a container."""
    if isinstance(value, Mapping):
        yield from cast(Mapping[object, object], value).values()
    elif is_items(value):
        yield from value
    elif isinstance(value, Set):
        yield from cast(Set[object], value)
    elif _pytree.is_registered(value):
        yield from (part for _, part in _pytree.one_level(value)[0])


def results(result: object) -> Iterator[object]:
    """The values within a result, in order: also those in objects that are no pytrees."""
    if isinstance(result, torch.Tensor) or result is None:
        yield result
        return
    parts: Iterable[object] | None = None
    if _pytree.is_registered(result):
        parts = [part for _, part in _pytree.one_level(result)[0]]
    elif isinstance(result, Mapping):
        parts = cast(Mapping[object, object], result).values()
    elif is_items(result):
        parts = result
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        parts = [getattr(result, field.name) for field in dataclasses.fields(result)]
    elif not isinstance(result, _OTHERS) and _holds_tensors(result, _DEPTH, set()):
        parts = list(_parts(result))
    if parts is None:
        yield result
    else:
        for part in parts:
            yield from results(part)
