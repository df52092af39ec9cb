"""Gradients that a module computes in ``forward``.

torch.export and the tracer record ops above autograd, and lose what runs below.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Generator
from typing import Any

import torch

from .. import _pytree
from .._pt2onnx import supported_ops
from . import _patches


class LosesGradients(Exception):
    """A capture lacks the gradients that ``forward`` computes."""


class GradientLog:
    """Whether gradients were computed."""

    used = False

    def check(self) -> None:
        """Checks that a capture lacks none.

        Raises:
            LosesGradients: Some were computed.
        """
        if self.used:
            raise LosesGradients(LosesGradients.__doc__)


@contextlib.contextmanager
def logged(log: GradientLog) -> Generator[None, None, None]:
    """Logs whether gradients are computed in this context."""

    def marking(old: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(old)
        def marked(*args: object, **kwargs: object) -> object:
            log.used = True
            return old(*args, **kwargs)

        return marked

    with contextlib.ExitStack() as stack:
        for attribute in _patches.attributes("gradients"):
            with contextlib.suppress(ImportError, AttributeError):
                stack.enter_context(_patches.applied("gradients", {attribute: marking}))
        yield


@contextlib.contextmanager
def enabled(module: torch.nn.Module) -> Generator[None, None, None]:
    """In this context, a module may compute gradients. Its results have none."""
    forward: Callable[..., object] = module.forward

    @functools.wraps(forward)
    def with_gradients(*args: object, **kwargs: object) -> object:
        with torch.enable_grad():
            return _pytree.detached(forward(*args, **kwargs))

    with (
        _patches.replaced(module, "forward", with_gradients),
        _patches.applied("forward-mode", {"_jvp_with_argnums": lambda _: _jvp}),
    ):
        yield


def _jvp(
    function: Callable[..., object],
    primals: tuple[object, ...],
    tangents: tuple[object, ...],
    argnums: int | tuple[int, ...] | None,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[object, ...]:
    """``torch.func.jvp`` by gradients of gradients: forward mode makes sizes static where operands
    broadcast."""
    transforms = importlib.import_module("torch._functorch.eager_transforms")
    vjp = transforms._vjp_with_argnums
    results: Any = function(*primals)
    outputs, aux = results if has_aux else (results, None)

    def pulled(cotangents: object) -> object:
        return vjp(function, *primals, argnums=argnums, has_aux=has_aux)[1](cotangents)

    _, pushed = vjp(pulled, _pytree.transform(_zeros_like, outputs))
    pull = tangents[0] if isinstance(argnums, int) else tuple(tangents)
    (found,) = pushed(pull)
    return (outputs, found, aux) if has_aux else (outputs, found)


def _zeros_like(leaf: object) -> object:
    return torch.zeros_like(leaf) if isinstance(leaf, torch.Tensor) else leaf


def export(model: Any, *args: Any, **options: Any) -> torch.export.ExportedProgram:
    """``torch.export.export`` that records the ops below autograd."""
    trace: Any = importlib.import_module("torch.export._trace")
    with enabled(model):
        program: Any = trace._export(model, *args, pre_dispatch=False, **options)
    root: torch.nn.Module = program.graph_module
    graphs = [part.graph for part in root.modules() if isinstance(part, torch.fx.GraphModule)]
    ops = {node.target for graph in graphs for node in graph.nodes}
    table = {op: known for op in ops if (known := _decomposition(op)) is not None}
    found: torch.export.ExportedProgram = program.run_decompositions(table) if table else program
    return found


def _decomposition(op: object) -> Callable[..., object] | None:
    """The decomposition of an op that has no translation, if there is one."""
    schema = getattr(op, "_schema", None)
    if schema is None:
        return None
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    if name in supported_ops():
        return None
    if op is torch.ops.aten.convolution_backward.default:
        return _convolution_backward
    table: dict[object, Callable[..., object]] = importlib.import_module(
        "torch._decomp"
    ).decomposition_table
    return table.get(op)


def _convolution_backward(
    grad: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: object,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> object:
    """The gradient of the input."""
    if output_mask[1] or output_mask[2]:
        return NotImplemented
    convolution: Callable[..., torch.Tensor] = torch.convolution
    count = input.dim() - 2
    none = [0] * count
    if transposed:
        found = convolution(grad, weight, None, stride, padding, dilation, False, none, groups)
        return found, None, None
    # Elements of the input that the last window does not reach have no gradient.
    found = convolution(grad, weight, None, stride, none, dilation, True, none, groups)
    for axis, before in enumerate(padding, 2):
        missing = input.shape[axis] + 2 * before - found.shape[axis]
        found = torch.nn.functional.pad(found, [0, 0] * (count + 1 - axis) + [0, missing])
        found = found.narrow(axis, before, input.shape[axis])
    return found, None, None
