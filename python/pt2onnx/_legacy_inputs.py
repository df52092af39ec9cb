"""The inputs that torch.onnx's exporter of TorchScript keeps: the code reads more of them than
types and known sizes.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import cast

import torch

from . import _leaves
from ._capture import _jit
from ._capture._jit import JitGraph, JitModule, JitNode, JitUse, JitValue
from ._leaves import Leaf, TensorLeaf
from ._types import Args, Kwargs, Model

#: Operators that read the sizes of a tensor, or its type.
_SIZES = frozenset(
    (
        *("aten::size", "aten::sym_size", "aten::dim", "aten::ndimension", "aten::numel"),
        *("aten::len", "aten::stride", "aten::is_floating_point", "aten::is_complex"),
        *("prim::dtype", "prim::device", "prim::layout", "prim::shape", "prim::is_cuda"),
    )
)

#: Operators that read the sizes of an input and make another tensor.
_LIKE = frozenset(
    (
        *("aten::zeros_like", "aten::ones_like", "aten::empty_like", "aten::new_zeros"),
        *("aten::new_ones", "aten::new_empty", "aten::new_full", "aten::_dim_arange"),
    )
)

#: The same, if the number that they fill with is known. Sizes of tensors without dimensions count
#: as read.
_FILLS = frozenset(("aten::full_like", "aten::fill"))

#: Operators that replace all elements; the last if the number is known.
_OVERWRITE = frozenset(("aten::zero_", "aten::set_", "aten::fill_"))

#: Operators whose results are the tensor itself.
_SAME = frozenset(("aten::detach", "aten::alias", "prim::data", "aten::data"))

#: Operators whose results follow from types and constants.
_OF_TYPES = frozenset(("prim::Constant", "aten::__is__", "aten::__isnot__"))


def used_inputs(
    model: Model, args: Args, kwargs: Kwargs, count: int, trace: Callable[[], JitGraph]
) -> list[int]:
    """The positions of the inputs that the code reads.

    Args:
        model: The module.
        args: The positional arguments.
        kwargs: The keyword arguments.
        count: The number of inputs of the model.
        trace: Gives a graph of the module that is not one in TorchScript, whose last inputs are the
            tensors and numbers.

    Returns:
        The positions; none if they are unknown.
    """
    if _jit.is_script(model):
        leaves, reads = _of_script(model, args, kwargs)
    else:
        leaves, reads = _of_module(model, args, kwargs, trace)
    pairs = zip(leaves, reads, strict=False)
    inputs = [(leaf, read) for leaf, read in pairs if leaf.is_tensor or leaf.is_number]
    found = [read for leaf, read in inputs for _ in _leaves.components(leaf.value)]
    if len(found) != count:
        tensors = [(leaf, read) for leaf, read in inputs if leaf.is_tensor]
        found = [read for leaf, read in tensors for _ in _leaves.components(leaf.value)]
    return [at for at, read in enumerate(found) if read] if len(found) == count else []


def _of_script(model: Model, args: Args, kwargs: Kwargs) -> tuple[list[Leaf], list[bool]]:
    """The values within the arguments, and whether the code reads them; False for nested ones."""
    graph = cast(JitModule, model).inlined_graph.copy()
    inputs = list(graph.inputs())[1 if isinstance(model, torch.jit.ScriptModule) else 0 :]
    names = [argument.name for argument in _jit.schema(model).arguments]
    parameters = names[-len(inputs) :]
    leaves = _leaves.flatten(_leaves.bind(parameters, args, kwargs), None)
    scalars = {leaf.path for leaf in leaves if _is_scalar(leaf)}
    read = _read(graph, inputs, [name in scalars for name in parameters])
    reads = dict(zip(parameters, read, strict=True))
    return leaves, [reads.get(leaf.path, False) for leaf in leaves]


def _of_module(
    model: Model, args: Args, kwargs: Kwargs, trace: Callable[[], JitGraph]
) -> tuple[list[Leaf], list[bool]]:
    """The values within the arguments, and whether a trace reads them."""
    names = _leaves.positional_names(getattr(model, "forward", model), len(args), kwargs)
    given = _leaves.flatten(_leaves.by_name(names, args, kwargs), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            graph = trace()
        except Exception:
            # A module that cannot be traced was captured in another way.
            return [], []
    inputs = list(graph.inputs())
    are_inputs = [leaf.is_tensor or leaf.is_number for leaf in given]
    inputs = inputs[len(inputs) - sum(are_inputs) :]
    pairs = zip(given, are_inputs, strict=True)
    scalars = [leaf.is_number or _is_scalar(leaf) for leaf, is_input in pairs if is_input]
    reads = iter(_read(graph, inputs, scalars))
    return given, [is_input and next(reads) for is_input in are_inputs]


def _is_scalar(leaf: Leaf) -> bool:
    return isinstance(leaf, TensorLeaf) and leaf.value.dim() == 0


def _read(graph: JitGraph, inputs: Sequence[JitValue], scalars: Sequence[bool]) -> list[bool]:
    """Whether a graph reads more of its inputs than types and sizes.

    Args:
        graph: The graph, which is changed.
        inputs: Its inputs.
        scalars: Whether each has no dimensions.
    """
    # Without nodes on which nothing depends. One that writes stays, if its target is used.
    for name in ("_jit_pass_peephole_list_idioms", "_jit_pass_dce"):
        with contextlib.suppress(AttributeError, TypeError):
            getattr(torch._C, name)(graph)
    pairs = zip(inputs, scalars, strict=False)
    return [_is_read(value, scalar, {}) for value, scalar in pairs]


def _is_read(value: JitValue, scalar: bool, known: dict[int, bool], depth: int = 0) -> bool:
    """Whether more of a value is read than its type and sizes. ``depth`` is 0 for inputs."""
    if value.unique() in known:
        return known[value.unique()]
    known[value.unique()] = False
    uses = list(value.uses())
    overwritten = any(_overwrites(use.user) for use in uses if use.offset == 0)
    found = not overwritten and any(_counts(use, scalar, known, depth) for use in uses)
    known[value.unique()] = found
    return found


def _overwrites(node: JitNode) -> bool:
    if node.kind() not in _OVERWRITE:
        return False
    return node.kind() != "aten::fill_" or _is_constant(list(node.inputs())[1])


def _counts(use: JitUse, scalar: bool, known: dict[int, bool], depth: int) -> bool:
    node, kind = use.user, use.user.kind()
    if kind in _SIZES or _is_decided(node):
        return False
    if depth == 0 and use.offset == 0:
        if kind in _LIKE:
            return False
        if kind in _FILLS:
            return scalar or not _is_constant(list(node.inputs())[1])
        if kind in _SAME:
            return any(_is_read(output, scalar, known) for output in node.outputs())
    outputs = list(node.outputs())
    writes = kind.endswith("_") and not kind.endswith("__")
    # A node without uses is there for its effect: an append to a list.
    unused = not all(list(output.uses()) for output in outputs)
    if not outputs or unused or writes or list(node.blocks()) or not kind.startswith("aten::"):
        return True
    return any(_is_read(output, False, known, depth + 1) for output in outputs)


def _is_decided(node: JitNode) -> bool:
    """Whether a node is in a branch that types and sizes decide on."""
    while (block := node.owningBlock()) is not None:
        owner = block.owningNode()
        if owner is None or owner.kind() == "prim::Param":
            break
        if owner.kind() == "prim::If" and _is_of_types(next(iter(owner.inputs()))):
            return True
        node = owner
    return False


def _is_of_types(value: JitValue) -> bool:
    """Whether a value follows from types, sizes and constants."""
    node = value.node()
    inputs = list(node.inputs())
    # The length of a list is unknown where code appends to it.
    of_tensor = node.kind() in _SIZES and inputs[0].type().kind() == "TensorType"
    if of_tensor or node.kind() in _OF_TYPES:
        return True
    is_number = node.kind().startswith("aten::") and value.type().kind() != "TensorType"
    return is_number and bool(inputs) and all(map(_is_of_types, inputs))


def _is_constant(value: JitValue) -> bool:
    return value.node().kind() == "prim::Constant"
