"""Numbers that traces keep as constants: ``n // 2`` has a tensor of 2, which is marked as a number.
The mark is lost where a trace is saved, so that the tensor gets a type that gives the same result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable

import torch

from ._jit import JitGraph, JitNode, JitValue

#: Small types of each category: beside a tensor of them, only a marked one is a number.
_SMALL = {torch.int64: torch.int8, torch.float64: torch.float16, torch.float32: torch.float16}


@contextlib.contextmanager
def typed(graphs: Iterable[JitGraph]) -> Generator[None, None, None]:
    """In this context, constants that are numbers have the type of the results of their uses."""
    changed: list[tuple[JitNode, torch.Tensor]] = []
    try:
        for graph in graphs:
            for node in graph.findAllNodes("prim::Constant"):
                if _is_tensor(node):
                    tensor = node.t("value")
                    dtype = _type(node, tensor)
                    if dtype not in (None, tensor.dtype):
                        node.t_("value", tensor.to(dtype))
                        changed.append((node, tensor))
        yield
    finally:
        for node, tensor in changed:
            node.t_("value", tensor)


def _type(node: JitNode, tensor: torch.Tensor) -> torch.dtype | None:
    """The type in which a number is used; None for other values, and if uses have other types."""
    small = _SMALL.get(tensor.dtype)
    if tensor.dim() or small is None:
        return None
    if torch.result_type(torch.zeros((), dtype=small), tensor) != small:
        return None
    found: set[torch.dtype] = set()
    for use in node.output().uses():
        others = [value for at, value in enumerate(use.user.inputs()) if at != use.offset]
        operands = [one for value in others if (one := _like(value)) is not None]
        if len(operands) != 1 or not use.user.kind().startswith("aten::"):
            return None
        found.add(torch.result_type(operands[0], tensor))
    return found.pop() if len(found) == 1 else None


def _like(value: JitValue) -> torch.Tensor | None:
    """A tensor of the type of a value, without memory; None if that is not known."""
    type = value.type()
    if type.kind() != "TensorType":
        return None
    dtype, rank = type.dtype(), type.dim()
    if dtype is None or rank is None:
        return None
    return torch.empty((1,) * rank, dtype=dtype, device="meta")


@contextlib.contextmanager
def numbered(graph: JitGraph) -> Generator[list[torch.Tensor], None, None]:
    """In this context, constants that are tensors are their positions in the list of them: the text
    of a graph would not have their values."""
    nodes = [node for node in graph.findAllNodes("prim::Constant") if _is_tensor(node)]
    tensors = [node.t("value") for node in nodes]
    try:
        for at, node in enumerate(nodes):
            node.removeAttribute("value").i_("tensor", at)
        yield tensors
    finally:
        for node, tensor in zip(nodes, tensors, strict=True):
            node.removeAttribute("tensor").t_("value", tensor)


def _is_tensor(node: JitNode) -> bool:
    return node.hasAttribute("value") and node.kindOf("value") == "t"
