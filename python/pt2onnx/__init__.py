"""PyTorch programs to ONNX models, in milliseconds: a drop-in for ``torch.onnx.export``.

>>> import pt2onnx
>>> pt2onnx.export(model, (x,), "model.onnx")           # instead of torch.onnx.export
>>> pt2onnx.convert("model.pt2", "model.onnx")          # an archive of torch.export.save; needs no PyTorch

Importing it imports nothing else: torch, onnx, onnx_ir, numpy and onnxruntime are imported by the functions that need them.
"""

from __future__ import annotations

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
    from ._export import convert, export
    from ._program import ONNXProgram
    from ._tools import check, diff, inspect, load, optimize
    from ._translate import translation
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

# Where each name is that is imported when it is first used.
_LAZY = {
    "convert": "_export",
    "export": "_export",
    "ONNXProgram": "_program",
    "check": "_tools",
    "diff": "_tools",
    "inspect": "_tools",
    "load": "_tools",
    "optimize": "_tools",
    "translation": "_translate",
    "OutputCheck": "_verify",
    "Verification": "_verify",
    "verify": "_verify",
}


def __getattr__(name: str) -> object:
    import importlib

    if name in ("compat", "hf"):
        return importlib.import_module(f".{name}", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module 'pt2onnx' has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "compat", "hf"})
