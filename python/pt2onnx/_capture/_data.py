"""``x.data`` in code that is captured.

torch.export and the tracer do not see what it reads and writes: they take the result for a constant
of the example, and go on with the old tensor after ``x.data = y``.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Generator
from typing import Any

import torch

from .._state import Snapshot
from . import _patches

#: The descriptor of ``data``.
_DATA: Any = torch.Tensor.data


class ResizedWeight(Exception):
    """A weight gets another shape or element type."""


@contextlib.contextmanager
def followed(
    module: torch.nn.Module, snapshot: Snapshot | None = None
) -> Generator[None, None, None]:
    """In this context, ``x.data`` is ``x.detach()``, and ``x.data = y`` is a copy into a weight of
    the module, which the snapshot saves, and makes of any other tensor what ``y`` is."""

    def write(x: torch.Tensor, y: torch.Tensor) -> None:
        name = _weight_name(module, x)
        if name is None:
            _DATA.__set__(x, y)
            _stand_for(x, y)
            return
        if x.shape != y.shape or x.dtype != y.dtype:
            raise ResizedWeight(
                f"`forward` gives the weight `{name}` another shape or element type: a model has "
                "no such state"
            )
        if snapshot:
            snapshot.before_write(x)
        x.detach().copy_(y.detach())

    def data(_: object) -> object:
        # A function of C leaves no frame between a node and the line of the user.
        return property(torch.Tensor.detach, write)

    with _patches.applied("data", {"data": data}):
        yield


def _weight_name(module: torch.nn.Module, tensor: torch.Tensor) -> str | None:
    for named in (module.named_parameters, module.named_buffers):
        for name, weight in named():
            if weight is tensor:
                return name
    return None


def _stand_for(x: torch.Tensor, y: torch.Tensor) -> None:
    """From now on, what a capture knows of ``y`` is that of ``x``."""
    tracer: Any = torch._C
    if tracer._get_tracing_state():
        tracer._set_value_trace(x, tracer._get_value_trace(y))
        return
    proxies = importlib.import_module("torch.fx.experimental.proxy_tensor")
    if mode := proxies.get_proxy_mode():
        found = proxies.get_proxy_slot(y, mode.tracer)
        mode.tracer.tensor_tracker[x] = found
