"""The strategies by which a module becomes a model: torch.export, then TorchScript."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Sequence
from typing import cast

import torch

from .. import _dynamic_axes, _errors, _garbage, _leaves, _objects, _pytree, _shapes, _symbolic
from .._conditions import Condition
from .._cx import Function
from .._errors import ConversionError, OnnxExporterError, TorchExportError
from .._program import ONNXProgram
from .._report import Steps
from .._sizes import MOST
from .._sources import ProgramSource, ScriptSource, Source
from .._state import Snapshot
from .._types import Args, Kwargs, Model
from ..hf import _caches
from . import (
    _arguments,
    _buffer_branches,
    _failures,
    _numbers,
    _recorded,
    _torch_export,
    _trace,
    _trace_borders,
)
from ._coverage import Coverage
from ._guards import GuardLog
from ._jit import JitGraph
from ._patience import Patience
from ._script import Script
from ._script_strategies import (
    STRATEGIES,
    Attempt,
    ScriptModule,
    Strategy,
    Trace,
    ValueTrace,
)
from ._torch_export import Call, Captured, Fixes
from ._traces import NoMatch, Traces, Tracing

#: Translates a source.
Translate = Callable[[Source], ONNXProgram]


class NarrowCapture(Exception):
    """A capture holds for a part of the sizes only that are asked for. The text has the sizes."""


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
        sizes, max_regions: The parameters of ``export``.
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
        sizes: str = "merge",
        max_regions: int = 8,
    ) -> None:
        module = _torch_export.as_module(model)
        # torch.export.ShapesCollection and AdditionalInputs have a method.
        make = getattr(shapes, "dynamic_shapes", None)
        if callable(make):
            shapes = make(module, args, kwargs)
        args, kwargs = _arguments.unalias(args, kwargs)
        if problem := _objects.problem(module, args, kwargs):
            raise _failures.failed({_torch_export.STRATEGIES[0].name: problem})
        #: Whether the shapes are made of axes, so that their structure is right.
        self._of_axes = shapes is None and axes.axes is not None
        if self._of_axes:
            shapes = _arguments.from_axes(module, args, kwargs, axes, allow_value_traces)
        shapes = _shapes.by_parameter(module, args, kwargs, shapes, axes.input_names)
        shapes = _caches.broadcast_shapes(module, args, kwargs, shapes)
        shapes = _shapes.from_front_of_all(module, args, kwargs, shapes)
        self._model, self._steps = model, steps
        with _garbage.not_collected():
            snapshot = Snapshot(module, args, kwargs)
        self._call = Call(module, args, kwargs, shapes, snapshot)
        self._legacy, self._allow_value_traces = legacy, allow_value_traces
        # No bound method, so that traces are freed at once.
        self._calls_as_ops = functools.partial(_calls_as_ops, legacy, shapes is None)
        # The exporter of TorchScript has numbers as inputs.
        self._free = _with_free_numbers(self._call) if legacy else self._call
        #: Translations of calls of autograd functions in the program.
        self._symbolic: dict[object, Function] = {}
        #: The sizes that are asked for, and the logs of all captures by torch.export.
        self._coverage = Coverage(self._call)
        self._logs: list[tuple[GuardLog, Call]] = []
        self._sizes, self._max_regions = sizes, max_regions
        self._script_failed = False
        #: Those of ``_call`` and ``_free``.
        self._traces = Traces(self._coverage, shapes is not None, self._calls_as_ops)
        self._patience: Patience | None = None

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
        self._check_shapes(shapes, by_torch=not self._of_axes)
        if self._allow_value_traces and (found := self._by_trace(translate, failures)):
            return found
        self._check_shapes(shapes, by_torch=self._of_axes)
        plain = dataclasses.replace(call, shapes=shapes)
        try:
            made, captured = self._by_others(translate, plain)
        except TorchExportError as error:
            own = dict(error.failures_by_strategy)
            may_trace = self._sizes not in ("warn", "split")
            if may_trace and (by_numbers := self._by_numbers(own, translate)):
                return by_numbers
            if by_regions := self._by_regions(None, plain, translate):
                return by_regions
            failures.update(error.failures_by_strategy)
            allowed = self._allow_value_traces
            raise _failures.failed(failures, allows_value_traces=allowed) from error.__cause__
        captured.failures = {**failures, **captured.failures}
        captured.narrowing = self._narrowing(captured, plain)
        # Scripts have If and Loop.
        may_script = self._sizes not in ("warn", "split") and not self._script_failed
        if captured.narrowing and may_script:
            narrow = NarrowCapture(self._texts(captured)[0])
            failure = _failures.failed({captured.strategy: narrow})
            with contextlib.suppress(TorchExportError):
                strategies = (ScriptModule(),)
                return self._by_script(failure, translate, self._call, strategies=strategies)
            if by_numbers := self._by_numbers(captured.failures, translate):
                return by_numbers
        if captured.narrowing and self._sizes != "warn":
            return self._by_regions(captured, plain, translate) or (made, captured)
        return made, captured

    def _check_shapes(self, shapes: object, *, by_torch: bool) -> None:
        call = self._call
        problem = _shapes.problem(call.model, call.args, call.kwargs, shapes, by_torch=by_torch)
        if problem:
            raise _failures.failed({_torch_export.STRATEGIES[0].name: problem})

    def _by_numbers(
        self, failures: dict[str, BaseException], translate: Translate
    ) -> tuple[ONNXProgram, Captured] | None:
        """The model of a trace that computes numbers which torch.export fixes: ``math.log2`` of a
        size.

        Args:
            failures: The errors of strategies that were tried before.
            translate: Translates a source.
        """
        with contextlib.suppress(Exception):
            tracing = self._traces.of(self._call)
            if self._traces.check_with_numbers(tracing) == []:
                made = translate(ScriptSource(tracing.traced.script(), tracing.symbolic))
                return made, Captured(None, Trace.name, failures)
        return None

    def _by_regions(
        self, captured: Captured | None, call: Call, translate: Translate
    ) -> tuple[ONNXProgram | None, Captured] | None:
        """The model of captures at several sizes, which conditions choose between, or the models.

        Args:
            captured: The capture of the example, if there is one.
            call: The module, with dynamic shapes for torch.export.
            translate: Translates a source.
        """
        coverage = self._coverage
        if not coverage.has_dims or self._free is not self._call or self._max_regions < 2:
            return None
        # Few exports need these.
        from . import _merging
        from ._exploring import Explorer
        from ._recapture import Recapture

        step = "Capture the model at other sizes..."
        self._steps.say(step)
        with self._calls_as_ops(self._symbolic):
            recapture = Recapture(coverage, call, captured)
            explorer = Explorer(recapture, self._max_regions)
            regions = explorer.run(captured)
        if captured is None and not explorer.has_other_sizes:
            return None
        join = _merging.split if self._sizes == "split" else _merging.merged
        found = None
        if regions is not None:
            found = _merging.joined(join, regions, self._source, translate)
        if regions and found is None and captured and self._sizes == "merge":
            # At other sizes than those of the example, the model fails.
            regions = explorer.of_example(regions, captured.narrowing)
            found = _merging.joined(join, regions, self._source, translate)
        self._steps.say(f"{step} {'✅' if found else '❌'}")
        if regions is None or found is None:
            return None
        if regions.open or regions.lost:
            if self._sizes == "error" or coverage.has_exact:
                return None
            fails = "No model is for" if self._sizes == "split" else "The model fails at"
            _errors.warn(regions.text(fails))
        return found, Captured(None, recapture.strategy, captured.failures if captured else {})

    def _narrowing(self, captured: Captured, call: Call) -> list[Condition]:
        """The conditions of a program that do not follow from what is asked for.

        Args:
            captured: The program.
            call: The module, with dynamic shapes for torch.export.
        """
        coverage = self._coverage
        if not coverage.has_dims or captured.program is None:
            return []
        conditions = coverage.of_capture(captured)
        coverage.sizes.relate(conditions)
        if not coverage.may_narrow(conditions):
            return []
        try:
            run = _recorded.runner(captured.program)
        except Exception:
            # torch cannot run it.
            return coverage.narrowing(conditions, None)[0]
        found, untested = coverage.narrowing(conditions, run)
        if found or self._sizes == "warn":
            return found
        # Few exports need these.
        from . import _hiding
        from ._recapture import Recapture

        with self._calls_as_ops({}):
            recapture = Recapture(coverage, call, captured)
            return _hiding.hiding(recapture, captured, conditions, untested, run)

    def _texts(self, captured: Captured) -> list[str]:
        """The sizes for which alone a program holds."""
        sizes = self._coverage.sizes
        return [
            f"The model holds only where {text}. The code decides by it at {where}"
            for text, where in sizes.texts(captured.narrowing)
        ]

    def _check_ranges(self, captured: Captured) -> None:
        """Refuses a program that holds for a part of a range that the user gave only.

        Raises:
            TorchExportError: It does.
        """
        names = {name for condition in captured.narrowing for name in condition.names}
        dims = self._coverage.sizes.dims
        if self._sizes == "error" or any(name in dims and dims[name].exact for name in names):
            narrow = NarrowCapture("; ".join(self._texts(captured)))
            raise _failures.failed({**captured.failures, captured.strategy: narrow})

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
            with _garbage.not_collected():
                tracing = self._traces.of(self._free)
                notes = self._traces.check(tracing)
                made = translate(ScriptSource(tracing.traced.script(), tracing.symbolic))
        except Exception as failure:
            self._steps.say(f"{step} ❌")
            failures[Trace.name] = failure
            return None
        self._steps.say(f"{step} ✅")
        for note in notes:
            _errors.warn(f"The model may be wrong for other arguments: {note}")
        return made, Captured(None, Trace.name, failures, warnings=tracing.traced.warnings)

    def graph(self) -> JitGraph:
        """The graph of a trace, whose last inputs are the tensors and numbers of the arguments.

        Raises:
            Exception: The module cannot be traced.
        """
        return self._traces.of(self._free).traced.code.inlined_graph

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
        tracing = self._traces.known(free)
        if tracing and (tracing.loop or tracing.by_values):
            error = _failures.failed({Trace.name: _trace.TraceWarning(tracing.refuted)})
            if self._may_have_regions(tracing):
                with contextlib.suppress(TorchExportError):
                    scripts = (ScriptModule(),)
                    return self._by_script(error, translate, call, strategies=scripts)
                try:
                    return None, self._by_export(plain)
                except TorchExportError:
                    if by_regions := self._by_regions(None, plain, translate):
                        return by_regions
            with contextlib.suppress(TorchExportError):
                return self._by_script(error, translate, free, free_numbers=free is not call)
        if free is not call:
            args, kwargs = _numbers.as_tensors(call.args, call.kwargs)
            given = dataclasses.replace(plain, args=args, kwargs=kwargs)
            try:
                captured = self._by_export(given)
                if _numbers.decide_types(captured.program, call):
                    text = "numbers among the arguments decide the types of results"
                    raise _failures.failed({captured.strategy: TypeError(text)})
                return None, captured
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

    def _may_have_regions(self, tracing: Tracing) -> bool:
        """Whether captures by torch.export at several sizes may take the place of a trace that
        holds for one size: each may have other loops. They do not follow values."""
        own = self._free is self._call and self._coverage.has_dims and self._sizes == "merge"
        return own and tracing.loop is not None and not _trace.reads_values(tracing.traced)

    def _by_export(self, call: Call, fixes: Fixes = Fixes.ALL) -> Captured:
        self._symbolic = {}
        with self._calls_as_ops(self._symbolic), self._limited():
            logs: list[GuardLog] = []
            try:
                return _torch_export.capture(call, self._steps.say, logs, fixes=fixes)
            finally:
                self._logs += [(log, call) for log in logs]

    def _limited(self) -> contextlib.AbstractContextManager[None]:
        """A context in which torch.export is given up if it takes far longer than the trace."""
        tracing = self._traces.known(self._free)
        if self._patience is None and tracing and tracing.has_run:
            self._patience = Patience.of_trace(tracing.traced.seconds)
        return self._patience.limited() if self._patience else contextlib.nullcontext()

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
        if captured.narrowing:
            self._check_ranges(captured)
        try:
            made = translate(self._source(captured))
            kinds = {kind for kind, _ in made._native.warnings(grouped=True)}
            if "weights" in kinds and _torch_export.has_lost_constants(program):
                text = "torch.export kept no values of constants that the model needs"
                raise _errors.new_error(ConversionError, text, "conversion", by_torch=True)
            _buffer_branches.warn_of(captured.log.flags)
            for text in (*self._texts(captured), *captured.log.notes):
                _errors.warn(text)
            return made, captured
        except Exception as error:
            if isinstance(error, OnnxExporterError) and not error.by_torch and not self._legacy:
                raise
            failures = {**captured.failures, captured.strategy: error}
            try:
                return self._by_script(_failures.failed(failures), translate, call)
            except Exception:
                raise error from error.__cause__

    def _source(self, captured: Captured) -> ProgramSource:
        """The program of a capture."""
        program, call = captured.program, self._call
        assert program is not None
        if self._legacy:
            # As in the exporter of TorchScript, whose names of inputs may also name weights.
            _torch_export.order_weights(program, cast(torch.nn.Module, call.model).state_dict())
        shapes = _shapes.by_leaf(call.model, call.args, call.kwargs, call.shapes)
        asked = None
        if self._coverage.has_dims and captured.call is not None:
            conditions = self._coverage.conditions(captured.log, captured.call)
            asked = self._coverage.asked(conditions)
        return ProgramSource(program, shapes, self._symbolic, captured.relations, asked)

    def _by_script(
        self,
        error: TorchExportError,
        translate: Translate,
        call: Call,
        *,
        free_numbers: bool = False,
        allow_value_traces: bool = True,
        strategies: Sequence[Strategy] = STRATEGIES,
    ) -> tuple[ONNXProgram, Captured]:
        """The model by the first strategy of TorchScript that leads to one.

        Args:
            error: The errors of torch.export.
            translate: Translates a source.
            call: The module, whose numbers may be tensors.
            free_numbers: Whether its numbers are tensors.
            allow_value_traces: Whether a trace may follow the values of the arguments, if that is
                allowed at all.
            strategies: Those to try.

        Raises:
            TorchExportError: There is none.
        """
        if self._allow_value_traces and not self._traces.of(self._free).has_run:
            # The exporter of TorchScript lets errors of the module through.
            _trace.run(self._call)
        failures = dict(error.failures_by_strategy)
        attempt = Attempt(
            self._model,
            call,
            strict=not self._allow_value_traces,
            free_numbers=free_numbers,
            allow_value_traces=allow_value_traces and self._allow_value_traces,
            tracing=lambda: self._traces.of(call),
            calls_as_ops=self._calls_as_ops,
        )
        for strategy in strategies:
            step = f"Obtain model graph with `torch.jit.{strategy.function}`..."
            try:
                script = strategy.capture(attempt)
                made = translate(ScriptSource(script, attempt.symbolic))
                if not isinstance(strategy, ValueTrace):
                    self._check(made, script)
            except NoMatch:
                continue
            except Exception as failure:
                self._steps.say(f"{step} ❌")
                failures[strategy.name] = failure
                self._script_failed = self._script_failed or isinstance(strategy, ScriptModule)
                continue
            self._steps.say(f"{step} ✅")
            if self._allow_value_traces and not self._traces.of(call).loop:
                self._warn_of_sizes()
            if isinstance(strategy, ValueTrace):
                for note in attempt.notes:
                    _errors.warn(f"The model may be wrong for other arguments: {note}")
            return made, Captured(None, strategy.name, failures)
        raise _failures.failed(failures) from error.__cause__

    def _check(self, made: ONNXProgram, script: Script) -> None:
        """Compares a model of TorchScript with the module at the sizes that captures ask for.

        Raises:
            TraceWarning: They differ.
        """
        coverage = self._coverage
        if not coverage.has_dims:
            return
        script.conditions = [one for log in self._logs for one in coverage.conditions(*log)]
        points = [coverage.sizes.example, *coverage.sizes.to_try(script.conditions)]
        numbers = sorted(_trace_borders.numbers_of_script(script.run))
        # Captures ask only what does not follow from other answers.
        points += coverage.sizes.borders((), numbers)[:MOST]

        def run(*args: object, **kwargs: object) -> Sequence[object]:
            return made._run(args, kwargs, {})

        try:
            has_runtime = importlib.util.find_spec("onnxruntime") is not None
            runs = run if has_runtime or script.run is None else script.run
            if wrong := coverage.first_wrong(runs, points):
                raise _trace.TraceWarning(f"the model is not right at other sizes ({wrong})")
        finally:
            made.release()

    def _warn_of_sizes(self) -> None:
        """Warns if the module takes no other sizes."""
        try:
            _trace.run_at_other_sizes(self._call)
        except _trace.TraceWarning as failure:
            _errors.warn(f"The model may be wrong for other sizes: {failure}")


def _calls_as_ops(
    legacy: bool, is_static: bool, found: dict[object, Function]
) -> contextlib.AbstractContextManager[None]:
    """In this context, calls of autograd functions with symbolic functions are ops, as in the
    exporter of TorchScript, if its rules are followed.

    Args:
        legacy: Whether they are.
        is_static: Whether there are no dynamic shapes.
        found: Gets the translations of the ops.
    """
    return _symbolic.used(found, exact=is_static) if legacy else contextlib.nullcontext()


def _with_free_numbers(call: Call) -> Call:
    """The call with tensors for numbers, as the tracer of TorchScript has them; the same call if it
    has none."""
    args, kwargs = _numbers.as_numbers(call.args, call.kwargs)
    given = _pytree.leaves((call.args, call.kwargs))
    if all(own is one for own, one in zip(_pytree.leaves((args, kwargs)), given, strict=True)):
        return call
    return dataclasses.replace(call, args=args, kwargs=kwargs)
