"""Exceptions of this package that are torch.onnx's as well."""

from __future__ import annotations

import importlib
from typing import TypeVar, cast

import torch.onnx

E = TypeVar("E", bound=Exception)

#: The modules with torch.onnx's exceptions: the newer exporter's first.
_MODULES = ("torch.onnx._internal.exporter._errors", "torch.onnx.errors")

#: The classes made so far, by our own class.
_MADE: dict[type[Exception], type[Exception]] = {}


def with_torch_base(kind: type[E]) -> type[E]:
    """The class with torch.onnx's class of the same name as a second base.

    Args:
        kind: A class of ``_errors``.
    """
    if kind not in _MADE:
        members = {"__module__": "pt2onnx", "__doc__": kind.__doc__}
        _MADE[kind] = type(kind.__name__, (kind, _base(kind.__name__)), members)
    return cast(type[E], _MADE[kind])


def _base(name: str) -> type[Exception]:
    base: type[Exception] = torch.onnx.OnnxExporterError
    for module in _MODULES:
        try:
            found = importlib.import_module(module)
        except ImportError:
            continue
        base = getattr(found, name, base)
        if base.__name__ == name:
            break
    return base
