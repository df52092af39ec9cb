"""An ExportedProgram in memory, as Rust takes it: its JSON, and its weights where they are.

This module and ``_capture`` use names of torch that are not public. Each is one that torch 2.6 to
2.15 have.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import ctypes
import dataclasses
import importlib
import io
import json
import math
import sys
import types
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from . import _errors, _garbage, _mapped, _pytree
from ._capture import _patches
from ._types import class_of, is_items, is_plain_list

if TYPE_CHECKING:
    from ._pt2onnx import Lent, Row

#: Element types as torch/_export/serde/schema.py numbers them.
_DTYPES = {
    "uint8": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "complex32": 9,
    "complex64": 10,
    "complex128": 11,
    "bool": 12,
    "bfloat16": 13,
    "uint16": 28,
    "float8_e4m3fn": 29,
    "float8_e5m2": 30,
    "float8_e4m3fnuz": 31,
    "float8_e5m2fnuz": 32,
    "float8_e8m0fnu": 33,
    "uint32": 34,
    "uint64": 35,
    # Not torch's number, which has none: the reader knows it.
    "float4_e2m1fn_x2": 255,
}


def parts(
    program: torch.export.ExportedProgram, weights: Mapping[str, torch.Tensor] | None = None
) -> tuple[list[bytes], list[Lent], list[Row], list[Row]]:
    """A program as Rust takes it.

    Args:
        program: The program.
        weights: Weights that replace its own.

    Returns:
        The program's JSON, in a list from which Rust takes it; storages; rows of its state and of
        its constants.

    Raises:
        OnnxExporterError: A weight has another shape or type.
        TypeError: A weight has no memory of a known kind.
    """
    if any(is_wrapper(t) for t in (*program.state_dict.values(), *program.constants.values())):
        # Decompositions replace tensor subclasses by the tensors in them.
        program = _pytree.decomposed(program)
    program = _without_symbolic_bools(program)
    tensors = Tensors()
    own = dict(program.state_dict)
    for name, weight in (weights or {}).items():
        _errors.check_weight(name, weight, own[name])
    state = tensors.rows({**own, **(weights or {})}.items())
    constants = tensors.rows(
        (n, c) for n, c in program.constants.items() if isinstance(c, torch.Tensor)
    )
    return [program_json(program)], tensors.storages, state, constants


def _without_symbolic_bools(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with tensors for outputs that are computed bools, which torch's serialiser does
    not know."""
    signature = program.graph_signature
    found = {
        spec.arg.name
        for spec in signature.output_specs
        if type(spec.arg).__name__ == "SymBoolArgument"
    }
    if not found:
        return program
    graph = copy.deepcopy(program.graph)
    output = next(node for node in graph.nodes if node.op == "output")
    tensors: dict[str, str] = {}
    with graph.inserting_before(output):
        for node in [node for node in graph.nodes if node.name in found]:
            op = torch.ops.aten.scalar_tensor.default
            made = graph.call_function(op, (node,), {"dtype": torch.bool})
            made.meta = {**node.meta, "val": torch.zeros((), dtype=torch.bool)}
            output.replace_input_with(node, made)
            tensors[node.name] = made.name
    argument = torch.export.graph_signature.TensorArgument
    specs = [
        dataclasses.replace(spec, arg=argument(tensors[spec.arg.name]))
        if spec.arg.name in found
        else spec
        for spec in signature.output_specs
    ]
    return torch.export.ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=dataclasses.replace(signature, output_specs=specs),
        state_dict=program.state_dict,
        range_constraints=_pytree.range_constraints(program),
        module_call_graph=program.module_call_graph,
        constants=program.constants,
        verifiers=program.verifiers,
    )


