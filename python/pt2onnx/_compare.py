"""Comparing outputs with those of PyTorch: types, shapes, numbers; NaN and infinities must be where
they are expected.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, cast

import torch

from . import _errors, _leaves, _pytree
from ._buffers import keeping_buffers
from ._program._origin import Example
from ._types import Args, Kwargs, Model
from ._verification import OutputCheck

if TYPE_CHECKING:
    from ._verify import Verifiable

#: Relative and absolute tolerance by element type. All others are compared exactly.
TOLERANCES = {
    torch.float64: (1e-6, 1e-8),
    torch.float32: (1e-3, 1e-4),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (4e-2, 4e-2),
    torch.complex64: (1e-3, 1e-4),
    torch.complex128: (1e-6, 1e-8),
}


def compare_call(program: Verifiable, model: Model, example: Example) -> list[OutputCheck]:
    """Runs a model and a module with the same arguments, and compares the outputs.

    Args:
        program: The model.
        model: The module.
        example: The arguments.

    Raises:
        VerificationError: The model cannot be run.
    """
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    # Neither may see writes of the other into its inputs and buffers.
    own = cast(tuple[Args, Kwargs], _pytree.transform(_copy, (example.args, example.kwargs)))
    with torch.no_grad(), keeping_buffers(model):
        expected = model(*own[0], **own[1])
    numbers = (torch.Tensor, bool, int, float)
    leaves = [leaf for leaf in _pytree.leaves(expected) if isinstance(leaf, numbers)]
    parts = [_leaves.components(leaf, result=True) for leaf in leaves]
    # The integers of quantised tensors may differ by one: a value may lie halfway between two.
    quanta = [int(at == 0 and len(of) > 1) for of in parts for at in range(len(of))]
    values = [part for of in parts for part in of]
    try:
        found = program(*example.args, **example.kwargs)
    except Exception as error:
        text = f"ONNX Runtime cannot run the model ({example.sizes}): {str(error).strip()}"
        raise _errors.new_error(_errors.VerificationError, text) from error
    names = program.output_names
    if len(values) != len(found):
        text = f"PyTorch returns {len(values)} tensors and numbers, the model {len(found)}"
        return [OutputCheck(names[0] if names else "", text, math.inf, math.inf, example.sizes)]
    return [
        compare(name, one, other, example.sizes, quantum)
        for name, one, other, quantum in zip(names, found, values, quanta, strict=False)
    ]


def _copy(leaf: object) -> object:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else copy.deepcopy(leaf)


def compare(
    name: str, found: object, expected: object, inputs: str = "given", quantum: int = 0
) -> OutputCheck:
    """Compares one output with the expected one: tensors, or numbers of Python.

    Args:
        name: The name of the output.
        found: The output.
        expected: The expected output.
        inputs: The sizes of the inputs.
        quantum: By how much integers may differ.
    """
    exact_type = isinstance(expected, torch.Tensor)
    b = torch.as_tensor(expected).detach().cpu()
    rtol, atol = TOLERANCES.get(b.dtype, (0.0, float(quantum)))
    if b.is_complex():
        b = torch.view_as_real(b.resolve_conj())
    a = torch.as_tensor(found).detach().cpu()
    if exact_type and a.dtype != b.dtype:
        text = f"its type is {a.dtype}, expected {b.dtype}"
        return OutputCheck(name, text, math.inf, math.inf, inputs)
    if a.shape != b.shape:
        text = f"its shape is {list(a.shape)}, expected {list(b.shape)}"
        return OutputCheck(name, text, math.inf, math.inf, inputs)
    x, y = a.to(torch.float64), b.to(torch.float64)
    finite = x.isfinite() & y.isfinite()
    gap = torch.where(finite, (x - y).abs(), torch.zeros_like(x))
    equal = (x == y) | (x.isnan() & y.isnan())
    close = equal | (finite & (gap <= atol + rtol * y.abs()))
    relative = torch.where(finite & (y != 0), gap / y.abs(), torch.zeros_like(gap))
    largest = gap.max().item() if gap.numel() else 0.0
    largest_relative = relative.max().item() if gap.numel() else 0.0
    problem = None
    if not bool(close.all()):
        at = [int(i) for i in (~close).nonzero()[0]]
        index = tuple(at)
        count = f"{int((~close).sum())} of {x.numel()} elements differ"
        problem = f"{count}; at {at} it is {a[index].item()}, expected {b[index].item()}"
    return OutputCheck(name, problem, largest, largest_relative, inputs)
