"""Python code that reads tensors while it is traced: the tracer warns of each, also where the
tensor is computed from sizes alone, so that other values of the arguments do not change it.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Generator
from typing import Any, cast

import torch

from . import _patches
from ._jit import JitValue

#: Operators that read the sizes of a tensor.
_SIZES = frozenset(("aten::size", "aten::sym_size", "aten::_shape_as_tensor", "aten::numel"))

#: Ways in which Python reads a tensor.
_READS = ("__bool__", "__int__", "__index__", "__float__", "item")


@contextlib.contextmanager
def dropped(caught: list[warnings.WarningMessage]) -> Generator[list[str], None, None]:
    """Drops warnings of the tracer about reads of sizes in this context.

    Args:
        caught: The warnings, to which new ones are added.

    Returns:
        The texts of those that were dropped.
    """
    texts: list[str] = []

    def watched(old: Callable[[torch.Tensor], object]) -> Callable[[torch.Tensor], object]:
        def read(self: torch.Tensor) -> object:
            count = len(caught)
            result = old(self)
            if len(caught) > count and _is_of_sizes(self):
                texts.extend(str(warning.message) for warning in caught[count:])
                del caught[count:]
            return result

        return read

    make: dict[str, Callable[[Any], object]] = dict.fromkeys(_READS, watched)
    with _patches.applied("reads", make):
        yield texts


def _is_of_sizes(tensor: torch.Tensor) -> bool:
    """Whether the tracer has computed a tensor from sizes and constants."""
    try:
        pending: list[JitValue] = [cast(Any, torch._C)._get_value_trace(tensor)]
    except RuntimeError:
        return False
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if value.unique() in seen:
            continue
        seen.add(value.unique())
        node = value.node()
        kind = node.kind()
        if kind in _SIZES or kind == "prim::Constant":
            continue
        inputs = list(node.inputs())
        known = kind in ("prim::NumToTensor", "prim::ListConstruct", "prim::ListUnpack")
        if not inputs or not (known or kind.startswith("aten::")):
            return False
        pending += inputs
    return True
