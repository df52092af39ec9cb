"""``int``, ``float`` and functions of ``math`` of sizes while a module is traced:
``int(windows.shape[0] / (h * w / 16))`` is a number of Python, which the trace has as a constant.
"""

from __future__ import annotations

import contextlib
import math
import sys
import types
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Any, cast

import torch

from . import _patches, _size_reads

#: A function of a tensor of one number.
Function = Callable[[torch.Tensor], torch.Tensor]


def _whole(function: Function) -> Function:
    def compute(number: torch.Tensor) -> torch.Tensor:
        return function(number).to(torch.int64)

    return compute


def _real(function: Function) -> Function:
    def compute(number: torch.Tensor) -> torch.Tensor:
        return function(number.to(torch.float64))

    return compute


#: Functions of ``math`` for tensors of one number.
_FUNCTIONS: dict[str, Function] = {
    **{name: _whole(getattr(torch, name)) for name in ("floor", "ceil", "trunc")},
    **{name: _real(getattr(torch, name)) for name in ("sqrt", "exp", "log", "log2", "log10")},
}

#: Those in place of types.
_TYPES: dict[type, Function] = {int: _whole(torch.trunc), float: _real(torch.clone)}


def _is_of_sizes(args: Sequence[Any], static: Mapping[str, Collection[int]]) -> bool:
    """Whether arguments are one tensor that is computed from dynamic sizes.

    Args:
        args: The arguments.
        static: The static axes of the inputs by name.
    """
    if len(args) != 1 or not isinstance(args[0], torch.Tensor) or args[0].dim() != 0:
        return False
    sizes = _size_reads.origin(args[0], static)
    return sizes is not None and sizes.any


class _Kind(type):
    """The class of a class in place of ``int`` or ``float``, whose call may return a tensor.
    ``own`` is that type, ``static`` are the static axes of the inputs by name."""

    own: type
    static: Mapping[str, Collection[int]]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if _is_of_sizes(args, cls.static):
            return _TYPES[cls.own](args[0])
        return cls.own(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.own, name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.own)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.own)

    def __eq__(cls, other: object) -> bool:
        return other is cls.own or other is cls

    def __hash__(cls) -> int:
        return hash(cls.own)


class _Math:
    """In place of the module ``math``."""

    def __init__(self, static: Mapping[str, Collection[int]]) -> None:
        self._static = static

    def __getattr__(self, name: str) -> Any:
        function = getattr(math, name)
        return _function(function, self._static) if name in _FUNCTIONS else function


def _function(
    function: Callable[..., object], static: Mapping[str, Collection[int]]
) -> Callable[..., object]:
    """A function of ``math`` that may return a tensor."""

    def compute(*args: Any) -> object:
        if _is_of_sizes(args, static):
            return _FUNCTIONS[function.__name__](args[0])
        return function(*args)

    return compute


@contextlib.contextmanager
def kept(
    module: torch.nn.Module, static: Mapping[str, Collection[int]]
) -> Generator[None, None, None]:
    """In this context, ``int``, ``float`` and functions of ``math`` of a tensor that is computed
    from dynamic sizes are tensors, in the files of a module's classes and of the functions in them.

    Args:
        module: The module.
        static: The static axes of the inputs by name.
    """
    new: dict[str, object] = {
        own.__name__: _Kind(own.__name__, (), {"own": own, "static": static}) for own in _TYPES
    }
    with contextlib.ExitStack() as stack:
        for file in _files(module):
            for name, value in list(vars(file).items()):
                if value is math:
                    stack.enter_context(_patches.replaced(file, name, _Math(static)))
                elif name in _FUNCTIONS and value is getattr(math, name):
                    own = _function(cast("Callable[..., object]", value), static)
                    stack.enter_context(_patches.replaced(file, name, own))
            for name, value in new.items():
                if name not in vars(file):
                    stack.enter_context(_patches.replaced(file, name, value))
        yield


def _files(module: torch.nn.Module) -> list[types.ModuleType]:
    """The files of the classes of a module and of the functions in them, without those of
    torch."""
    classes = {base for part in module.modules() for base in type(part).__mro__}
    names = {cls.__module__ for cls in classes}
    for name in list(names):
        values = vars(sys.modules[name]).values() if name in sys.modules else ()
        functions = (value for value in values if isinstance(value, types.FunctionType))
        own = name.partition(".")[0]
        names.update(f.__module__ for f in functions if f.__module__.partition(".")[0] == own)
    others = ("builtins", "torch", "typing", "abc", "collections")
    own_names = (name for name in names if name.partition(".")[0] not in others)
    return [sys.modules[name] for name in own_names if name in sys.modules]
