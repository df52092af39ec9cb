"""An ExportedProgram in memory, as Rust takes it: its JSON, and its weights where they are.

This module and ``_capture`` use names of torch that are not public. Each is one that torch 2.6 to 2.15 have.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import dataclasses
import gc
import importlib
import io
import json
import math
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _errors

if TYPE_CHECKING:
    import torch

#: Element types as torch/_export/serde/schema.py numbers them.
_DTYPES = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "complex32": 9,
    "complex64": 10, "complex128": 11, "bool": 12, "bfloat16": 13, "uint16": 28, "float8_e4m3fn": 29, "float8_e5m2": 30,
    "float8_e4m3fnuz": 31, "float8_e5m2fnuz": 32, "float8_e8m0fnu": 33, "uint32": 34, "uint64": 35,
    # Not torch's number, which has none: the reader knows it.
    "float4_e2m1fn_x2": 255,
}  # fmt: skip

#: Name, number of the element type, sizes, strides, offset, number of the storage.
Row = tuple[str, int, list[int], list[int], int, "int | None"]

_LOCK = threading.Lock()


def parts(
    program: torch.export.ExportedProgram, weights: Mapping[str, torch.Tensor] | None = None
) -> tuple[list[bytes], list[Any], list[Row], list[Row]]:
    """The program's JSON, in a list that gives it away, storages, and rows of its state and of its constants; with these weights in
    place of its own.

    Raises OnnxExporterError for a weight of another shape or type."""
    import torch

    if any(is_wrapper(t) for t in (*program.state_dict.values(), *program.constants.values())):
        # Only decompositions tell what tensor subclasses are made of.
        program = program.run_decompositions({})
    program = _without_symbolic_bools(program)
    tensors = Tensors()
    own = dict(program.state_dict)
    for name, weight in (weights or {}).items():
        _errors.check_weight(name, weight, own[name])
    state = tensors.rows({**own, **(weights or {})}.items())
    constants = tensors.rows((n, c) for n, c in program.constants.items() if isinstance(c, torch.Tensor))
    return [program_json(program)], tensors.storages, state, constants


def _without_symbolic_bools(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with tensors for outputs that are computed bools, which torch's serialiser does not know."""
    import torch

    signature = program.graph_signature
    found = {spec.arg.name for spec in signature.output_specs if type(spec.arg).__name__ == "SymBoolArgument"}
    if not found:
        return program
    graph = copy.deepcopy(program.graph)
    output = next(node for node in graph.nodes if node.op == "output")
    tensors: dict[str, str] = {}
    with graph.inserting_before(output):
        for node in [node for node in graph.nodes if node.name in found]:
            made = graph.call_function(torch.ops.aten.scalar_tensor.default, (node,), {"dtype": torch.bool})
            made.meta = {**node.meta, "val": torch.zeros((), dtype=torch.bool)}
            output.replace_input_with(node, made)
            tensors[node.name] = made.name
    argument = torch.export.graph_signature.TensorArgument
    specs = [
        dataclasses.replace(spec, arg=argument(tensors[spec.arg.name])) if spec.arg.name in found else spec
        for spec in signature.output_specs
    ]
    return torch.export.ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=dataclasses.replace(signature, output_specs=specs),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        constants=program.constants,
        verifiers=program.verifiers,
    )


def program_json(program: torch.export.ExportedProgram) -> bytes:
    """What ``torch.export.save`` writes into an archive as the program.

    Its function does three things besides that take most of the time and memory: it copies the program into a canonical form, which is
    then thrown away, it pickles the weights, and it prints the program for a log. They are left out here.
    """
    try:
        import torch

        serde: Any = importlib.import_module("torch._export.serde.serialize")

        # Versions before 2.8 lack some.
        types = {getattr(torch, name): number for name, number in _DTYPES.items() if hasattr(torch, name)}
        changes: dict[str, Any] = {
            "_TORCH_TO_SERIALIZE_DTYPE": {**types, **serde._TORCH_TO_SERIALIZE_DTYPE},
            "canonicalize": lambda *_, **__: None,
            "serialize_torch_artifact": lambda *_, **__: b"",
            "treespec_dumps": _lenient(serde.treespec_dumps),
        }
        serializer = serde.GraphModuleSerializer
        methods: dict[str, Any] = {"serialize_input": _lists(serializer.serialize_input, serde.SerializeError)}
        if hasattr(serializer, "serialize_treespec"):
            methods["serialize_treespec"] = lambda _, spec: changes["treespec_dumps"](spec)
        if hasattr(torch, "sym_sum") and hasattr(serde, "_SYM_OPS"):
            # Sums of three and more sizes, of which torch's serialiser does not know.
            changes["_SYM_OPS"] = {*serde._SYM_OPS, torch.sym_sum}
        if hasattr(serde, "_dataclass_to_dict") and hasattr(serde, "_Union"):
            changes["_dataclass_to_dict"] = lambda value: value
            changes["json"] = _Pieces(_plainly(serde._Union))
        printing = {"print_readable": lambda *_, **__: ""}
        silent = _replaced(torch.fx.GraphModule, printing)
        with _LOCK, _replaced(serde, changes), _replaced(serializer, methods), silent, _without_gc():
            text: bytes = serde.serialize(program).exported_program
        _trim()
        return text
    except (ImportError, AttributeError):
        return _saved_json(program)


