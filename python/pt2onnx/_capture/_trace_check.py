"""Whether a trace holds for other arguments than its own: it is compared with the module."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import torch

from .. import _examples, _leaves
from . import _trace
from ._torch_export import Call
from ._trace import Traced

#: The sizes that are tried in turn. Smaller ones come first. Many modules take no odd ones, or only
#: multiples of 32.
_GROWTHS: tuple[_examples.Growth, ...] = (
    lambda size: size // 2 if size >= 8 and size % 2 == 0 else size + 1,
    lambda size: size - 32 if size >= 64 and size % 32 == 0 else size + 1,
    *_examples.GROWTHS,
    lambda size: size * 5 if size <= 16 else size * 2,
)

#: Seconds of CPU time that comparing may take, if tracing took less.
_BUDGET = 0.2


def check(traced: Traced) -> list[str]:
    """Compares a trace with its module at one other size of the dynamic dimensions, or at three if
    Python code read sizes or values; in the last case also with other values.

    Returns:
        Notes on what was not compared, because the module takes no such arguments.

    Raises:
        TraceWarning: The results differ.
    """
    budget = max(_BUDGET, getattr(traced.code, "seconds", 0.0))
    start = time.process_time()
    wanted = 3 if traced.notes or traced.reads_sizes else 1
    sizes: list[Exception | None] = []
    for call in _at_other_sizes(traced):
        sizes.append(_trace.compare(traced, call))
        if sizes.count(None) >= wanted or time.process_time() - start > budget:
            break
    values: list[Exception | None] = []
    for call in _with_other_values(traced) if traced.notes else ():
        if None in values and time.process_time() - start > budget:
            break
        values.append(_trace.compare(traced, call))
    failed = next(filter(None, sizes), None)
    notes = [] if failed is None or None in sizes else [_trace.fails(failed)]
    return notes if None in values else [*notes, *traced.notes]


def _at_other_sizes(traced: Traced) -> Iterator[Call]:
    """The arguments at other sizes, each once."""
    call = traced.call
    seen = [[leaf.value.shape for leaf in traced.leaves]]
    names = _trace.positional_names(call)
    for example in _examples.of_leaves(names, call.args, call.kwargs, traced.leaves, (), _GROWTHS):
        other = dataclasses.replace(call, args=example.args, kwargs=example.kwargs)
        shapes = [leaf.value.shape for leaf in _trace.tensor_leaves(other)]
        if shapes not in seen:
            seen.append(shapes)
            yield other


def _with_other_values(traced: Traced) -> Iterator[Call]:
    """The arguments with other values: of the other sign or truth, in another order, far larger."""
    call = traced.call
    names = _trace.positional_names(call)
    values = {leaf.path: leaf.value for leaf in traced.leaves}
    for change in (_inverted, _shuffled, _enlarged):
        changed = {path: change(value) for path, value in values.items()}
        if any(new is not values[path] for path, new in changed.items()):
            args, kwargs = _leaves.rebuild_call(names, call.args, call.kwargs, changed)
            yield dataclasses.replace(call, args=args, kwargs=kwargs)


def _shuffled(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() < 2:
        return tensor
    generator = torch.Generator().manual_seed(3)
    order = torch.randperm(tensor.numel(), generator=generator).to(tensor.device)
    return tensor.flatten()[order].reshape(tensor.shape)


def _inverted(tensor: torch.Tensor) -> torch.Tensor:
    """The negative. Many integers may be indices, and stay."""
    if tensor.dtype == torch.bool:
        return ~tensor
    if tensor.is_floating_point() or tensor.is_complex():
        return -tensor
    return tensor + 1 if tensor.dim() == 0 else tensor


def _enlarged(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 1000 if tensor.is_floating_point() else tensor
