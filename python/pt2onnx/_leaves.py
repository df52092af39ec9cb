"""Values within arguments, by path: ``x``, ``images.0``. Exports of TorchScript name inputs so."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

import torch

from . import _pytree
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


@dataclasses.dataclass(frozen=True)
class _Container:
    """A container: the steps to its parts, the parts, and how it is made of others."""

    steps: list[str]
    parts: list[object]
    make: Callable[[list[object]], object]


def _container(value: object) -> _Container | None:
    """The container that a value is; None if it is none."""
    if is_dict(value) and any(isinstance(key, torch.Tensor) for key in value):
        return _with_tensor_keys(value)
    if is_items(value):
        kind = cast(Callable[..., object], type(value))
        named = hasattr(value, "_fields")
        steps = [str(at) for at in range(len(value))]
        return _Container(steps, list(value), lambda parts: kind(*parts) if named else kind(parts))
    if _pytree.is_registered(value):
        pairs, spec = _pytree.one_level(value)
        steps = _steps(key for key, _ in pairs)
        return _Container(
            steps, [part for _, part in pairs], lambda parts: _pytree.unflatten(parts, spec)
        )
    if is_dict(value):
        keys = list(value)
        of = cast(Callable[..., object], type(value))

        def make(parts: list[object]) -> object:
            return of(dict(zip(keys, parts, strict=True)))

        return _Container(_steps(keys), list(value.values()), make)
    return None


def _with_tensor_keys(value: dict[object, object]) -> _Container:
    """A dict. A key that is a tensor is an input itself, before its value."""
    steps: list[str] = []
    parts: list[object] = []
    for at, (key, part) in enumerate(value.items()):
        is_tensor = isinstance(key, torch.Tensor)
        steps += [f"key_{at}", f"value_{at}"] if is_tensor else [str(key)]
        parts += [key, part] if is_tensor else [part]

    def make(made: list[object]) -> object:
        rest = iter(made)
        return {(next(rest) if isinstance(key, torch.Tensor) else key): next(rest) for key in value}

    return _Container(steps, parts, make)


def _steps(keys: Iterable[object]) -> list[str]:
    """Keys as steps of paths: distinct, and without the dots between steps."""
    taken: set[str] = set()
    return [free(str(key).replace(".", "_"), taken) for key in keys]


def free(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken. Adds it to ``taken``."""
    numbered = (f"{name}_{at}" for at in itertools.count(1))
    found = next(one for one in itertools.chain([name], numbered) if one not in taken)
    taken.add(found)
    return found


def _leaves(path: str, value: object, axes: object) -> Iterator[Leaf]:
    container = _container(value)
    if container is None or not container.parts:
        if isinstance(value, torch.Tensor):
            yield TensorLeaf(path, value, axes)
        else:
            yield Leaf(path, value, axes)
        return
    own = _axes_of_parts(value, container, axes)
    for step, part, inner in zip(container.steps, container.parts, own, strict=True):
        yield from _leaves(f"{path}.{step}", part, inner)


def _axes_of_parts(value: object, container: _Container, axes: object) -> list[object]:
    """The axes of the parts of a container, from those that were given for it."""
    count = len(container.parts)
    if isinstance(axes, Mapping):
        given = cast(Mapping[object, object], axes)
        if is_dict(value) and len(value) == count:
            return [given.get(key) for key in value]
        return [given.get(step) for step in container.steps]
    found: list[object] = []
    if is_items(axes):
        found = list(axes[:count])
    elif axes is not None and type(axes) is type(value) and (own := _container(axes)):
        found = own.parts[:count]
    return found + [None] * (count - len(found))


def rebuild(path: str, value: object, tensors: Mapping[str, object]) -> object:
    """An argument with other tensors.

    Args:
        path: The path of the argument.
        value: The argument.
        tensors: Tensors by path.
    """
    if path in tensors:
        return tensors[path]
    container = _container(value)
    if container is None:
        return value
    pairs = zip(container.steps, container.parts, strict=True)
    return container.make([rebuild(f"{path}.{step}", part, tensors) for step, part in pairs])


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


def positional_names(
    forward: Callable[..., object], count: int, keywords: Collection[str] = ()
) -> list[str]:
    """The names of the parameters that may be given by position; those of ``*args`` are numbered.

    Args:
        forward: The function.
        count: The number of positional arguments.
        keywords: The names of the other arguments. A parameter that is given by position only gets
            another name than these.

    Raises:
        TypeError: There are more arguments than parameters.
    """
    parameters = inspect.signature(forward).parameters.values()
    taken = {*keywords, *(one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY)}
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += item_names(parameter.name, count - len(names), taken)
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            names.append(free(parameter.name, taken))
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            names.append(parameter.name)
    if count > len(names):
        raise TypeError(f"there are {count} arguments, but the module takes {len(names)}")
    return names


def item_names(parameter: str, count: int, taken: set[str]) -> list[str]:
    """The names of the items of ``*args``, which differ from those in ``taken``."""
    return [free(f"{parameter}_{at}", taken) for at in range(count)]


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
