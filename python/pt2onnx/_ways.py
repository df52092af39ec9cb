"""The ways to capture a module: torch.export, then TorchScript."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _answers, _capture, _errors, _script, _shapes, _symbolic, _trace
from ._program import ONNXProgram
from ._sources import Axes, OfProgram, OfScript, Source

if TYPE_CHECKING:
    import torch

#: Translates a source.
Translate = Callable[[Source], ONNXProgram]


def _apart(*arguments: Any) -> Any:
    """The arguments, with a tensor of its own for each: torch.export and the tracer take a tensor that is there twice for one input."""
    import torch
    from torch.utils import _pytree

    leaves, tree = _pytree.tree_flatten(arguments)
    seen: set[int] = set()
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and id(leaf) in seen:
            leaves[at] = leaf.detach().clone().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
    # Containers that are made anew may lose what is not in their leaves.
    return _pytree.tree_unflatten(leaves, tree) if len(seen) < len(leaves) else arguments


def numbers_as_tensors(*arguments: Any) -> Any:
    """The arguments with tensors for numbers, as the tracer of TorchScript has them."""
    import torch
    from torch.utils import _pytree

    kinds = {bool: torch.bool, int: torch.int64, float: torch.float64}
    return _pytree.tree_map(lambda a: torch.tensor(a, dtype=kinds[type(a)]) if type(a) in kinds else a, arguments)


class Ways:
    """A module with its arguments and dynamic shapes, and the ways to capture it, which are tried in turn.

    ``lenient`` allows traces that follow the values of the arguments, ``symbolic`` says that symbolic functions are used.
    """

    def __init__(
        self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, axes: Axes, hf: Any, steps: Any, *, lenient: bool,
        symbolic: bool = False,
    ) -> None:
        self._given, model = model, _capture.as_module(model)
        if hasattr(shapes, "dynamic_shapes"):
            # A torch.export.ShapesCollection or AdditionalInputs.
            shapes = shapes.dynamic_shapes(model, args, kwargs)
        args, kwargs = _apart(args, kwargs)
        self._model, self._args, self._kwargs, self._axes, self._steps = model, args, kwargs, axes, steps
        self._lenient, self._hf = lenient, hf
        self._with_symbolic, self._symbolic = symbolic, dict[Any, Any]()
        if shapes is None and axes[0] is not None:
            shapes = _from_axes(model, args, kwargs, axes, lenient=lenient)
        shapes = _shapes.by_parameter(model, args, kwargs, shapes, axes[1])
        self.shapes = hf.spread(model, args, kwargs, shapes) if hf else shapes

    def run(self, translate: Translate, free: bool) -> tuple[ONNXProgram | None, _capture.Captured]:
        """Tries all ways. There is a model already if it is one of TorchScript. If numbers are to be ``free``, they are given as
        tensors, or as they are if that does not work.

        Raises TorchExportError with the error of each way if none leads to a model."""
        from torch.utils import _pytree

        if self._lenient and _script.has_tensor_keys((*self._args, self._kwargs)):
            # The exporter of TorchScript has them as inputs.
            constant = TypeError("a dict has tensors for keys, which torch.export takes for constants")
            return self._script(_capture.failed({"TorchExportStrategy": constant}), translate, self._args, self._kwargs)
        shapes = _shapes.for_torch(self.shapes)
        if problem := _shapes.problem(self._model, self._args, self._kwargs, shapes):
            raise _capture.failed({_capture.STRATEGIES[0][0]: problem})
        leaves = _pytree.tree_leaves((self._args, self._kwargs))
        if free and any(type(leaf) in (bool, int, float) for leaf in leaves):
            args, kwargs = numbers_as_tensors(self._args, self._kwargs)
            try:
                return None, self._captured(args, kwargs, shapes)
            except _errors.TorchExportError as error:
                with contextlib.suppress(_errors.TorchExportError):
                    return self._script(error, translate, args, kwargs)
        try:
            return None, self._captured(self._args, self._kwargs, shapes, may_fix=not self._lenient)
        except _errors.TorchExportError as error:
            small = any(isinstance(failure, _capture.SmallSizes) for failure in error.failures_by_strategy.values())
            if not small:
                return self._script(error, translate, self._args, self._kwargs)
            with contextlib.suppress(_errors.TorchExportError):
                return self._script(error, translate, self._args, self._kwargs, lenient=False)
        return None, self._captured(self._args, self._kwargs, shapes)

    def _captured(self, args: Any, kwargs: Any, shapes: Any, *, may_fix: bool = True) -> _capture.Captured:
        """By torch.export. As in the exporter of TorchScript, autograd functions are what their symbolic functions emit."""
        with self._calls_as_ops():
            return _capture.capture(self._model, args, kwargs, shapes, self._steps.say, may_fix=may_fix)

    def _calls_as_ops(self) -> contextlib.AbstractContextManager[None]:
        """While this lasts, calls of autograd functions with symbolic functions are ops, if symbolic functions are used."""
        self._symbolic.clear()
        return _symbolic.used(self._symbolic, exact=self.shapes is None) if self._with_symbolic else contextlib.nullcontext()

    def translated(
        self, captured: _capture.Captured, translate: Translate, lenient: bool
    ) -> tuple[ONNXProgram, _capture.Captured]:
        """The model of a captured program. If PyTorch cannot hand the program over, or if ``lenient`` and it cannot be translated, one
        of TorchScript. Raises the error of the program if there is none."""
        assert captured.program is not None
        if lenient:
            # As in the exporter of TorchScript, whose names of inputs go on over weights.
            _capture.order_weights(captured.program, self._model.state_dict())
        try:
            shapes = _shapes.by_leaf(self._model, self._args, self._kwargs, self.shapes)
            made = translate(OfProgram(captured.program, shapes, self._hf, self._symbolic))
            if _has_lost_constants(captured.program) and any(kind == "weights" for kind, _ in made._native.warnings(grouped=True)):
                lost = _errors.made(_errors.ConversionError, "torch.export kept no values of constants that the model needs")
                lost.kind, lost._by_torch = "conversion", True
                raise lost
            _warn_of_conditions(captured, shapes)
            return made, captured
        except Exception as error:
            if isinstance(error, _errors.OnnxExporterError) and not error._by_torch and not lenient:
                raise
            try:
                failed = _capture.failed({**captured.failures, captured.strategy: error})
                return self._script(failed, translate, self._args, self._kwargs)
            except Exception:
                raise error from error.__cause__

    def _script(
        self, error: _errors.TorchExportError, translate: Translate, args: tuple[Any, ...], kwargs: dict[str, Any], *, lenient: bool = True
    ) -> tuple[ONNXProgram, _capture.Captured]:
        """By a trace with these arguments that holds for all others, by TorchScript, or if ``lenient`` by a trace if such are allowed."""
        if self._lenient:
            # The exporter of TorchScript lets errors of the module through.
            _trace.run(self._model, self._args, self._kwargs)
        failures = dict(error.failures_by_strategy)
        notes: list[str] = []
        traced = None
        free = args is not self._args
        for strategy in ("TraceStrategy", "ScriptStrategy", "LenientTraceStrategy"):
            step = f"Obtain model graph with `torch.jit.{'script' if strategy == 'ScriptStrategy' else 'trace'}`..."
            try:
                if strategy == "ScriptStrategy":
                    script = _trace.scripted(self._given, self._args, self._kwargs, self.shapes, not self._lenient)
                    script.free, script.may_fix = free, False
                elif strategy == "TraceStrategy":
                    with self._calls_as_ops():
                        traced, notes = _trace.traced(self._model, args, kwargs, self.shapes, not self._lenient)
                    if notes:
                        raise _trace.TraceWarning(f"the trace holds for these arguments only: {'; '.join(notes[:3])}")
                    script = traced
                elif traced is None or not notes or not (lenient and self._lenient):
                    continue
                else:
                    script = traced
                made = translate(OfScript(script, self._symbolic))
            except Exception as failure:
                self._steps.say(f"{step} ❌")
                failures[strategy] = failure
                continue
            self._steps.say(f"{step} ✅")
            if self._lenient:
                self._warn_of_sizes()
            if strategy == "LenientTraceStrategy":
                for note in notes:
                    _errors.warn(f"The model may be wrong for other arguments: {note}")
            return made, _capture.Captured(None, strategy, failures)
        raise _capture.failed(failures) from error.__cause__

    def _warn_of_sizes(self) -> None:
        """Warns if the module takes no other sizes."""
        try:
            _trace.run_at_other_sizes(self._model, self._args, self._kwargs, self.shapes)
        except _trace.TraceWarning as failure:
            _errors.warn(f"The model may be wrong for other sizes: {failure}")


def _warn_of_conditions(captured: _capture.Captured, shapes: Any) -> None:
    """Warns of sizes for which the program does not hold, by the names of the dimensions, and of values of weights."""
    for place in dict.fromkeys(captured.flags.values()):
        weights = [f"`{name}`" for name, where in captured.flags.items() if where == place]
        more = f" and {len(weights) - 2} more" if len(weights) > 3 else ""
        listed = ", ".join(weights[: 2 if more else 3]) + more
        _errors.warn(f"The model holds only for the values that these weights have now: {listed}. The code decides by them at {place}")
    if not captured.conditions or captured.program is None:
        return
    with warnings.catch_warnings():
        # Of names that cannot be used was warned.
        warnings.simplefilter("ignore")
        names = _shapes.names(captured.program, shapes)
    for condition, place in captured.conditions.items():
        if (text := _answers.as_text(condition, names)) is not None:
            _errors.warn(f"The model holds only where {text}: the code decides by this at {place}")


def _has_lost_constants(program: torch.export.ExportedProgram) -> bool:
    """Whether torch.export kept no values of constants, although the weights have values: ``x.data = x.data.to(device)`` leaves such a
    constant, which the program may not need."""
    from torch._subclasses.fake_tensor import FakeTensor

    weights, constants = program.state_dict.values(), program.constants.values()
    return any(isinstance(one, FakeTensor) for one in constants) and not any(isinstance(one, FakeTensor) for one in weights)


def _from_axes(model: Any, args: Any, kwargs: Any, axes: Axes, *, lenient: bool) -> Any:
    if not lenient:
        _errors.warn(
            "# 'dynamic_axes' is not recommended when dynamo=True, and may lead to 'torch._dynamo.exc.UserError: Constraints violated.' "
            "Supply the 'dynamic_shapes' argument instead if export is unsuccessful.",
            UserWarning,
        )
    try:
        return _shapes.from_dynamic_axes(model, args, kwargs, axes, lenient=lenient)
    except Exception as error:
        raise RuntimeError(
            "# Failed to convert 'dynamic_axes' to 'dynamic_shapes'. Please provide 'dynamic_shapes' directly. "
            "Refer to the documentation for 'torch.export.export' for more information on dynamic shapes."
        ) from error
