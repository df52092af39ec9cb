"""ONNX Runtime: sessions without files, and values of torch, NumPy and Python as its inputs and outputs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

#: Element types that NumPy lacks, and ml_dtypes has: their numbers in TensorProto.DataType, and the integers that hold their bits.
_NO_NUMPY = {
    "bfloat16": (16, "uint16"),
    "float8_e4m3fn": (17, "uint8"),
    "float8_e4m3fnuz": (18, "uint8"),
    "float8_e5m2": (19, "uint8"),
    "float8_e5m2fnuz": (20, "uint8"),
}

#: Element types of models, as NumPy calls them.
_NUMPY = {"float": "float32", "double": "float64"}


def load(option: str) -> None:
    """Loads ONNX Runtime's library for the native half: that in ORT_DYLIB_PATH, else that of the package onnxruntime.

    Raises ImportError if there is none.
    """
    import importlib.util
    import os
    import pathlib

    from . import _errors
    from ._pt2onnx import Failure, load_ort

    library = os.environ.get("ORT_DYLIB_PATH")
    if not library:
        found = importlib.util.find_spec("onnxruntime")
        folders = [pathlib.Path(folder) / "capi" for folder in (found and found.submodule_search_locations) or ()]
        if not folders:
            raise ImportError(f"the option {option!r} runs the model in ONNX Runtime: pip install onnxruntime")
        files = sorted(file for name in ("libonnxruntime.*", "onnxruntime.dll") for file in folders[0].glob(name))
        if not files:
            raise ImportError(f"the option {option!r} runs the model in ONNX Runtime, whose library is not in {folders[0]}: set ORT_DYLIB_PATH")
        library = str(files[0])
    try:
        load_ort(library)
    except Failure as failure:
        raise _errors.of(failure) from None


def session(model: bytes | str, weights: Sequence[Any] = ()) -> Any:
    """An onnxruntime.InferenceSession of a model, whose external data ``pt2onnx:0``, ``pt2onnx:1``, ... are these buffers. They must
    live as long as the session."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    if weights:
        names = [f"pt2onnx:{i}" for i in range(len(weights))]
        views = [memoryview(weight) for weight in weights]
        options.add_external_initializers_from_files_in_memory(names, views, [len(view) for view in views])
    available = ort.get_available_providers()
    providers = [p for p in ("CUDAExecutionProvider", "CPUExecutionProvider") if p in available]
    return ort.InferenceSession(model, sess_options=options, providers=providers)


def run(session: Any, inputs: dict[str, Any], outputs: Sequence[str] | None = None) -> list[Any]:
    """Runs a session. The outputs are torch's tensors if an input is, else NumPy's arrays."""
    import onnxruntime as ort

    as_torch = any(_is_tensor(value) for value in inputs.values())
    types = {i.name: i.type for i in session.get_inputs()}
    given = {name: to_ort(value, types.get(name, "")) for name, value in inputs.items()}
    options = ort.RunOptions()
    options.log_severity_level = 3
    wanted = [o for o in session.get_outputs() if outputs is None or o.name in outputs]
    if any(o.type.startswith("seq(") for o in wanted):
        # The items of sequences have no OrtValues.
        results = session.run(outputs, given, run_options=options)
        return [_from_numpy(result, as_torch) for result in results]
    results = session.run_with_ort_values(outputs, given, run_options=options)
    return [from_ort(result, as_torch) for result in results]


def _from_numpy(value: Any, as_torch: bool) -> Any:
    """An array, a list of arrays or None, as ONNX Runtime gives it."""
    if isinstance(value, list):
        return [_from_numpy(item, as_torch) for item in value]
    if value is None or not as_torch:
        return value
    import torch

    return torch.from_numpy(value)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_ort(value: Any, type: str = "") -> Any:
    """A value as an OrtValue; a Python number gets the element type of the input, ``tensor(float)``."""
    import numpy as np
    import onnxruntime as ort

    if _is_tensor(value):
        dtype = str(value.dtype).removeprefix("torch.")
        if value.is_complex():
            import torch

            value = torch.view_as_real(value.resolve_conj())
        if dtype in _NO_NUMPY:
            import torch

            number, bits = _NO_NUMPY[dtype]
            held = value.detach().contiguous().cpu().view(getattr(torch, bits)).numpy()
            return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(held, number)
        return ort.OrtValue.ortvalue_from_numpy(value.numpy(force=True))
    if isinstance(value, ort.OrtValue):
        return value
    if isinstance(value, (bool, int, float)):
        element = type.removeprefix("tensor(").removesuffix(")")
        default = {bool: "bool", int: "int64", float: "float32"}[value.__class__]
        return ort.OrtValue.ortvalue_from_numpy(np.array(value, _NUMPY.get(element, element) or default))
    array = np.asarray(value)
    if array.dtype.name in _NO_NUMPY:
        number, bits = _NO_NUMPY[array.dtype.name]
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array).view(bits), number)
    return ort.OrtValue.ortvalue_from_numpy(array)


def from_ort(value: Any, as_torch: bool) -> Any:
    """An OrtValue as a tensor of torch or an array of NumPy; None if it is an optional one that is not there."""
    if not value.has_value():
        return None
    found = [(name, bits) for name, (number, bits) in _NO_NUMPY.items() if number == value.element_type()]
    if found:
        return _bits(value, *found[0], as_torch)
    if not as_torch:
        return value.numpy()
    import torch

    return torch.from_numpy(value.numpy())


def _bits(value: Any, name: str, bits: str, as_torch: bool) -> Any:
    """An OrtValue on the CPU whose elements NumPy lacks: they are copied as integers."""
    import ctypes

    import numpy as np

    array = np.frombuffer(ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()), bits).reshape(value.shape()).copy()
    if as_torch:
        import torch

        return torch.from_numpy(array).view(getattr(torch, name))
    import ml_dtypes

    return array.view(getattr(ml_dtypes, name))
