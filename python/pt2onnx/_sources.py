"""What a model is made from: a program of torch.export, or an archive of TorchScript."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from . import _capture, _errors, _handover, _options, _script, _shapes, _symbolic, _trace, _translate
from ._program import ONNXProgram, _raised
from ._pt2onnx import convert_bytes, convert_program

if TYPE_CHECKING:
    import torch

#: Translates a source.
Translate = Callable[["Source"], ONNXProgram]

#: Up to so many dynamic sizes are fixed one by one.
_TRIED = 8

#: What the exporter of TorchScript of torch.onnx says of ``dynamic_axes``, the names of inputs, and those of outputs.
Axes = tuple[Any, Any, Any]


class Source(Protocol):
    """What a model is made from."""

    def options(self, input_names: Any, whole: bool = False) -> dict[str, Any]:
        """Its options: names of inputs, of outputs and of dimensions. If ``whole``, ``input_names`` goes on over parameters."""
        ...

    def translate(self, options: dict[str, Any], table: Any) -> ONNXProgram:
        """The model."""
        ...


class OfProgram:
    """An ExportedProgram, and the dynamic shapes that it was captured with."""

    def __init__(self, program: torch.export.ExportedProgram, shapes: Any, hf: Any, symbolic: Mapping[Any, Any] | None = None) -> None:
        self._program, self._shapes, self._hf = program, shapes, hf
        #: Translations of ops that only this program has.
        self._symbolic = symbolic or {}

    def options(self, input_names: Any, whole: bool = False) -> dict[str, Any]:
        """Its options: names of inputs, of outputs and of dimensions. If ``whole``, ``input_names`` goes on over parameters."""
        given: Any = None
        if isinstance(input_names, str):
            given = input_names
        elif input_names:
            count = len([name for name in _shapes.inputs(self._program) if name is not None])
            given = list(input_names) if whole else _some(input_names, count)
        renamed, found = self._hf.names(self._program) if self._hf else ({}, None)
        options: dict[str, Any] = {"input_names": given, "dim": _shapes.names(self._program, self._shapes)}
        if renamed and not given:
            options["rename"] = renamed
        return options if found is None else {**options, "output_names": found}

    def translate(self, options: dict[str, Any], table: Any) -> ONNXProgram:
        """The model."""
        text = _options.as_json(options)
        table = [*table, *_translate.entries(self._symbolic)]
        parts = _handover.parts(self._program)
        with _raised():
            made = ONNXProgram(convert_program(*parts, text, table), self._program)
        program = self._program
        made._remake = lambda weights: _remade(program, weights, text, table)
        return made


def _remade(program: torch.export.ExportedProgram, weights: Mapping[str, Any], text: str, table: Any) -> Any:
    """The program's model with other weights."""
    with _raised():
        return convert_program(*_handover.parts(program, weights), text, table)


class OfScript:
    """An archive of TorchScript."""

    def __init__(self, script: _script.Script) -> None:
        self._script = script

    def options(self, input_names: Any, whole: bool = False) -> dict[str, Any]:
        """Its options: names of inputs, and the type of floats. If ``whole``, the names go on over parameters."""
        import torch

        names = input_names or None
        if names and not isinstance(names, str):
            names = list(names) if whole else _some(names, self._script.input_count)
        return {"input_names": names, "default_dtype": str(torch.get_default_dtype()).removeprefix("torch.")}

    def translate(self, options: dict[str, Any], table: Any) -> ONNXProgram:
        """The model. If it cannot be made with all dynamic sizes, and the script allows that, one of them or all are fixed."""
        try:
            return self._with_numbers(options, table)
        except _errors.UnsupportedOperatorError:
            raise
        except _errors.OnnxExporterError as error:
            sizes = self._script.sizes if self._script.may_fix_sizes else []
            if not sizes:
                raise
            with contextlib.suppress(_errors.OnnxExporterError):
                return self._with_sizes(sizes, error, options, table)
            raise

    def _with_sizes(self, sizes: list[str], error: BaseException, options: dict[str, Any], table: Any) -> ONNXProgram:
        """The model in which the first of these sizes is fixed with which there is one, or all of them."""
        self._script.fixed = frozenset(sizes)
        made, fixed = self._with_numbers(options, table), sizes
        for size in sizes if 1 < len(sizes) <= _TRIED else []:
            self._script.fixed = frozenset([size])
            with contextlib.suppress(_errors.OnnxExporterError):
                made, fixed = self._with_numbers(options, table), [size]
                break
        _errors.warn(
            f"The model takes only the sizes of the example for {', '.join(fixed)}, as it cannot be made with dynamic ones: "
            f"{_capture.brief(error)}"
        )
        return made

    def _with_numbers(self, options: dict[str, Any], table: Any) -> ONNXProgram:
        """The model. Numbers among the arguments are inputs of it; if it cannot be made so, they keep their values."""
        try:
            return self._translate(options, table)
        except _errors.OnnxExporterError:
            if not (self._script.free and self._script.may_fix and self._script.has_numbers):
                raise
            self._script.free = False
            names = self.options(options["input_names"])["input_names"]
            made = self._translate({**options, "input_names": names}, table)
            _errors.warn("The numbers among the arguments are fixed in the model: it cannot be made with others.")
            return made

    def _translate(self, options: dict[str, Any], table: Any) -> ONNXProgram:
        told, renamed = self._script.told()
        text = _options.as_json({**options, "input": told, "dim": {**renamed, **(options.get("dim") or {})}})
        with _raised():
            made = ONNXProgram(convert_bytes(self._script.archive, text, table))
        made._script = self._script
        return made


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


