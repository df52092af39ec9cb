"""The exceptions. Where torch is loaded, those that are raised are torch.onnx's as well, so that ``except`` clauses go on to work."""

from __future__ import annotations

import functools
import json
import sys
import warnings
from typing import Any


class OnnxExporterWarning(UserWarning):
    """A warning of an export."""


class OnnxExporterError(RuntimeError):
    """There is no model, or it cannot be read or written.

    ``kind`` is the kind of the error (``"unsupported_operator"``, ``"archive"``, ``"output"``, ..., see docs/errors.md), ``failures`` is
    a list of everything that prevents conversion (dicts with node, op, file, line, reason), ``report`` the report as a dict, if
    there is one, and ``opset`` the lowest opset that can express the model, if the one that was asked for cannot.
    """

    kind: str | None = None
    opset: int | None = None
    report: dict[str, Any] | None = None
    markdown: str | None = None
    #: Whether it is PyTorch that cannot give the program away, so that another way to capture the module may do.
    _by_torch = False

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Everything that prevents conversion."""
        return self.report["failures"] if self.report else []


class ConversionError(OnnxExporterError):
    """Parts of the program cannot be translated."""


class UnsupportedOperatorError(ConversionError):
    """Ops of the program, or the way they are used, have no translation."""


class TorchExportError(OnnxExporterError):
    """The model can be captured in no way. ``failures_by_strategy`` has the error of each way that was tried."""

    failures_by_strategy: dict[str, BaseException] = {}


class VerificationError(OnnxExporterError):
    """The model cannot be run for comparison."""


_CLASSES = {
    "unsupported_operator": UnsupportedOperatorError,
    "conversion": ConversionError,
    "opset": ConversionError,
    "target": ConversionError,
}


def made(kind: type[OnnxExporterError], text: str) -> OnnxExporterError:
    """An exception of this class that is also torch.onnx's, if torch is loaded."""
    hashable: Any = kind
    found = _torch_class(hashable) if "torch" in sys.modules else kind
    # torch's own classes take other arguments.
    error = found.__new__(found, text)
    RuntimeError.__init__(error, text)
    return error


@functools.cache
def _torch_class(kind: Any) -> type[OnnxExporterError]:
    """The class, with torch.onnx's class of that name as a base."""
    import torch.onnx

    base: Any = torch.onnx.OnnxExporterError

    for module in ("torch.onnx._internal.exporter._errors", "torch.onnx.errors"):
        try:
            __import__(module)
        except ImportError:
            continue
        base = getattr(sys.modules[module], kind.__name__, base)
        if base.__name__ == kind.__name__:
            break
    return type(kind.__name__, (kind, base), {"__module__": "pt2onnx", "__doc__": kind.__doc__})


def of(failure: Any) -> BaseException:
    """The exception for what Rust raised."""
    kind = failure.kind
    if kind == "options":
        return ValueError(str(failure))
    text = str(failure)
    if text.startswith("no values to write"):
        text += ", or give export_params=False, and add them by ONNXProgram.apply_weights"
    error = made(_CLASSES.get(kind, OnnxExporterError), text)
    error.kind, error.opset = kind, failure.opset
    error.report = json.loads(failure.report) if failure.report else None
    error.markdown = failure.markdown
    return error


def warning_class() -> type[Warning]:
    """torch.onnx's class of warnings if torch is loaded, else our own."""
    errors = sys.modules.get("torch.onnx.errors")
    return getattr(errors, "OnnxExporterWarning", OnnxExporterWarning)


def warn(text: str, kind: type[Warning] | None = None) -> None:
    """Warns of something, by default as of an export, at the line that called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind or warning_class(), stacklevel=level)


def check_weight(name: str, given: Any, own: Any) -> None:
    """Raises OnnxExporterError if a weight does not have the shape and type of the model's own."""
    if given.shape != own.shape or given.dtype != own.dtype:
        text = f"the weight {name} is {given.dtype}{list(given.shape)}, the model has {own.dtype}{list(own.shape)}"
        error = made(OnnxExporterError, text)
        error.kind = "no_weights"
        raise error
