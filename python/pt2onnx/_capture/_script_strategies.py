"""The strategies of TorchScript: a trace that holds for all arguments, the scripted module, and a
trace that follows the values of the arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

from .._cx import Function
from .._types import Model
from . import _trace, _trace_check
from ._script import Script
from ._torch_export import Call
from ._traces import CallsAsOps, NoMatch, Tracing


@dataclasses.dataclass
class Attempt:
    """One try to capture a module by TorchScript.

    ``model`` is what the user gave, ``call`` its module. ``strict`` is whether the module must take
    other sizes of the dynamic dimensions. ``tracing`` gives the trace of the call, within which
    ``calls_as_ops`` makes ops of calls. ``traced`` and ``notes`` are the result of ``Trace``.
    """

    model: Model
    call: Call
    strict: bool
    free_numbers: bool
    allow_value_traces: bool
    tracing: Callable[[], Tracing]
    calls_as_ops: CallsAsOps
    symbolic: dict[object, Function] = dataclasses.field(default_factory=dict[object, Function])
    traced: Script | None = None
    notes: list[str] = dataclasses.field(default_factory=list[str])


class Strategy(Protocol):
    """A way to capture a module by TorchScript."""

    #: The key of its error in ``TorchExportError.failures_by_strategy``.
    name: str
    #: The function of torch.jit.
    function: str

    def capture(self, attempt: Attempt) -> Script:
        """The archive.

        Raises:
            NoMatch: The strategy is not for this module.
            Exception: The errors of PyTorch.
        """
        ...


class Trace:
    """A trace that holds for all arguments."""

    name = "TraceStrategy"
    function = "trace"

    def capture(self, attempt: Attempt) -> Script:
        """The trace."""
        tracing = attempt.tracing()
        if tracing.holds:
            raise NoMatch("there is no model of the trace")
        traced = tracing.traced
        with attempt.calls_as_ops(tracing.symbolic):
            _trace.check_own(traced)
            _trace_check.with_numbers(traced)
        attempt.traced, attempt.symbolic = traced.script(), tracing.symbolic
        attempt.notes = [tracing.loop] if tracing.loop else traced.notes
        if not attempt.notes:
            with attempt.calls_as_ops(tracing.symbolic):
                attempt.notes = _trace.notes_at_other_sizes(traced, attempt.strict)
            attempt.notes += [tracing.refuted] if tracing.refuted else []
        if attempt.notes:
            notes = "; ".join(attempt.notes[:3])
            raise _trace.TraceWarning(f"the trace holds for these arguments only: {notes}")
        return attempt.traced


class ScriptModule:
    """The module in TorchScript."""

    name = "ScriptStrategy"
    function = "script"

    def capture(self, attempt: Attempt) -> Script:
        """The scripted module."""
        has_run = attempt.tracing().has_run
        script = _trace.script(attempt.model, attempt.call, attempt.strict, has_run)
        script.free_numbers, script.may_fix_numbers = attempt.free_numbers, False
        return script


class ValueTrace:
    """A trace that follows the values of the arguments."""

    name = "LenientTraceStrategy"
    function = "trace"

    def capture(self, attempt: Attempt) -> Script:
        """The trace of ``Trace``."""
        if attempt.traced is None or not attempt.notes or not attempt.allow_value_traces:
            raise NoMatch
        return attempt.traced


#: The strategies of TorchScript, in order.
STRATEGIES: tuple[Strategy, ...] = (Trace(), ScriptModule(), ValueTrace())
