"""What a model is made from: a program of torch.export, or an archive of TorchScript."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from . import _capture, _errors, _handover, _options, _script, _shapes, _translate
from ._program import ONNXProgram, _raised
from ._pt2onnx import convert_bytes, convert_program

if TYPE_CHECKING:
    import torch

#: Up to so many dynamic sizes are fixed one by one.
_TRIED = 8

#: What the exporter of TorchScript of torch.onnx says of ``dynamic_axes``, the names of inputs, and those of outputs.
Axes = tuple[Any, Any, Any]


class Source(Protocol):
    """What a model is made from."""

    def options(self, input_names: Any, whole: bool = False) -> dict[str, Any]:
        """Its options: names of inputs, of outputs and of dimensions. If ``whole``, ``input_names`` goes on over parameters."""
        ...

    @property
    def output_count(self) -> int | None:
        """How many outputs it has; None if that is not known before the translation."""
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
            given = list(input_names) if whole else some(input_names, count, "input")
        renamed, found = self._hf.names(self._program) if self._hf else ({}, None)
        options: dict[str, Any] = {"input_names": given, "rename_dim": _shapes.names(self._program, self._shapes)}
        if renamed and not given:
            options["rename"] = renamed
        return options if found is None else {**options, "output_names": found}

    @property
    def output_count(self) -> int | None:
        """How many results the program has, without None."""
        specs = self._program.graph_signature.output_specs
        values = [spec.arg for spec in specs if spec.kind.name == "USER_OUTPUT"]
        return len([value for value in values if getattr(value, "value", value) is not None])

    def translate(self, options: dict[str, Any], table: Any) -> ONNXProgram:
        """The model."""
        text = _options.as_json(options)
        table = [*table, *_translate.entries(self._symbolic)]
        with _given_away():
            parts = _handover.parts(self._program)
        with _raised():
            made = ONNXProgram(convert_program(*parts, text, table), self._program)
        program = self._program
        made._remake = lambda weights: _remade(program, weights, text, table)
        return made


@contextlib.contextmanager
def _given_away() -> Iterator[None]:
    """What torch raises while a program is serialised, as an exception of this package."""
    try:
        yield
    except _errors.OnnxExporterError:
        raise
    except Exception as error:
        text = f"PyTorch cannot give the program away: {type(error).__name__}: {str(error).strip()}"
        failure = _errors.made(_errors.ConversionError, text)
        failure.kind, failure._by_torch = "conversion", True
        raise failure from error


def _remade(program: torch.export.ExportedProgram, weights: Mapping[str, Any], text: str, table: Any) -> Any:
    """The program's model with other weights."""
    with _raised():
        return convert_program(*_handover.parts(program, weights), text, table)


class OfScript:
    """An archive of TorchScript."""

    def __init__(self, script: _script.Script, symbolic: Mapping[Any, Any] | None = None) -> None:
        self._script = script
        #: Translations of ops that only this archive has.
        self._symbolic = symbolic or {}

    def options(self, input_names: Any, whole: bool = False) -> dict[str, Any]:
        """Its options: names of inputs, and the type of floats. If ``whole``, the names go on over parameters."""
        import torch

        names = input_names or None
        if names and not isinstance(names, str):
            names = list(names) if whole else some(names, self._script.input_count, "input")
        return {"input_names": names, "default_dtype": str(torch.get_default_dtype()).removeprefix("torch.")}

    @property
    def output_count(self) -> int | None:
        """Nobody knows before the translation."""
        return None

    def translate(self, options: dict[str, Any], table: Any) -> ONNXProgram:
        """The model. If it cannot be made with all dynamic sizes, and the script allows that, one of them or all are fixed."""
        table = [*table, *_translate.entries(self._symbolic)]
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
        text = _options.as_json({**options, "input": told, "rename_dim": {**renamed, **(options.get("rename_dim") or {})}})
        with _raised():
            made = ONNXProgram(convert_bytes(self._script.archive, text, table))
        made._script = self._script
        return made


def of_script(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, axes: Axes, *, lenient: bool
) -> _script.Script:
    """A module or function in TorchScript, with dynamic shapes or ``dynamic_axes``. If ``lenient``, sizes may be fixed."""
    script = _script.of(model, args, kwargs, shapes)
    if shapes is None and axes[0] is not None:
        script = _script.with_axes(script, *axes)
    script.may_fix_sizes = lenient
    return script


def some(names: Any, count: int, kind: str) -> list[str]:
    """The first names of inputs or outputs, as ``kind`` says. Warns of others."""
    if len(names) > count:
        _errors.warn(f"There are {len(names)} {kind}_names, but the model has {count} {kind}s; the last names are ignored.")
    return list(names)[:count]
