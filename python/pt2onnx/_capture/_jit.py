"""The objects of TorchScript that the captures use: torch's own stubs lack most of their
methods."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import re
import warnings
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Protocol, TypeGuard

import torch

from .. import _frames

#: Lines of Python, the innermost first.
Lines = tuple[tuple[str, int], ...]


class JitType(Protocol):
    """A type. Only tensors have an element type, a number of dimensions and sizes."""

    def kind(self) -> str: ...
    def dtype(self) -> torch.dtype | None: ...
    def dim(self) -> int | None: ...
    def sizes(self) -> Sequence[int] | None: ...


class JitValue(Protocol):
    """A value of a graph."""

    def node(self) -> JitNode: ...
    def type(self) -> JitType: ...
    def uses(self) -> Sequence[JitUse]: ...
    def unique(self) -> int: ...
    def debugName(self) -> str: ...
    def setType(self, type: JitType) -> None: ...
    def replaceAllUsesWith(self, other: JitValue) -> None: ...
    def toIValue(self) -> object: ...


class JitUse(Protocol):
    """A use of a value."""

    user: JitNode
    offset: int


class JitBlock(Protocol):
    """A block of a node."""

    def nodes(self) -> Iterable[JitNode]: ...
    def owningNode(self) -> JitNode | None: ...


class JitNode(Protocol):
    """A node of a graph."""

    def kind(self) -> str: ...
    def inputs(self) -> Iterable[JitValue]: ...
    def outputs(self) -> Iterable[JitValue]: ...
    def output(self) -> JitValue: ...
    def blocks(self) -> Iterable[JitBlock]: ...
    def owningBlock(self) -> JitBlock | None: ...
    def hasAttribute(self, name: str) -> bool: ...
    def hasUses(self) -> bool: ...
    def isAfter(self, other: JitNode) -> bool: ...
    def sourceRange(self) -> str: ...
    def schema(self) -> str: ...
    def pyname(self) -> str: ...
    def g(self, name: str) -> JitGraph: ...
    def kindOf(self, name: str) -> str: ...
    def t(self, name: str) -> torch.Tensor: ...
    def t_(self, name: str, value: torch.Tensor) -> JitNode: ...
    def i(self, name: str) -> int: ...
    def i_(self, name: str, value: int) -> JitNode: ...
    def insertAfter(self, other: JitNode) -> JitNode: ...
    def removeAttribute(self, name: str) -> JitNode: ...
    def destroy(self) -> None: ...


class JitGraph(Protocol):
    """A graph."""

    def inputs(self) -> Iterable[JitValue]: ...
    def nodes(self) -> Iterable[JitNode]: ...
    def outputs(self) -> Iterable[JitValue]: ...
    def copy(self) -> JitGraph: ...
    def findAllNodes(self, kind: str) -> list[JitNode]: ...
    def create(self, kind: str, inputs: list[JitValue], outputs: int) -> JitNode: ...
    def insertNode(self, node: JitNode) -> JitNode: ...
    def registerOutput(self, value: JitValue) -> None: ...
    def eraseOutput(self, at: int) -> None: ...
    def makeMultiOutputIntoTuple(self) -> None: ...
    def insertGraph(self, graph: JitGraph, inputs: list[JitValue]) -> list[JitValue]: ...
    def insert_point_guard(self, node: JitNode) -> contextlib.AbstractContextManager[None]: ...


class JitArgument(Protocol):
    """A parameter of a schema."""

    name: str
    type: JitType
    default_value: object

    def has_default_value(self) -> bool: ...


class JitSchema(Protocol):
    """The schema of a method or function."""

    arguments: Sequence[JitArgument]


class JitModule(Protocol):
    """A module or function in TorchScript."""

    @property
    def inlined_graph(self) -> JitGraph: ...
    @property
    def code(self) -> str: ...


def lines(source_range: str) -> Lines:
    """The lines of Python in the range of a node, up to the call of this package."""
    found = (re.match(r"(.+)\((\d+)\): ", frame) for frame in source_range.splitlines())
    frames = ((frame[1], int(frame[2])) for frame in found if frame)
    root = _frames.package_root()
    return tuple(itertools.takewhile(lambda line: not line[0].startswith(root), frames))


def is_script(model: object) -> TypeGuard[torch.jit.ScriptModule]:
    """Whether this is a module or a function in TorchScript. A function has fewer methods."""
    return isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction))


def schema(model: Any) -> JitSchema:
    """The schema of a function, or of a module's ``forward``."""
    found: JitSchema = getattr(model, "forward", model).schema
    return found


@contextlib.contextmanager
def forgetting_failures() -> Generator[None, None, None]:
    """Removes the types of modules whose code cannot be compiled in this context. torch would give
    another error for them the next time: their methods are there already."""
    store = getattr(importlib.import_module("torch.jit._recursive"), "concrete_type_store", None)
    types = {cls: list(known) for cls, known in getattr(store, "type_store", {}).items()}
    try:
        yield
    except BaseException:
        if store is not None:
            store.type_store.clear()
            store.type_store.update(types)
        raise


def check_syntax(model: object) -> None:
    """Raises the error of torch.jit.script if ``forward`` of a module has syntax that TorchScript
    lacks: torch first looks through all modules within it, which takes long."""
    forward: object = getattr(type(model), "forward", None)
    if not isinstance(model, torch.nn.Module) or hasattr(forward, "_torchscript_modifier"):
        return
    if isinstance(model, torch.jit.ScriptModule) or "forward" in vars(model):
        return
    try:
        frontend: Any = importlib.import_module("torch.jit.frontend")
        frontend.get_jit_def(forward, "forward", self_name=type(model).__name__)
    except Exception as error:
        if type(error).__name__ in ("NotSupportedError", "UnsupportedNodeError"):
            raise


def ignore_deprecation() -> None:
    """Ignores the warnings that TorchScript is deprecated."""
    for kind in (FutureWarning, DeprecationWarning):
        warnings.filterwarnings("ignore", message=r"`torch\.jit\.", category=kind)
