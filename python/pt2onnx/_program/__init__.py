"""A model that was made or read."""

from ._onnx_program import ONNXProgram

__all__ = ["ONNXProgram"]
