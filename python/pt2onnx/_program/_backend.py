"""Where a model is held: in Rust's memory, or as a model of onnx_ir."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import onnx

    from .._element_types import Memory
    from .._pt2onnx import Program

#: Weights of this many bytes and more are handed over beside the model.
LARGE = 1024

#: A model of more bytes does not fit into a message of protobuf.
TOO_LARGE = 1536 << 20


@dataclasses.dataclass(frozen=True)
class Saving:
    """How a model is saved: the parameters of ``ONNXProgram.save``, and options of saving."""

    include_initializers: bool
    keep_initializers_as_inputs: bool
    external_data: bool | None
    options: Mapping[str, object]


class Backend(Protocol):
    """The interface of ``ONNXProgram`` to the model that it holds."""

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        ...

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        ...

    @property
    def opset(self) -> int:
        """The opset of ONNX's own operators."""
        ...

    @property
    def weight_bytes(self) -> int:
        """The number of bytes of all weights."""
        ...

    def native(self) -> Program:
        """The model in Rust's memory."""
        ...

    def is_unchanged(self, native: Program) -> bool:
        """Whether the model is the one that Rust made."""
        ...

    def to_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message, with all weights."""
        ...

    def to_bytes(self) -> bytes:
        """The model as the bytes of one file, with all weights."""
        ...

    def to_parts(self) -> tuple[bytes, Sequence[Memory]]:
        """The model without its large weights, and these: external data ``pt2onnx:0``, ..."""
        ...

    def rename_axes(self, names: Mapping[str, str]) -> set[str]:
        """Renames dimensions. Returns the names that the model had."""
        ...

    def save(self, path: str, saving: Saving) -> None:
        """Writes the model."""
        ...
