"""Runs captured programs, and compares the shapes of their values with those that they record.

The model has the recorded shapes: ``tensor_split`` has pieces of other sizes where PyTorch runs the
program at other sizes, but not in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from .. import _conditions
from . import _torch_export

#: The name of the module that compares.
_NAME = "_recorded_shapes"


class OtherShapes(Exception):
    """A value has another shape than the program records."""


def runnable(program: torch.export.ExportedProgram) -> torch.nn.Module:
    """A program as a module that takes all sizes at which its values have the recorded shapes.

    Raises:
        Exception: torch cannot make a module of it.
    """
    module = _torch_export.runnable(program)
    if not isinstance(module, torch.fx.GraphModule):
        return module
    graph = module.graph
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    others = [node for node in graph.nodes if node.op == "call_function"]
    found = [(node, _sizes(node)) for node in others]
    compared = [(node, sizes) for node, sizes in found if sizes is not None]
    shapes = _Shapes([_sizes(node) or [] for node in inputs], [sizes for _, sizes in compared])
    module.add_module(_NAME, shapes)
    if inputs:
        with graph.inserting_after(inputs[-1]):
            graph.call_module(_NAME, (None, *inputs))
    for at, (node, _) in enumerate(compared):
        with graph.inserting_after(node):
            graph.call_module(_NAME, (at, node))
    module.recompile()
    return module


def _sizes(node: torch.fx.Node) -> list[object] | None:
    """The recorded sizes of a tensor, or a number that is computed from sizes: ints and expressions
    of SymPy. None for other values."""
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return [value.node.expr]
    if not isinstance(value, torch.Tensor) or value.is_sparse:
        return None
    shape = cast(Sequence[Any], value.shape)
    return [size if isinstance(size, int) else size.node.expr for size in shape]


class _Shapes(torch.nn.Module):
    """Compares shapes.

    Args:
        inputs: The recorded sizes of the inputs.
        values: Those of other values.
    """

    def __init__(self, inputs: list[list[object]], values: list[list[object]]) -> None:
        super().__init__()
        self._inputs, self._values = inputs, values
        self._exprs = {size for sizes in values for size in sizes if not isinstance(size, int)}
        self._known: dict[object, object] = {}

    def forward(self, at: int | None, *values: object) -> None:
        """Compares a value, or takes the sizes of the inputs.

        Raises:
            OtherShapes: They differ.
        """
        if at is None:
            self._bind(values)
            return
        expected = [self._known.get(size, size) for size in self._values[at]]
        for size, own in zip(expected, _shape(values[0]), strict=True):
            if size is not None and size != own:
                raise OtherShapes(f"{tuple(expected)} became {tuple(_shape(values[0]))}")

    def _bind(self, values: tuple[object, ...]) -> None:
        point: dict[str, int] = {}
        for sizes, value in zip(self._inputs, values, strict=True):
            for size, own in zip(sizes, _shape(value), strict=False):
                if getattr(size, "is_Symbol", False):
                    point.setdefault(str(size), own)
        self._known = {expr: _value(expr, point) for expr in self._exprs}


def _value(expr: object, point: dict[str, int]) -> object:
    try:
        return _conditions.value(expr, point)
    except ZeroDivisionError:
        return None


def _shape(value: object) -> list[int]:
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    return [value] if isinstance(value, int) else []
