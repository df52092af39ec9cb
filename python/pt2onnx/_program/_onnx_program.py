"""``pt2onnx.ONNXProgram``, with all that ``torch.onnx.ONNXProgram`` has."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from .. import _errors, _option_json
from .._errors import native_errors
from .._pt2onnx import Program
from .._types import is_path
from ._backend import TOO_LARGE, Saving
from ._native import NativeBackend
from ._origin import UnknownOrigin

if TYPE_CHECKING:
    from typing import Unpack

    import onnx
    import onnx_ir
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
    import torch

    from .._element_types import Memory
    from .._options import SaveOptions
    from .._run import Session
    from .._types import Args, Destination, Kwargs, Model, Writable
    from .._verify import Verification
    from ._backend import Backend
    from ._origin import Origin

    #: Translates a program again with other weights.
    Remake = Callable[[Mapping[str, torch.Tensor]], Program]


class ONNXProgram:
    """An ONNX model, the program that it was made from, and the report about it.

    ``exported_program`` is the ``torch.export.ExportedProgram``, or None for a model that was made
    from a file. ``verification`` is the result of ``export(..., verify=True)``. Weights are views
    of the memory of the PyTorch module or of the archive, which must not be resized while this
    object lives; changes of their values are seen.
    """

    def __init__(
        self,
        native: Program,
        exported_program: torch.export.ExportedProgram | None = None,
        *,
        origin: Origin | None = None,
        remake: Remake | None = None,
    ) -> None:
        #: The model as Rust made it, with its report.
        self._native = native
        self._backend: Backend = NativeBackend(native)
        self._origin: Origin = origin or UnknownOrigin()
        #: Positions of inputs of the origin that the model does not have.
        self._dropped: frozenset[int] = frozenset()
        self._session: Session | None = None
        self._session_weights: Sequence[Memory] = ()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._capture_strategy: str | None = None
        # With it, the weights given so far, and the changes to the model since.
        self._remake = remake
        self._weights: dict[str, torch.Tensor] = {}
        self._edits: list[Callable[[Program], object]] = []
        self.exported_program = exported_program
        self.verification: Verification | None = None
        self.regions: tuple[ONNXProgram, ...] = ()
        self.conditions = ""

    def __repr__(self) -> str:
        return f"ONNXProgram(\n{self.to_text()}\n)"

    # The model.

    @property
    def model(self) -> onnx_ir.Model:
        """The model of onnx_ir, made when it is first asked for.

        From then on it is the model: changes in it are saved and run. Weights are not copied.
        """
        from ._onnx_ir import IrBackend

        backend = IrBackend.of(self._backend)
        self._backend = backend
        return backend.model

    @model.setter
    def model(self, model: onnx_ir.Model) -> None:
        from ._onnx_ir import IrBackend

        self.release()
        self._backend = IrBackend(model)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message, with all weights.

        Raises:
            OnnxExporterError: The model has more than 2 GiB.
        """
        return self._backend.to_proto()

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return self._backend.input_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._backend.output_names

    @property
    def opset_version(self) -> int:
        """The opset of ONNX's own operators."""
        return self._backend.opset

    def to_text(self) -> str:
        """The model in ONNX's textual syntax; large weights are shortened."""
        return self._backend.native().to_text()

    def to_bytes(self) -> bytes:
        """The model as the bytes of one file, with all weights.

        Raises:
            OnnxExporterError: The model has more than 2 GiB.
        """
        return self._backend.to_bytes()

    # The conversion.

    @property
    def warnings(self) -> list[str]:
        """The warnings of the conversion."""
        return [text for _, text in self._native.warnings(grouped=False)]

    @property
    def report(self) -> dict[str, Any]:
        """The report of the conversion (docs/report.md)."""
        report: dict[str, Any] = json.loads(self._native.report(markdown=False))
        return report

    def report_markdown(self) -> str:
        """The report as a text for people."""
        return self._native.report(markdown=True)

    # Changes.

    def optimize(self) -> None:
        """Folds, simplifies and fuses."""
        self.release()
        self._forget_origin_of_changes()
        native = self._backend.native()
        self._edit(lambda program: program.optimize(_option_json.to_json({})), native)
        self._set_native(native)

    def rename_axes(self, rename_mapping: Mapping[str | onnx_ir.SymbolicDim, str]) -> None:
        """Renames dynamic dimensions. Warns of names that the model does not have.

        Args:
            rename_mapping: New names by name or ``onnx_ir.SymbolicDim``.
        """
        _check_mapping("rename_mapping", rename_mapping)
        self.release()
        names = {
            k if isinstance(k, str) else str(k.value): new for k, new in rename_mapping.items()
        }
        known = self._backend.rename_axes(names)
        pairs = [(old, new) for old, new in names.items() if old in known]
        self._edits.append(lambda program: program.rename_axes(pairs))
        for old in names:
            if old not in known:
                _errors.warn(f"Dimension '{old}' not found in the model. Skipped renaming.")

    def apply_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Replaces weights, or gives values to those that have none.

        A program that was exported is translated again, so that constants computed from old weights
        are computed from the new ones. Warns of names that the model does not have.

        Args:
            state_dict: Weights by name.

        Raises:
            OnnxExporterError: A weight has another shape or type; for other models also where a
                weight has a value already.
        """
        _check_mapping("state_dict", state_dict)
        for name, weight in state_dict.items():
            if not hasattr(weight, "shape"):
                kind = type(weight).__name__
                raise TypeError(f"weight {name}: it must be a torch.Tensor, not {kind}")
        # This module needs PyTorch, the checks do not.
        from .._serialize import Tensors

        self.release()
        self._forget_origin_of_changes()
        if self._remake is not None and self.exported_program is not None:
            own = self.exported_program.state_dict
            known = {name: weight for name, weight in state_dict.items() if name in own}
            unused = [name for name in state_dict if name not in known]
            weights = {**self._weights, **known}
            native = self._remake(weights)
            for edit in self._edits:
                edit(native)
            self._weights = weights
        else:
            tensors = Tensors()
            rows = tensors.rows(state_dict.items())
            native = self._backend.native()
            with native_errors():
                unused = native.apply_weights(tensors.storages, rows)
        self._set_native(native)
        for name in unused:
            _errors.warn(f"Weight '{name}' not found in the model. Skipped applying.")

    # Files.

    def save(
        self,
        destination: Destination,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
        **options: Unpack[SaveOptions],
    ) -> None:
        """Writes the model to a file, and its weights to ``DESTINATION.data`` if they do not fit.

        Files are complete or not there at all; existing ones are replaced at the end.

        Args:
            destination: The path of the file, or an object that is open for writing bytes.
            include_initializers: Whether the file gets the weights.
            keep_initializers_as_inputs: Whether weights are inputs as well.
            external_data: Whether weights go to ``DESTINATION.data`` in any case.
            **options: Those of saving in docs/options.md: ``weights``, ``weights_file``,
                ``shard_size``, ``external_threshold``, ``alignment``.

        Raises:
            OnnxExporterError: A file cannot be written.
            TypeError: An option is unknown, or needs a path.
        """
        given = _option_json.renamed(options)
        _option_json.reject_unknown(given, _option_json.SAVING)
        saving = Saving(include_initializers, keep_initializers_as_inputs, external_data, given)
        if is_path(destination):
            self._backend.save(os.fspath(destination), saving)
        elif external_data or given:
            other = next(iter(given), "external_data")
            raise TypeError(
                f"an object to write to gets one file: the option {other!r} needs a path"
            )
        elif saving == Saving(True, False, external_data, {}):
            cast("Writable", destination).write(self.to_bytes())
        else:
            self._save_to(cast("Writable", destination), saving)

    def _save_to(self, destination: Writable, saving: Saving) -> None:
        """Writes a file to an object, by way of a temporary file."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            self._backend.save(path, dataclasses.replace(saving, external_data=False))
            with open(path, "rb") as made:
                shutil.copyfileobj(made, destination)

    # Running it.

    def __call__(self, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """Runs the model in ONNX Runtime with the arguments of the module.

        Returns:
            The outputs: tensors of torch if an argument is one, else arrays of NumPy.
        """
        return self._run(args, kwargs, {})

    def _run(self, args: Args, kwargs: Kwargs, state: Mapping[str, object]) -> tuple[Any, ...]:
        """Runs the model with the arguments of the module, and with its state where that is an
        input."""
        from .. import _run

        if self._session is None:
            self.initialize_inference_session()
        assert self._session is not None
        inputs = self._inputs(args, kwargs)
        rest = {name: state[name] for name in self.input_names if name in state.keys() - inputs}
        # The model may not have the arguments that are tensors.
        as_torch = any(map(_run.is_tensor, (*args, *kwargs.values())))
        return tuple(_run.run(self._session, {**inputs, **rest}, as_torch=as_torch))

    def call_reference(self, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """Runs the model in onnx's reference implementation: slow, without a runtime's kernels."""
        import onnx.reference

        from .. import _run

        inputs = self._inputs(args, kwargs)
        evaluator: Any = onnx.reference.ReferenceEvaluator(self.model_proto)
        arrays = {name: _run.to_ort(value).numpy() for name, value in inputs.items()}
        results = evaluator.run(None, arrays)
        as_torch = any(_run.is_tensor(value) for value in inputs.values())
        return tuple(_run.from_numpy(result, as_torch) for result in results)

    def compute_values(
        self,
        value_names: Sequence[str],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> tuple[Any, ...]:
        """Runs the model, and returns some of its values.

        Args:
            value_names: Names of values.
            args: The positional arguments of the module.
            kwargs: The keyword arguments of the module.

        Raises:
            ValueError: The model has no such value.
        """
        from .. import _run

        graph = self.model.graph
        values = {value.name: value for value in (*graph.inputs, *graph.initializers.values())}
        values |= {value.name: value for node in graph for value in node.outputs if value.name}
        missing = [name for name in value_names if name not in values]
        if missing:
            raise ValueError(
                f"Value '{missing[0]}' not found in the model. Please provide a valid value name."
            )
        outputs = list(graph.outputs)
        try:
            graph.outputs.clear()
            graph.outputs.extend(values[name] for name in value_names)
            proto, weights = self._backend.to_parts()
        finally:
            graph.outputs.clear()
            graph.outputs.extend(outputs)
        session = _run.session(proto, weights)
        return tuple(_run.run(session, self._inputs(tuple(args), dict(kwargs or {}))))

    def initialize_inference_session(
        self, initializer: Callable[[str | bytes], onnxruntime.InferenceSession] | None = None
    ) -> None:
        """Makes the session of ONNX Runtime that calls use.

        Args:
            initializer: Makes a session from the bytes of the model, or from the path of a
                temporary file if the model is too large for that. Without it, weights are not
                copied and no file is written.
        """
        from .. import _run

        self.release()
        if initializer is None:
            model, self._session_weights = self._backend.to_parts()
            self._session = _run.session(model, self._session_weights)
        elif self._backend.weight_bytes <= TOO_LARGE:
            self._session = cast("Session", initializer(self.to_bytes()))
        else:
            self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            path = os.path.join(self._folder.name, "model.onnx")
            self.save(path, external_data=True)
            self._session = cast("Session", initializer(path))

    def release(self) -> None:
        """Frees the session of ONNX Runtime, if there is one."""
        if self._session is not None:
            self._session, self._session_weights = None, ()
            gc.collect()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def verify(
        self,
        model: Model,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        *,
        second_size: bool = True,
    ) -> Verification:
        """Compares the model with the exported module: see ``pt2onnx.verify``."""
        from .._verify import verify

        return verify(self, model, args, kwargs, second_size=second_size)

    # Helpers.

    def _set_native(self, native: Program) -> None:
        self._native, self._backend = native, NativeBackend(native)

    def _edit(self, change: Callable[[Program], object], native: Program) -> None:
        """Changes a program, and all that are made of it later."""
        with native_errors():
            change(native)
        self._edits.append(change)

    def _forget_origin_of_changes(self) -> None:
        """A model that was changed through ``model`` is not what the program would give again."""
        if self._remake is not None and not self._backend.is_unchanged(self._native):
            self._remake = None

    @property
    def _is_dynamic(self) -> bool:
        """Whether an input has a dynamic dimension."""
        sizes = (dim for _, _, dims in self._native.inputs() for dim in dims or ())
        return any(dim and not dim.isdigit() for dim in sizes)

    def _inputs(self, args: Args, kwargs: Kwargs) -> dict[str, object]:
        """The arguments as inputs of the model, by name."""
        names = self.input_names
        plain = not args or (not self._dropped and all(hasattr(value, "shape") for value in args))
        named = plain and kwargs and kwargs.keys() <= set(names[len(args) :])
        # A program that knows the keywords knows their order; PyTorch 2.6 mixes up the names of
        # such inputs.
        if named and self._origin.may_name_inputs(kwargs):
            return {**dict(zip(names, args, strict=False)), **kwargs}
        values = self._origin.flatten(args, kwargs)
        values = [value for at, value in enumerate(values) if at not in self._dropped]
        if any(hasattr(value, "shape") for value in values[len(names) :]):
            takes = f"{len(names)} inputs ({', '.join(names)})"
            raise TypeError(f"the model takes {takes}, but {len(values)} are given")
        return dict(zip(names, values, strict=False))

    def _name_output_axes(self, names: list[tuple[str, int, str]]) -> None:
        """Names axes of outputs: output, axis and name of each. Warns of axes that are static."""
        if names:
            for problem in self._native.name_output_axes(names):
                _errors.warn(problem)
            self._edits.append(lambda program: program.name_output_axes(names))

    def _drop_unused_inputs(self, used: Callable[[int], list[int]]) -> None:
        """Removes the inputs that nothing uses.

        Args:
            used: Positions of inputs that stay, by the number of inputs.
        """
        if not self._native.unused_inputs():
            return
        keep = used(len(self.input_names))
        with native_errors():
            self._dropped = frozenset(self._native.drop_unused_inputs(keep))
        self._edits.append(lambda program: program.drop_unused_inputs(keep))


def _check_mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, not {type(value).__name__}")
