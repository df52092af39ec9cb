"""Traces of modules whose weights stay where they are.

``torch.jit.trace`` makes a ScriptModule of Python for each module, which takes most of its time,
and keeps types and graphs in memory until the process ends. A ``ModuleTrace`` has modules of C++ in
a compilation unit that is freed with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from .. import _serialize
from . import _patches, _size_reads
from ._jit import JitGraph, JitNode

if TYPE_CHECKING:
    from .._pt2onnx import Lent

#: Classes of tensors that a ``ModuleTrace`` can hold.
_PLAIN = (torch.Tensor, torch.nn.Parameter)

_C = cast(Any, torch._C)


@dataclasses.dataclass
class Package:
    """A module in TorchScript.

    ``storages`` are those that the archive lacks, by record. They are None if torch.jit.save wrote
    it, which leaves out none.
    """

    archive: bytes
    storages: list[tuple[str, Lent]] | None = None


@dataclasses.dataclass
class ModuleTrace:
    """A trace of a function of a module.

    ``code`` is its module of C++, and ``unit`` the compilation unit that has its types, which the
    module does not keep. ``modules`` are that module and those in it, each once, and ``classes``
    the classes of Python by the names of those of C++. The tensors of the traced module are listed
    by path.
    """

    unit: Any
    code: Any
    modules: list[Any]
    classes: dict[str, str]
    parameters: dict[str, torch.Tensor]
    buffers: dict[str, torch.Tensor]
    attributes: dict[str, torch.Tensor]
    #: The seconds of CPU time that tracing took.
    seconds: float = 0.0
    #: The graph of what Python read of sizes, in the order of the reads.
    _reads: JitGraph | None = None

    @property
    def inlined_graph(self) -> JitGraph:
        """A copy of its graph, without calls of methods."""
        graph: JitGraph = self.code._get_method("forward").graph.copy()
        own = {part._type().qualified_name(): part for part in self.modules}

        def module_of(call: JitNode) -> Any:
            return own.get(next(iter(call.inputs())).type().qualified_name())

        # Passes of torch would keep copies of the inner graphs, which also run later.
        while calls := [
            n for n in graph.findAllNodes("prim::CallMethod") if module_of(n) is not None
        ]:
            for call in calls:
                method = module_of(call)._get_method(call.s("name"))
                with graph.insert_point_guard(call):
                    (result,) = graph.insertGraph(method.graph, list(call.inputs()))
                call.output().replaceAllUsesWith(result)
                call.destroy()
        return graph

    def keep_reads(self) -> None:
        """Keeps the graph of ``reads``, from the marks in the graphs."""
        graph = self.inlined_graph
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

    def reads(self, *tensors: torch.Tensor) -> Sequence[torch.Tensor]:
        """The sizes that Python would read for other arguments, if it went the same way."""
        if self._reads is None:
            return ()
        found: Sequence[torch.Tensor] = _C._jit_interpret_graph(self._reads, (self.code, *tensors))
        return found

    def __call__(self, *tensors: torch.Tensor) -> object:
        """Runs the trace."""
        with _unoptimized():
            return self.code._get_method("forward")(*tensors)

    def package(self) -> Package:
        """The archive, without the storages of weights."""
        file = io.BytesIO()
        writer = _C.PyTorchFileWriter(file)
        # Otherwise the oldest version, whose operators compute something else.
        writer.set_min_version(_C._get_max_operator_version())
        serializer = _C.ScriptModuleSerializer(writer)
        context = serializer.storage_context()
        storages: dict[str, Lent] = {}
        tensors = {**self.parameters, **self.buffers, **self.attributes}
        for tensor in tensors.values():
            if tensor.device.type == "cpu" and not tensor.is_quantized:
                storage = tensor.untyped_storage()
                # Storages that the serialiser knows are not written.
                name = f"{context.get_or_add_storage(storage)}.storage"
                storages[name] = (storage.data_ptr(), storage.nbytes(), storage, None)
        serializer.serialize(self.code, 0)
        serializer.write_files("code/")
        classes = [f"{name} {of}" for name, of in self.classes.items()]
        lists = ("parameters", self.parameters), ("buffers", self.buffers), ("classes", classes)
        for kind, lines in lists:
            text = "\n".join(lines).encode()
            writer.write_record(f"pt2onnx/{kind}", text, len(text))
        writer.write_end_of_file()
        return Package(file.getvalue(), list(storages.items()))


def supports(module: torch.nn.Module) -> bool:
    """Whether a module has only what a ``ModuleTrace`` can hold: no modules in TorchScript, objects
    of C++ or tensors of other classes."""
    for part in module.modules():
        tensors = (*part._parameters.values(), *part._buffers.values())
        if isinstance(part, torch.jit.ScriptModule):
            return False
        if any(tensor is not None and type(tensor) not in _PLAIN for tensor in tensors):
            return False
        values = vars(part).values()
        if any(isinstance(value, (torch.ScriptObject, torch.jit.ScriptModule)) for value in values):
            return False
    return True


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
    start = time.process_time()
    traced = _tree(module)
    named = cast(Iterator[tuple[str, object]], module.named_modules())
    scopes: dict[object, object] = {part: f"__module.{path}" for path, part in named if path}
    scopes["__module"] = module

    def no_name(_: object) -> str:
        return ""

    def call(self: Any, *args: object, **kwargs: object) -> object:
        state = _C._get_tracing_state()
        name = scopes.get(self)
        if not state or self._compiled_call_impl is not None or _has_hooks(self):
            return self._wrapped_call_impl(*args, **kwargs)
        if not name:
            return self.forward(*args, **kwargs)
        state.push_scope(name)
        try:
            return self.forward(*args, **kwargs)
        finally:
            state.pop_scope()

    with (
        _patches.applied(
            "trace", {"_trace_module_map": lambda _: scopes, "__call__": lambda _: call}
        ),
        _without_autocast_cache(),
        _serialize.without_gc(),
        _unoptimized(),
    ):
        traced.code._create_method_from_trace(
            "forward", module, tuple(examples), no_name, False, False, list(names), False
        )
    traced.seconds = time.process_time() - start
    return traced


#: The hooks of a module, and those of all.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _has_hooks(module: torch.nn.Module) -> bool:
    of_all = torch.nn.modules.module
    return any(getattr(module, name) or getattr(of_all, f"_global{name}") for name in _HOOKS)


def _tree(module: torch.nn.Module) -> ModuleTrace:
    """Modules of C++ with the tensors of a module and of those in it, without code."""
    unit = _C.CompilationUnit()
    tensor_type = _C.TensorType.get()
    made: dict[int, Any] = {}
    trace = ModuleTrace(unit, None, [], {}, {}, {}, {})

    def one(part: torch.nn.Module, path: str, inner: Callable[..., Any]) -> Any:
        if id(part) in made:
            return made[id(part)]
        # The archive has a file for each name before the last dot.
        name = f"__torch__.m{len(made)}"
        trace.classes[name] = cast(Any, torch)._jit_internal._qualified_name(type(part))
        code = made[id(part)] = _C.ScriptModule(name, unit, True)
        plain = {key: value for key, value in vars(part).items() if type(value) is torch.Tensor}
        for key, value in {**part._parameters, **part._buffers, **plain}.items():
            if value is not None:
                code._register_attribute(key, tensor_type, value)
                is_attribute = key in plain or key in part._non_persistent_buffers_set
                kind = trace.attributes if is_attribute else trace.buffers
                kind = trace.parameters if key in part._parameters else kind
                kind[f"{path}{key}"] = value
        for key, child in part._modules.items():
            if child is not None:
                found = inner(child, f"{path}{key}.", inner)
                code._register_attribute(key, found._type(), found)
        return code

    # A function that names itself would keep the trace until the garbage collector finds it.
    trace.code = one(module, "", one)
    trace.modules = list(made.values())
    return trace


def _unoptimized() -> contextlib.AbstractContextManager[None]:
    """In this context, graphs of methods stay as the tracer made them. They are optimised once, by
    the first that inlines or runs them, so that two traces of one module could differ."""
    unoptimized: contextlib.AbstractContextManager[None] = cast(Any, torch.jit).optimized_execution(
        False
    )
    return unoptimized


@contextlib.contextmanager
def _without_autocast_cache() -> Generator[None, None, None]:
    """The tracer does not see casts that autocast took from its cache."""
    enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(enabled)
