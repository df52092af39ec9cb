"""The interfaces that ``torch.onnx`` had before ``export(..., dynamo=True)``: ``dynamo_export``,
its options and its registry.

New code calls ``pt2onnx.export``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _translation
from ._export import export
from ._program import ONNXProgram
from ._pt2onnx import supported_ops

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

__all__ = [
    "DiagnosticOptions",
    "ExportOptions",
    "ONNXRuntimeOptions",
    "OnnxRegistry",
    "dynamo_export",
    "enable_fake_mode",
    "export_to_pretty_string",
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
        #: Those for real tensors and those for complex ones.
        self._functions: dict[bool, dict[str, list[Callable[..., Any]]]] = {False: {}, True: {}}
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
            is_complex: Whether the function is for nodes that take or give complex tensors, which
                it has as pairs of real and imaginary parts in a last dimension of 2.

        Raises:
            ValueError: The namespace or the name is empty.
        """
        functions = self._functions[is_complex]
        functions.setdefault(_name(namespace, op_name, overload), []).append(function)

    def get_op_functions(
        self, namespace: str, op_name: str, overload: str | None = None
    ) -> list[Callable[..., Any]] | None:
        """The functions that were registered for an op.

        Returns:
            The functions in order, those for complex tensors last; an empty list if there is only
            the built-in translation, None if the op has none.

        Raises:
            ValueError: The namespace or the name is empty.
        """
        name = _name(namespace, op_name, overload)
        found = [each for table in self._functions.values() for each in table.get(name, ())]
        return found if found or name in supported_ops() else None

    def is_registered_op(self, namespace: str, op_name: str, overload: str | None = None) -> bool:
        """Whether an op has a translation."""
        return self.get_op_functions(namespace, op_name, overload) is not None

    def _table(self) -> dict[Any, Any]:
        """The functions that are used, as a ``custom_translation_table``."""
        real, of_pairs = self._functions[False], self._functions[True]
        table: dict[Any, list[Any]] = {op: [functions[-1]] for op, functions in real.items()}
        for op, functions in of_pairs.items():
            table.setdefault(op, []).append(_translation.Complex(functions[-1]))
        return table


def _name(namespace: str, op: str, overload: str | None) -> str:
    if not (namespace and op):
        raise ValueError("an op must have a namespace and a name: neither may be empty")
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
    table = options.onnx_registry._table() if options.onnx_registry else None
    return export(
        model,
        model_args,
        kwargs=model_kwargs,
        dynamic_shapes=shapes,
        custom_translation_table=table,
        opset_version=options.onnx_registry.opset_version if options.onnx_registry else None,
        verbose=True if diagnostics.verbosity_level < 20 else None,
        warnings_as_errors=diagnostics.warnings_as_errors,
    )


def export_to_pretty_string(
    model: Any,
    args: tuple[object, ...] | torch.Tensor,
    export_params: bool = True,
    verbose: bool = False,
    training: object = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: object = None,
    export_type: object = None,
    google_printer: bool = False,
    opset_version: int | None = None,
    keep_initializers_as_inputs: bool | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    add_node_names: bool = True,
    do_constant_folding: bool = True,
    dynamic_axes: Mapping[str, Any] | None = None,
) -> str:
    """Exports a module as ``export(dynamo=False)`` does, and returns the model as text.

    Args:
        model: As for ``export``; so are the others that are not below.
        args: The arguments.
        export_params: Whether the model has its weights.
        verbose: Whether nodes have the lines of their source.
        training: The mode in which the module is exported.
        input_names: Names of inputs.
        output_names: Names of outputs.
        operator_export_type: How to treat ops without a translation.
        export_type: No effect, like ``add_node_names`` and ``do_constant_folding``.
        google_printer: Whether the text is that of the protobuf message, not ONNX's syntax.
        opset_version: The opset.
        keep_initializers_as_inputs: Whether weights are inputs as well.
        custom_opsets: Versions of other domains.
        add_node_names: No effect.
        do_constant_folding: No effect.
        dynamic_axes: Dynamic axes by the names of inputs.

    Raises:
        Exception: The errors of ``pt2onnx.export``.
    """
    made = export(
        model,
        args,
        dynamo=False,
        export_params=export_params,
        node_docs=verbose,
        training=training,
        input_names=input_names,
        output_names=output_names,
        operator_export_type=operator_export_type,
        opset_version=opset_version,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        custom_opsets=custom_opsets,
        dynamic_axes=dynamic_axes,
    )
    return str(made.model_proto) if google_printer else made.to_text()


def enable_fake_mode() -> contextlib.AbstractContextManager[FakeTensorMode]:
    """In this context, new modules and tensors have shapes and types, but no memory.

    Weights are given later: ``ONNXProgram.apply_weights``.
    """
    from ._fake_mode import fake_mode

    return fake_mode()
