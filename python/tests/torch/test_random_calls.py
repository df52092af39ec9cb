"""Random calls of ``pt2onnx.export``, compared with PyTorch.

``PT2ONNX_RANDOM_CALLS=1000:5000`` runs 5,000 seeds from 1,000 on.
"""

from __future__ import annotations

import copy
import os
import warnings
from typing import Any

import pt2onnx
import torch
from pt2onnx import _objects
from random_calls import OTHERS, SIZES, Call, draw_call
from torch.utils import _pytree

START, COUNT = map(int, os.environ.get("PT2ONNX_RANDOM_CALLS", "0:100").split(":"))

#: Errors that users get for calls that cannot be exported.
_DOCUMENTED = ("functions of modules need opset",)

#: Warnings after which a model may be wrong, or static.
_WARNED = ("takes only", "are static", "may be wrong", "holds only", "are fixed")


class Wrong(Exception):
    """An export is wrong."""


def test_random_calls() -> None:
    found = [wrong for seed in range(START, START + COUNT) if (wrong := run(draw_call(seed)))]
    assert not found, "\n".join(found)


def run(call: Call) -> str | None:
    """The fault of a call; None if PyTorch itself refuses it, or if it is right."""
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _run(call, caught)
    except Wrong as wrong:
        return f"seed {call.seed}: {wrong}"
    return None


def _run(call: Call, caught: list[warnings.WarningMessage]) -> None:
    expected = _eager(call, SIZES)
    if expected is None:
        return
    module = call.module()
    args, kwargs = call.arguments(SIZES)
    before = copy.deepcopy((module.state_dict(), module.buf, args, kwargs))
    modes = [part.training for part in module.modules()]
    model = module.forward if call.method else module
    try:
        program = pt2onnx.export(model, args, kwargs=kwargs, **call.options)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        refused = call.refused and "would be constants" in text
        if refused or _has(text, _DOCUMENTED):
            return
        raise Wrong(f"{text[:400]}, {call.options}") from error
    finally:
        after = module.state_dict(), module.buf, args, kwargs
        if not _same(after, before) or modes != [part.training for part in module.modules()]:
            raise Wrong("the export changed the module or the arguments")
    if call.refused:
        raise Wrong("tensors of an object that is no pytree became constants")
    told = " ".join(str(warning.message) for warning in caught)
    if call.options.get("mutations") != "pairs":
        _compare(program(*args, **kwargs), expected, "the example")
        other = _eager(call, OTHERS) if "dynamic_shapes" in call.options else None
        if other is not None and not _has(told, _WARNED):
            args, kwargs = call.arguments(OTHERS)
            _compare(program(*args, **kwargs), other, "other sizes")
    if call.options.get("verify"):
        if program.verification is None:
            raise Wrong(f"it is not verified: {told}")
        if not program.verification.ok:
            raise Wrong(f"the verification differs: {program.verification}")


def _eager(call: Call, sizes: dict[str, int]) -> list[Any] | None:
    """The tensors and numbers that the module returns; None if it fails."""
    module = call.module()
    if not call.options["dynamo"]:
        module.eval()
    args, kwargs = call.arguments(sizes)
    try:
        with torch.no_grad():
            result = module(*args, **kwargs)
    except Exception:
        return None
    kinds = (torch.Tensor, bool, int, float)
    return [leaf for leaf in _objects.results(result) if isinstance(leaf, kinds)]


def _compare(found: Any, expected: list[Any], where: str) -> None:
    # The new values of buffers and inputs follow the results.
    if len(found) < len(expected):
        raise Wrong(f"{len(found)} outputs instead of {len(expected)}, for {where}")
    for at, (one, other) in enumerate(zip(found, expected, strict=False)):
        if isinstance(other, torch.Tensor) and other.is_complex():
            other = torch.view_as_real(other.resolve_conj())
        is_tensor = isinstance(other, torch.Tensor)
        try:
            torch.testing.assert_close(
                torch.as_tensor(one),
                torch.as_tensor(other).detach(),
                check_dtype=is_tensor,
                rtol=1e-2,
                atol=1e-2,
                equal_nan=True,
            )
        except AssertionError as error:
            raise Wrong(f"output {at} differs for {where}: {error}") from None


def _same(one: Any, other: Any) -> bool:
    """Whether two trees have the same values."""
    leaves, tree = _pytree.tree_flatten(one)
    others, other_tree = _pytree.tree_flatten(other)
    return tree == other_tree and all(map(_same_leaf, leaves, others))


def _same_leaf(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return hasattr(one, "__dict__") or bool(one == other)


def _has(text: str, parts: tuple[str, ...]) -> bool:
    return any(part in text for part in parts)
