"""PyTorch programs to ONNX models, in milliseconds: a drop-in for ``torch.onnx.export``.

>>> import pt2onnx
>>> pt2onnx.export(model, (x,), "model.onnx")           # instead of torch.onnx.export
>>> pt2onnx.convert("model.pt2", "model.onnx")          # an archive; needs no PyTorch

Importing it imports no other package. Names are loaded when they are first used: ``export`` imports
torch when it is called, running a model imports onnxruntime and numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._errors import (
    ConversionError,
    OnnxExporterError,
    OnnxExporterWarning,
    TorchExportError,
    UnsupportedOperatorError,
    VerificationError,
)
from ._pt2onnx import __version__

if TYPE_CHECKING:
    from . import compat as compat
    from . import hf as hf
    from ._convert import check, convert, diff, inspect, load, optimize
    from ._export import export
    from ._program import ONNXProgram
    from ._translation import translation
    from ._verify import OutputCheck, Verification, verify

__all__ = [
    "ConversionError",
    "ONNXProgram",
    "OnnxExporterError",
    "OnnxExporterWarning",
    "OutputCheck",
    "TorchExportError",
    "UnsupportedOperatorError",
    "Verification",
    "VerificationError",
    "__version__",
    "check",
    "convert",
    "diff",
    "export",
    "inspect",
    "load",
    "optimize",
    "translation",
    "verify",
]

#: The module of each name that is loaded when it is first used.
_LAZY = {
    "ONNXProgram": "_program",
    "OutputCheck": "_verify",
    "Verification": "_verify",
    "check": "_convert",
    "convert": "_convert",
    "diff": "_convert",
    "export": "_export",
    "inspect": "_convert",
    "load": "_convert",
    "optimize": "_convert",
    "translation": "_translation",
    "verify": "_verify",
}


def __getattr__(name: str) -> object:
    if name in ("compat", "hf"):
        return importlib.import_module(f".{name}", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module 'pt2onnx' has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "compat", "hf"})
