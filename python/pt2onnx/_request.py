"""An export as the user requests it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _errors

if TYPE_CHECKING:
    import torch

    from ._types import Destination

#: The parameters that torch 1.12 took by position after ``f``.
_POSITIONAL = (
    "export_params",
    "verbose",
    "training",
    "input_names",
    "output_names",
    "operator_export_type",
    "opset_version",
    "do_constant_folding",
    "dynamic_axes",
    "keep_initializers_as_inputs",
    "custom_opsets",
    "export_modules_as_functions",
)

#: Keywords of ``torch.onnx.export`` that 1.5 to 1.12 had, and the parameters that have their
#: effects; the others have none.
_FORMER: dict[str, tuple[str, Callable[[Any], object]] | None] = {
    "example_outputs": None,
    "enable_onnx_checker": None,
    "export_raw_ir": None,
    "add_node_names": None,
    "_retain_param_name": None,
    "aten": ("operator_export_type", lambda aten: "ONNX_ATEN" if aten else None),
    "strip_doc_string": ("node_docs", lambda strip: not strip),
    "use_external_data_format": ("external_data", bool),
}


@dataclasses.dataclass
class ExportRequest:
    """The arguments of ``export``, which documents them."""

    model: Any
    args: Any
    f: Destination | None
    kwargs: Mapping[str, object] | None
    verbose: bool | None
    input_names: Sequence[str] | str | None
    output_names: Sequence[str] | str | None
    opset_version: int | None
    dynamo: bool
    external_data: bool | None
    dynamic_shapes: object
    custom_translation_table: Mapping[object, Callable[..., Any]] | None
    report: bool
    optimize: bool
    verify: bool
    profile: bool
    dump_exported_program: bool
    artifacts_dir: str | os.PathLike[str]
    export_params: bool
    keep_initializers_as_inputs: bool | None
    dynamic_axes: Mapping[str, object] | None
    #: A ``torch.onnx.TrainingMode``, or the option ``training``.
    training: object
    #: A ``torch.onnx.OperatorExportTypes``.
    operator_export_type: object
    custom_opsets: Mapping[str, int] | None
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]]
    fallback: bool
    #: ``merge``, ``warn``, ``error`` or ``split``.
    sizes: str
    max_regions: int
    options: Mapping[str, object]

    def with_positional(self, values: Sequence[object]) -> ExportRequest:
        """The request with arguments by position as in torch 1.12.

        Args:
            values: The arguments after ``f``.

        Raises:
            TypeError: There are too many.
        """
        if len(values) > len(_POSITIONAL):
            raise TypeError(f"export() takes at most {3 + len(_POSITIONAL)} positional arguments")
        given: dict[str, Any] = dict(zip(_POSITIONAL, values, strict=False))
        # It has no effect.
        given.pop("do_constant_folding", None)
        return dataclasses.replace(self, **given)

    def with_former(self) -> ExportRequest:
        """The request without keywords that later versions of torch do not have. Warns of them."""
        options = dict(self.options)
        former = {name: options.pop(name) for name in _FORMER if name in options}
        changed: dict[str, Any] = {}
        for name, value in former.items():
            parameter, make = _FORMER[name] or ("", None)
            effect = f"use {parameter}" if parameter else "it has no effect"
            _errors.warn(f"the parameter {name!r} is deprecated: {effect}", DeprecationWarning)
            if make is not None and value is not None:
                changed[parameter] = make(value)
        docs = changed.pop("node_docs", None)
        if docs:
            options["node_docs"] = docs
        return dataclasses.replace(self, options=options, **changed)
