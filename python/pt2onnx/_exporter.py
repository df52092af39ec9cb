"""The steps of an export: capture, translate, verify, write."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol, cast

import torch

from . import (
    _dynamic_axes,
    _errors,
    _garbage,
    _legacy_inputs,
    _option_json,
    _report,
    _shapes,
    _sources,
    _symbolic,
    _verify,
    _wrappers,
)
from ._capture import _jit, _script
from ._capture._jit import JitGraph
from ._capture._strategies import Capturer
from ._capture._torch_export import Captured
from ._program import ONNXProgram
from ._request import ExportRequest
from ._sources import Options, ProgramSource, ScriptSource, Source
from ._translation import translations
from ._types import Args, Destination, Kwargs, Model, is_dict, is_path
from .hf import _caches

_TRAINING = (
    "Exporting a model while it is in training mode. Please ensure that this is intended, as it "
    "may lead to different behavior during inference. Calling model.eval() before export is "
    "recommended."
)

#: The option ``unsupported_ops`` for names of ``torch.onnx.OperatorExportTypes``.
_OPERATORS = {
    "ONNX": "onnx",
    "ONNX_ATEN": "aten",
    "ONNX_ATEN_FALLBACK": "aten-fallback",
    "ONNX_FALLTHROUGH": "fallthrough",
}


#: The values of the parameter ``sizes``.
_SIZES = ("merge", "warn", "error", "split")

#: The parameters of ``export`` by the options that they are.
_PARAMETERS = {
    "opset": "opset_version",
    "unsupported_ops": "operator_export_type",
    "custom_opset": "custom_opsets",
    "module_functions": "export_modules_as_functions",
}


#: The parameters of ``export``. A misspelt keyword may mean one.
_PARAMETER_NAMES = frozenset(field.name for field in dataclasses.fields(ExportRequest)) - {
    "options"
}


class Exportable(Protocol):
    """A ``torch.onnx.ExportableModule``, of versions of torch that have it."""

    def example_arguments(self) -> tuple[Args, Kwargs | None]: ...
    def input_names(self) -> Sequence[str] | None: ...
    def output_names(self) -> Sequence[str] | None: ...
    def dynamic_shapes(self) -> object: ...


class Exporter:
    """An export of a request.

    Args:
        request: The request.

    Raises:
        ValueError: The model or names cannot be exported.
    """

    def __init__(self, request: ExportRequest) -> None:
        self._request = request
        self._legacy = not request.dynamo
        self._model = _checked_model(request)
        self._args, self._kwargs = self._arguments()
        _check_distinct("Input", request.input_names)
        _check_distinct("Output", request.output_names)
        self._external = request.external_data
        if "weights" not in request.options and self._external is None:
            self._external = request.dynamo
        self._capturer: Capturer | None = None
        self._steps = _report.Steps(request.verbose)
        self._files = _report.Artifacts(
            request.artifacts_dir,
            self._steps,
            report=request.report,
            profile=request.profile,
            dump=request.dump_exported_program,
        )
        given = self._options()
        self._given = {name: value for name, value in given.items() if value is not None}
        self._symbolic = _symbolic.Registered(request.opset_version) if self._legacy else None
        symbolic = self._symbolic.table if self._symbolic else {}
        self._table = translations({**symbolic, **(request.custom_translation_table or {})})

    def run(self) -> ONNXProgram:
        """Captures, translates, verifies and writes.

        Raises:
            OnnxExporterError: There is no model, or it cannot be written.
        """
        with _wrappers.inner_parameters(self._model, self._args, self._kwargs) as by_inner:
            self._request.dynamic_shapes = by_inner(self._request.dynamic_shapes)
            with _garbage.collected_rarely:
                return self._run()

    def _run(self) -> ONNXProgram:
        request = self._request
        # Caches are arguments and results of the models of transformers only.
        _caches.register()
        with _mode(self._model, request.training, legacy=self._legacy):
            made, captured = self._made()
        for one in made.regions or (made,):
            self._complete(one, captured)
            if self._legacy and request.verbose:
                print(f"Exported graph: {one.to_text()}")
        # A frozen module in TorchScript has no mode.
        training = getattr(request.model, "training", False)
        for kind, text in made._native.warnings(grouped=True):
            # The training-mode warning of a module was already issued.
            if not (training and kind == "training"):
                _errors.warn(text)
        if request.verify:
            as_exported = _as_exported(self._model, request.training, legacy=self._legacy)
            with self._steps.timed("verify"), as_exported:
                self._verify(made)
        if request.f is not None:
            with self._steps.timed("write"), self._files.failing("output"):
                for one, f in _destinations(made, request.f):
                    self._write(one, f)
        self._files.done(made, captured)
        return made

    def _complete(self, made: ONNXProgram, captured: Captured | None) -> None:
        """Names axes of outputs, and drops inputs, as is requested."""
        request = self._request
        if captured:
            made._capture_strategy = captured.strategy
        if request.dynamic_axes:
            outputs = [name for name in made.output_names if name not in made.input_names]
            made._name_output_axes(_shapes.output_axes(request.dynamic_axes, outputs))
        if self._legacy:
            model, args, kwargs = self._model, self._args, self._kwargs
            made._drop_unused_inputs(
                lambda count: _legacy_inputs.used_inputs(model, args, kwargs, count, self._trace)
            )

    # The request.

    def _arguments(self) -> tuple[Args, Kwargs]:
        """The arguments as a tuple and a dict."""
        request, model = self._request, self._model
        given: Any = (request.args,) if isinstance(request.args, torch.Tensor) else request.args
        args, kwargs = tuple(given), dict(request.kwargs or {})
        if hasattr(model, "example_arguments") and not args and not kwargs:
            exportable = cast(Exportable, model)
            example = exportable.example_arguments()
            args, kwargs = tuple(example[0]), dict(example[1] or {})
            if request.input_names is None:
                request.input_names = exportable.input_names()
            if request.output_names is None:
                request.output_names = exportable.output_names()
            if request.dynamic_shapes is None:
                request.dynamic_shapes = exportable.dynamic_shapes()
        if not kwargs and args and is_dict(args[-1]) and not self._is_program:
            last = cast(Kwargs, args[-1])
            # As in torch.onnx, unless only the dict itself fits.
            if _shapes.fits(model, args[:-1], last) or not _shapes.fits(model, args, {}):
                args, kwargs = args[:-1], last
        if self._legacy or request.dynamic_axes is not None:
            # As in torch.onnx.
            kwargs = _shapes.in_order(model, kwargs)
        return args, kwargs

    @property
    def _is_program(self) -> bool:
        return isinstance(self._model, torch.export.ExportedProgram)

    def _options(self) -> Options:
        request = self._request
        names, kind = request.output_names, request.operator_export_type
        to_file = request.f is not None and is_path(request.f)
        options: Options = {
            "opset": request.opset_version,
            "output_names": list(names) if names and not isinstance(names, str) else names or None,
            "custom_opset": dict(request.custom_opsets) if request.custom_opsets else None,
            "unsupported_ops": _operators(kind),
            "training": self._training(),
            "keep_initializers_as_inputs": _keeps_initializers(request),
            "optimize": 2 if request.optimize else 0,
            "module_functions": _option_json.module_functions(request.export_modules_as_functions),
            "module_attributes": _option_json.module_attributes(self._model)
            if request.export_modules_as_functions
            else None,
            # Weights that are folded would have to be written anew.
            "weights": "external" if self._external and to_file else None,
        }
        if self._legacy:
            # Tools that merge models compare the inputs and outputs of torch.onnx's older exporter,
            # which have no metadata.
            options["provenance"] = "basic"
            options["scoped_names"] = True
            options["aten_nodes"] = (_operators(kind) or "").startswith("aten") or None
            options["node_docs"] = request.verbose or None
            if not request.export_params:
                options |= {"weights": "none", "keep_initializers_as_inputs": True}
        given = _option_json.renamed(request.options)
        _option_json.reject_unknown(given, _option_json.CONVERTING, _PARAMETER_NAMES)
        return {**options, **given}

    def _training(self) -> str | None:
        """The option ``training``."""
        given = self._request.training
        if self._legacy and getattr(given, "name", None) == "TRAINING":
            return "train"
        return given if isinstance(given, str) else None

    # The model.

    def _made(self) -> tuple[ONNXProgram, Captured | None]:
        """The model, and the capture of a module."""
        request, model, files = self._request, self._model, self._files
        if isinstance(model, torch.export.ExportedProgram):
            files.dump(model)
            with files.failing("conversion"):
                return self._translate(ProgramSource(model, request.dynamic_shapes)), None
        names = request.input_names
        input_names = None if isinstance(names, str) else names
        axes = _dynamic_axes.DynamicAxes(request.dynamic_axes, input_names, request.output_names)
        arguments = (model, self._args, self._kwargs, request.dynamic_shapes)
        if _jit.is_script(model):
            with files.failing("pt_export"), self._steps.timed("capture"):
                script = _script.of_model(*arguments)
                if request.dynamic_shapes is None and axes.axes is not None:
                    script = _script.with_axes(script, axes)
                script.may_fix_sizes = self._legacy
            with files.failing("conversion"):
                return self._translate(ScriptSource(script)), None
        capturer = self._capturer = Capturer(
            *arguments,
            axes,
            self._steps,
            legacy=self._legacy,
            allow_value_traces=request.fallback or self._legacy,
            sizes=_checked_sizes(request.sizes),
            max_regions=request.max_regions,
        )
        with files.failing("pt_export"), self._steps.timed("capture"):
            made, captured = capturer.run(self._translate)
        if captured.program is not None:
            files.dump(captured.program)
            with files.failing("conversion"):
                made, captured = capturer.translated(captured, self._translate)
        assert made is not None
        return made, captured

    def _trace(self) -> JitGraph:
        """The graph of a trace of the module."""
        assert self._capturer is not None
        return self._capturer.graph()

    def _translate(self, source: Source) -> ONNXProgram:
        """The model of a source, at a newer opset than the default if it needs that and none is
        requested."""
        request, step = self._request, "Translate the graph into ONNX..."
        self._steps.say(step)
        with self._steps.timed("translate"):
            own = source.options(request.input_names, all_names=self._legacy)
            options = {**own, **self._given}
            names, count = options.get("output_names"), source.output_count
            if isinstance(names, list) and count is not None:
                given = cast(list[str], names)
                options["output_names"] = _sources.take_names(given, count, "output")
            if self._symbolic:
                self._symbolic.clear()
            _sources.rename_defaults(options, source.input_names)
            with _own_names():
                made = self._with_options(source, options)
            if self._symbolic and self._symbolic.table and not request.custom_translation_table:
                self._symbolic.check(source.ops)
        self._steps.say(f"{step} ✅")
        return made

    def _with_options(self, source: Source, options: Options) -> ONNXProgram:
        """The model: see ``_translate``. Surplus ``input_names``, which may also be those of
        weights, have no effect but a warning."""
        try:
            return source.translate(options, self._table)
        except _errors.ConversionError as error:
            if "opset" in options or error.opset is None:
                raise
            text = f"the model needs opset {error.opset}, which it has instead of the default"
            _errors.warn(text)
            return source.translate({**options, "opset": error.opset}, self._table)
        except _errors.TooManyNamesError as error:
            names = options.get("input_names")
            if not isinstance(names, list) or len(cast(list[str], names)) <= error.count:
                raise
            taken = _sources.take_names(cast(list[str], names), error.count, "input")
            return source.translate({**options, "input_names": taken}, self._table)

    # The result.

    def _verify(self, program: ONNXProgram) -> None:
        """Compares the model with the module, and warns of differences."""
        model, args, kwargs = self._model, self._args, self._kwargs
        if isinstance(model, torch.export.ExportedProgram) and not args and not kwargs:
            if model.example_inputs is None:
                _errors.warn("verify=True needs args: the program has no example inputs.")
                return
            args, kwargs = model.example_inputs
        try:
            verification = _verify.verify(program, cast(Model, model), args, kwargs)
        except _errors.VerificationError as error:
            _errors.warn(str(error))
            return
        finally:
            program.release()
        program.verification = verification
        self._steps.say("Verify output accuracy... " + ("✅" if verification.ok else "❌"))
        for output in verification.outputs:
            if not output.ok:
                _errors.warn(f"Output '{output.name}' ({output.inputs}): {output.problem}")
        for note in verification.notes:
            _errors.warn(f"The verification is not complete: {note}")

    def _write(self, program: ONNXProgram, f: Destination) -> None:
        external = self._external
        if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
            kind = type(f).__name__
            raise TypeError(f"f is a path, or an object to write bytes to, not {kind}")
        if not is_path(f):
            _errors.warn(
                "Saving ONNX model to a BytesIO object is deprecated. Please use a file path "
                "instead.",
                DeprecationWarning,
            )
            external = None
        if self._request.export_params or self._legacy:
            program.save(f, external_data=external)
        else:
            program.save(f, include_initializers=False)


def _checked_model(request: ExportRequest) -> Any:
    """The model that is exported. Warns if it is in training mode.

    Raises:
        TypeError: It is not a model.
        ValueError: It cannot be exported.
    """
    model: Any = request.model
    if type(model).__name__ == "OptimizedModule":
        # The result of torch.compile of a module.
        model = model._orig_mod
    if reason := _no_model(model):
        raise TypeError(reason)
    parallel = cast(type[object], torch.nn.DataParallel)
    if isinstance(model, parallel) and not request.dynamo:
        raise ValueError(
            "torch.nn.DataParallel cannot be exported: give its module, `model.module`."
        )
    if request.dynamo and getattr(model, "training", False):
        _errors.warn(_TRAINING, UserWarning)
    return model


def _no_model(model: object) -> str | None:
    """Why a value is not a model, and what to give instead; None if it is one."""
    if isinstance(model, (str, os.PathLike)):
        path: str = os.fspath(model)
        return f"export takes a module: pt2onnx.convert({path!r}) makes a model of an archive"
    if isinstance(model, type):
        name = model.__name__
        return f"the model is the class {name}: give a module of it, {name}(...)"
    if isinstance(model, Mapping):
        return (
            "the model is a dict, as a state dict is, which has no code: give the module, after "
            "module.load_state_dict(...)"
        )
    if not callable(model):
        return f"a model is a module, a function or an ExportedProgram, not {type(model).__name__}"
    return None


def _destinations(made: ONNXProgram, f: Destination) -> list[tuple[ONNXProgram, Destination]]:
    """Where to write the models: ``m.1.onnx``, ``m.2.onnx`` in place of ``m.onnx`` if there are
    several.

    Raises:
        TypeError: Several cannot be written to one object.
    """
    if not made.regions:
        return [(made, f)]
    if not isinstance(f, (str, os.PathLike)):
        raise TypeError('sizes="split" made several models: give a path')
    path: str = os.fspath(f)
    stem, end = os.path.splitext(path)
    return [(one, f"{stem}.{at}{end}") for at, one in enumerate(made.regions, 1)]


def _checked_sizes(sizes: str) -> str:
    """The parameter ``sizes``. Raises ValueError if it has another value."""
    if sizes not in _SIZES:
        raise ValueError(f"the parameter `sizes` is {sizes!r}, not one of {', '.join(_SIZES)}")
    return sizes


@contextlib.contextmanager
def _own_names() -> Generator[None, None, None]:
    """Errors of options have the names of the parameters of ``export`` in this context."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        for option, parameter in _PARAMETERS.items():
            text = text.replace(f"the option `{option}`", f"the parameter `{parameter}`")
        if text == str(error):
            raise
        raise ValueError(text) from None


