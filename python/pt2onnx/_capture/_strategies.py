"""The strategies by which a module becomes a model: torch.export, then TorchScript."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable
from typing import Protocol, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .. import _dynamic_axes, _errors, _leaves, _objects, _pytree, _shapes, _symbolic
from .._cx import Function
from .._errors import ConversionError, OnnxExporterError, TorchExportError
from .._program import ONNXProgram
from .._report import Steps
from .._sources import ProgramSource, ScriptSource, Source
from .._state import Snapshot
from .._types import Args, Kwargs, Model
from ..hf import _caches
from . import _failures, _guards, _numbers, _torch_export, _trace, _trace_check
from ._jit import JitGraph
from ._script import Script
from ._torch_export import Call, Captured, Fixes
from ._trace import Traced

#: Translates a source.
Translate = Callable[[Source], ONNXProgram]


class NoMatch(Exception):
    """The strategy is not for this module."""


#: A context in which calls of autograd functions with symbolic functions are ops, whose
#: translations the dict gets.
CallsAsOps = Callable[[dict[object, Function]], contextlib.AbstractContextManager[None]]


@dataclasses.dataclass
class Tracing:
    """The trace of a call, or the error of PyTorch.

    ``symbolic`` are the translations of calls of autograd functions in it. ``holds`` is whether it
    is right for other arguments, ``refuted`` how it is not.
    """

    made: Traced | Exception | None = None
    symbolic: dict[object, Function] = dataclasses.field(default_factory=dict[object, Function])
    holds: bool = False
    refuted: str | None = None

    @property
    def traced(self) -> Traced:
        """The trace.

        Raises:
            Exception: The error.
        """
        if isinstance(self.made, Traced):
            return self.made
        raise self.made or NoMatch


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
        if traced.refuted:
            raise traced.refuted
        attempt.traced, attempt.symbolic = traced.script(), tracing.symbolic
        attempt.notes = traced.notes
        if not attempt.notes:
            with attempt.calls_as_ops(tracing.symbolic):
                attempt.notes = _trace.notes_at_other_sizes(traced, attempt.strict)
        if tracing.refuted and not attempt.notes:
            attempt.notes = [tracing.refuted]
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
        script = _trace.script(attempt.model, attempt.call, attempt.strict)
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


class Capturer:
    """A module with its arguments and dynamic shapes, and the strategies to capture it.

    Args:
        model: The module or function.
        args: The positional arguments.
        kwargs: The keyword arguments.
        shapes: The dynamic shapes.
        axes: ``dynamic_axes``, and the names of inputs and outputs.
        steps: Reports steps.
        legacy: Whether to capture as torch.onnx's exporter of TorchScript: numbers are inputs,
            symbolic functions are used.
        allow_value_traces: Whether a trace may follow the values of the arguments.
    """

    def __init__(
        self,
        model: Model,
        args: Args,
        kwargs: Kwargs,
        shapes: object,
        axes: _dynamic_axes.DynamicAxes,
        steps: Steps,
        *,
        legacy: bool,
        allow_value_traces: bool,
    ) -> None:
        module = _torch_export.as_module(model)
        # torch.export.ShapesCollection and AdditionalInputs have a method.
        make = getattr(shapes, "dynamic_shapes", None)
        if callable(make):
            shapes = make(module, args, kwargs)
        args, kwargs = unalias(args, kwargs)
        if problem := _objects.problem(module, args, kwargs):
            raise _failures.failed({_torch_export.STRATEGIES[0].name: problem})
        if shapes is None and axes.axes is not None:
            shapes = _from_axes(module, args, kwargs, axes, allow_value_traces)
        shapes = _shapes.by_parameter(module, args, kwargs, shapes, axes.input_names)
        shapes = _caches.broadcast_shapes(module, args, kwargs, shapes)
        shapes = _shapes.from_front_of_all(module, args, kwargs, shapes)
        self._model, self._steps = model, steps
        self._call = Call(module, args, kwargs, shapes, Snapshot(module, args, kwargs))
        self._legacy, self._allow_value_traces = legacy, allow_value_traces
        # The exporter of TorchScript has numbers as inputs.
        self._free = _with_free_numbers(self._call) if legacy else self._call
        #: Translations of calls of autograd functions in the program.
        self._symbolic: dict[object, Function] = {}
        #: The traces of ``_call`` and ``_free``, each made once.
        self._tracings: dict[int, Tracing] = {}

    def run(self, translate: Translate) -> tuple[ONNXProgram | None, Captured]:
        """Tries all strategies.

        Args:
            translate: Translates a source.

        Returns:
            The model if it is one of TorchScript, and the capture.

        Raises:
            TorchExportError: None leads to a model. It has the error of each.
        """
        call = self._call
        failures: dict[str, BaseException] = {}
        shapes = _shapes.for_torch(call.shapes)
        if problem := _shapes.problem(call.model, call.args, call.kwargs, shapes):
            raise _failures.failed({_torch_export.STRATEGIES[0].name: problem})
        if self._allow_value_traces and (found := self._by_trace(translate, failures)):
            return found
        try:
            made, captured = self._by_others(translate, dataclasses.replace(call, shapes=shapes))
        except TorchExportError as error:
            failures.update(error.failures_by_strategy)
            allowed = self._allow_value_traces
            raise _failures.failed(failures, allows_value_traces=allowed) from error.__cause__
        captured.failures = {**failures, **captured.failures}
        return made, captured

    def _by_trace(
        self, translate: Translate, failures: dict[str, BaseException]
    ) -> tuple[ONNXProgram, Captured] | None:
        """The model of a trace that was compared with the module: see ``_trace_check``.

        Args:
            translate: Translates a source.
            failures: Gets the error if there is no such model.
        """
        step = "Obtain model graph with `torch.jit.trace`..."
        try:
            if _trace.has_dynamic_numbers(self._free):
                raise NoMatch("a trace fixes numbers that are to be dynamic")
            tracing = self._tracing(self._free)
            notes = self._checked(tracing)
            made = translate(ScriptSource(tracing.traced.script(), tracing.symbolic))
        except Exception as failure:
            self._steps.say(f"{step} ❌")
            failures[Trace.name] = failure
            return None
        self._steps.say(f"{step} ✅")
        for note in notes:
            _errors.warn(f"The model may be wrong for other arguments: {note}")
        return made, Captured(None, Trace.name, failures, warnings=tracing.traced.warnings)

    def _tracing(self, call: Call) -> Tracing:
        """The trace of ``_call`` or ``_free``."""
        if id(call) not in self._tracings:
            found = self._tracings[id(call)] = Tracing()
            try:
                with self._calls_as_ops(found.symbolic):
                    found.made = _trace.traced(call)
            except Exception as error:
                found.made = error
        return self._tracings[id(call)]

    def _checked(self, tracing: Tracing) -> list[str]:
        """The notes of ``_trace_check.check``.

        Raises:
            Exception: There is no trace, or it does not hold.
        """
        traced = tracing.traced
        if tracing.symbolic and self._call.shapes is not None:
            raise NoMatch("a trace lacks the dynamic sizes that symbolic functions get")
        if traced.refuted:
            raise traced.refuted
        try:
            with self._calls_as_ops(tracing.symbolic):
                notes = _trace_check.check(traced)
        except _trace.TraceWarning as failure:
            tracing.refuted = str(failure)
            raise
        tracing.holds = True
        return notes

    def graph(self) -> JitGraph:
        """The graph of a trace, whose last inputs are the tensors and numbers of the arguments.

        Raises:
            Exception: The module cannot be traced.
        """
        return self._tracing(self._free).traced.graph

    def _by_others(self, translate: Translate, plain: Call) -> tuple[ONNXProgram | None, Captured]:
        """The model or the capture by torch.export, else by TorchScript: see ``run``.

        Args:
            translate: Translates a source.
            plain: The module, with dynamic shapes that torch.export takes.
        """
        call = self._call
        if self._allow_value_traces and _leaves.has_tensor_keys((*call.args, call.kwargs)):
            # The exporter of TorchScript has them as inputs.
            constant = TypeError(
                "a dict has tensors for keys, which torch.export takes for constants"
            )
            error = _failures.failed({"TorchExportStrategy": constant})
            return self._by_script(error, translate, call)
        free = self._free
        if free is not call:
            args, kwargs = _numbers.as_tensors(call.args, call.kwargs)
            given = dataclasses.replace(plain, args=args, kwargs=kwargs)
            try:
                return None, self._by_export(given)
            except TorchExportError as error:
                with contextlib.suppress(TorchExportError):
                    return self._by_script(error, translate, free, free_numbers=True)
        try:
            fixes = Fixes.NONE if self._allow_value_traces else Fixes.SMALL
            return None, self._by_export(plain, fixes)
        except TorchExportError as error:
            failures = error.failures_by_strategy.values()
            if not any(isinstance(failure, _torch_export.StaticSizes) for failure in failures):
                return self._by_script(error, translate, call)
            with contextlib.suppress(TorchExportError):
                return self._by_script(error, translate, call, allow_value_traces=False)
        return None, self._by_export(plain)

    def _by_export(self, call: Call, fixes: Fixes = Fixes.ALL) -> Captured:
        self._symbolic = {}
        with self._calls_as_ops(self._symbolic):
            return _torch_export.capture(call, self._steps.say, fixes=fixes)

    def _calls_as_ops(
        self, found: dict[object, Function]
    ) -> contextlib.AbstractContextManager[None]:
        """In this context, calls of autograd functions with symbolic functions are ops, as in the
        exporter of TorchScript, if its rules are followed. ``found`` gets their translations."""
        if not self._legacy:
            return contextlib.nullcontext()
        return _symbolic.used(found, exact=self._call.shapes is None)

    def translated(self, captured: Captured, translate: Translate) -> tuple[ONNXProgram, Captured]:
        """The model of a captured program.

        If PyTorch cannot serialise the program, or cannot translate it with ``legacy``, the model
        is one of TorchScript.

        Args:
            captured: The capture.
            translate: Translates a source.

        Raises:
            OnnxExporterError: The error of the program, if there is no model.
        """
        program, call = captured.program, self._call
        assert program is not None
        if self._legacy:
            # As in the exporter of TorchScript, whose names of inputs may also name weights.
            _torch_export.order_weights(program, cast(torch.nn.Module, call.model).state_dict())
        try:
            shapes = _shapes.by_leaf(call.model, call.args, call.kwargs, call.shapes)
            source = ProgramSource(program, shapes, self._symbolic, captured.relations)
            made = translate(source)
            kinds = {kind for kind, _ in made._native.warnings(grouped=True)}
            if "weights" in kinds and _has_lost_constants(program):
                text = "torch.export kept no values of constants that the model needs"
                raise _errors.new_error(ConversionError, text, "conversion", by_torch=True)
            _warn_of_conditions(captured, shapes)
            return made, captured
        except Exception as error:
            if isinstance(error, OnnxExporterError) and not error.by_torch and not self._legacy:
                raise
            failures = {**captured.failures, captured.strategy: error}
            try:
                return self._by_script(_failures.failed(failures), translate, call)
            except Exception:
                raise error from error.__cause__

    def _by_script(
        self,
        error: TorchExportError,
        translate: Translate,
        call: Call,
        *,
        free_numbers: bool = False,
        allow_value_traces: bool = True,
    ) -> tuple[ONNXProgram, Captured]:
        """The model by the first strategy of TorchScript that leads to one.

        Args:
            error: The errors of torch.export.
            translate: Translates a source.
            call: The module, whose numbers may be tensors.
            free_numbers: Whether its numbers are tensors.
            allow_value_traces: Whether a trace may follow the values of the arguments, if that is
                allowed at all.

        Raises:
            TorchExportError: There is none.
        """
        if self._allow_value_traces:
            # The exporter of TorchScript lets errors of the module through.
            _trace.run(self._call)
        failures = dict(error.failures_by_strategy)
        attempt = Attempt(
            self._model,
            call,
            strict=not self._allow_value_traces,
            free_numbers=free_numbers,
            allow_value_traces=allow_value_traces and self._allow_value_traces,
            tracing=lambda: self._tracing(call),
            calls_as_ops=self._calls_as_ops,
        )
        for strategy in STRATEGIES:
            step = f"Obtain model graph with `torch.jit.{strategy.function}`..."
            try:
                script = strategy.capture(attempt)
                made = translate(ScriptSource(script, attempt.symbolic))
            except NoMatch:
                continue
            except Exception as failure:
                self._steps.say(f"{step} ❌")
                failures[strategy.name] = failure
                continue
            self._steps.say(f"{step} ✅")
            if self._allow_value_traces:
                self._warn_of_sizes()
            if isinstance(strategy, ValueTrace):
                for note in attempt.notes:
                    _errors.warn(f"The model may be wrong for other arguments: {note}")
            return made, Captured(None, strategy.name, failures)
        raise _failures.failed(failures) from error.__cause__

    def _warn_of_sizes(self) -> None:
        """Warns if the module takes no other sizes."""
        try:
            _trace.run_at_other_sizes(self._call)
        except _trace.TraceWarning as failure:
            _errors.warn(f"The model may be wrong for other sizes: {failure}")


def unalias(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments with distinct tensors: torch.export and the tracer take a tensor that is there
    twice for one input."""
    leaves, tree = _pytree.flatten((args, kwargs))
    seen: set[int] = set()
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and id(leaf) in seen:
            leaves[at] = leaf.detach().clone().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
    if len(seen) == len(leaves):
        # Containers that are made anew may lose what is not in their leaves.
        return args, kwargs
    return cast(tuple[Args, Kwargs], _pytree.unflatten(leaves, tree))


