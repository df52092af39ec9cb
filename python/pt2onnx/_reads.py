"""Which inputs torch.onnx's exporter of TorchScript keeps: those of which the code reads more than types and known sizes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from typing import Any

from . import _script, _sources, _trace

#: Operators that read the type and the sizes of their first argument, but no elements.
_OF_TYPES = frozenset(
    "aten::" + name
    for name in (
        "size", "sym_size", "dim", "ndimension", "numel", "len", "stride", "is_floating_point", "is_complex",
        "zero_", "zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_empty", "new_full",
    )
) | {"prim::dtype", "prim::device", "prim::layout", "prim::shape", "prim::is_cuda", "prim::requires_grad"}  # fmt: skip

#: The same, if the number that they fill with is known. Sizes of tensors without dimensions count as read.
_FILLS = frozenset({"aten::fill_", "aten::full_like", "aten::fill"})


def kept(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int) -> list[int]:
    """The positions of the inputs that the code reads, among ``count`` inputs; none if that is not known."""
    try:
        leaves, reads = _of_script(model, args, kwargs) if _script.is_one(model) else _of_module(model, args, kwargs)
    except Exception:
        # What cannot be traced was captured in another way.
        return []
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
    import torch

    names = _trace._names(getattr(model, "forward", model), len(args))
    given = _script.flatten({**dict(zip(names, args)), **kwargs}, None)
    args, kwargs = _sources.numbers_as_tensors(args, dict(kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = _trace.graph(model, args, dict(kwargs))
    inputs = list(graph.inputs())
    inputs = inputs[len(inputs) - sum(leaf.is_tensor or type(leaf.value) in (bool, int, float) for leaf in given) :]
    reads = iter(_read(graph, inputs))
    return given, [next(reads) if leaf.is_tensor or type(leaf.value) in (bool, int, float) else False for leaf in given]


def _read(graph: Any, inputs: list[Any]) -> list[bool]:
    """Whether a graph reads more of its inputs than types and sizes."""
    import torch

    with contextlib.suppress(AttributeError):
        # Nodes on which nothing depends. A writing one stays, if what it writes into is used.
        torch._C._jit_pass_dce(graph)
    return [any(_counts(use.user, use.offset) for use in value.uses()) for value in inputs]


def _counts(node: Any, offset: int) -> bool:
    kind = node.kind()
    if offset == 0 and kind in _FILLS:
        inputs = list(node.inputs())
        sizes = inputs[0].type().sizes() if inputs[0].type().kind() == "TensorType" else None
        return sizes == [] or not _is_known(inputs[1])
    return not (offset == 0 and kind in _OF_TYPES)


def _is_known(value: Any) -> bool:
    return value.node().kind() == "prim::Constant"