def of_script(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, axes: Axes, *, lenient: bool
) -> _script.Script:
    """A module or function in TorchScript, with dynamic shapes or ``dynamic_axes``. If ``lenient``, sizes may be fixed."""
    script = _script.of(model, args, kwargs, shapes)
    if shapes is None and axes[0] is not None:
        script = _script.with_axes(script, *axes)
    script.may_fix_sizes = lenient
    return script


def _some(names: Any, count: int) -> list[str]:
    """The first names. Warns of others."""
    if len(names) > count:
        _errors.warn(f"There are {len(names)} input_names, but the model has {count} inputs; the last names are ignored.")
    return list(names)[:count]


class Ways:
    """The ways to capture a module: torch.export, then TorchScript."""

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
            shapes, self._args = _from_axes(model, args, kwargs, axes, lenient=lenient)
            self._args, self._kwargs = tuple(self._args), {}
        shapes = _shapes.by_parameter(model, shapes, axes[1])
        self.shapes = hf.spread(model, self._args, self._kwargs, shapes) if hf else shapes

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
        self._symbolic.clear()
        with _symbolic.used(self._symbolic) if self._with_symbolic else contextlib.nullcontext():
            return _capture.capture(self._model, args, kwargs, shapes, self._steps.say, may_fix=may_fix)

    def translated(
        self, captured: _capture.Captured, translate: Translate, lenient: bool
    ) -> tuple[ONNXProgram, _capture.Captured]:
        """The model of a captured program. If PyTorch cannot hand the program over, or if ``lenient`` and it cannot be translated, one
        of TorchScript. Raises the error of the program if there is none."""
        assert captured.program is not None
        try:
            return translate(OfProgram(captured.program, self.shapes, self._hf, self._symbolic)), captured
        except Exception as error:
            # A trace has no calls of autograd functions.
            if isinstance(error, _errors.OnnxExporterError) and (self._symbolic or not lenient):
                raise
            try:
                failed = _capture.failed({**captured.failures, captured.strategy: error})
                return self._script(failed, translate, self._args, self._kwargs)
            except Exception:
                raise error from None

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
                    script = _trace.scripted(self._given, self._args, self._kwargs, self.shapes)
                    script.free, script.may_fix = free, False
                elif strategy == "TraceStrategy":
                    traced, notes = _trace.traced(self._model, args, kwargs, self.shapes)
                    if notes:
                        raise _trace.TraceWarning(f"the trace holds for these arguments only: {'; '.join(notes[:3])}")
                    script = traced
                elif traced is None or not notes or not (lenient and self._lenient):
                    continue
                else:
                    script = traced
                made = translate(OfScript(script))
            except Exception as failure:
                self._steps.say(f"{step} ❌")
                failures[strategy] = failure
                continue
            self._steps.say(f"{step} ✅")
            if strategy == "LenientTraceStrategy":
                for note in notes:
                    _errors.warn(f"The model may be wrong for other arguments: {note}")
            return made, _capture.Captured(None, strategy, failures)
        raise _capture.failed(failures) from error.__cause__


def _from_axes(model: Any, args: Any, kwargs: Any, axes: Axes, *, lenient: bool) -> tuple[Any, Any]:
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
