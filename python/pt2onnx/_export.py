"""``export`` and ``convert``: from modules, programs and archives to models."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _errors, _options
from ._program import ONNXProgram, _raised
from ._pt2onnx import convert_bytes, convert_path
from ._translate import translations

if TYPE_CHECKING:
    import torch

    from . import _job, _report

#: What torch 1.12 took by position after ``f``.
_POSITIONAL = (
    "export_params", "verbose", "training", "input_names", "output_names", "operator_export_type", "opset_version",
    "do_constant_folding", "dynamic_axes", "keep_initializers_as_inputs", "custom_opsets", "export_modules_as_functions",
)  # fmt: skip


def convert(source: str | os.PathLike[str] | bytes | bytearray | memoryview, f: str | os.PathLike[str] | None = None, **options: Any) -> ONNXProgram:
    """Converts an archive of ``torch.export.save`` or ``torch.jit.save``, given as a path or as bytes. Needs no PyTorch.

    ``f`` is where to write the model. The options are those of docs/options.md, as keywords: ``opset=18``, ``rename_dim={"s77": "batch"}``,
    ``target="ort-cpu"``, ``weights="external"``, ... A scripted module needs the types of its inputs:
    ``input={"x": "float32[batch,3,224,224]"}``. Axes of a trace become dynamic by ``dynamic_axes={"x": {0: "batch"}}``.

    Raises UnsupportedOperatorError or ConversionError, which list everything that prevents conversion; OnnxExporterError if the archive
    cannot be read or the model not be written; ValueError and TypeError for wrong options.
    """
    with _raised():
        if isinstance(source, (bytes, bytearray, memoryview)):
            native = convert_bytes(bytes(source), _options.as_json(options), translations())
        else:
            native = convert_path(os.fspath(source), _options.as_json(options), translations())
    program = ONNXProgram(native)
    _warn(program)
    if f is not None:
        program.save(f)
    return program


def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] | torch.Tensor = (),
    f: str | os.PathLike[str] | io.BytesIO | None = None,
    *positional: Any,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | str | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool | None = None,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: Any = None,
    operator_export_type: Any = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
    autograd_inlining: bool = True,
    fallback: bool = False,
    **options: Any,
) -> ONNXProgram:
    """Exports a module as an ONNX model: ``torch.onnx.export`` with the same parameters.

    Args:
        model: A module or function, also in TorchScript, a ``torch.export.ExportedProgram`` or ``torch.onnx.ExportableModule``.
        args: The positional arguments to capture it with. A last one that is a dict holds keywords, if ``kwargs`` is not given.
        f: Where to write the model: a path, or a ``BytesIO``.
        kwargs: The keyword arguments to capture it with.
        verbose: True prints each step, False nothing. By default a line shows the progress on a terminal.
        input_names, output_names: Names of inputs and outputs in order. ``output_names="from-tree"`` names outputs after the keys and
            fields of what the module returns.
        opset_version: The opset, 7 to 26. By default 20, or the lowest newer one that the model needs, with a warning.
        dynamo: False is like torch.onnx's exporter of TorchScript: evaluation mode, numbers are inputs, unused inputs are left out,
            symbolic functions are used, and a trace may follow the values of the arguments. ``input_names`` goes on over parameters and
            buffers, parameters are inputs if ``export_params`` is False, and ``operator_export_type`` gives nodes ``ATen``.
        external_data: Whether ``f`` gets a file ``f.data`` with the weights. By default it does, with ``dynamo=False`` only if they do
            not fit into ``f``.
        dynamic_shapes: As for ``torch.export.export``, and names in place of ``Dim``. Dimensions have these names in the model.
            ``ShapesCollection`` and ``AdditionalInputs`` work as well.
        custom_translation_table: Translations by op: functions over ONNX Script, or with a parameter ``cx`` as for
            ``pt2onnx.translation``.
        report: Write a report to ``artifacts_dir``.
        optimize: Whether to fold, simplify and fuse.
        verify: Run the model in ONNX Runtime, at the sizes of the arguments and at a second size of dynamic dimensions, and compare with
            PyTorch: ``ONNXProgram.verification``. Warns of what differs.
        profile: Print how long each stage took, or write it into the report.
        dump_exported_program: Write the captured program to ``artifacts_dir``.
        artifacts_dir: The folder for reports and programs.
        export_params: Whether ``f`` gets the weights.
        keep_initializers_as_inputs: Whether weights are inputs as well.
        dynamic_axes: Axes by name of inputs, as ``torch.onnx.export`` had them before ``dynamic_shapes``.
        custom_opsets: Versions of other domains.
        export_modules_as_functions: True makes an ONNX function of each kind of module, a set of classes only of these.
        training: ``"eval"`` rewrites ops that behave as in training, ``"error"`` refuses them. With ``dynamo=False``, a
            ``torch.onnx.TrainingMode`` is the mode in which the module is exported.
        operator_export_type: A ``torch.onnx.OperatorExportTypes``, for ops without a translation.
        **options: Those of docs/options.md, as keywords: ``target="ort-cpu"``, ``mutations="pairs"``, ``assume_finite=True``, ...

        fallback: Whether a trace may follow the values of the arguments if there is no other way, as with ``dynamo=False``.

    The others are deprecated in ``torch.onnx.export`` and have no effect: ``do_constant_folding``, ``autograd_inlining``.

    Raises:
        TorchExportError: The model can be captured in no way.
        UnsupportedOperatorError, ConversionError: Parts of the program cannot be translated; ``failures`` lists all.
        OnnxExporterError: The model cannot be written.
        ValueError, TypeError: An option or a name cannot be.
    """
    given = dict(locals())
    if positional:
        return _by_position(**given)

    from . import _job, _report, _symbolic

    external_data = dynamo if external_data is None else external_data
    asked = _job.Asked(**{field.name: given[field.name] for field in dataclasses.fields(_job.Asked)})
    steps = _report.Steps(verbose)
    files = _report.Artifacts(artifacts_dir, steps, report=report, profile=profile, dump=dump_exported_program)
    names = asked.output_names
    options = {
        "opset": opset_version,
        "output_names": list(names) if names and not isinstance(names, str) else names or None,
        "custom_opset": dict(custom_opsets) if custom_opsets else None,
        "unsupported_ops": _operators(operator_export_type),
        "training": training if isinstance(training, str) else None,
        "keep_initializers_as_inputs": keep_initializers_as_inputs,
        "optimize": 2 if optimize else 0,
        "module_functions": _options.of_modules(export_modules_as_functions),
        # Weights that are folded would have to be written anew.
        "weights": "external" if external_data and f is not None and not isinstance(f, io.BytesIO) else None,
        **_as_torchscript(dynamo, export_params, operator_export_type),
        **options,
    }
    symbolic = {} if dynamo else _symbolic.registered(opset_version)
    table = translations({**symbolic, **(custom_translation_table or {})})
    made, captured = _job.Job(asked, options, table, steps, files).run()
    # A frozen module in TorchScript has no mode.
    _warn(made, training=getattr(model, "training", False))
    if verify:
        with steps.timed("verify"):
            _verified(made, asked, steps)
    if f is not None:
        with steps.timed("write"), files.failing("output"):
            _write(made, f, export_params or not dynamo, external_data)
    files.done(made, captured)
    return made


def _by_position(model: Any, args: Any, f: Any, positional: tuple[Any, ...], options: dict[str, Any], **given: Any) -> ONNXProgram:
    """``export`` with arguments by position as in torch 1.12."""
    if len(positional) > len(_POSITIONAL):
        raise TypeError(f"export() takes at most {3 + len(_POSITIONAL)} positional arguments")
    given.update(zip(_POSITIONAL, positional))
    return export(model, args, f, **given, **options)


def _operators(kind: Any) -> str | None:
    """The option for a torch.onnx.OperatorExportTypes."""
    name = getattr(kind, "name", kind)
    words = {"ONNX": "onnx", "ONNX_ATEN": "aten", "ONNX_ATEN_FALLBACK": "aten-fallback", "ONNX_FALLTHROUGH": "fallthrough"}
    return None if name is None else words.get(str(name), str(name))


def _as_torchscript(dynamo: bool, export_params: bool, operator_export_type: Any) -> dict[str, Any]:
    """Options for what the TorchScript exporter does in another way."""
    if dynamo:
        return {}
    aten = (_operators(operator_export_type) or "").startswith("aten")
    parameters = {} if export_params else {"weights": "none", "keep_initializers_as_inputs": True}
    return {"aten_nodes": aten or None, **parameters}


def _warn(program: ONNXProgram, training: bool = False) -> None:
    """Shows the warnings of a conversion. That it was exported in training mode was said of a module already."""
    for kind, text in program._native.warnings(grouped=True):
        if not (training and kind == "training"):
            _errors.warn(text)


def _write(program: ONNXProgram, f: Any, include: bool, external: bool) -> None:
    if isinstance(f, io.BytesIO) or (hasattr(f, "write") and not hasattr(f, "__fspath__")):
        _errors.warn("Saving ONNX model to a BytesIO object is deprecated. Please use a file path instead.", DeprecationWarning)
        f.write(program.to_bytes())
    elif include:
        program.save(f, external_data=external)
    else:
        program.save(f, include_initializers=False)


def _verified(program: ONNXProgram, asked: _job.Asked, steps: _report.Steps) -> None:
    """Compares the model with the module, and warns of what differs."""
    from . import _verify

    args, kwargs = asked.args, asked.kwargs
    if asked.is_program and not args and not kwargs:
        if asked.model.example_inputs is None:
            _errors.warn("verify=True needs args: the program has no example inputs.")
            return
        args, kwargs = asked.model.example_inputs
    try:
        program.verification = _verify.verify(program, asked.model, args, kwargs)
    except _errors.VerificationError as error:
        _errors.warn(str(error))
        return
    finally:
        program.release()
    steps.say("Verify output accuracy... " + ("✅" if program.verification.ok else "❌"))
    for output in program.verification.outputs:
        if not output.ok:
            _errors.warn(f"Output '{output.name}' ({output.inputs}): {output.problem}")
    for note in program.verification.notes:
        _errors.warn(f"The verification is not complete: {note}")
