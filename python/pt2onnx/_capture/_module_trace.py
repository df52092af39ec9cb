"""Traces of modules whose weights stay where they are.

``torch.jit.trace`` makes a ScriptModule of Python for each module, which takes most of its time,
keeps types and graphs in memory until the process ends, and prints and packs code. A
``ModuleTrace`` is one graph, whose first inputs are the tensors of the module.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from .. import _garbage
from . import _constants, _patches, _size_reads
from ._jit import JitGraph, JitNode
from ._trace_code import Package, TraceCode

if TYPE_CHECKING:
    from .._pt2onnx import Lent

#: Classes of tensors that a ``ModuleTrace`` can hold.
_PLAIN = (torch.Tensor, torch.nn.Parameter)

_C = cast(Any, torch._C)


@dataclasses.dataclass
class ModuleTrace(TraceCode):
    """A trace of a function of a module.

    The first inputs of ``graph`` are the ``tensors`` of the module by path, with their roles; the
    others have the names ``inputs``. ``tied`` are other paths of these tensors with the first ones,
    ``modules`` the path and class of each call of a module, that of the traced module first. The
    scopes of nodes are positions in it.
    """

    graph: JitGraph
    inputs: list[str]
    tensors: dict[str, tuple[str, torch.Tensor]]
    tied: list[tuple[str, str]]
    modules: list[tuple[str, str]]
    #: The graph of what Python read of sizes, in the order of the reads.
    _reads: JitGraph | None = None

    has_reads = True

    def graphs(self) -> Iterator[JitGraph]:
        """Its graph."""
        yield self.graph

    @property
    def inlined_graph(self) -> JitGraph:
        """A copy of its graph."""
        return self.graph.copy()

    def keep_reads(self) -> None:
        """Keeps the graph of ``reads``, from the marks in its graph."""
        graph = self.graph.copy()
        for _ in list(graph.outputs()):
            graph.eraseOutput(0)
        for _, mark in sorted(_size_reads.marks(graph).items()):
            graph.registerOutput(next(iter(mark.inputs())))
        _size_reads.remove_marks(graph)
        # The interpreter returns the last output only.
        graph.makeMultiOutputIntoTuple()
        # Most of the code comes after its last read.
        _C._jit_pass_dce(graph)
        self._reads = graph

    @property
    def read_operators(self) -> int:
        """How many operators ``reads`` runs."""
        return 0 if self._reads is None else sum(1 for _ in self._reads.nodes())

    def reads(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        """The sizes that Python would read for other arguments, if it went the same way."""
        if self._reads is None:
            return ()
        found: Sequence[torch.Tensor] = self._interpreted(self._reads, tensors)
        return found

    def __call__(self, *tensors: torch.Tensor) -> object:
        """Runs the trace."""
        return self._interpreted(self.graph, tensors)

    def _interpreted(self, graph: JitGraph, tensors: Sequence[torch.Tensor]) -> Any:
        own = (tensor for _, tensor in self.tensors.values())
        return _C._jit_interpret_graph(graph, (*own, *tensors))

    def package(self, *, stacks: bool = False) -> Package:
        """The archive, without the storages of tensors.

        Args:
            stacks: Whether it has the Python stacks of nodes.
        """
        storages: dict[str, Lent] = {}
        records: dict[int, str] = {}
        lines: list[str] = []

        def add(kind: str, path: str, tensor: torch.Tensor) -> None:
            tensor = tensor.detach().resolve_conj().resolve_neg()
            storage = tensor.untyped_storage()
            if (record := records.get(storage._cdata)) is None:
                record = records[storage._cdata] = f"{len(records)}.storage"
                held = storage if storage.device.type == "cpu" else cast(Any, storage).cpu()
                storages[record] = (held.data_ptr(), held.nbytes(), (held, storage), None)
            shape, strides = _numbers(tensor.shape), _numbers(tensor.stride())
            offset = tensor.storage_offset()
            lines.append(f"{kind} {tensor.dtype} {record} {offset} {shape} {strides} {path}")

        for path, (kind, tensor) in self.tensors.items():
            add(kind, path, tensor)
        lines += [f"tied {path}\t{first}" for path, first in self.tied]
        with _constants.typed([self.graph]), _constants.numbered(self.graph) as constants:
            # With the lines of Python.
            graph = cast(Any, self.graph).str(True)
        for constant in constants:
            add("constant", "", constant)
        file = io.BytesIO()
        writer = _C.PyTorchFileWriter(file)
        # Otherwise the oldest version, whose operators compute something else.
        writer.set_min_version(_C._get_max_operator_version())
        texts = {
            "graph": graph,
            "inputs": "\n".join(self.inputs),
            "modules": "\n".join(f"{path}\t{of}" for path, of in self.modules),
            "tensors": "\n".join(lines),
        }
        if stacks:
            texts["stacks"] = "\0".join(node.sourceRange() for node in _nodes(self.graph))
        for name, text in texts.items():
            data = text.encode()
            writer.write_record(f"pt2onnx/{name}", data, len(data))
        writer.write_end_of_file()
        with_stacks = None if stacks else lambda: self.package(stacks=True)
        return Package(file.getvalue(), list(storages.items()), with_stacks)


def _nodes(graph: JitGraph) -> Iterator[JitNode]:
    """The nodes of a graph in the order of its text: those within a node follow it."""
    pending = list(graph.nodes())[::-1]
    while pending:
        node = pending.pop()
        yield node
        within = [inner for block in node.blocks() for inner in block.nodes()]
        pending += within[::-1]


def _numbers(values: Sequence[int]) -> str:
    return ",".join(map(str, values)) or "-"


def supports(module: torch.nn.Module) -> bool:
    """Whether a module has only what a ``ModuleTrace`` can hold: no modules in TorchScript, objects
    of C++, or tensors of other classes or layouts."""
    for part in module.modules():
        if isinstance(part, torch.jit.ScriptModule):
            return False
        if not all(map(_is_plain, (*part._parameters.values(), *part._buffers.values()))):
            return False
        for value in vars(part).values():
            if isinstance(value, (torch.ScriptObject, torch.jit.ScriptModule)):
                return False
            if type(value) is torch.Tensor and not _is_plain(value):
                return False
    return True


def _is_plain(tensor: torch.Tensor | None) -> bool:
    if tensor is None:
        return True
    is_strided = type(tensor) in _PLAIN and tensor.layout == torch.strided
    return is_strided and not tensor.is_quantized


def trace(
    module: torch.nn.Module, names: Sequence[str], examples: Sequence[torch.Tensor]
) -> ModuleTrace:
    """A trace of a module.

    Args:
        module: The module, which ``supports`` accepts, of tensors.
        names: The names of its parameters.
        examples: Its arguments.

    Raises:
        Exception: The errors of PyTorch.
    """
    tensors, tied = _tensors(module)
    calls = _Calls(module)

    def no_name(_: object) -> str:
        return ""

    def traced(*values: torch.Tensor) -> object:
        return module(*values[len(tensors) :])

    def call(self: Any, *args: object, **kwargs: object) -> object:
        state = _C._get_tracing_state()
        if not state or self._compiled_call_impl is not None or _has_hooks(self):
            return self._wrapped_call_impl(*args, **kwargs)
        if (name := calls.get(self)) is None:
            return self.forward(*args, **kwargs)
        state.push_scope(name)
        try:
            return self.forward(*args, **kwargs)
        finally:
            state.pop_scope()

    values = (*(tensor for _, tensor in tensors.values()), *examples)
    own = [f"{_size_reads.WEIGHT}{at}" for at in range(len(tensors))]
    with (
        _patches.applied(
            "trace", {"_trace_module_map": lambda _: calls, "__call__": lambda _: call}
        ),
        _without_autocast_cache(),
        _garbage.not_collected(),
    ):
        graph, _ = _C._create_graph_by_tracing(
            traced, values, no_name, False, False, None, [*own, *names]
        )
        # Functions in TorchScript that the module calls.
        _C._jit_pass_inline(graph)
    return ModuleTrace(graph, list(names), tensors, tied, calls.modules)


#: The hooks of a module, and those of all.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _has_hooks(module: torch.nn.Module) -> bool:
    of_all = torch.nn.modules.module
    return any(getattr(module, name) or getattr(of_all, f"_global{name}") for name in _HOOKS)


class _Calls:
    """The scopes of the calls of a module and of those within it. torch asks for them where a
    module has hooks, as it asks a dict by module."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._paths = {part: path for path, part in _parts(module)}
        self._classes = dict[type[Any], str]()
        #: The path and class of each call, that of the traced module first.
        self.modules = list[tuple[str, str]]()

    def __contains__(self, part: object) -> bool:
        return part in self._paths

    def __getitem__(self, part: torch.nn.Module) -> str:
        cls = type(part)
        if cls not in self._classes:
            self._classes[cls] = cast(Any, torch)._jit_internal._qualified_name(cls)
        self.modules.append((self._paths[part], self._classes[cls]))
        return str(len(self.modules) - 1)

    def get(self, part: torch.nn.Module, default: str | None = None) -> str | None:
        return default if part not in self._paths else self[part]


def _parts(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """A module and those within it, with their paths."""
    return cast(Iterator[tuple[str, torch.nn.Module]], module.named_modules())


def _tensors(
    module: torch.nn.Module,
) -> tuple[dict[str, tuple[str, torch.Tensor]], list[tuple[str, str]]]:
    """The tensors of a module and of those in it by path, with their roles, and the other paths of
    them with the first ones."""
    found = dict[str, tuple[str, torch.Tensor]]()
    tied, first = list[tuple[str, str]](), dict[int, str]()
    for prefix, part in _parts(module):
        plain = {key: value for key, value in vars(part).items() if type(value) is torch.Tensor}
        for key, value in {**part._parameters, **part._buffers, **plain}.items():
            if value is None:
                continue
            path = f"{prefix}.{key}" if prefix else key
            if (own := first.setdefault(id(value), path)) != path:
                tied.append((path, own))
                continue
            is_attribute = key in plain or key in part._non_persistent_buffers_set
            kind = "attribute" if is_attribute else "buffer"
            found[path] = ("parameter" if key in part._parameters else kind, value)
    return found, tied


@contextlib.contextmanager
def _without_autocast_cache() -> Generator[None, None, None]:
    """The tracer does not see casts that autocast took from its cache."""
    enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(enabled)