def _trim() -> None:
    """Gives memory that is free back to the system, where the C library has a function for it: Rust, which comes next, cannot use what
    Python's allocator keeps."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _plainly(union: type) -> Callable[[Any], Any]:
    """What turns dataclasses into dicts, as torch's ``_dataclass_to_dict`` does, in a third of its time."""
    fields: dict[type, tuple[str, ...]] = {}
    atoms = frozenset((str, int, bool, bytes, type(None)))

    def plain(value: Any) -> Any:
        kind = type(value)
        if kind in atoms:
            return value
        if kind is list:
            return [plain(item) for item in value]
        if kind is float:
            return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if isinstance(value, union):
            return {value.type: plain(value.value)}  # type: ignore[attr-defined]
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, tuple):
            return tuple(plain(item) for item in value)
        names = fields.get(kind)
        if names is None:
            names = tuple(f.name for f in dataclasses.fields(value)) if dataclasses.is_dataclass(value) else ()
            fields[kind] = names
        return {name: plain(getattr(value, name)) for name in names} if names else value

    return plain


class _Pieces:
    """The module ``json``, whose ``dumps`` turns a program into text node by node: as dicts, all nodes are larger than as text."""

    def __init__(self, plain: Callable[[Any], Any]) -> None:
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        return getattr(json, name)

    def dumps(self, value: Any, **options: Any) -> str:
        """As ``json.dumps``, also for dataclasses."""
        if not dataclasses.is_dataclass(value):
            return json.dumps(value, **options)
        encoder = options.pop("cls", json.JSONEncoder)(**options)
        return "".join(self._pieces(value, encoder.encode, 4))

    def _pieces(self, value: Any, encode: Callable[[Any], str], levels: int) -> Iterator[str]:
        """The text of a value. The program, its graph and their lists are ``levels`` levels."""
        if levels and type(value) is list and value:
            for at, item in enumerate(value):
                yield "," if at else "["
                yield from self._pieces(item, encode, levels - 1)
            yield "]"
            return
        entries = value
        if levels and dataclasses.is_dataclass(value) and not hasattr(value, "type"):
            entries = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if levels and type(entries) is dict and entries:
            for at, (key, item) in enumerate(entries.items()):
                yield f"{',' if at else '{'}{encode(key)}:"
                yield from self._pieces(item, encode, levels - 1)
            yield "}"
        else:
            yield encode(self._plain(value))


def _saved_json(program: torch.export.ExportedProgram) -> bytes:
    """The same by public functions only: it writes a whole archive to memory."""
    import torch

    archive = io.BytesIO()
    torch.export.save(program, archive)
    with zipfile.ZipFile(archive) as records:
        names = [n for n in records.namelist() if n.endswith(("models/model.json", "serialized_exported_program.json"))]
        return records.read(names[0])


@contextlib.contextmanager
def _replaced(holder: Any, changes: dict[str, Any]) -> Iterator[None]:
    """Attributes of a module or class, replaced for a while."""
    old = {name: getattr(holder, name) for name in changes}
    try:
        for name, value in changes.items():
            setattr(holder, name, value)
        yield
    finally:
        for name, value in old.items():
            setattr(holder, name, value)


