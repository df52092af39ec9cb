"""``convert``, ``inspect``, ``check``, ``load``, ``optimize`` and ``diff``. They need no
PyTorch."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, cast

from . import _errors, _option_json, _translation
from ._errors import OnnxExporterError, native_errors, new_error
from ._program import ONNXProgram
from ._pt2onnx import Program, convert_bytes, convert_path, open_model, open_parts
from ._pt2onnx import inspect as _inspect

if TYPE_CHECKING:
    from typing import Unpack

    import onnx
    import onnx_ir

    from ._options import ConvertOptions, OptimizeOptions, SaveOptions

    Json = dict[str, Any]
    #: A model of any kind.
    Model = (
        str
        | os.PathLike[str]
        | bytes
        | bytearray
        | memoryview
        | onnx.ModelProto
        | onnx_ir.Model
        | ONNXProgram
    )

#: The first bytes of an archive.
_ARCHIVE = b"PK\x03\x04"


def convert(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview,
    f: str | os.PathLike[str] | None = None,
    **options: Unpack[ConvertOptions],
) -> ONNXProgram:
    """Converts an archive of ``torch.export.save`` or ``torch.jit.save``. Needs no PyTorch.

    Args:
        source: The path of the archive, or its bytes.
        f: Where to write the model.
        **options: Those of docs/options.md, as keywords: ``opset=18``, ``rename_dim={"s77":
            "batch"}``, ``target="ort-cpu"``, ``weights="external"``, ... A scripted module needs
            the types of its inputs: ``input={"x": "float32[batch,3,224,224]"}``. Axes of a trace
            become dynamic by ``dynamic_axes={"x": {0: "batch"}}``.

    Raises:
        UnsupportedOperatorError, ConversionError: Parts of the program cannot be translated;
            ``failures`` lists all.
        OnnxExporterError: The archive cannot be read, or the model not be written.
        ValueError, TypeError: An option is not valid.
    """
    _check_archive(source)
    text, translations = _option_json.to_json(options), _translation.translations()
    with native_errors():
        if isinstance(source, (bytes, bytearray, memoryview)):
            native = convert_bytes(bytes(source), text, translations)
        else:
            native = convert_path(os.fspath(source), text, translations)
    program = ONNXProgram(native)
    for _, warning in native.warnings(grouped=True):
        _errors.warn(warning)
    if f is not None:
        program.save(f)
    return program


def _check_archive(source: object) -> None:
    """Raises TypeError if a value is neither the path nor the bytes of an archive."""
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        kind = type(source).__name__
        raise TypeError(
            f"convert takes an archive, a path or bytes, not {kind}: pt2onnx.export makes a model "
            "of a module or program"
        )


def inspect(archive: str | os.PathLike[str], **options: Unpack[ConvertOptions]) -> dict[str, Any]:
    """The report about an archive (docs/report.md). Nothing is written.

    Args:
        archive: The path of the archive.
        **options: Those of ``convert``.

    Returns:
        Inputs, outputs, dimensions, weights, ops, and everything that prevents conversion with
        these options.

    Raises:
        TypeError: An option is unknown.
    """
    text = _inspect(os.fspath(archive), _option_json.to_json(options))
    return cast("Json", json.loads(text))


def check(
    archive: str | os.PathLike[str], **options: Unpack[ConvertOptions]
) -> list[dict[str, Any]]:
    """Everything that prevents the conversion of an archive with these options.

    Args:
        archive: The path of the archive.
        **options: Those of ``convert``.

    Returns:
        A dict for each, with kind, node, op, file, line, reason and suggestion; empty if the
        archive can be converted.

    Raises:
        TypeError: An option is unknown.
    """
    report = inspect(archive, **options)
    failures: list[Json] = report["failures"]
    if report["error"] and not failures:
        return [{"kind": report["error"]["kind"], "reason": report["error"]["message"]}]
    return failures


def load(model: str | os.PathLike[str] | bytes | bytearray | memoryview) -> ONNXProgram:
    """Reads any ONNX model.

    Args:
        model: The path of the model, or the bytes of its file.

    Raises:
        OnnxExporterError: It is not an ONNX model, or not a valid one.
    """
    if isinstance(model, (bytes, bytearray, memoryview)):
        start = bytes(model[:4])
        with _named("the bytes", lambda: start), native_errors():
            return ONNXProgram(open_parts(bytes(model), []))
    path = os.fspath(model)
    with _named(path, lambda: _start(path)), native_errors():
        return ONNXProgram(open_model(path))


@contextlib.contextmanager
def _named(file: str, start: Callable[[], bytes]) -> Generator[None, None, None]:
    """Names the file in errors, and says that an archive is not a model.

    Args:
        file: The name of the file.
        start: Reads its first four bytes.
    """
    try:
        yield
    except OnnxExporterError as error:
        text = str(error)
        if error.kind == "model" and start() == _ARCHIVE:
            text = "this is an archive, not an ONNX model: pt2onnx.convert makes a model of it"
        elif error.kind != "model" or file in text:
            raise
        raise new_error(OnnxExporterError, f"{file}: {text}", error.kind) from None


def _start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(4)
    except OSError:
        return b""


def optimize(
    model: Model,
    destination: str | os.PathLike[str] | None = None,
    **options: Unpack[OptimizeOptions],
) -> ONNXProgram:
    """Folds, simplifies and fuses an ONNX model. Warns of results that the target computes less
    exactly.

    Args:
        model: A path, bytes, ``onnx.ModelProto``, ``onnx_ir.Model`` or ``ONNXProgram``. It stays as
            it is.
        destination: Where to write the result.
        **options: Those of the command ``pt2onnx optimize``: ``opset=17``, ``fix_dim={"batch":
            1}``, ``quantize="int8"``, ``target="ort"``, ``weights="external"``, ...

    Raises:
        TypeError: An option is unknown, or it is one of saving and there is no destination.
    """
    given = _option_json.renamed(options)
    saving = {key: given.pop(key) for key in list(given) if key in _option_json.SAVING}
    if saving and destination is None:
        raise TypeError(
            f"the option {min(saving)!r} says how a model is written: give a destination"
        )
    text = _option_json.optimize_json(given)
    native = _native(model)
    with native_errors():
        changed = native.copy() if isinstance(model, ONNXProgram) else native
        known = native.warnings(grouped=True)
        changed.optimize(text)
    for warning in changed.warnings(grouped=True):
        if warning not in known:
            _errors.warn(warning[1])
    program = ONNXProgram(changed)
    if destination is not None:
        program.save(destination, **cast("SaveOptions", saving))
    return program


def diff(old: Model, new: Model) -> str:
    """How two models differ: opsets, inputs, outputs, operators, weights, types, names, nodes.

    Args:
        old: A path, bytes, ``onnx.ModelProto``, ``onnx_ir.Model`` or ``ONNXProgram``.
        new: The same.

    Returns:
        A line for each difference; empty if there are none.
    """
    return _native(old).diff(_native(new))


def _native(model: Model) -> Program:
    """A model of any kind in Rust's memory."""
    if isinstance(model, ONNXProgram):
        return model._backend.native()
    if isinstance(model, (str, os.PathLike, bytes, bytearray, memoryview)):
        return load(model)._native
    if hasattr(model, "SerializeToString"):
        return load(cast("onnx.ModelProto", model).SerializeToString())._native
    if not hasattr(model, "graph"):
        kinds = "a path, bytes, onnx.ModelProto, onnx_ir.Model or ONNXProgram"
        what = f"a model is {kinds}, not {type(model).__name__}"
        hint = ": pt2onnx.export makes one of it" if callable(model) else ""
        raise TypeError(what + hint)
    from ._program._onnx_ir import IrBackend

    return IrBackend(cast("onnx_ir.Model", model)).native()
