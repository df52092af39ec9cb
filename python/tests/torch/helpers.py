"""Shared by the tests with PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pt2onnx
import pytest
import torch
from torch.utils import _pytree

TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def since(*version: int) -> pytest.MarkDecorator:
    """A mark for tests of what PyTorch has from this version on."""
    return pytest.mark.skipif(
        version > TORCH, reason=f"needs PyTorch {'.'.join(map(str, version))}"
    )


class Call(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def tensors(tree: Any) -> list[torch.Tensor]:
    """The tensors of nested values; numbers become tensors, complex ones pairs."""
    leaves = [torch.as_tensor(leaf) for leaf in _pytree.tree_leaves(tree) if leaf is not None]
    return [
        torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf for leaf in leaves
    ]


def same(found: Any, expected: Any) -> None:
    """Types, shapes and numbers."""
    found, expected = tensors(found), tensors(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=False):
        torch.testing.assert_close(one, other.detach(), rtol=1e-3, atol=1e-4, equal_nan=True)


def check(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    others: Sequence[Any] = (),
    **options: Any,
) -> pt2onnx.ONNXProgram:
    """Exports a model, and compares it with PyTorch for these arguments and for others, each a
    tuple and a dict of them."""
    kwargs = kwargs or {}
    if isinstance(model, torch.nn.Module):
        model.eval()
    cases = [
        (tuple(args), kwargs),
        *(
            (other, {}) if isinstance(other, tuple) and not _is_pair(other) else other
            for other in others
        ),
    ]
    expected = []
    for a, k in cases:
        a, k = copy.deepcopy((a, k))
        with torch.no_grad():
            expected.append(model(*a, **k))
    program = pt2onnx.export(model, tuple(args), kwargs=kwargs or None, **options)
    for (a, k), results in zip(cases, expected, strict=False):
        same(program(*a, **k), results)
    return program


def _is_pair(other: Any) -> bool:
    return len(other) == 2 and isinstance(other[0], tuple) and isinstance(other[1], dict)


def dims(program: pt2onnx.ONNXProgram) -> dict[str, list[int | str]]:
    """Sizes of inputs and outputs by name."""
    graph = program.model_proto.graph
    return {
        value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    }


def operators(program: pt2onnx.ONNXProgram) -> list[str]:
    """The operators of the model, in order."""
    return [node.op_type for node in program.model_proto.graph.node]
