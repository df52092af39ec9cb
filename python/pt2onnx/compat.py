"""The interfaces that ``torch.onnx`` had before ``export(..., dynamo=True)``: ``dynamo_export``,
its options and its registry.

New code calls ``pt2onnx.export``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._export import export
from ._program import ONNXProgram
from ._pt2onnx import supported_ops

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode

__all__ = [
    "DiagnosticOptions",
    "ExportOptions",
    "ONNXRuntimeOptions",
    "OnnxRegistry",
    "dynamo_export",
    "enable_fake_mode",
]


@dataclasses.dataclass
class DiagnosticOptions:
    """Diagnostics of an export.

    ``verbosity_level`` is as for Python's ``logging``: below 20 each step is printed. With
    ``warnings_as_errors`` a warning is an error, and there is no model.
    """

    verbosity_level: int = 20
    warnings_as_errors: bool = False


@dataclasses.dataclass
class ONNXRuntimeOptions:
    """Options of a session of ONNX Runtime.

    ``session(model)`` makes one, for ``ONNXProgram.initialize_inference_session``.
    """

    session_options: Sequence[object] | None = None
    execution_providers: Sequence[object] | None = None
    execution_provider_options: Sequence[dict[str, object]] | None = None

    def session(self, model: str | bytes) -> Any:
        """An onnxruntime.InferenceSession of the model: a path or bytes."""
        ort = importlib.import_module("onnxruntime")
        options = self.session_options[0] if self.session_options else None
        providers = list(self.execution_providers or ort.get_available_providers())
        provider_options = list(self.execution_provider_options or ()) or None
        made: object = ort.InferenceSession(model, options, providers, provider_options)
        return made


class OnnxRegistry:
    """Translations by op: the built-in ones, and those that are registered here.

    ``opset_version`` is the opset of the models; 18 by default, as in ``torch.onnx.OnnxRegistry``.
    """

    def __init__(self, opset_version: int = 18) -> None:
        self._functions: dict[str, list[Callable[..., Any]]] = {}
        self.opset_version = opset_version

    def register_op(
        self,
        function: Callable[..., Any],
        namespace: str,
        op_name: str,
        overload: str | None = None,
        is_complex: bool = False,
    ) -> None:
        """Registers a function as the translation of an op. The last one is used.

        Args:
            function: A function over ONNX Script, or one that takes a ``Cx``.
            namespace: The namespace of the op.
            op_name: Its name.
            overload: Its overload.
            is_complex: Not supported.

        Raises:
            ValueError: ``is_complex`` is true.
        """
        if is_complex:
            raise ValueError("functions for complex tensors cannot be registered from Python")
        self._functions.setdefault(_name(namespace, op_name, overload), []).append(function)

    def get_op_functions(
        self, namespace: str, op_name: str, overload: str | None = None
    ) -> list[Callable[..., Any]] | None:
        """The functions that were registered for an op.

        Returns:
            The functions in order; an empty list if there is only the built-in translation, None if
            the op has none.
        """
        name = _name(namespace, op_name, overload)
        found = self._functions.get(name)
        if found is None:
            return [] if name in supported_ops() else None
        return list(found)

    def is_registered_op(self, namespace: str, op_name: str, overload: str | None = None) -> bool:
        """Whether an op has a translation."""
        return self.get_op_functions(namespace, op_name, overload) is not None


def _name(namespace: str, op: str, overload: str | None) -> str:
    return f"{namespace}::{op}" + (f".{overload}" if overload and overload != "default" else "")


@dataclasses.dataclass
class ExportOptions:
    """Options of ``dynamo_export``.

    With ``dynamic_shapes``, all sizes of inputs are dynamic where the program allows it.
    """

    dynamic_shapes: bool | None = None
    fake_context: object = None
    onnx_registry: OnnxRegistry | None = None
    diagnostic_options: DiagnosticOptions = dataclasses.field(default_factory=DiagnosticOptions)


def dynamo_export(
    model: Any,
    /,
    *model_args: object,
    export_options: ExportOptions | None = None,
    **model_kwargs: object,
) -> ONNXProgram:
    """Exports a module, function or ExportedProgram with example arguments.

    Args:
        model: The module, function or program.
        *model_args: Its positional arguments.
        export_options: The options.
        **model_kwargs: Its keyword arguments.

    Raises:
        Exception: The errors of ``pt2onnx.export``.
    """
    from . import _shapes

    options = export_options or ExportOptions()
    diagnostics = options.diagnostic_options or DiagnosticOptions()
    shapes = None
    if options.dynamic_shapes and not _shapes.is_program(model):
        shapes = _shapes.all_automatic(model_args, model_kwargs)
    table = options.onnx_registry._functions if options.onnx_registry else {}
    return export(
        model,
        model_args,
        kwargs=model_kwargs,
        dynamic_shapes=shapes,
        custom_translation_table={op: functions[-1] for op, functions in table.items()} or None,
        opset_version=options.onnx_registry.opset_version if options.onnx_registry else None,
        verbose=True if diagnostics.verbosity_level < 20 else None,
        warnings_as_errors=diagnostics.warnings_as_errors,
    )


def enable_fake_mode() -> contextlib.AbstractContextManager[FakeTensorMode]:
    """In this context, new modules and tensors have shapes and types, but no memory.

    Weights are given later: ``ONNXProgram.apply_weights``.
    """
    from ._fake_mode import fake_mode

    return fake_mode()