def _with_free_numbers(call: Call) -> Call:
    """The call with tensors for numbers, as the tracer of TorchScript has them; the same call if it
    has none."""
    args, kwargs = _numbers.as_numbers(call.args, call.kwargs)
    given = _pytree.leaves((call.args, call.kwargs))
    if all(own is one for own, one in zip(_pytree.leaves((args, kwargs)), given, strict=True)):
        return call
    return dataclasses.replace(call, args=args, kwargs=kwargs)


def _warn_of_conditions(captured: Captured, shapes: object) -> None:
    """Warns of sizes for which the program does not hold, by the names of the dimensions, and of
    values of weights."""
    for place in dict.fromkeys(captured.flags.values()):
        weights = [f"`{name}`" for name, where in captured.flags.items() if where == place]
        more = f" and {len(weights) - 2} more" if len(weights) > 3 else ""
        listed = ", ".join(weights[: 2 if more else 3]) + more
        _errors.warn(
            f"The model holds only for the values that these weights have now: {listed}. The code "
            f"decides by them at {place}"
        )
    if not captured.conditions or captured.program is None:
        return
    with warnings.catch_warnings():
        # Warnings of names that cannot be used were issued before.
        warnings.simplefilter("ignore")
        names = _shapes.names(captured.program, shapes)
    for condition, place in captured.conditions.items():
        if (text := _guards.as_text(condition, names)) is not None:
            _errors.warn(f"The model holds only where {text}: the code decides by this at {place}")


