"""The library of ONNX Runtime, for the native half."""

from __future__ import annotations

import importlib.util
import os
import pathlib

from ._errors import native_errors
from ._pt2onnx import load_ort


def load(option: str) -> None:
    """Loads the library in ORT_DYLIB_PATH, else that of the package onnxruntime.

    Args:
        option: The option that needs it, for the error.

    Raises:
        ImportError: There is no library.
    """
    library = os.environ.get("ORT_DYLIB_PATH") or of_package()
    if library is None:
        needs = f"the option {option!r} runs the model in ONNX Runtime"
        folder = _folder()
        if folder is None:
            raise ImportError(f"{needs}: pip install onnxruntime")
        raise ImportError(f"{needs}, whose library is not in {folder}: set ORT_DYLIB_PATH")
    with native_errors():
        load_ort(library)


def of_package() -> str | None:
    """The library in the package onnxruntime of this interpreter; None if it is not there."""
    folder = _folder()
    patterns = ("libonnxruntime.*", "onnxruntime.dll")
    files = sorted(file for name in patterns for file in folder.glob(name)) if folder else []
    return str(files[0]) if files else None


def _folder() -> pathlib.Path | None:
    found = importlib.util.find_spec("onnxruntime")
    folders = (found and found.submodule_search_locations) or ()
    return next((pathlib.Path(folder) / "capi" for folder in folders), None)
