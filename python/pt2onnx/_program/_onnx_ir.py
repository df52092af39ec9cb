"""A model as onnx_ir has it, with weights that are not copied."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx
import onnx_ir as ir

from .. import _files
from .._errors import OnnxExporterError, native_errors, new_error
from .._pt2onnx import Program, open_parts
from ._backend import LARGE, TOO_LARGE, Saving
from ._native import WORD, NativeBackend

if TYPE_CHECKING:
    from .._element_types import Memory
    from ._backend import Backend


class IrBackend:
    """A model of onnx_ir: a ``Backend``."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model

    @staticmethod
    def of(backend: Backend) -> IrBackend:
        """The backend itself, or a new one with its model."""
        if isinstance(backend, IrBackend):
            return backend
        return IrBackend.from_native(backend.native())

    @staticmethod
    def from_native(native: Program) -> IrBackend:
        """The model of onnx_ir whose weights are views of Rust's memory."""
        with native_errors():
            proto, weights = native.to_parts(LARGE)
        model = ir.serde.deserialize_model(onnx.ModelProto.FromString(proto))
        for name, code, sizes, buffer in weights:
            dtype, shape = ir.DataType(code), ir.Shape(sizes)
            tensor: ir.TensorProtocol
            if dtype.bitwidth < 8:
                packed = np.frombuffer(memoryview(buffer), np.uint8)
                tensor = ir.PackedTensor(packed, dtype, shape=shape, name=name)
            else:
                array = np.frombuffer(memoryview(buffer), dtype.numpy()).reshape(sizes)
                tensor = ir.Tensor(array, dtype=dtype, shape=shape, name=name)
            model.graph.initializers[name].const_value = tensor
        return IrBackend(model)

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [value.name or "" for value in self.model.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return [value.name or "" for value in self.model.graph.outputs]

    @property
    def opset(self) -> int:
        """The opset of ONNX's own operators."""
        return self.model.opset_imports[""]

    @property
    def weight_bytes(self) -> int:
        """The number of bytes of all weights."""
        tensors = (value.const_value for value in self.model.graph.initializers.values())
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def native(self) -> Program:
        """The model in Rust's memory."""
        proto, weights = self.to_parts()
        views = [np.frombuffer(weight, np.uint8) for weight in weights]
        data = [(f"pt2onnx:{i}", (v.ctypes.data, v.nbytes, v, None)) for i, v in enumerate(views)]
        with native_errors():
            return open_parts(proto, data)

    def is_unchanged(self, native: Program) -> bool:
        """Whether the model is the one that Rust made."""
        return self.to_parts()[0] == IrBackend.from_native(native).to_parts()[0]

    def to_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message, with all weights."""
        return ir.serde.serialize_model(self.model)

    def to_bytes(self) -> bytes:
        """The model as the bytes of one file, with all weights."""
        return bytes(self.to_proto().SerializeToString())

    def to_parts(self) -> tuple[bytes, Sequence[Memory]]:
        """The model without its large weights, and these: external data ``pt2onnx:0``, ..."""
        weights: list[Memory] = []
        old: list[tuple[ir.Value, ir.TensorProtocol]] = []
        try:
            for value in self.model.graph.initializers.values():
                tensor = value.const_value
                if tensor is None or tensor.nbytes < LARGE or tensor.dtype == ir.DataType.STRING:
                    continue
                if tensor.dtype.bitwidth < 8:
                    weights.append(tensor.tobytes())
                else:
                    array = np.ascontiguousarray(tensor.numpy())
                    weights.append(array.reshape(-1).view(np.uint8))
                old.append((value, tensor))
                value.const_value = ir.ExternalTensor(
                    f"pt2onnx:{len(weights) - 1}",
                    0,
                    tensor.nbytes,
                    tensor.dtype,
                    shape=ir.Shape(tensor.shape.numpy()),
                    name=value.name or "",
                )
            return bytes(self.to_proto().SerializeToString()), weights
        finally:
            for value, tensor in old:
                value.const_value = tensor

    def rename_axes(self, names: Mapping[str, str]) -> set[str]:
        """Renames dimensions, also within expressions. Returns the names that the model had."""
        known: set[str] = set()
        functions = (function.graph for function in self.model.functions.values())
        for graph in (self.model.graph, *functions):
            nodes = ir.traversal.RecursiveGraphIterator(graph)
            outputs = (value for node in nodes for value in node.outputs)
            for value in (*graph.inputs, *graph.initializers.values(), *outputs):
                if value.shape is None:
                    continue
                texts = [str(getattr(dim, "value", "")) for dim in value.shape]
                known.update(word for text in texts for word in WORD.findall(text))
                dims = [_renamed(dim, names) for dim in value.shape]
                denotations = [value.shape.get_denotation(i) for i in range(len(dims))]
                # A shape that was read is frozen.
                value.shape = ir.Shape(dims, denotations=denotations)
        return known

    def save(self, path: str, saving: Saving) -> None:
        """Writes the model; with options of saving as Rust writes it."""
        if saving.options:
            NativeBackend(self.native()).save(path, saving)
            return
        graph = self.model.graph
        initializers, inputs = dict(graph.initializers), list(graph.inputs)
        if saving.keep_initializers_as_inputs:
            graph.inputs.extend(initializers.values())
        if not saving.include_initializers:
            graph.initializers.clear()
        try:
            self._write(os.path.realpath(path), bool(saving.external_data))
        except OSError as error:
            text = f"{path}: cannot write this: {error}"
            raise new_error(OnnxExporterError, text, "output") from error
        finally:
            graph.initializers.update(initializers)
            if saving.keep_initializers_as_inputs:
                graph.inputs.clear()
                graph.inputs.extend(inputs)

    def _write(self, path: str, external: bool) -> None:
        if os.path.exists(path) and not os.path.isfile(path):
            # A device or a pipe can be written to. A folder cannot be.
            with open(path, "wb") as stream:
                stream.write(self.to_bytes())
            return
        external = external or self.weight_bytes > TOO_LARGE
        data = f"{os.path.basename(path)}.data" if external else None
        save = cast(Any, ir).save
        _files.replace(path, lambda made: save(self.model, made, external_data=data))


def _renamed(dim: ir.SymbolicDim | int, names: Mapping[str, str]) -> ir.SymbolicDim | str | int:
    old = getattr(dim, "value", None)
    if not isinstance(old, str):
        return dim
    return names.get(old) or WORD.sub(lambda word: names.get(word[0], word[0]), old)
