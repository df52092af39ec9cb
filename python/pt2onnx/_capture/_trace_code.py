"""The code of a trace, whoever traced it."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from ._jit import JitGraph

if TYPE_CHECKING:
    from .._pt2onnx import Lent


@dataclasses.dataclass
class Package:
    """A module in TorchScript.

    ``storages`` are those that the archive lacks, by record. They are None if torch.jit.save wrote
    it, which leaves out none. ``with_stacks`` makes it again with the Python stack of each node,
    which only messages and documentation need.
    """

    archive: bytes
    storages: list[tuple[str, Lent]] | None = None
    with_stacks: Callable[[], Package] | None = None


class TraceCode(abc.ABC):
    """The code of a trace of a module, whose arguments are tensors."""

    #: Whether ``reads`` has what Python read of sizes.
    has_reads = False

    @abc.abstractmethod
    def __call__(self, *tensors: torch.Tensor) -> object:
        """Runs the trace."""

    @abc.abstractmethod
    def graphs(self) -> Iterator[JitGraph]:
        """The graphs of its methods."""

    @property
    @abc.abstractmethod
    def inlined_graph(self) -> JitGraph:
        """A copy of its graph, without calls of methods. The last inputs are the arguments."""

    @abc.abstractmethod
    def package(self) -> Package:
        """The archive."""

    @abc.abstractmethod
    def keep_reads(self) -> None:
        """Keeps what ``reads`` computes with, from the marks in the graph."""

    def reads(self, *_: torch.Tensor) -> Sequence[torch.Tensor]:
        """The sizes that Python would read for other arguments, if it went the same way."""
        return ()

    @property
    def read_operators(self) -> int:
        """How many operators ``reads`` runs."""
        return 0

    @property
    def operators(self) -> int:
        """How many operators it runs."""
        return sum(1 for graph in self.graphs() for _ in graph.nodes())
