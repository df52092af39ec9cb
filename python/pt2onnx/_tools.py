"""What the command does beside converting, for Python: check, inspect, load, optimize, diff."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from . import _errors, _options
from ._errors import OnnxExporterError, made
from ._program import ONNXProgram, _raised
from ._pt2onnx import Program, open_model, open_parts
from ._pt2onnx import inspect as _inspect


def inspect(archive: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """The report about an archive (docs/report.md): inputs, outputs, dimensions, weights, ops, and everything that prevents conversion
    with these options. Nothing is written. Raises TypeError for unknown options."""
    report: dict[str, Any] = json.loads(_inspect(os.fspath(archive), _options.as_json(options)))
    return report


def check(archive: str | os.PathLike[str], **options: Any) -> list[dict[str, Any]]:
    """Everything that prevents the conversion of an archive with these options; empty if it can be converted. Each is a dict with kind,
    node, op, file, line, reason and suggestion."""
    report = inspect(archive, **options)
    failures: list[dict[str, Any]] = report["failures"]
    if report["error"] and not failures:
        return [{"kind": report["error"]["kind"], "reason": report["error"]["message"]}]
    return failures


def load(model: str | os.PathLike[str] | bytes | bytearray | memoryview) -> ONNXProgram:
    """Reads any ONNX model: a path or the bytes of a file. Raises OnnxExporterError if it is none, or not valid."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        start = bytes(model[:4])
        with _of_archive("the bytes", lambda: start), _raised():
            return ONNXProgram(open_parts(bytes(model), []))
    path = os.fspath(model)
    with _of_archive(path, lambda: _start(path)), _raised():
        return ONNXProgram(open_model(path))


@contextlib.contextmanager
def _of_archive(what: str, start: Callable[[], bytes]) -> Iterator[None]:
    """Names the file in errors, and says of an archive that it is one, where a model should be. ``start`` gives the first bytes."""
    try:
        yield
    except OnnxExporterError as error:
        said = str(error)
        if error.kind == "model" and start() == b"PK\x03\x04":
            said = "this is an archive, not an ONNX model: pt2onnx.convert makes a model of it"
        elif error.kind != "model" or what in said:
            raise
        better = made(OnnxExporterError, f"{what}: {said}")
        better.kind = error.kind
        raise better from None


def _start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(4)
    except OSError:
        return b""


def optimize(model: Any, destination: str | os.PathLike[str] | None = None, **options: Any) -> ONNXProgram:
    """Folds, simplifies and fuses an ONNX model: a path, bytes, ``onnx.ModelProto``, ``onnx_ir.Model`` or ``ONNXProgram``. Writes the
    result if there is a destination. The options are those of the command ``pt2onnx optimize``: ``opset=17``, ``fix_dim={"batch": 1}``,
    ``quantize="int8"``, ``target="ort"``, ``weights="external"``, ... Warns of what the target runs less exactly. Raises TypeError for
    others, and for those of saving without a destination."""
    saving = {key: options.pop(key) for key in list(options) if key in _options.SAVING}
    if saving and destination is None:
        raise TypeError(f"the option {min(saving)!r} says how a model is written: give a destination")
    text = _options.of_optimize(options)
    native = _native(model)
    with _raised():
        # The model that is given stays as it is.
        program = ONNXProgram(native.copy() if isinstance(model, ONNXProgram) else native)
        known = native.warnings(grouped=True)
        program._native.optimize(text)
    for warning in program._native.warnings(grouped=True):
        if warning not in known:
            _errors.warn(warning[1])
    if destination is not None:
        program.save(destination, **saving)
    return program


def diff(old: Any, new: Any) -> str:
    """How two models differ: opsets, inputs, outputs, operators, weights, types, names, nodes. Empty if they do not. Each is a path, bytes,
    ``onnx.ModelProto``, ``onnx_ir.Model`` or ``ONNXProgram``."""
    return _native(old).diff(_native(new))


def _native(model: Any) -> Program:
    """A model of any kind in Rust's memory."""
    if isinstance(model, ONNXProgram):
        return model._current()
    if isinstance(model, (str, os.PathLike, bytes, bytearray, memoryview)):
        return load(model)._native
    if hasattr(model, "SerializeToString"):
        return load(model.SerializeToString())._native
    if not hasattr(model, "graph"):
        raise TypeError(f"a model is a path, bytes, onnx.ModelProto, onnx_ir.Model or ONNXProgram, not {type(model).__name__}")
    program = ONNXProgram.__new__(ONNXProgram)
    program._ir = model
    return program._current()