def _has_lost_constants(program: torch.export.ExportedProgram) -> bool:
    """Whether torch.export kept no values of constants, although the weights have values: ``x.data
    = x.data.to(device)`` leaves such a constant, which the program may not need."""
    fake_constants = (isinstance(one, FakeTensor) for one in program.constants.values())
    fake_weights = (isinstance(one, FakeTensor) for one in program.state_dict.values())
    return any(fake_constants) and not any(fake_weights)


def _from_axes(
    model: Model, args: Args, kwargs: Kwargs, axes: _dynamic_axes.DynamicAxes, ignore_unknown: bool
) -> object:
    if not ignore_unknown:
        _errors.warn(
            "# 'dynamic_axes' is not recommended when dynamo=True, and may lead to "
            "'torch._dynamo.exc.UserError: Constraints violated.' "
            "Supply the 'dynamic_shapes' argument instead if export is unsuccessful.",
            UserWarning,
        )
    try:
        return _dynamic_axes.to_shapes(model, args, kwargs, axes, ignore_unknown=ignore_unknown)
    except Exception as error:
        raise RuntimeError(
            "# Failed to convert 'dynamic_axes' to 'dynamic_shapes'. Please provide "
            "'dynamic_shapes' directly. Refer to the documentation for 'torch.export.export' for "
            "more information on dynamic shapes."
        ) from error
