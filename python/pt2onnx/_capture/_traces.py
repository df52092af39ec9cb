"""The traces of a module, each made once, and whether they hold for other arguments."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

from .._cx import Function
from . import _trace, _trace_check
from ._coverage import Coverage
from ._torch_export import Call
from ._trace import Traced

#: A context in which calls of autograd functions with symbolic functions are ops, whose
#: translations the dict gets.
CallsAsOps = Callable[[dict[object, Function]], contextlib.AbstractContextManager[None]]


class NoMatch(Exception):
    """The strategy is not for this module."""


@dataclasses.dataclass
class Tracing:
    """The trace of a call, or the error of PyTorch.

    ``symbolic`` are the translations of calls of autograd functions in it. ``holds`` is whether it
    is right for other arguments, ``refuted`` how it is not, ``loop`` the note of ``TraceWarning``,
    and ``by_values`` whether other values refuted it, on which the code decides: torch.export does
    not take it.
    """

    made: Traced | Exception | None = None
    symbolic: dict[object, Function] = dataclasses.field(default_factory=dict[object, Function])
    holds: bool = False
    refuted: str | None = None
    loop: str | None = None
    by_values: bool = False

    @property
    def has_run(self) -> bool:
        """Whether the module has run in Python."""
        return isinstance(self.made, Traced)

    @property
    def traced(self) -> Traced:
        """The trace.

        Raises:
            Exception: The error.
        """
        if isinstance(self.made, Traced):
            return self.made
        raise self.made or NoMatch


class Traces:
    """The traces of the calls of an export.

    Args:
        coverage: The sizes that are asked for.
        is_dynamic: Whether there are dynamic shapes.
        calls_as_ops: The context in which modules run.
    """

    def __init__(self, coverage: Coverage, is_dynamic: bool, calls_as_ops: CallsAsOps) -> None:
        self._coverage, self._is_dynamic = coverage, is_dynamic
        self._calls_as_ops = calls_as_ops
        self._made: dict[int, Tracing] = {}

    def known(self, call: Call) -> Tracing | None:
        """The trace, if it was made."""
        return self._made.get(id(call))

    def of(self, call: Call) -> Tracing:
        """The trace, which is made if it is not known."""
        if id(call) not in self._made:
            found = self._made[id(call)] = Tracing()
            try:
                with self._calls_as_ops(found.symbolic):
                    others = _trace_check.at_other_sizes(call)
                    found.made = _trace.traced(call, next(others, None))
            except Exception as error:
                found.made = error
        return self._made[id(call)]

    def check(self, tracing: Tracing) -> list[str]:
        """The notes of ``_trace_check.check``.

        Raises:
            Exception: There is no trace, or it does not hold.
        """
        traced = tracing.traced
        if tracing.symbolic and self._is_dynamic:
            raise NoMatch("a trace lacks the dynamic sizes that symbolic functions get")
        try:
            if (kept := self.check_with_numbers(tracing)) is not None:
                return kept
            with self._calls_as_ops(tracing.symbolic):
                notes = _trace_check.check(traced, self._coverage.sizes)
        except _trace.TraceWarning as failure:
            tracing.refuted, tracing.loop = str(failure), failure.loop
            tracing.by_values = failure.by_values
            raise
        tracing.holds = True
        return notes

    def check_with_numbers(self, tracing: Tracing) -> list[str] | None:
        """The notes of ``_trace_check.check`` on a trace that computes the numbers which the code
        makes of sizes; None if there are no such numbers, or if it does not hold.

        Raises:
            TraceWarning: No trace is known to hold, as the code decides by such numbers.
        """
        with self._calls_as_ops(tracing.symbolic):
            other = _trace_check.with_numbers(tracing.traced)
            if other is None:
                return None
            try:
                notes = _trace_check.check(other, self._coverage.sizes)
            except Exception:
                return None
        tracing.made, tracing.holds = other, True
        return notes