def program_json(program: torch.export.ExportedProgram) -> bytes:
    """The program as ``torch.export.save`` writes it into an archive.

    torch's function does three things besides that take most of the time and memory: it copies the
    program into a canonical form, which is then thrown away, it pickles the weights, and it prints
    the program for a log. ``_patches`` leaves them out.
    """
    try:
        serde = importlib.import_module("torch._export.serde.serialize")
        dumps = _any_container(serde.treespec_dumps)
        # Versions before 2.8 lack some.
        codes = {
            getattr(torch, name): code for name, code in _DTYPES.items() if hasattr(torch, name)
        }
        make: dict[str, Callable[[Any], object]] = {
            "_TORCH_TO_SERIALIZE_DTYPE": lambda old: {**codes, **old},
            "canonicalize": lambda _: _returning(None),
            "serialize_torch_artifact": lambda _: _returning(b""),
            "treespec_dumps": lambda _: dumps,
            "serialize_input": lambda old: _with_int_lists(
                _without_inductor(old), serde.SerializeError
            ),
            "print_readable": lambda _: _returning(""),
        }
        if hasattr(serde.GraphModuleSerializer, "serialize_treespec"):
            make["serialize_treespec"] = lambda _: _method(dumps)
        if hasattr(torch, "sym_sum") and hasattr(serde, "_SYM_OPS"):
            make["_SYM_OPS"] = lambda old: {
                *old,
                torch.sym_sum,
                math.ceil,
                math.floor,
                round,
                math.sqrt,
            }
        if hasattr(serde, "_dataclass_to_dict") and hasattr(serde, "_Union"):
            make["_dataclass_to_dict"] = lambda _: _identity
            make["json"] = lambda _: _Json(serde._Union)
            make["create"] = lambda _: classmethod(_union)
        with _patches.LOCK, _patches.applied("serialize", make), _garbage.not_collected():
            text: bytes = serde.serialize(program).exported_program
        _trim()
        return text
    except (ImportError, AttributeError):
        return _saved_json(program)


def _returning(value: object) -> Callable[..., object]:
    """A function of any arguments that returns a constant."""

    def constant(*_: object, **__: object) -> object:
        return value

    return constant


def _method(function: Callable[..., object]) -> Callable[..., object]:
    """A function as a method."""

    def method(_: object, *args: object) -> object:
        return function(*args)

    return method


def _identity(value: object) -> object:
    return value


def _union(kind: type[Any], /, **field: object) -> object:
    """A union with one field. torch's ``create`` goes through all fields of the class twice."""
    union = object.__new__(kind)
    (name,) = field
    object.__getattribute__(union, "__dict__").update(field, _type=name)
    return union


