"""Tensors of torch as inputs and outputs of ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

from ._element_types import NO_NUMPY

if TYPE_CHECKING:
    from ._element_types import Array


def to_numpy(tensor: torch.Tensor) -> tuple[Array, int | None]:
    """A tensor as an array; complex elements are pairs.

    Returns:
        The array, and the number of the element type if NumPy lacks it: the array holds its bits.
    """
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in NO_NUMPY:
        return tensor.numpy(force=True), None
    number, bits = NO_NUMPY[dtype]
    return tensor.detach().contiguous().cpu().view(getattr(torch, bits)).numpy(), number


def from_numpy(array: Array, dtype: str = "") -> torch.Tensor:
    """A tensor with the memory of an array, whose elements are the bits of ``dtype`` if given, or
    of a type of ``ml_dtypes``."""
    if not dtype and array.dtype.name in NO_NUMPY:
        dtype = array.dtype.name
        array = array.view(NO_NUMPY[dtype][1])
    tensor: torch.Tensor = cast(Any, torch).from_numpy(array)
    return tensor.view(getattr(torch, dtype)) if dtype else tensor
