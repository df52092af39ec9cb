"""Exceptions and warnings. Where torch is loaded, those that are raised are torch.onnx's as well,
so that existing ``except`` clauses work.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

from . import _frames
from ._pt2onnx import Failure

if TYPE_CHECKING:
    import torch


class OnnxExporterWarning(UserWarning):
    """A warning of an export."""


class OnnxExporterError(RuntimeError):
    """There is no model, or it cannot be read or written.

    ``kind`` is the kind of the error (``"unsupported_operator"``, ``"archive"``, ``"output"``, ...,
    see docs/errors.md), ``failures`` lists everything that prevents conversion (dicts with node,
    op, file, line, reason), ``report`` is the report as a dict, if there is one, ``markdown`` the
    report as text, and ``opset`` the lowest opset that can express the model, if the requested one
    cannot.
    """

    kind: str | None = None
    opset: int | None = None
    report: dict[str, Any] | None = None
    markdown: str | None = None
    #: Whether PyTorch could not serialise the program, so that another capture may work.
    by_torch = False

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Everything that prevents conversion."""
        return self.report["failures"] if self.report else []


class ConversionError(OnnxExporterError):
    """Parts of the program cannot be translated."""


class UnsupportedOperatorError(ConversionError):
    """Ops of the program, or the way they are used, have no translation."""


class TorchExportError(OnnxExporterError):
    """No strategy captures the model. ``failures_by_strategy`` has the error of each that was
    tried."""

    failures_by_strategy: dict[str, BaseException] = {}  # noqa: RUF012 (replaced, never changed)


class VerificationError(OnnxExporterError):
    """The model cannot be run for comparison."""


class TooManyNamesError(ValueError):
    """There are more names than inputs or outputs. ``count`` is how many there may be."""

    def __init__(self, text: str, count: int) -> None:
        super().__init__(text)
        self.count = count


E = TypeVar("E", bound=OnnxExporterError)

_CLASSES: dict[str | None, type[OnnxExporterError]] = {
    "unsupported_operator": UnsupportedOperatorError,
    "conversion": ConversionError,
    "opset": ConversionError,
    "target": ConversionError,
}


def new_error(cls: type[E], text: str, kind: str | None = None, *, by_torch: bool = False) -> E:
    """An exception of a class, which is also torch.onnx's if torch is loaded.

    Args:
        cls: The class.
        text: The message.
        kind: The attribute ``kind``.
        by_torch: The attribute ``by_torch``.
    """
    if "torch" in sys.modules:
        from ._torch_errors import with_torch_base

        cls = with_torch_base(cls)
    # torch's own classes take other arguments.
    error = cls.__new__(cls, text)
    RuntimeError.__init__(error, text)
    error.kind, error.by_torch = kind, by_torch
    return error


def from_native(failure: Failure) -> BaseException:
    """The exception for an error of Rust."""
    text = str(failure)
    if failure.names is not None:
        return TooManyNamesError(text, failure.names)
    if failure.kind == "options":
        return ValueError(text)
    if text.startswith("no values to write"):
        text += ", or give export_params=False, and add them by ONNXProgram.apply_weights"
    report: dict[str, Any] | None = json.loads(failure.report) if failure.report else None
    failures: list[dict[str, Any]] = report["failures"] if report else []
    advice = dict.fromkeys(one["suggestion"] for one in failures if one.get("suggestion"))
    text = "\n".join([text, *(f"What to do: {one}" for one in list(advice)[:2])])
    error = new_error(_CLASSES.get(failure.kind, OnnxExporterError), text, failure.kind)
    error.opset, error.report = failure.opset, report
    error.markdown = failure.markdown
    return error


@contextlib.contextmanager
def native_errors() -> Generator[None, None, None]:
    """Raises errors of Rust as exceptions of this package."""
    try:
        yield
    except Failure as failure:
        raise from_native(failure) from None


def warn(text: str, kind: type[Warning] | None = None) -> None:
    """Warns at the line that called this package.

    Args:
        text: The message.
        kind: The class of the warning. By default torch.onnx's ``OnnxExporterWarning`` if torch is
            loaded, else our own.
    """
    errors = sys.modules.get("torch.onnx.errors")
    default: type[Warning] = getattr(errors, "OnnxExporterWarning", OnnxExporterWarning)
    warnings.warn(text, kind or default, stacklevel=_frames.caller_level())


def brief(error: BaseException) -> str:
    """The class and the first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def check_weight(name: str, given: torch.Tensor, own: torch.Tensor) -> None:
    """Raises OnnxExporterError if a weight has not the shape and type of the model's own."""
    if given.shape != own.shape or given.dtype != own.dtype:
        text = (
            f"the weight {name} is {given.dtype}{list(given.shape)}, "
            f"the model has {own.dtype}{list(own.shape)}"
        )
        raise new_error(OnnxExporterError, text, "no_weights")
