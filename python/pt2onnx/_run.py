"""ONNX Runtime: sessions without files, and values of torch, NumPy and Python as its inputs."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard, cast

import numpy as np

from ._element_types import NO_NUMPY
from ._types import is_items

if TYPE_CHECKING:
    import torch

    from ._element_types import Array, Memory

# onnxruntime has no types.
ort = importlib.import_module("onnxruntime")

#: Element types of models, as NumPy calls them.
_NUMPY = {"float": "float32", "double": "float64"}


class OrtValue(Protocol):
    """An ``onnxruntime.OrtValue``, which has no type stubs."""

    def has_value(self) -> bool: ...
    def element_type(self) -> int: ...
    def numpy(self) -> Array: ...
    def shape(self) -> list[int]: ...
    def data_ptr(self) -> int: ...
    def tensor_size_in_bytes(self) -> int: ...


class Port(Protocol):
    """An input or output of a session."""

    name: str
    type: str


class Session(Protocol):
    """An ``onnxruntime.InferenceSession``, which has no type stubs."""

    def get_inputs(self) -> Sequence[Port]: ...
    def get_outputs(self) -> Sequence[Port]: ...
    def run(
        self, names: Sequence[str] | None, inputs: Mapping[str, OrtValue], run_options: object
    ) -> list[object]: ...
    def run_with_ort_values(
        self, names: Sequence[str] | None, inputs: Mapping[str, OrtValue], run_options: object
    ) -> list[OrtValue]: ...


def session(model: bytes | str, weights: Sequence[Memory] = ()) -> Session:
    """An ``onnxruntime.InferenceSession`` of a model.

    Args:
        model: The bytes of the model, or its path.
        weights: Its external data ``pt2onnx:0``, ``pt2onnx:1``, ... They must live as long as the
            session.
    """
    options = ort.SessionOptions()
    # Errors are raised.
    options.log_severity_level = 4
    if weights:
        names = [f"pt2onnx:{i}" for i in range(len(weights))]
        views = [memoryview(cast(bytes, weight)) for weight in weights]
        sizes = [len(view) for view in views]
        options.add_external_initializers_from_files_in_memory(names, views, sizes)
    available = ort.get_available_providers()
    providers = [p for p in ("CUDAExecutionProvider", "CPUExecutionProvider") if p in available]
    made: Session = ort.InferenceSession(model, sess_options=options, providers=providers)
    return made


def run(
    session: Session,
    inputs: Mapping[str, object],
    outputs: Sequence[str] | None = None,
    *,
    as_torch: bool = False,
) -> list[object]:
    """Runs a session.

    Args:
        session: An ``onnxruntime.InferenceSession``.
        inputs: The inputs by name.
        outputs: Names of outputs; by default all.
        as_torch: Whether to return tensors of torch also if no input is one.

    Returns:
        The outputs: tensors of torch if an input is one, else arrays of NumPy.
    """
    as_torch = as_torch or any(is_tensor(value) for value in inputs.values())
    types = {i.name: i.type for i in session.get_inputs()}
    given = {name: to_ort(value, types.get(name, "")) for name, value in inputs.items()}
    options = ort.RunOptions()
    # Errors are raised.
    options.log_severity_level = 4
    wanted = [o for o in session.get_outputs() if outputs is None or o.name in outputs]
    if any(o.type.startswith("seq(") for o in wanted):
        # The items of sequences have no OrtValues.
        results = session.run(outputs, given, run_options=options)
        return [from_numpy(result, as_torch) for result in results]
    values = session.run_with_ort_values(outputs, given, run_options=options)
    return [from_ort(value, as_torch) for value in values]


def is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """Whether it is a tensor of torch, which need not be loaded."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_ort(value: object, type: str = "") -> OrtValue:
    """A value as an OrtValue.

    Args:
        value: A tensor, an array, a number or an OrtValue.
        type: The type of the input, ``tensor(float)``, which a number of Python gets.
    """
    if isinstance(value, ort.OrtValue):
        return cast(OrtValue, value)
    if is_tensor(value):
        from ._ort_torch import to_numpy

        array, number = to_numpy(value)
    elif isinstance(value, (bool, int, float)):
        element = type.removeprefix("tensor(").removesuffix(")")
        default = {bool: "bool", int: "int64", float: "float32"}[value.__class__]
        array, number = np.array(value, _NUMPY.get(element, element) or default), None
    else:
        array, number = np.asarray(value), None
        if array.dtype.name in NO_NUMPY:
            number, bits = NO_NUMPY[array.dtype.name]
            array = np.ascontiguousarray(array).view(bits)
    if number is None:
        made: OrtValue = ort.OrtValue.ortvalue_from_numpy(array)
    else:
        made = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, number)
    return made


def from_numpy(value: object, as_torch: bool) -> object:
    """An array, a list of arrays or None, as ONNX Runtime returns it."""
    if is_items(value):
        return [from_numpy(item, as_torch) for item in value]
    if value is None or not as_torch:
        return value
    from . import _ort_torch

    return _ort_torch.from_numpy(cast("Array", value))


def from_ort(value: OrtValue, as_torch: bool) -> object:
    """An OrtValue as a tensor of torch or an array of NumPy; None if it is an absent optional."""
    if not value.has_value():
        return None
    name, bits = _without_numpy(value.element_type())
    if name:
        # Elements that NumPy lacks are copied as integers. The value is on the CPU.
        data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        array = np.frombuffer(data, bits).reshape(value.shape()).copy()
    else:
        array = value.numpy()
    if as_torch:
        from . import _ort_torch

        return _ort_torch.from_numpy(array, name)
    if name:
        import ml_dtypes

        return array.view(getattr(ml_dtypes, name))
    return array


def _without_numpy(number: int) -> tuple[str, str]:
    """The name of an element type that NumPy lacks, and its integers; empty for all others."""
    found = ((name, bits) for name, (known, bits) in NO_NUMPY.items() if known == number)
    return next(found, ("", ""))
