"""Values within arguments, by path: ``x``, ``images.0``. Exports of TorchScript name inputs so."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import torch

from ._types import Args, Kwargs, is_dict, is_items


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A value within the arguments.

    ``axes`` are its dynamic axes as they were given. A ``default`` was not given.
    """

    path: str
    value: object
    axes: object = None
    default: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self.value, torch.Tensor)

    @property
    def is_number(self) -> bool:
        """Whether it is a bool, an int or a float."""
        return type(self.value) in (bool, int, float)


@dataclasses.dataclass(frozen=True)
class TensorLeaf(Leaf):
    """A tensor within the arguments."""

    value: torch.Tensor


def flatten(arguments: Mapping[str, object], shapes: object) -> list[Leaf]:
    """The values within arguments, with the axes that the dynamic shapes have for them.

    Args:
        arguments: The arguments by name of parameter.
        shapes: Dynamic shapes by name of parameter, or in order.
    """
    axes: dict[object, object] = {}
    if is_items(shapes):
        axes.update(zip(arguments, shapes, strict=False))
    elif isinstance(shapes, Mapping):
        axes.update(cast(Mapping[object, object], shapes))
    return [
        leaf for name, value in arguments.items() for leaf in _leaves(name, value, axes.get(name))
    ]


def tensors(arguments: Mapping[str, object], shapes: object) -> list[TensorLeaf]:
    """The tensors within arguments: see ``flatten``."""
    return [leaf for leaf in flatten(arguments, shapes) if isinstance(leaf, TensorLeaf)]


def _leaves(path: str, value: object, axes: object) -> Iterator[Leaf]:
    parts: list[tuple[object, object]] = []
    if is_dict(value):
        # A key that is a tensor is an input itself.
        parts = [item for at, key in enumerate(value) for item in _item(at, key, value[key])]
    elif is_items(value):
        parts = list(enumerate(value))
    if not parts:
        if isinstance(value, torch.Tensor):
            yield TensorLeaf(path, value, axes)
        else:
            yield Leaf(path, value, axes)
    for at, (key, part) in enumerate(parts):
        inner: object = None
        if isinstance(axes, Mapping):
            inner = cast(Mapping[object, object], axes).get(key)
        elif is_items(axes) and at < len(axes):
            inner = axes[at]
        yield from _leaves(f"{path}.{key}", part, inner)


def _item(at: int, key: object, value: object) -> list[tuple[object, object]]:
    """A value of a dict under its key, after the key itself if that is a tensor."""
    if isinstance(key, torch.Tensor):
        return [(f"key_{at}", key), (f"value_{at}", value)]
    return [(key, value)]


def rebuild(path: str, value: object, tensors: Mapping[str, object]) -> object:
    """An argument with other tensors.

    Args:
        path: The path of the argument.
        value: The argument.
        tensors: Tensors by path.
    """
    if path in tensors:
        return tensors[path]
    if is_dict(value):
        items = dict(
            _rebuild_item(path, at, *item, tensors) for at, item in enumerate(value.items())
        )
        return items if type(value) is dict else cast(Callable[..., object], type(value))(items)
    if is_items(value):
        parts = [rebuild(f"{path}.{at}", part, tensors) for at, part in enumerate(value)]
        kind = cast(Callable[..., object], type(value))
        return kind(*parts) if hasattr(value, "_fields") else kind(parts)
    return value


def rebuild_call(
    names: Sequence[str], args: Args, kwargs: Kwargs, tensors: Mapping[str, object]
) -> tuple[Args, Kwargs]:
    """Arguments with other tensors.

    Args:
        names: The names of the positional arguments.
        args: The positional arguments.
        kwargs: The keyword arguments.
        tensors: Tensors by path.
    """
    return (
        tuple(rebuild(name, arg, tensors) for name, arg in zip(names, args, strict=False)),
        {name: rebuild(name, arg, tensors) for name, arg in kwargs.items()},
    )


def _rebuild_item(
    path: str, at: int, key: object, part: object, tensors: Mapping[str, object]
) -> tuple[object, object]:
    if not isinstance(key, torch.Tensor):
        return key, rebuild(f"{path}.{key}", part, tensors)
    key = rebuild(f"{path}.key_{at}", key, tensors)
    return key, rebuild(f"{path}.value_{at}", part, tensors)


def has_tensor_keys(value: object) -> bool:
    """Whether a dict within the arguments has tensors for keys."""
    if is_dict(value):
        items = value.items()
        return any(isinstance(key, torch.Tensor) or has_tensor_keys(part) for key, part in items)
    return is_items(value) and any(map(has_tensor_keys, value))


def bind(names: Sequence[str], args: Args, kwargs: Mapping[str, object]) -> dict[str, object]:
    """The arguments by name of parameter, in the order of the parameters.

    Args:
        names: The names of the parameters.
        args: The positional arguments.
        kwargs: The keyword arguments.

    Raises:
        TypeError: The arguments do not fit.
    """
    if len(args) > len(names):
        raise TypeError(f"there are {len(args)} arguments, but the module takes {len(names)}")
    unknown = [name for name in kwargs if name not in names]
    if unknown:
        known = ", ".join(names)
        raise TypeError(f"the module has no parameter {unknown[0]!r}; it has {known}")
    by_name = {name: kwargs[name] for name in names if name in kwargs}
    return {**dict(zip(names, args, strict=False)), **by_name}


def by_name(names: Sequence[str], args: Args, kwargs: Mapping[str, object]) -> dict[str, object]:
    """The arguments by name, where ``names`` are those of the positional ones."""
    return {**dict(zip(names, args, strict=False)), **kwargs}


def positional_names(forward: Callable[..., object], count: int) -> list[str]:
    """The names of the parameters that may be given by position; those of ``*args`` are numbered.

    Args:
        forward: The function.
        count: The number of positional arguments.

    Raises:
        TypeError: There are more arguments than parameters.
    """
    names: list[str] = []
    for parameter in inspect.signature(forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    if count > len(names):
        raise TypeError(f"there are {count} arguments, but the module takes {len(names)}")
    return names


def components(value: object, result: bool = False) -> list[object]:
    """The values that stand for an argument or a result in the model.

    Args:
        value: An argument or a result.
        result: Whether it is a result. Types of scales and zero points depend on it, as in
            torch.onnx's exporter of TorchScript.

    Returns:
        Integers, scales and zero points of a quantised tensor; else the value.
    """
    if not (isinstance(value, torch.Tensor) and value.is_quantized):
        return [value]
    ints = value.int_repr()
    if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        scale, zero_point = torch.tensor(value.q_scale()), torch.tensor(value.q_zero_point())
    else:
        scale, zero_point = value.q_per_channel_scales(), value.q_per_channel_zero_points()
    types = (torch.float32, ints.dtype) if result else (torch.float64, torch.int64)
    return [ints, scale.to(types[0]), zero_point.to(types[1])]
