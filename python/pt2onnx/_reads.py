"""Which inputs torch.onnx's exporter of TorchScript keeps: those of which the code reads more than types and known sizes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from typing import Any

from . import _script, _trace, _ways

#: Operators that read the sizes of a tensor, or its type.
_SIZES = frozenset(f"aten::{name}" for name in ("size", "sym_size", "dim", "ndimension", "numel", "len", "stride")) | frozenset(
    {"aten::is_floating_point", "aten::is_complex", "prim::dtype", "prim::device", "prim::layout", "prim::shape", "prim::is_cuda"}
)

#: Operators that read the sizes of an input and make another tensor.
_LIKE = frozenset(
    f"aten::{name}" for name in ("zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_empty", "new_full", "_dim_arange")
)

#: The same, if the number that they fill with is known. Sizes of tensors without dimensions count as read.
_FILLS = frozenset({"aten::full_like", "aten::fill"})

#: Operators that replace all elements; the last if the number is known.
_OVERWRITE = frozenset({"aten::zero_", "aten::set_", "aten::fill_"})

#: Operators whose results are the tensor itself.
_SAME = frozenset({"aten::detach", "aten::alias", "prim::data", "aten::data"})


def kept(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int) -> list[int]:
    """The positions of the inputs that the code reads, among ``count`` inputs; none if that is not known."""
    leaves, reads = _of_script(model, args, kwargs) if _script.is_one(model) else _of_module(model, args, kwargs)
    inputs = [(leaf, read) for leaf, read in zip(leaves, reads) if leaf.is_tensor or type(leaf.value) in (bool, int, float)]
    found = [read for leaf, read in inputs for _ in _script.parts(leaf.value)]
    if len(found) != count:
        found = [read for leaf, read in inputs if leaf.is_tensor for _ in _script.parts(leaf.value)]
    return [at for at, read in enumerate(found) if read] if len(found) == count else []


def _of_script(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[_script.Leaf], list[bool]]:
    """The values within the arguments, and whether the code reads them. That of nested arguments is not known."""
    import torch

    graph = model.inlined_graph.copy()
    inputs = list(graph.inputs())[1 if isinstance(model, torch.jit.ScriptModule) else 0 :]
    schema = getattr(model, "forward", model).schema
    parameters = [argument.name for argument in schema.arguments][-len(inputs) :]
    leaves = _script.flatten(_script.bound(parameters, args, kwargs), None)
    scalars = {leaf.path for leaf in leaves if leaf.is_tensor and leaf.value.dim() == 0}
    reads = dict(zip(parameters, _read(graph, inputs, [name in scalars for name in parameters])))
    return leaves, [reads.get(leaf.path, False) for leaf in leaves]


def _of_module(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[_script.Leaf], list[bool]]:
    """The values within the arguments, and whether a trace reads them."""
    names = _trace._names(getattr(model, "forward", model), len(args))
    given = _script.flatten({**dict(zip(names, args)), **kwargs}, None)
    args, kwargs = _ways.numbers_as_tensors(args, dict(kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            graph = _trace.graph(model, args, dict(kwargs))
        except Exception:
            # What cannot be traced was captured in another way.
            return [], []
    inputs = list(graph.inputs())
    tensors = [leaf.is_tensor or type(leaf.value) in (bool, int, float) for leaf in given]
    inputs = inputs[len(inputs) - sum(tensors) :]
    scalars = [not leaf.is_tensor or leaf.value.dim() == 0 for leaf, is_input in zip(given, tensors) if is_input]
    reads = iter(_read(graph, inputs, scalars))
    return given, [is_input and next(reads) for is_input in tensors]


def _read(graph: Any, inputs: list[Any], scalars: list[bool]) -> list[bool]:
    """Whether a graph reads more of its inputs than types and sizes. ``scalars`` says which inputs have no dimensions."""
    import torch

    # Without nodes on which nothing depends. One that writes stays, if what it writes into is used.
    for name in ("_jit_pass_peephole_list_idioms", "_jit_pass_dce"):
        with contextlib.suppress(AttributeError, TypeError):
            getattr(torch._C, name)(graph)
    return [_is_read(value, scalar, {}) for value, scalar in zip(inputs, scalars)]


def _is_read(value: Any, scalar: bool, known: dict[int, bool], depth: int = 0) -> bool:
    """Whether more of a value is read than its type and sizes. ``depth`` is 0 for inputs."""
    if value.unique() in known:
        return known[value.unique()]
    known[value.unique()] = False
    uses = list(value.uses())
    first = [use.user for use in uses if use.offset == 0]
    overwritten = any(
        node.kind() in _OVERWRITE and (node.kind() != "aten::fill_" or _is_known(list(node.inputs())[1])) for node in first
    )
    found = not overwritten and any(_counts(use, scalar, known, depth) for use in uses)
    known[value.unique()] = found
    return found


def _counts(use: Any, scalar: bool, known: dict[int, bool], depth: int) -> bool:
    node, kind = use.user, use.user.kind()
    if kind in _SIZES or _decided(node):
        return False
    if depth == 0 and use.offset == 0:
        if kind in _LIKE:
            return False
        if kind in _FILLS:
            return scalar or not _is_known(list(node.inputs())[1])
        if kind in _SAME:
            return any(_is_read(output, scalar, known) for output in node.outputs())
    outputs = list(node.outputs())
    writes = kind.endswith("_") and not kind.endswith("__")
    # A node without uses is there for what it changes: a list that it appends to.
    unused = not all(list(output.uses()) for output in outputs)
    if not outputs or unused or writes or list(node.blocks()) or not kind.startswith("aten::"):
        return True
    return any(_is_read(output, False, known, depth + 1) for output in outputs)


def _decided(node: Any) -> bool:
    """Whether a node is in a branch that types and sizes decide on."""
    while (block := node.owningBlock()) is not None and (owner := block.owningNode()) is not None and owner.kind() != "prim::Param":
        if owner.kind() == "prim::If" and _of_types(next(iter(owner.inputs()))):
            return True
        node = owner
    return False


def _of_types(value: Any) -> bool:
    """Whether a value follows from types, sizes and constants."""
    node = value.node()
    inputs = list(node.inputs())
    # The length of a list is not known where code appends to it.
    of_tensor = node.kind() in _SIZES and inputs[0].type().kind() == "TensorType"
    if of_tensor or node.kind() in {"prim::Constant", "aten::__is__", "aten::__isnot__"}:
        return True
    is_number = node.kind().startswith("aten::") and value.type().kind() != "TensorType"
    return bool(is_number and inputs) and all(map(_of_types, inputs))


def _is_known(value: Any) -> bool:
    return bool(value.node().kind() == "prim::Constant")
