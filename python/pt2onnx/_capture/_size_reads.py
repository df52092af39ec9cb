"""Python code that reads tensors while it is traced: the tracer warns of each, also where the
tensor is computed from sizes alone, so that other values of the arguments do not change it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import functools
import sys
import types
import warnings
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Any, cast

import torch

from .._conditions import FAR
from . import _data_sizes, _patches
from ._jit import JitGraph, JitNode, JitValue

#: Operators whose results stay the same for many sizes, or change far away.
_CURVED = frozenset(
    f"aten::{name}" for name in ("pow", "exp", "exp2", "log", "log2", "log10", "log1p", "sqrt")
)

#: Ways in which Python reads a tensor.
_READS = ("__bool__", "__int__", "__index__", "__float__", "item")

#: The start of the names of inputs that are tensors of the module. No argument has a colon.
WEIGHT = "weight:"

#: The node that marks a read, which the tracer would leave out, and its attribute.
_MARK, _AT = "prim::Print", "pt2onnx_read"


@dataclasses.dataclass
class SizeReads:
    """Reads of sizes by Python code.

    ``any`` is whether there were some, ``branches`` whether one decided a branch, and ``numbers``
    are those that the code computes with. ``ints`` is whether ``int`` made a number of one,
    ``floats`` whether ``float`` or a function of ``math`` did, ``curved`` whether a power, root,
    exponential or logarithm of one was read, whose value may change at a far larger size.
    ``keys`` is whether one was the key of a dict, where the tensor that the tracer has in place of
    a size is another one than the number. ``decisions`` are the ways of the reads that may decide
    what the code does, and what they gave: the graph has a mark of each. ``places`` are their lines
    in the code.
    """

    any: bool = False
    branches: bool = False
    ints: bool = False
    floats: bool = False
    curved: bool = False
    keys: bool = False
    numbers: set[int] = dataclasses.field(default_factory=set[int])
    decisions: list[tuple[str, object]] = dataclasses.field(
        default_factory=list[tuple[str, object]]
    )
    places: list[str] = dataclasses.field(default_factory=list[str])

    def read(self, name: str, tensor: torch.Tensor, result: object, sizes: SizeReads) -> None:
        """Adds a read.

        Args:
            name: The way.
            tensor: The tensor.
            result: Its value.
            sizes: The origin of the tensor.
        """
        self.any = True
        frame = sys._getframe(2)
        if name == "__index__" and _is_subscript(frame):
            # The tracer records slices.
            return
        self.branches = self.branches or name == "__bool__"
        self.ints = self.ints or name == "__int__"
        self.floats = self.floats or name == "__float__"
        self.curved = self.curved or sizes.curved
        self.numbers |= sizes.numbers
        code = cast(Any, torch._C)
        value: JitValue = code._get_value_trace(tensor)
        mark: JitNode = code._get_tracing_state().graph().create(_MARK, [value], 0)
        mark.i_(_AT, len(self.decisions)).insertAfter(value.node())
        self.decisions.append((name, result))
        self.places.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")

    def of_data(self) -> list[str]:
        """Notes on reads of sizes that values decide, for the graph that is traced now."""
        if not self.decisions:
            return []
        users = _data_sizes.users(cast(Any, torch._C)._get_tracing_state().graph())
        at = {node.i(_AT) for node in users if node.kind() == _MARK and node.hasAttribute(_AT)}
        return [
            f"The code reads a size that values decide ({self.places[one]})" for one in sorted(at)
        ]

    def without_dynamic(self) -> SizeReads:
        """The reads where all sizes of the arguments are static."""
        return SizeReads(keys=self.keys)


def _is_subscript(frame: types.FrameType) -> bool:
    """Whether a frame is at a subscript, such as a slice. Not every version of Python shows it."""
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return name.endswith(("_SUBSCR", "_SLICE"))


def marks(graph: JitGraph) -> dict[int, JitNode]:
    """The marks of reads in a graph, by their positions in ``decisions``."""
    nodes = (node for node in graph.findAllNodes(_MARK) if node.hasAttribute(_AT))
    return {node.i(_AT): node for node in nodes}


def remove_marks(graph: JitGraph) -> None:
    """Removes the marks of reads from a graph, and what is computed for them alone."""
    nodes = [node for node in graph.findAllNodes(_MARK) if node.hasAttribute(_AT)]
    for node in nodes:
        node.destroy()
    if nodes:
        cast(Any, torch._C)._jit_pass_dce(graph)


@contextlib.contextmanager
def dropped(
    caught: list[warnings.WarningMessage], static: Mapping[str, Collection[int]]
) -> Generator[SizeReads, None, None]:
    """Drops warnings of the tracer about reads of sizes in this context.

    Args:
        caught: The warnings, to which new ones are added.
        static: The static axes of the inputs by name, whose sizes may be read.

    Returns:
        The reads, also those that the tracer does not warn of.
    """
    found = SizeReads()

    def watched(
        old: Callable[[torch.Tensor], object], name: str
    ) -> Callable[[torch.Tensor], object]:
        def read(self: torch.Tensor) -> object:
            count = len(caught)
            result = old(self)
            warned = len(caught) > count
            # ``range`` reads sizes without a warning.
            silent = name == "__index__" and cast(Any, torch.jit).is_tracing()
            if warned or silent:
                sizes = origin(self, static)
                if sizes and sizes.any:
                    found.read(name, self, result, sizes)
                if sizes:
                    del caught[count:]
            return result

        return read

    def watched_key(old: Callable[[torch.Tensor], int]) -> Callable[[torch.Tensor], int]:
        def key(self: torch.Tensor) -> int:
            if not found.keys and self.dim() == 0:
                # A tensor is another key also where the size is static.
                sizes = origin(self, None)
                found.keys = sizes is not None and sizes.any
            return old(self)

        return key

    make: dict[str, Callable[[Any], object]] = {
        name: functools.partial(watched, name=name) for name in _READS
    }
    make["__hash__"] = watched_key
    with _patches.applied("reads", make):
        yield found


def _number(constant: torch.Tensor) -> object:
    """The number of a constant. The tracer, and reads of its values, do not see that it is read."""
    code = cast(Any, torch._C)
    state = code._get_tracing_state()
    code._set_tracing_state(None)
    try:
        found: object = cast(Any, constant).tolist()
        return found
    finally:
        code._set_tracing_state(state)


def origin(tensor: torch.Tensor, static: Mapping[str, Collection[int]] | None) -> SizeReads | None:
    """The sizes and numbers from which alone the tracer has computed a tensor; None if it has
    computed it from others, or traces nothing. Sizes of static axes of inputs, and those of tensors
    of the module, are numbers, unless ``static`` is None."""
    if not cast(Any, torch.jit).is_tracing():
        return None
    try:
        pending: list[JitValue] = [cast(Any, torch._C)._get_value_trace(tensor)]
    except RuntimeError:
        return None
    found = SizeReads()
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if value.unique() in seen:
            continue
        seen.add(value.unique())
        node = value.node()
        kind = node.kind()
        if kind == "prim::Constant":
            number = value.toIValue()
            if isinstance(number, torch.Tensor) and number.dim() == 0:
                number = _number(number)
            if isinstance(number, (int, float)) and 0 < abs(number) < FAR:
                found.numbers.add(abs(int(number)))
            continue
        if kind in _data_sizes.SIZES:
            found.any = found.any or not _is_static(node, static)
            continue
        found.curved = found.curved or kind in _CURVED
        inputs = list(node.inputs())
        known = kind in ("prim::NumToTensor", "prim::ListConstruct", "prim::ListUnpack")
        if not inputs or not (known or kind.startswith("aten::")):
            return None
        pending += inputs
    return found


def _is_static(node: JitNode, static: Mapping[str, Collection[int]] | None) -> bool:
    """Whether a node reads the size of a static axis of an input."""
    tensor, *axis = node.inputs()
    if static is None or tensor.node().kind() != "prim::Param":
        return False
    name = tensor.debugName()
    is_listed = len(axis) == 1 and axis[0].toIValue() in static.get(name, ())
    return is_listed or name.startswith(WEIGHT)
