"""Runs captured programs, and compares the shapes of their values with those that they record.

The model has the recorded shapes: ``tensor_split`` has pieces of other sizes where PyTorch runs the
program at other sizes, but not in the model.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from .. import _conditions, _pytree
from .._state import leaving_transforms


class OtherShapes(Exception):
    """A value has another shape than the program records."""


def runner(program: torch.export.ExportedProgram) -> Callable[..., object]:
    """A function that computes what a program does, at all sizes at which its values have the
    recorded shapes.

    Raises:
        Exception: torch cannot run it.
    """
    tree = importlib.import_module("torch.export._tree_utils")
    specs = program.graph_signature.input_specs
    inputs = [node for node in program.graph.nodes if node.op == "placeholder"]
    known: dict[str, Any] = {**program.constants, **program.state_dict}
    pairs = list(zip(specs, inputs, strict=True))
    user = [node for spec, node in pairs if spec.kind.name == "USER_INPUT"]
    rest = [(spec, node) for spec, node in pairs if node not in user]
    lifted = {node: known[cast(str, spec.target)] for spec, node in rest}
    # Programs may write into buffers, but not into parameters.
    written = {node for spec, node in pairs if spec.kind.name in ("BUFFER", "CONSTANT_TENSOR")}
    call_spec: Any = program.call_spec
    out_spec = cast(_pytree.Spec, call_spec.out_spec)
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    interpreter = _Interpreter(program.graph_module, user)

    def run(*args: object, **kwargs: object) -> object:
        given = tree.reorder_kwargs(kwargs, call_spec.in_spec)
        values = dict(zip(user, _pytree.leaves((args, given)), strict=True))
        own: dict[torch.fx.Node, object] = dict(lifted)
        own.update({node: lifted[node].clone() for node in written})
        # Graphs enter transforms of functorch node by node.
        with torch.no_grad(), leaving_transforms():
            results = interpreter.run(*({**own, **values}[node] for node in inputs))
        pairs = zip(kinds, results, strict=True)
        leaves = [result for kind, result in pairs if kind == "USER_OUTPUT"]
        return _pytree.unflatten(leaves, out_spec)

    return run


class _Interpreter(torch.fx.Interpreter):
    """Runs a graph, and compares the shapes of its values.

    Args:
        module: The graph.
        inputs: The inputs of the user, by whose sizes those of values are known.
    """

    def __init__(self, module: torch.fx.GraphModule, inputs: Sequence[torch.fx.Node]) -> None:
        super().__init__(module)
        nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        found = {node: sizes for node in nodes if (sizes := _sizes(node)) is not None}
        self._shapes = _Shapes({node: _sizes(node) or [] for node in inputs}, found)

    def run_node(self, n: torch.fx.Node) -> object:
        """The value of a node."""
        value: object = super().run_node(n)
        self._shapes.add(n, value)
        return value


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


class _Shapes:
    """Compares shapes.

    Args:
        inputs: The recorded sizes of the inputs.
        values: Those of other values.
    """

    def __init__(
        self,
        inputs: Mapping[torch.fx.Node, list[object]],
        values: Mapping[torch.fx.Node, list[object]],
    ) -> None:
        self._inputs, self._values = inputs, values
        exprs = {size for sizes in values.values() for size in sizes}
        self._exprs = {size for size in exprs if not isinstance(size, int)}
        self._given: dict[torch.fx.Node, object] = {}
        self._known: dict[object, object] = {}

    def add(self, node: torch.fx.Node, value: object) -> None:
        """Compares a value, or takes the sizes of an input.

        Raises:
            OtherShapes: They differ.
        """
        if node in self._inputs:
            self._given[node] = value
            if len(self._given) == len(self._inputs):
                self._bind(self._given)
                self._given = {}
        elif node in self._values:
            expected = [self._known.get(size, size) for size in self._values[node]]
            own = _shape(value)
            for size, other in zip(expected, own, strict=True):
                if size is not None and size != other:
                    raise OtherShapes(f"{tuple(expected)} became {tuple(own)}")

    def _bind(self, given: Mapping[torch.fx.Node, object]) -> None:
        point: dict[str, int] = {}
        for node, value in given.items():
            for size, own in zip(self._inputs[node], _shape(value), strict=False):
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
