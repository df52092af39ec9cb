"""``export``: from a module to a model. torch is imported when it is called."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._program import ONNXProgram
from ._request import ExportRequest

if TYPE_CHECKING:
    from typing import Unpack

    import torch

    from ._options import ExportOptions
    from ._types import Destination


def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[object, ...] | torch.Tensor = (),
    f: Destination | None = None,
    *positional: object,
    kwargs: Mapping[str, object] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | str | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool | None = None,
    dynamic_shapes: Mapping[str, object] | tuple[object, ...] | list[Any] | None = None,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool | None = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: object = None,
    operator_export_type: object = None,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
    autograd_inlining: bool = True,
    fallback: bool = False,
    sizes: Literal["merge", "warn", "error", "split"] = "merge",
    max_regions: int = 8,
    **options: Unpack[ExportOptions],
) -> ONNXProgram:
    """Exports a module as an ONNX model: ``torch.onnx.export`` with the same parameters.

    Args:
        model: A module or function, also in TorchScript, a ``torch.export.ExportedProgram`` or
            ``torch.onnx.ExportableModule``.
        args: The positional arguments to capture it with. A last one that is a dict holds keywords,
            if ``kwargs`` is not given.
        f: Where to write the model: a path, or an object to write bytes to.
        *positional: More arguments by position, as in torch 1.12.
        kwargs: The keyword arguments to capture it with.
        verbose: True prints each step, and with ``dynamo=False`` the model, whose nodes have the
            lines of their source. False prints nothing. By default a line shows the progress on a
            terminal.
        input_names, output_names: Names of inputs and outputs in order.
            ``output_names="from-tree"`` names outputs after the keys and fields of the module's
            result.
        opset_version: The opset, 7 to 26. By default 20, or the lowest newer one that the model
            needs, with a warning.
        dynamo: False is like torch.onnx's exporter of TorchScript: evaluation mode, numbers are
            inputs, unused inputs are left out, symbolic functions are used. A trace is tried first,
            and compared with the module; if nothing else works, it may follow the values of the
            arguments. ``input_names`` may also name parameters and buffers, parameters are inputs
            if ``export_params`` is False, and ``operator_export_type`` gives nodes ``ATen``.
        external_data: Whether ``f`` gets a file ``f.data`` with the weights. By default it does,
            with ``dynamo=False`` only if they do not fit into ``f``.
        dynamic_shapes: As for ``torch.export.export``, and names in place of ``Dim``. Dimensions
            have these names in the model. ``ShapesCollection`` and ``AdditionalInputs`` work as
            well.
        custom_translation_table: Translations by op: functions over ONNX Script, or with a
            parameter ``cx`` as for ``pt2onnx.translation``.
        report: Write a report to ``artifacts_dir``.
        optimize: Whether to fold, simplify and fuse.
        verify: Run the model in ONNX Runtime, at the sizes of the arguments and at a second size of
            dynamic dimensions, and compare with PyTorch: ``ONNXProgram.verification``. Warns of
            differences.
        profile: Print how long each stage took, or write it into the report.
        dump_exported_program: Write the captured program to ``artifacts_dir``.
        artifacts_dir: The folder for reports and programs.
        export_params: Whether ``f`` gets the weights.
        keep_initializers_as_inputs: Whether weights are inputs as well. None is False, unless
            ``operator_export_type`` allows nodes of ATen with ``dynamo=False``.
        dynamic_axes: Axes by name of inputs, as ``torch.onnx.export`` had them before
            ``dynamic_shapes``.
        training: ``"eval"`` rewrites ops that behave as in training, ``"error"`` refuses them. With
            ``dynamo=False``, a ``torch.onnx.TrainingMode`` is the mode in which the module is
            exported.
        operator_export_type: A ``torch.onnx.OperatorExportTypes``, for ops without a translation.
        do_constant_folding, autograd_inlining: No effect; deprecated in ``torch.onnx.export``.
        custom_opsets: Versions of other domains.
        export_modules_as_functions: True makes an ONNX function of each kind of module, a set of
            classes only of these.
        fallback: Whether a trace is tried first, and may follow the values of the arguments if no
            other strategy works, as with ``dynamo=False``.
        sizes: Where the code decides by sizes, so that a capture is wrong at others that
            ``dynamic_shapes`` asks for: ``"merge"`` finds a model that is right at all sizes, or
            warns; ``"warn"`` takes the capture of the example, with a warning; ``"error"`` refuses
            what is not right at all sizes; ``"split"`` makes a model for each region of sizes, for
            runtimes without ``If``: ``ONNXProgram.regions``, in files ``f.1.onnx``, ``f.2.onnx``.
        max_regions: How many captures at most, each for other sizes, a model chooses between.
        **options: Those of docs/options.md, as keywords: ``target="ort-cpu"``,
            ``mutations="pairs"``, ``assume_finite=True``, ...

    Returns:
        The model.

    Raises:
        TorchExportError: No strategy captures the model.
        UnsupportedOperatorError, ConversionError: Parts of the program cannot be translated;
            ``failures`` lists all.
        OnnxExporterError: The model cannot be written.
        ValueError, TypeError: An option or a name is not valid.
    """
    from ._exporter import Exporter

    request = ExportRequest(
        model=model,
        args=args,
        f=f,
        kwargs=kwargs,
        verbose=verbose,
        input_names=input_names,
        output_names=output_names,
        opset_version=opset_version,
        dynamo=dynamo,
        external_data=external_data,
        dynamic_shapes=dynamic_shapes,
        custom_translation_table=custom_translation_table,
        report=report,
        optimize=optimize,
        verify=verify,
        profile=profile,
        dump_exported_program=dump_exported_program,
        artifacts_dir=artifacts_dir,
        export_params=export_params,
        keep_initializers_as_inputs=keep_initializers_as_inputs,
        dynamic_axes=dynamic_axes,
        training=training,
        operator_export_type=operator_export_type,
        custom_opsets=custom_opsets,
        export_modules_as_functions=export_modules_as_functions,
        fallback=fallback,
        sizes=sizes,
        max_regions=max_regions,
        options=options,
    )
    return Exporter(request.with_positional(positional).with_former()).run()
