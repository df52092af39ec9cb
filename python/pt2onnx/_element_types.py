"""Element types that NumPy lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

    #: The memory of a weight.
    Memory = bytes | memoryview | Array

#: Element types that NumPy lacks and ml_dtypes has: their numbers in TensorProto.DataType, and the
#: integers that hold their bits.
NO_NUMPY = {
    "bfloat16": (16, "uint16"),
    "float8_e4m3fn": (17, "uint8"),
    "float8_e4m3fnuz": (18, "uint8"),
    "float8_e5m2": (19, "uint8"),
    "float8_e5m2fnuz": (20, "uint8"),
}
