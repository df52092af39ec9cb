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
    library = os.environ.get("ORT_DYLIB_PATH") or _of_package(option)
    with native_errors():
        load_ort(library)


def _of_package(option: str) -> str:
    needs = f"the option {option!r} runs the model in ONNX Runtime"
    found = importlib.util.find_spec("onnxruntime")
    folders = (found and found.submodule_search_locations) or ()
    places = [pathlib.Path(folder) / "capi" for folder in folders]
    if not places:
        raise ImportError(f"{needs}: pip install onnxruntime")
    patterns = ("libonnxruntime.*", "onnxruntime.dll")
    files = sorted(file for name in patterns for file in places[0].glob(name))
    if not files:
        raise ImportError(f"{needs}, whose library is not in {places[0]}: set ORT_DYLIB_PATH")
    return str(files[0])
