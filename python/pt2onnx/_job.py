"""One export: what is asked for, and the way from a module, program or script to a model."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from . import _capture, _errors, _reads, _report, _script, _shapes, _sources, _ways
from ._program import ONNXProgram

_TRAINING = (
    "Exporting a model while it is in training mode. Please ensure that this is intended, as it may lead to different behavior during "
    "inference. Calling model.eval() before export is recommended."
)


@dataclasses.dataclass
class Asked:
    """What is exported, with which arguments, and what the parameters of ``torch.onnx.export`` say about the capture."""

    model: Any
    args: Any
    kwargs: Any
    input_names: Sequence[str] | str | None
    output_names: Sequence[str] | str | None
    dynamic_shapes: Any
    dynamic_axes: Any
    training: Any
    dynamo: bool
    fallback: bool

    def __post_init__(self) -> None:
        """Brings the arguments into one form. Raises ValueError if the model or names cannot be."""
        import torch

        if type(self.model).__name__ == "OptimizedModule":
            # What torch.compile made of a module.
            self.model = self.model._orig_mod
        if isinstance(self.model, torch.nn.DataParallel) and not self.dynamo:
            raise ValueError("torch.nn.DataParallel cannot be exported: give its module, `model.module`.")
        if self.dynamo and getattr(self.model, "training", False):
            _errors.warn(_TRAINING, UserWarning)
        self._take((self.args,) if isinstance(self.args, torch.Tensor) else self.args, self.kwargs)
        if hasattr(self.model, "example_arguments") and not self.args and not self.kwargs:
            self._complete(self.model)
        if not self.kwargs and self.args and isinstance(self.args[-1], dict) and not self.is_program:
            self.args, self.kwargs = self.args[:-1], self.args[-1]
        if not self.dynamo or self.dynamic_axes is not None:
            # As in torch.onnx.
            self.kwargs = _shapes.in_order(self.model, self.kwargs)
        _distinct("Input", self.input_names)
        _distinct("Output", self.output_names)

    def _take(self, args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = tuple(args), dict(kwargs or {})

    def _complete(self, exportable: Any) -> None:
        """Takes from a ``torch.onnx.ExportableModule`` what is not given."""
        self._take(*exportable.example_arguments())
        for name in ("input_names", "output_names", "dynamic_shapes"):
            if getattr(self, name) is None:
                setattr(self, name, getattr(exportable, name)())

    @property
    def is_program(self) -> bool:
        """Whether the model is an ExportedProgram."""
        import torch

        return isinstance(self.model, torch.export.ExportedProgram)

    @property
    def axes(self) -> _sources.Axes:
        """What torch.onnx's exporter of TorchScript is told of dynamic dimensions."""
        return self.dynamic_axes, None if isinstance(self.input_names, str) else self.input_names, self.output_names


class Job:
    """An export: the options of the conversion, the translations of ops, and what is said and written meanwhile."""

    def __init__(self, asked: Asked, options: dict[str, Any], table: Any, steps: _report.Steps, files: _report.Artifacts) -> None:
        self._asked, self._steps, self._files, self._table = asked, steps, files, table
        self._options = {name: value for name, value in options.items() if value is not None}
        # Caches are arguments and results of the models of transformers only.
        self._hf: Any = importlib.import_module(".hf", __package__) if "transformers.cache_utils" in sys.modules else None
        if self._hf:
            self._hf.register()

    def run(self) -> tuple[ONNXProgram, _capture.Captured | None]:
        """The model, and how a module was captured."""
        asked = self._asked
        with _mode(asked.model, asked.training, asked.dynamo):
            made, captured = self._made()
        if captured:
            made._capture_strategy, made._relations = captured.strategy, captured.relations
        if not asked.dynamo:
            made._drop_unused_inputs(lambda count: _reads.kept(asked.model, asked.args, asked.kwargs, count))
        return made, captured

    def _made(self) -> tuple[ONNXProgram, _capture.Captured | None]:
        asked, files = self._asked, self._files
        if asked.is_program:
            files.dump(asked.model)
            with files.failing("conversion"):
                return self._translate(_sources.OfProgram(asked.model, asked.dynamic_shapes, self._hf)), None
        arguments = (asked.model, asked.args, asked.kwargs, asked.dynamic_shapes, asked.axes)
        if _script.is_one(asked.model):
            with files.failing("pt_export"), self._steps.timed("capture"):
                script = _sources.of_script(*arguments, lenient=not asked.dynamo)
            with files.failing("conversion"):
                return self._translate(_sources.OfScript(script)), None
        ways = _ways.Ways(*arguments, self._hf, self._steps, lenient=asked.fallback or not asked.dynamo, symbolic=not asked.dynamo)
        with files.failing("pt_export"), self._steps.timed("capture"):
            made, captured = ways.run(self._translate, free=not asked.dynamo)
        if captured.program is not None:
            files.dump(captured.program)
            with files.failing("conversion"):
                made, captured = ways.translated(captured, self._translate, lenient=not asked.dynamo)
        assert made is not None
        return made, captured

    def _translate(self, source: _sources.Source) -> ONNXProgram:
        """The model of a source, at a newer opset than the default if it needs that and none is asked for."""
        self._steps.say("Translate the graph into ONNX...")
        with self._steps.timed("translate"):
            options = {**source.options(self._asked.input_names, whole=not self._asked.dynamo), **self._options}
            names, count = options.get("output_names"), source.output_count
            if isinstance(names, list) and count is not None:
                options["output_names"] = _sources.some(names, count, "output")
            try:
                made = source.translate(options, self._table)
            except _errors.ConversionError as error:
                if "opset" in options or error.opset is None:
                    raise
                _errors.warn(f"the model needs opset {error.opset}, which it has instead of the default")
                made = source.translate({**options, "opset": error.opset}, self._table)
        self._steps.say("Translate the graph into ONNX... ✅")
        return made


@contextlib.contextmanager
def _mode(model: Any, training: Any, dynamo: bool) -> Iterator[None]:
    """The mode in which torch.onnx's exporter of TorchScript exports: evaluation, unless ``training`` says otherwise."""
    name = getattr(training, "name", "EVAL")
    old = getattr(model, "training", None)
    if dynamo or old is None or name == "PRESERVE" or isinstance(training, str):
        yield
        return
    modes = [(module, module.training) for module in model.modules()] if hasattr(model, "modules") else []
    try:
        model.train(name == "TRAINING")
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _distinct(what: str, names: Sequence[str] | str | None) -> None:
    """Raises ValueError if a name is given twice."""
    if names and not isinstance(names, str) and len(set(names)) != len(names):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        raise ValueError(f"{what} names cannot be duplicated: {', '.join(twice)}")
