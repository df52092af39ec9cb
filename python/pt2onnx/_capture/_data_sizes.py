"""Sizes that the values of tensors decide, such as those of ``nonzero``, in the graph that the
tracer makes.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ._jit import JitGraph, JitNode, JitValue

#: Operators that read the sizes of a tensor.
SIZES = frozenset(("aten::size", "aten::sym_size", "aten::_shape_as_tensor", "aten::numel"))

#: Operators whose results have as many elements as values decide.
_COUNTED = (
    *("aten::nonzero", "aten::nonzero_numpy", "aten::argwhere", "aten::masked_select"),
    *("aten::_unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"),
    *("aten::unique_dim_consecutive", "aten::bincount", "torchvision::nms"),
)

_MASKS = (torch.bool, torch.uint8)

#: Operators that make an integer of a tensor.
_INTEGERS = ("aten::Int", "aten::IntImplicit", "aten::ScalarImplicit")

#: Kinds of nodes that pass their inputs on.
_PLAIN = frozenset(("prim::NumToTensor", "prim::ListConstruct", "prim::ListUnpack"))


def users(graph: JitGraph) -> Iterator[JitNode]:
    """The nodes that use a number which is computed from such a size."""
    seen: set[tuple[int, bool]] = set()
    # The values that have such sizes, and those that are such numbers.
    pending = [(value, False) for node in _sources(graph) for value in node.outputs()]
    pending += [(node.output(), True) for node in _integers_of_values(graph)]
    while pending:
        value, is_number = pending.pop()
        if (value.unique(), is_number) in seen:
            continue
        seen.add((value.unique(), is_number))
        for node in (use.user for use in value.uses()):
            if is_number:
                yield node
            outputs = list(node.outputs())
            if node.kind() in _PLAIN:
                pending += [(output, is_number) for output in outputs]
            elif node.kind() in SIZES:
                pending += [(output, True) for output in outputs]
            else:
                with_sizes = [one for one in outputs if _has_sizes(one)]
                pending += [(one, False) for one in with_sizes]
                if is_number:
                    pending += [(one, True) for one in outputs if one not in with_sizes]


def _sources(graph: JitGraph) -> Iterator[JitNode]:
    for kind in _COUNTED:
        yield from graph.findAllNodes(kind)
    # With one argument.
    yield from (one for one in graph.findAllNodes("aten::where") if len([*one.inputs()]) == 1)
    for node in graph.findAllNodes("aten::index"):
        types = (one.type() for one in list(node.inputs())[1].node().inputs())
        if any(one.kind() == "TensorType" and one.dtype() in _MASKS for one in types):
            yield node
    for node in graph.findAllNodes("aten::repeat_interleave"):
        if any(one.type().kind() == "TensorType" for one in list(node.inputs())[1:]):
            yield node


def _integers_of_values(graph: JitGraph) -> Iterator[JitNode]:
    """The nodes that make an integer of a tensor which is not computed from sizes alone."""
    known: set[int] = set()
    for kind in _INTEGERS:
        for node in graph.findAllNodes(kind):
            if _has_values(next(iter(node.inputs())), known):
                yield node


def _has_values(value: JitValue, known: set[int]) -> bool:
    """Whether a number is computed from values of tensors.

    Args:
        value: The number.
        known: Numbers that are not, to which those are added that it is computed from.
    """
    seen: set[int] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if value.unique() in seen or value.unique() in known:
            continue
        seen.add(value.unique())
        node = value.node()
        kind = node.kind()
        if kind == "prim::Constant" or kind in SIZES:
            continue
        inputs = list(node.inputs())
        if not inputs or not (kind in _PLAIN or kind.startswith("aten::")):
            return True
        pending += inputs
    known |= seen
    return False


def _has_sizes(value: JitValue) -> bool:
    """Whether a value is a tensor of one dimension or more, or a list of them."""
    kind = value.type().kind()
    return kind == "ListType" or (kind == "TensorType" and value.type().dim() != 0)
