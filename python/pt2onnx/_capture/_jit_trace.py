"""Traces by ``torch.jit.trace``, of modules that a ``ModuleTrace`` cannot hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch

from . import _script
from ._jit import JitGraph
from ._trace_code import Package, TraceCode


@dataclasses.dataclass
class JitTrace(TraceCode):
    """A trace by ``torch.jit.trace``."""

    module: Any

    def __call__(self, *tensors: torch.Tensor) -> object:
        """Runs the trace."""
        return self.module(*tensors)

    def graphs(self) -> Iterator[JitGraph]:
        """The graphs of its methods."""
        return _script.graphs(self.module)

    @property
    def inlined_graph(self) -> JitGraph:
        """A copy of its graph, without calls of methods."""
        found: JitGraph = self.module.inlined_graph
        return found

    def keep_reads(self) -> None:
        """Keeps nothing: ``reads`` has none."""

    def package(self) -> Package:
        """The archive."""
        return _script.of_model(self.module, (), {}, None).package


def trace(module: torch.nn.Module, examples: Sequence[torch.Tensor]) -> JitTrace:
    """A trace of a module.

    Args:
        module: The module, of tensors.
        examples: Its arguments.

    Raises:
        Exception: The errors of PyTorch.
    """
    tracer = cast(Any, torch.jit).trace
    return JitTrace(tracer(module, tuple(examples), check_trace=False, strict=False))
