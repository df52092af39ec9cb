"""``int`` of sizes while a module is traced: ``int(windows.shape[0] / (h * w / 16))`` is a number
of Python, which the trace has as a constant."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Collection, Generator, Mapping
from typing import Any

import torch

from . import _patches, _size_reads


class _Kind(type):
    """The class of a class in place of ``int``, whose call may return a tensor. ``static`` are the
    static axes of the inputs by name."""

    static: Mapping[str, Collection[int]]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], torch.Tensor) and args[0].dim() == 0:
            sizes = _size_reads.origin(args[0], cls.static)
            if sizes and sizes.any:
                return args[0].trunc().to(torch.int64)
        return int(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        return getattr(int, name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, int)

    def __eq__(cls, other: object) -> bool:
        return other is int or other is cls

    def __hash__(cls) -> int:
        return hash(int)


@contextlib.contextmanager
def kept(
    module: torch.nn.Module, static: Mapping[str, Collection[int]]
) -> Generator[None, None, None]:
    """In this context, ``int`` of a tensor that is computed from dynamic sizes is a tensor, in the
    files of a module's classes and of the functions in them.

    Args:
        module: The module.
        static: The static axes of the inputs by name.
    """
    kind = _Kind("int", (), {"static": static})
    with contextlib.ExitStack() as stack:
        for file in _files(module):
            stack.enter_context(_patches.replaced(file, "int", kind))
        yield


def _files(module: torch.nn.Module) -> list[types.ModuleType]:
    """The files of the classes of a module and of the functions in them, without those of torch and
    those that define another ``int``."""
    classes = {base for part in module.modules() for base in type(part).__mro__}
    names = {cls.__module__ for cls in classes}
    for name in list(names):
        values = vars(sys.modules[name]).values() if name in sys.modules else ()
        functions = (value for value in values if isinstance(value, types.FunctionType))
        own = name.partition(".")[0]
        names.update(f.__module__ for f in functions if f.__module__.partition(".")[0] == own)
    others = ("builtins", "torch", "typing", "abc", "collections")
    own_names = (name for name in names if name.partition(".")[0] not in others)
    found = [sys.modules[name] for name in own_names if name in sys.modules]
    return [file for file in found if "int" not in vars(file)]
