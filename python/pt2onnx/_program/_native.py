"""A model in Rust's memory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import _option_json, _progress
from .._errors import native_errors
from .._pt2onnx import Program
from ._backend import LARGE, Saving

if TYPE_CHECKING:
    import onnx

#: Names within the expression of a dimension.
WORD = re.compile(r"[^\W\d]\w*")


class NativeBackend:
    """A model in Rust's memory: a ``Backend``."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [name for name, _, _ in self._program.inputs()]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return [name for name, _, _ in self._program.outputs()]

    @property
    def opset(self) -> int:
        """The opset of ONNX's own operators."""
        return self._program.opset()

    @property
    def weight_bytes(self) -> int:
        """The number of bytes of all weights."""
        report = json.loads(self._program.report(markdown=False))
        return int(report["model"]["weights"]["bytes"])

    def native(self) -> Program:
        """The model in Rust's memory."""
        return self._program

    def is_unchanged(self, native: Program) -> bool:
        """Whether the model is the one that Rust made."""
        return True

    def to_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message, with all weights."""
        import onnx

        made: onnx.ModelProto = onnx.ModelProto.FromString(self.to_bytes())
        return made

    def to_bytes(self) -> bytes:
        """The model as the bytes of one file, with all weights."""
        with native_errors():
            return self._program.to_bytes()

    def to_parts(self) -> tuple[bytes, Sequence[memoryview]]:
        """The model without its large weights, and these: external data ``pt2onnx:0``, ..."""
        with native_errors():
            model, weights = self._program.to_parts(LARGE)
        return model, [memoryview(buffer) for _, _, _, buffer in weights]

    def rename_axes(self, names: Mapping[str, str]) -> set[str]:
        """Renames dimensions. Returns the names that the model had."""
        ends = [dims for _, _, dims in (*self._program.inputs(), *self._program.outputs())]
        known = {word for dims in ends for dim in dims or () for word in WORD.findall(dim)}
        with native_errors():
            self._program.rename_axes([(old, new) for old, new in names.items() if old in known])
        return known

    def save(self, path: str, saving: Saving) -> None:
        """Writes the model."""
        options = dict(saving.options)
        if not saving.include_initializers:
            options["weights"] = "none"
        elif saving.external_data is not None:
            options.setdefault("weights", "external" if saving.external_data else "auto")
        text = None
        if options or saving.keep_initializers_as_inputs:
            options["keep_initializers_as_inputs"] = saving.keep_initializers_as_inputs
            text = _option_json.to_json(options)
        with native_errors():
            self._program.save(path, text, _progress.of_writing())
