"""A model that was made or read: ``pt2onnx.ONNXProgram``, with all that ``torch.onnx.ONNXProgram`` has."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _errors, _options, _shapes
from ._pt2onnx import Failure, Program, open_parts

if TYPE_CHECKING:
    import onnx
    import onnx_ir
    import onnxruntime
    import torch

    from ._script import Script
    from ._verify import Verification

#: Weights of as many bytes stand beside the model where it is handed over in memory.
_LARGE = 1024

#: Names within the expression of a dimension.
_WORD = re.compile(r"[^\W\d]\w*")

#: A model of this many bytes is no longer one message of protobuf.
_TOO_LARGE = 1536 << 20


class ONNXProgram:
    """An ONNX model, the program that it was made from, and the report about it.

    ``exported_program`` is the ``torch.export.ExportedProgram``, or None for a model that was made from a file. ``verification`` is the
    result of ``export(..., verify=True)``. Weights are views of the memory of the PyTorch module or of the archive, which must not be
    resized while this object lives; changes of their values are seen.
    """

    def __init__(self, native: Program, exported_program: torch.export.ExportedProgram | None = None) -> None:
        self._native = native
        self._ir: onnx_ir.Model | None = None
        self._session: Any = None
        self._held: Sequence[Any] = ()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._capture_strategy: str | None = None
        self._relations: Sequence[Any] = ()
        # What it was made from, if that was TorchScript; positions of inputs that the model does not have.
        self._script: Script | None = None
        self._dropped: frozenset[int] = frozenset()
        # Translates the program again with other weights; those given so far; what was done to the model since.
        self._remake: Callable[[Mapping[str, Any]], Program] | None = None
        self._weights: dict[str, Any] = {}
        self._edits: list[Callable[[Program], None]] = []
        self.exported_program = exported_program
        self.verification: Verification | None = None

    def __repr__(self) -> str:
        return f"ONNXProgram(\n{self.to_text()}\n)"

    # The model.

    @property
    def model(self) -> onnx_ir.Model:
        """The model as onnx_ir has it, made when it is first asked for. From then on it is the model: what is changed in it, is
        changed in what is saved and run. Weights are not copied."""
        if self._ir is None:
            self._ir = _to_ir(self._native)
        return self._ir

    @model.setter
    def model(self, model: onnx_ir.Model) -> None:
        self.release()
        self._ir = model

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as a protobuf message, with all weights. Raises OnnxExporterError above 2 GiB."""
        import onnx

        if self._ir is not None:
            import onnx_ir

            return onnx_ir.serde.serialize_model(self._ir)
        made: onnx.ModelProto = onnx.ModelProto.FromString(self.to_bytes())
        return made

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        if self._ir is not None:
            return [value.name or "" for value in self._ir.graph.inputs]
        return [name for name, _, _ in self._native.inputs()]

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        if self._ir is not None:
            return [value.name or "" for value in self._ir.graph.outputs]
        return [name for name, _, _ in self._native.outputs()]

    @property
    def opset_version(self) -> int:
        """The opset of ONNX's own operators."""
        if self._ir is not None:
            return self._ir.opset_imports[""]
        return self._native.opset()

    def to_text(self) -> str:
        """The model in ONNX's textual syntax; large weights are shortened."""
        return self._current().to_text()

    def to_bytes(self) -> bytes:
        """The model as the bytes of one file, with all weights. Raises OnnxExporterError above 2 GiB."""
        if self._ir is not None:
            return bytes(self.model_proto.SerializeToString())
        with _raised():
            return self._native.to_bytes()

    # What there is to say about it.

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
        native = self._current()
        self._edits.append(lambda program: program.optimize(_options.as_json({})))
        with _raised():
            self._edits[-1](native)
        self._native, self._ir = native, None

    def rename_axes(self, rename_mapping: Mapping[Any, str]) -> None:
        """Renames dynamic dimensions: names or ``onnx_ir.SymbolicDim`` to names. Warns of names that the model does not have."""
        _check_mapping("rename_mapping", rename_mapping)
        self.release()
        names = {old if isinstance(old, str) else str(old.value): new for old, new in rename_mapping.items()}
        if self._ir is not None:
            _warn_of_missing(names, _rename_ir(self._ir, names))
            return
        ends = [dims for _, _, dims in (*self._native.inputs(), *self._native.outputs())]
        known = {word for dims in ends for dim in dims or () for word in _WORD.findall(dim)}
        _warn_of_missing(names, known)
        pairs = [(old, new) for old, new in names.items() if old in known]
        self._edits.append(lambda program: program.rename_axes(pairs))
        with _raised():
            self._edits[-1](self._native)

    def apply_weights(self, state_dict: Mapping[str, torch.Tensor]) -> None:
        """Replaces weights, or gives values to those that have none. Warns of names that the model does not have.

        A program that was exported is translated again, so that what was computed from old weights is computed from the new ones.
        Raises OnnxExporterError for weights of other shapes or types; for other models also where a weight has a value already.
        """
        from ._handover import Tensors

        _check_mapping("state_dict", state_dict)
        for name, weight in state_dict.items():
            if not hasattr(weight, "shape"):
                raise TypeError(f"weight {name}: it must be a torch.Tensor, not {type(weight).__name__}")
        self.release()
        if self._remake is not None and self.exported_program is not None and self._is_made():
            known = {name: weight for name, weight in state_dict.items() if name in self.exported_program.state_dict}
            unused = [name for name in state_dict if name not in known]
            weights = {**self._weights, **known}
            native = self._remake(weights)
            for edit in self._edits:
                edit(native)
            self._native, self._weights, self._ir = native, weights, None
        else:
            tensors = Tensors()
            rows = tensors.rows(state_dict.items())
            native = self._current()
            with _raised():
                unused = native.apply_weights(tensors.storages, rows)
            self._native, self._ir = native, None
        for name in unused:
            _errors.warn(f"Weight '{name}' not found in the model. Skipped applying.")

    # Files.

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
        **options: Any,
    ) -> None:
        """Writes the model to a file, and its weights to ``DESTINATION.data`` if ``external_data`` is true or they do not fit.

        Files are complete or not there at all; existing ones are replaced at the end. Without ``include_initializers``, weights are
        left out. With ``keep_initializers_as_inputs``, they are inputs as well. More options are those of saving in docs/options.md
        (``weights``, ``weights_file``, ``shard_size``, ``external_threshold``, ``alignment``).

        Raises OnnxExporterError if a file cannot be written.
        """
        _options.refuse_unknown(options, _options.SAVING)
        path = os.fspath(destination)
        if self._ir is not None and not options:
            _save_ir(self._ir, path, include_initializers, keep_initializers_as_inputs, bool(external_data))
            return
        if not include_initializers:
            options["weights"] = "none"
        elif external_data is not None:
            options.setdefault("weights", "external" if external_data else "auto")
        native = self._current()
        with _raised():
            if options or keep_initializers_as_inputs:
                options["keep_initializers_as_inputs"] = keep_initializers_as_inputs
                native.save(path, _options.as_json(options))
            else:
                native.save(path)

    # Running it.

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model in ONNX Runtime with the arguments of the module. Returns torch's tensors if it is given any, else arrays."""
        from . import _run

        if self._session is None:
            self.initialize_inference_session()
        return tuple(_run.run(self._session, self._inputs(args, kwargs)))

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model in onnx's reference implementation: slow, and without kernels of a runtime."""
        import onnx.reference

        from . import _run

        inputs = self._inputs(args, kwargs)
        evaluator = onnx.reference.ReferenceEvaluator(self.model_proto)
        results = evaluator.run(None, {name: _run.to_ort(value).numpy() for name, value in inputs.items()})
        if any(_run._is_tensor(value) for value in inputs.values()):
            import torch

            return tuple(torch.from_numpy(result) for result in results)
        return tuple(results)

    def compute_values(self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        """Runs the model, and returns these values of it. Raises ValueError if it does not have them."""
        from . import _run

        graph = self.model.graph
        values = {value.name: value for value in (*graph.inputs, *graph.initializers.values())}
        values |= {value.name: value for node in graph for value in node.outputs if value.name}
        missing = [name for name in value_names if name not in values]
        if missing:
            raise ValueError(f"Value '{missing[0]}' not found in the model. Please provide a valid value name.")
        outputs = list(graph.outputs)
        try:
            graph.outputs.clear()
            graph.outputs.extend(values[name] for name in value_names)
            proto, weights = _ir_parts(self.model)
        finally:
            graph.outputs.clear()
            graph.outputs.extend(outputs)
        session = _run.session(proto, weights)
        return tuple(_run.run(session, self._inputs(tuple(args), dict(kwargs or {}))))

    def initialize_inference_session(self, initializer: Callable[[str | bytes], onnxruntime.InferenceSession] | None = None) -> None:
        """Makes the session of ONNX Runtime that calls use. Without ``initializer``, weights are not copied and no file is written; it
        gets the bytes of the model, or the path of a temporary file if it is too large for that."""
        from . import _run

        self.release()
        if initializer is None:
            if self._ir is not None:
                model, self._held = _ir_parts(self._ir)
            else:
                with _raised():
                    model, weights = self._native.to_parts(_LARGE)
                self._held = [buffer for _, _, _, buffer in weights]
            self._session = _run.session(model, self._held)
        elif self._bytes() <= _TOO_LARGE:
            self._session = initializer(self.to_bytes())
        else:
            self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            path = os.path.join(self._folder.name, "model.onnx")
            self.save(path, external_data=True)
            self._session = initializer(path)

    def release(self) -> None:
        """Frees the session of ONNX Runtime, if there is one."""
        if self._session is not None:
            self._session, self._held = None, ()
            gc.collect()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def verify(self, model: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None, **options: Any) -> Verification:
        """Compares the model with what was exported: see ``pt2onnx.verify``."""
        from ._verify import verify

        return verify(self, model, args, kwargs, **options)

    # Helpers.

    def _current(self) -> Program:
        """The model in Rust's memory, with what was changed in ``model``."""
        if self._ir is None:
            return self._native
        import numpy as np

        proto, weights = _ir_parts(self._ir)
        views = [np.frombuffer(weight, np.uint8) for weight in weights]
        with _raised():
            return open_parts(proto, [(f"pt2onnx:{i}", (v.ctypes.data, v.nbytes, v)) for i, v in enumerate(views)])

    def _is_made(self) -> bool:
        """Whether the model is what Rust made: ``model`` was not asked for, or not changed."""
        return self._ir is None or _ir_parts(self._ir)[0] == _ir_parts(_to_ir(self._native))[0]

    def _bytes(self) -> int:
        if self._ir is not None:
            values = self._ir.graph.initializers.values()
            return sum(value.const_value.nbytes for value in values if value.const_value is not None)
        bytes: int = self.report["model"]["weights"]["bytes"]
        return bytes

    def _inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as inputs of the model, by name."""
        names = self.input_names
        plain = not args or (not self._dropped and all(hasattr(value, "shape") for value in args))
        if self._script is None and plain and kwargs and kwargs.keys() <= set(names[len(args) :]):
            # Where the program knows the keywords, it knows their order; PyTorch 2.6 mixes up the names of such inputs.
            if self.exported_program is None or set(keyword_order(self.exported_program.call_spec.in_spec)) != set(kwargs):
                return {**dict(zip(names, args)), **kwargs}
        if self._script is not None:
            values = self._script.inputs(args, kwargs)
        else:
            values = _flat_inputs(self.exported_program, args, dict(kwargs), len(names) + len(self._dropped))
        values = [value for at, value in enumerate(values) if at not in self._dropped]
        if any(hasattr(value, "shape") for value in values[len(names) :]):
            raise TypeError(f"the model takes {len(names)} inputs ({', '.join(names)}), but {len(values)} are given")
        return dict(zip(names, values))

    def _drop_unused_inputs(self, kept: Callable[[int], list[int]]) -> None:
        """Removes the inputs that nothing uses, except for those at some positions, which depend on the number of inputs."""
        if not self._native.unused_inputs():
            return
        keep = kept(len(self.input_names))
        with _raised():
            self._dropped = frozenset(self._native.drop_unused_inputs(keep))
        self._edits.append(lambda program: _ignore(program.drop_unused_inputs(keep)))


def _ignore(_: Any) -> None:
    """Takes a result that is of no use."""


def _check_mapping(name: str, value: Any) -> None:
    """Raises TypeError if an argument is no mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, not {type(value).__name__}")


def _flat_inputs(program: torch.export.ExportedProgram | None, args: tuple[Any, ...], kwargs: dict[str, Any], count: int) -> list[Any]:
    """The arguments in the order of the model's inputs. Numbers that were fixed at export, and None, are no inputs."""
    if program is None:
        given = [*args, *kwargs.values()]
        if any(isinstance(value, (dict, list, tuple)) for value in given):
            from torch.utils import _pytree

            given = _pytree.tree_leaves(given)
        return [value for value in given if value is not None]
    from torch.utils import _pytree

    order = program.call_spec.in_spec
    if kwargs and order is not None:
        names = keyword_order(order)
        if set(names) == set(kwargs):
            kwargs = {name: kwargs[name] for name in names}
    leaves = _pytree.tree_leaves((args, kwargs))
    inputs = _shapes.inputs(program)
    if len(inputs) == len(leaves):
        leaves = [leaf for name, leaf in zip(inputs, leaves) if name is not None]
    return [leaf for leaf in leaves if leaf is not None]


def keyword_order(spec: Any) -> list[str]:
    """The keywords of a program, in its order."""
    from ._handover import children

    parts = children(spec)
    context = getattr(parts[1], "context", None) if len(parts) == 2 else None
    return list(context) if isinstance(context, (list, tuple)) else []


@contextlib.contextmanager
def _raised() -> Iterator[None]:
    """Errors of Rust as exceptions of this package."""
    try:
        yield
    except Failure as failure:
        raise _errors.of(failure) from None


def _to_ir(native: Program) -> onnx_ir.Model:
    """A model of onnx_ir whose weights are views of Rust's memory."""
    import numpy as np
    import onnx
    import onnx_ir as ir

    with _raised():
        proto, weights = native.to_parts(_LARGE)
    model = ir.serde.deserialize_model(onnx.ModelProto.FromString(proto))
    for name, code, sizes, buffer in weights:
        dtype, shape = ir.DataType(code), ir.Shape(sizes)
        tensor: Any
        if dtype.bitwidth < 8:
            tensor = ir.PackedTensor(np.frombuffer(memoryview(buffer), np.uint8), dtype, shape=shape, name=name)
        else:
            array = np.frombuffer(memoryview(buffer), dtype.numpy()).reshape(sizes)
            tensor = ir.Tensor(array, dtype=dtype, shape=shape, name=name)
        model.graph.initializers[name].const_value = tensor
    return model


def _warn_of_missing(names: Mapping[str, str], known: set[str]) -> None:
    for old in names:
        if old not in known:
            _errors.warn(f"Dimension '{old}' not found in the model. Skipped renaming.")


def _rename_ir(model: onnx_ir.Model, names: Mapping[str, str]) -> set[str]:
    """Renames dimensions of a model of onnx_ir, also where they stand in expressions. Returns the names that it had."""
    import onnx_ir as ir

    known: set[str] = set()
    graphs = (model.graph, *(function.graph for function in model.functions.values()))
    for graph in graphs:
        nodes = ir.traversal.RecursiveGraphIterator(graph)
        values = [*graph.inputs, *graph.initializers.values(), *(value for node in nodes for value in node.outputs)]
        for value in values:
            if value.shape is not None:
                known.update(word for dim in value.shape for word in _WORD.findall(str(getattr(dim, "value", ""))))
                dims = [_renamed(dim, names) for dim in value.shape]
                # A shape that was read is frozen.
                value.shape = ir.Shape(dims, denotations=[value.shape.get_denotation(i) for i in range(len(dims))])
    return known


def _renamed(dim: Any, names: Mapping[str, str]) -> Any:
    """A dimension of onnx_ir, renamed."""
    old = getattr(dim, "value", None)
    if not isinstance(old, str):
        return dim
    return names.get(old) or _WORD.sub(lambda word: names.get(word[0], word[0]), old)


def _ir_parts(model: onnx_ir.Model) -> tuple[bytes, list[Any]]:
    """The bytes of a model of onnx_ir without its large weights, and these. They are external data ``pt2onnx:0``, ``pt2onnx:1``, ..."""
    import numpy as np
    import onnx_ir as ir

    weights: list[Any] = []
    old: list[tuple[Any, Any]] = []
    try:
        for value in model.graph.initializers.values():
            tensor = value.const_value
            if tensor is None or tensor.nbytes < _LARGE or tensor.dtype == ir.DataType.STRING:
                continue
            if tensor.dtype.bitwidth < 8:
                weights.append(tensor.tobytes())
            else:
                array = np.ascontiguousarray(tensor.numpy())
                weights.append(array.reshape(-1).view(np.uint8))
            old.append((value, tensor))
            value.const_value = ir.ExternalTensor(
                f"pt2onnx:{len(weights) - 1}", 0, tensor.nbytes, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=value.name or ""
            )
        return ir.serde.serialize_model(model).SerializeToString(), weights
    finally:
        for value, tensor in old:
            value.const_value = tensor


def _save_ir(model: onnx_ir.Model, path: str, include: bool, keep: bool, external: bool) -> None:
    """Writes a model of onnx_ir as it is: to a folder beside the destination, from which the files are moved when they are complete."""
    import onnx_ir as ir

    given, path = path, os.path.realpath(path)
    data = f"{os.path.basename(path)}.data"
    graph = model.graph
    initializers, inputs = dict(graph.initializers), list(graph.inputs)
    if keep:
        graph.inputs.extend(initializers.values())
    if not include:
        graph.initializers.clear()
    try:
        size = sum(v.const_value.nbytes for v in graph.initializers.values() if v.const_value is not None)
        if os.path.exists(path) and not os.path.isfile(path):
            # A device or a pipe is written to. A folder cannot be.
            with open(path, "wb") as stream:
                stream.write(ir.serde.serialize_model(model).SerializeToString())
        else:
            _replace(path, lambda made: ir.save(model, made, external_data=data if external or size > _TOO_LARGE else None))
    except OSError as error:
        failure = _errors.made(_errors.OnnxExporterError, f"{given}: cannot write this: {error}")
        failure.kind = "output"
        raise failure from error
    finally:
        graph.initializers.update(initializers)
        if keep:
            graph.inputs.clear()
            graph.inputs.extend(inputs)


def _replace(path: str, write: Callable[[str], None]) -> None:
    """Writes a file and those beside it, which replace existing ones when all are complete."""
    folder, name = os.path.split(path)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".pt2onnx-") as temporary:
        write(os.path.join(temporary, name))
        for file in sorted(os.listdir(temporary), key=lambda file: file == name):
            made, target = os.path.join(temporary, file), os.path.join(folder, file)
            if os.path.exists(target):
                if not os.access(target, os.W_OK):
                    raise PermissionError(errno.EACCES, "the file is read-only", target)
                shutil.copymode(target, made)
            with open(made, "rb+") as written:
                os.fsync(written.fileno())
            os.replace(made, target)