@contextlib.contextmanager
def _without_gc() -> Iterator[None]:
    """Serialising makes many objects and no garbage: looking for it would take half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _lenient(dumps: Any) -> Any:
    """``treespec_dumps`` for containers of any class, also those that are not registered under a name for serialisation."""

    def lenient(spec: Any, protocol: int | None = None) -> str:
        try:
            return str(dumps(spec) if protocol is None else dumps(spec, protocol))
        except (NotImplementedError, TypeError):
            return json.dumps([1, _tree(spec)])

    return lenient


def _lists(serialize_input: Any, refused: type[Exception]) -> Any:
    """``serialize_input`` for lists of lists of ints, which versions before 2.14 do not know, and of computed sizes, which none does: they
    become -1. Only ``torch.onnx.ops.symbolic_multi_out`` has such, and what reads the program takes the recorded sizes."""
    import torch

    def lists(serializer: Any, arg: Any, *rest: Any) -> Any:
        try:
            return serialize_input(serializer, arg, *rest)
        except refused:
            items = list(map(list, arg)) if isinstance(arg, (list, tuple)) and all(isinstance(i, (list, tuple)) for i in arg) else None
            if items is None or not all(type(i) is int or isinstance(i, torch.fx.Node) for item in items for i in item):
                raise
            if not items and "List[List[int]]" not in map(str, rest):
                raise
            return {"as_int_lists": [[i if type(i) is int else -1 for i in item] for item in items]}

    return lists


def _tree(spec: Any) -> dict[str, Any]:
    """A TreeSpec as ``treespec_dumps`` writes it."""
    kind, context = spec.type, getattr(spec, "context", None)
    if kind is None:
        return {"type": None, "context": None, "children_spec": []}
    try:
        text = json.dumps(context)
    except (TypeError, ValueError):
        text = json.dumps(repr(context))
    return {
        "type": f"{kind.__module__}.{kind.__qualname__}",
        "context": text,
        "children_spec": [_tree(child) for child in children(spec)],
    }


def children(spec: Any) -> list[Any]:
    """The children of a TreeSpec: a method in newer versions, an attribute in older ones."""
    return list(spec.children() if hasattr(spec, "children") else spec.children_specs)


def is_wrapper(tensor: Any) -> bool:
    """Whether it is a tensor of a class that holds other tensors."""
    import torch
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    return isinstance(tensor, torch.Tensor) and is_traceable_wrapper_subclass(tensor)


class Tensors:
    """Rows for tensors, and the storages that they are views of."""

    def __init__(self) -> None:
        #: Address, number of bytes and owner of each storage.
        self.storages: list[tuple[int, int, Any]] = []
        self._numbers: dict[Any, int] = {}

    def rows(self, tensors: Iterable[tuple[str, torch.Tensor]]) -> list[Row]:
        """A row for each tensor. Raises TypeError for tensors without memory of a known kind."""
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        # Weights are real also while the caller is in a fake mode.
        with unset_fake_temporarily():
            return [self._row(name, tensor) for name, tensor in tensors]

    def _row(self, name: str, tensor: torch.Tensor) -> Row:
        import torch
        from torch._subclasses.fake_tensor import FakeTensor

        dtype = _DTYPES.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is None:
            raise TypeError(f"weight {name}: ONNX models from pt2onnx cannot have elements of type {tensor.dtype}")
        sizes = list(tensor.shape)
        pairs = str(tensor.dtype) == "torch.float4_e2m1fn_x2" and bool(sizes)
        if pairs:
            sizes[-1] *= 2
        if isinstance(tensor, FakeTensor) or tensor.device.type == "meta":
            return name, dtype, sizes, [], 0, None
        tensor = tensor.detach()
        if isinstance(tensor, FakeTensor):
            # The wrapper of a functorch transform that is over.
            return name, dtype, sizes, [], 0, None
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        if type(tensor) is not torch.Tensor:
            raise TypeError(f"weight {name}: a {type(tensor).__name__} cannot be exported; give a plain torch.Tensor")
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        tensor = tensor.contiguous() if pairs else tensor
        number = self._storage(tensor.untyped_storage())
        strides, offset = list(tensor.stride()), int(tensor.storage_offset())
        if pairs:
            strides, offset = [*(2 * stride for stride in strides[:-1]), 1], 2 * offset
        return name, dtype, sizes, strides, offset, number

    def _storage(self, storage: torch.UntypedStorage) -> int:
        key = str(storage.device), storage.data_ptr(), storage.nbytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.storages)
            host: Any = storage if storage.device.type == "cpu" else storage.cpu()  # type: ignore[no-untyped-call]
            self.storages.append((host.data_ptr(), host.nbytes(), (host, storage)))
        return self._numbers[key]