def _operators(kind: object) -> str | None:
    """The option ``unsupported_ops`` for a torch.onnx.OperatorExportTypes."""
    name = getattr(kind, "name", kind)
    return None if name is None else _OPERATORS.get(str(name), str(name))


def _keeps_initializers(request: ExportRequest) -> bool:
    """Whether weights are inputs as well. By default torch.onnx's exporter of TorchScript makes
    them inputs of models that may have nodes of ATen."""
    keep = request.keep_initializers_as_inputs
    if keep is not None:
        return keep
    return not request.dynamo and _operators(request.operator_export_type) not in (None, "onnx")


def _as_exported(
    model: object, training: object, *, legacy: bool
) -> contextlib.AbstractContextManager[None]:
    """The mode that the model is in after an export."""
    if training == "eval":
        return _mode(model, None, legacy=True)
    return _mode(model, training, legacy=legacy)


@contextlib.contextmanager
def _mode(model: object, training: object, *, legacy: bool) -> Generator[None, None, None]:
    """The mode in which torch.onnx's exporter of TorchScript exports: evaluation, unless
    ``training`` is another one."""
    name = getattr(training, "name", "EVAL")
    keep = not legacy or name == "PRESERVE" or isinstance(training, str)
    if keep or getattr(model, "training", None) is None:
        yield
        return
    modes: list[tuple[torch.nn.Module, bool]] = []
    if hasattr(model, "modules"):
        modules = cast(torch.nn.Module, model).modules()
        modes = [(module, module.training) for module in modules]
    try:
        cast(torch.nn.Module, model).train(name == "TRAINING")
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _check_distinct(kind: str, names: Sequence[str] | str | None) -> None:
    """Raises ValueError if a name is given twice."""
    if names and not isinstance(names, str) and len(set(names)) != len(names):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        raise ValueError(f"{kind} names cannot be duplicated: {', '.join(twice)}")
