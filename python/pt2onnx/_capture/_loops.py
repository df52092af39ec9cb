"""Code of a module that runs as often as a size decides."""

from __future__ import annotations

import collections
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from torch.overrides import TorchFunctionMode

from .. import _compare, _frames
from . import _jit, _patches
from ._jit import JitGraph, Lines
from ._torch_export import Call

_ROOT = _frames.package_root()

_TEXT = "The code runs as often as a size of the example decides"


def note(graph: JitGraph, own: Call, other: Call) -> str | None:
    """A note on the first code of a trace that runs more or less often for other arguments; None if
    there is none.

    Args:
        graph: The graph of the trace, without calls of methods.
        own: The module with the arguments of the trace.
        other: The module with arguments of other sizes.
    """
    try:
        ours, theirs = (_counts(call) for call in (own, other))
    except Exception:
        return None
    root = _frames.torch_root()
    stacks = [lines for lines, count in ours.items() if theirs.get(lines, count) != count]
    found = [next((at for at in lines if not at[0].startswith(root)), None) for lines in stacks]
    # Libraries run other code while it is traced.
    traced = _lines(graph) if any(found) else ()
    place = next((at for at in found if at and at in traced), None)
    return place and f"{_TEXT} ({place[0]}:{place[1]})"


def _counts(call: Call) -> collections.Counter[Lines]:
    """The number of calls of torch in a run of a module, by the lines within it that made them."""
    counter = _Counter()

    def counted(*args: object, **kwargs: object) -> object:
        with counter:
            return call.model(*args, **kwargs)

    with warnings.catch_warnings(), _patches.exporting(), _compare.same_numbers():
        warnings.simplefilter("ignore")
        _compare.run(counted, call.args, call.kwargs, lambda _: (), call.snapshot)
    return counter.counts


class _Counter(TorchFunctionMode):
    """Counts calls of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: collections.Counter[Lines] = collections.Counter()

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        lines: list[tuple[str, int]] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not (file := frame.f_code.co_filename).startswith(_ROOT):
            lines.append((file, frame.f_lineno))
            frame = frame.f_back
        self.counts[tuple(lines)] += 1
        return func(*args, **(kwargs or {}))


def _lines(graph: JitGraph) -> set[tuple[str, int]]:
    """The lines of Python that made the nodes of a graph."""
    ranges = {node.sourceRange() for node in graph.nodes()}
    return {line for source_range in ranges for line in _jit.lines(source_range)}