def _trim() -> None:
    """Returns free memory to the system, where the C library has a function for it: Rust, which
    comes next, cannot use the memory that Python's allocator keeps."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class _Json:
    """The module ``json`` for programs: ``dumps`` takes dataclasses one by one. torch's
    ``_dataclass_to_dict`` makes dicts of all nodes first, which are larger than the text.

    Args:
        union: torch's class of dataclasses with one field.
    """

    def __init__(self, union: type[Any]) -> None:
        self._union = union
        self._fields: dict[type, list[str]] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(json, name)

    def dumps(self, value: object, **options: Any) -> str:
        """As ``json.dumps``, also for dataclasses."""
        encoder: json.JSONEncoder = options.pop("cls", json.JSONEncoder)()

        def opened(value: object) -> object:
            found = self._opened(value)
            return encoder.default(value) if found is None else found

        return json.dumps(value, default=opened, **options)

    def _opened(self, value: object) -> dict[str, object] | None:
        """The fields of a dataclass that are set; None for other values."""
        if isinstance(value, self._union):
            # The getter of the class looks at the names of all fields.
            own: dict[str, Any] = object.__getattribute__(value, "__dict__")
            name = own["_type"]
            return {name: _finite(own[name])}
        kind = class_of(value)
        if kind not in self._fields:
            if not dataclasses.is_dataclass(kind):
                return None
            self._fields[kind] = [field.name for field in dataclasses.fields(kind)]
        return {name: _finite(getattr(value, name)) for name in self._fields[kind]}


def _finite(value: object) -> object:
    """A value with words for the numbers that JSON does not know, as torch writes them."""
    if is_plain_list(value) and value and type(value[0]) in (float, list):
        return [_finite(item) for item in value]
    if type(value) is not float or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _saved_json(program: torch.export.ExportedProgram) -> bytes:
    """The same by public functions only, which write a whole archive to memory."""
    archive = io.BytesIO()
    torch.export.save(program, archive)
    with zipfile.ZipFile(archive) as records:
        ends = ("models/model.json", "serialized_exported_program.json")
        return records.read(next(name for name in records.namelist() if name.endswith(ends)))


def _any_container(dumps: Callable[..., object]) -> Callable[..., str]:
    """``treespec_dumps`` for containers of any class, also those that are not registered under a
    name for serialisation."""

    def any_container(spec: _pytree.Spec, protocol: int | None = None) -> str:
        try:
            return str(dumps(spec) if protocol is None else dumps(spec, protocol))
        except (NotImplementedError, TypeError):
            return json.dumps([1, _tree(spec)])

    return any_container


def _with_int_lists(
    serialize_input: Callable[..., object], refused: type[Exception]
) -> Callable[..., object]:
    """``serialize_input`` for lists of lists of ints, which versions before 2.14 do not know, and
    of computed sizes, which no version does: they become -1.

    Only ``torch.onnx.ops.symbolic_multi_out`` has such, and the reader takes the recorded sizes.
    """

    def with_int_lists(serializer: object, arg: object, *rest: object) -> object:
        try:
            return serialize_input(serializer, arg, *rest)
        except refused:
            items = [list(item) for item in arg if is_items(item)] if is_items(arg) else []
            if not is_items(arg) or len(items) != len(arg):
                raise
            if not all(type(i) is int or isinstance(i, torch.fx.Node) for it in items for i in it):
                raise
            if not items and "List[List[int]]" not in map(str, rest):
                raise
            return {"as_int_lists": [[i if type(i) is int else -1 for i in it] for it in items]}

    return with_int_lists


def _without_inductor(serialize_input: Callable[..., object]) -> Callable[..., object]:
    """``serialize_input`` that does not import ``torch._inductor.ir``, which the first export of a
    process waits for, to compare with three classes which no program to export has."""
    name = "torch._inductor.ir"
    code = getattr(serialize_input, "__code__", None)
    if code is None or name not in code.co_names or name in sys.modules:
        return serialize_input
    classes = types.SimpleNamespace(Buffer=(), ReinterpretView=(), TorchBindObject=())
    inductor = types.SimpleNamespace(_inductor=types.SimpleNamespace(ir=classes))

    def imported(module: str, *rest: Any) -> object:
        return inductor if module == name else builtins.__import__(module, *rest)

    own = {**vars(builtins), "__import__": imported}
    scope = {**vars(sys.modules[serialize_input.__module__]), "__builtins__": own}
    own_function = cast(types.FunctionType, serialize_input)
    return types.FunctionType(
        code, scope, code.co_name, own_function.__defaults__, own_function.__closure__
    )


def _tree(spec: _pytree.Spec) -> dict[str, object]:
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
        "children_spec": [_tree(child) for child in _pytree.children(spec)],
    }


def is_wrapper(tensor: object) -> TypeGuard[torch.Tensor]:
    """Whether it is a tensor of a class that holds other tensors."""
    return isinstance(tensor, torch.Tensor) and is_traceable_wrapper_subclass(tensor)


class Tensors:
    """Rows for tensors, and the storages that they are views of."""

    def __init__(self) -> None:
        #: Address, number of bytes, owner and place in a file of each storage.
        self.storages: list[Lent] = []
        self._numbers: dict[tuple[str, int, int], int] = {}

    def rows(self, tensors: Iterable[tuple[str, torch.Tensor]]) -> list[Row]:
        """A row for each tensor.

        Raises:
            TypeError: A tensor has no memory of a known kind.
        """
        # Weights are real also while the caller is in a fake mode.
        with unset_fake_temporarily():
            return [self._row(name, tensor) for name, tensor in tensors]

    def _row(self, name: str, tensor: torch.Tensor) -> Row:
        dtype = _DTYPES.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is None:
            text = f"ONNX models from pt2onnx cannot have elements of type {tensor.dtype}"
            raise TypeError(f"weight {name}: {text}")
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
            kind = type(tensor).__name__
            text = f"a {kind} cannot be exported; give a plain torch.Tensor"
            raise TypeError(f"weight {name}: {text}")
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
            on_cpu = storage.device.type == "cpu"
            host = storage if on_cpu else storage.cpu()  # type: ignore[no-untyped-call]
            place = _mapped.place(storage) if on_cpu else None
            self.storages.append((host.data_ptr(), host.nbytes(), (host, storage), place))
        return self._numbers[key]
