"""Captures by torch.jit.trace and torch.jit.script, for modules that torch.export does not
capture."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import keyword
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch.jit import _trace as torch_trace

from .. import _compare, _errors, _examples, _frames, _leaves, _objects, _shapes, _symbolic
from .._leaves import Leaf, TensorLeaf
from .._program._origin import Example
from .._types import Model
from .._verification import OutputCheck
from . import (
    _causal,
    _data,
    _gradients,
    _ints,
    _jit,
    _jit_trace,
    _loops,
    _module_trace,
    _noise,
    _numbers,
    _patches,
    _script,
    _size_reads,
)
from ._jit import JitGraph, JitNode
from ._script import Script
from ._torch_export import Call, as_module
from ._trace_code import TraceCode


class TraceWarning(Exception):
    """A trace that holds for its arguments only. The text has the reason.

    ``loop`` is a note if code runs as often as a size decides: no capture of Python code has such a
    size as a dynamic one. ``by_values`` is whether it was compared at its own sizes, with other
    values.
    """

    loop: str | None = None
    by_values: bool = False


@dataclasses.dataclass
class Run:
    """The results of a module, and the seconds of CPU time that it took."""

    call: Call
    results: list[torch.Tensor]
    seconds: float


@dataclasses.dataclass
class Traced:
    """A trace of a module or function, whose inputs are the tensors of the arguments.

    ``code`` is the trace, ``flat`` the function of ``leaves`` that was traced, and ``notes`` are on
    Python code that read values of tensors. ``sizes`` are its reads of sizes. ``run`` is the run of
    the module before, if there was one. ``writes`` is whether the trace may write to memory of the
    module. ``results`` are those of the module while it was traced, if they are kept. ``seconds``
    is the CPU time of tracing, ``keep_ints`` whether the trace computes ``int`` of sizes.
    ``warnings`` are those of libraries.
    """

    call: Call
    code: TraceCode
    flat: Callable[..., object]
    leaves: list[TensorLeaf]
    notes: list[str]
    sizes: _size_reads.SizeReads
    run: Run | None
    writes: bool
    results: list[torch.Tensor]
    seconds: float
    keep_ints: bool = False
    warnings: list[str] = dataclasses.field(default_factory=list[str])

    def at(self, other: Call, *, keep_results: bool = False) -> Traced:
        """The trace for other arguments."""
        return trace_call(other, self.run, keep_results=keep_results, keep_ints=self.keep_ints)

    def script(self) -> Script:
        """The archive."""
        paths = [leaf.path for leaf in self.leaves]
        names = _input_names(paths)
        pairs = zip(self.leaves, names, strict=True)
        own = [dataclasses.replace(leaf, path=name) for leaf, name in pairs]
        script = Script(self.code.package(), positional_names(self.call), own, paths=paths)
        script.kinds = self._kinds
        return script

    def _kinds(self) -> frozenset[str]:
        """The kinds of the nodes on which something depends."""
        graph = self.code.inlined_graph
        cast(Any, torch._C)._jit_pass_dce(graph)
        return frozenset(node.kind() for node in graph.nodes())


def script(model: Model, call: Call, strict: bool, has_run: bool) -> Script:
    """The module or function in TorchScript.

    Args:
        model: The model that the user gave.
        call: Its module.
        strict: Whether the module must take other sizes of the dynamic dimensions.
        has_run: Whether the module has run in Python.

    Raises:
        Exception: The errors of PyTorch, also those of running the module.
    """
    # A module that fails in Python has no model, even if it can be translated.
    if not has_run:
        run(call)
    if strict:
        run_at_other_sizes(call)
    with (
        call.snapshot.kept(),
        _noise.held_back(),
        _jit.forgetting_failures(),
        warnings.catch_warnings(),
    ):
        _jit.ignore_deprecation()
        _jit.check_syntax(model)
        scripted: object = cast(Any, torch.jit).script(model)
        found = _script.of_model(scripted, call.args, call.kwargs, call.shapes)
        found.run = cast("Callable[..., Any]", scripted)
        return found


def run(call: Call) -> None:
    """Runs the module or function in Python.

    Raises:
        Exception: Its errors.
    """
    with _patches.exporting():
        _compare.run(call.model, call.args, call.kwargs, snapshot=call.snapshot)


def _run_before(call: Call) -> Run:
    """Runs a module before it is traced. The memory that it writes to is known afterwards, and
    restored after each other run."""
    start = time.process_time()
    with warnings.catch_warnings(), _patches.exporting(), _compare.same_numbers():
        warnings.simplefilter("ignore")
        results = _compare.run(call.model, call.args, call.kwargs, result_tensors, call.snapshot)
    seconds = time.process_time() - start
    return Run(call, cast("list[torch.Tensor]", results), seconds)


def compare(traced: Traced, other: Call, *, known: bool = True) -> Exception | None:
    """The error of the module with these arguments; None if it takes them.

    Args:
        traced: The trace.
        other: The module with the arguments.
        known: Whether results are taken from earlier runs, where these have them.

    Raises:
        TraceWarning: The trace returns something else.
    """
    at = f" at {other.sizes}" if other.sizes else ""
    found: list[torch.Tensor] = []
    before = traced.run if known and traced.run and traced.run.call is other else None

    def run(*_: object, **__: object) -> list[object]:
        inputs = [leaf.value.detach().clone() for leaf in tensor_leaves(other)]
        snapshot = other.snapshot
        try:
            with snapshot.kept() if traced.writes else snapshot.memory_kept(), torch.no_grad():
                results = result_tensors(traced.code(*inputs))
                found.extend(map(snapshot.detached, results))
        except Exception as error:
            raise TraceWarning(f"the trace fails{at} ({_errors.brief(error)})") from error
        return [part for one in found for part in _leaves.components(one, result=True)]

    example = Example(other.args, other.kwargs, "")
    try:
        with warnings.catch_warnings(), _patches.exporting():
            warnings.simplefilter("ignore")
            checks = _compare.compare_call(
                run,
                other.model,
                example,
                values=result_tensors,
                snapshot=other.snapshot,
                known=list(before.results) if before else None,
            )
    except TraceWarning:
        raise
    except Exception as error:
        return error
    if problem := _problem(checks):
        warning = TraceWarning(f"the trace returns something else than the module{at}: {problem}")
        warning.by_values = _is_of_same_sizes(traced, other)
        if not warning.by_values:
            warning.loop = _loops.note(traced.code.inlined_graph, traced.call, other)
        if warning.loop or not _suppresses(traced):
            raise warning
        # torchvision has other formulas for code that is traced, which choose others of the boxes
        # that have one score.
        again = traced.at(other, keep_results=True)
        pairs = zip(found, again.results, strict=True)
        if _problem([_compare.compare("", *pair) for pair in pairs]):
            raise warning
    if other is not traced.call and not any(map(_is_telling, found)):
        if _is_of_same_sizes(traced, other):
            return ValueError("the results for these values show nothing")
        graphs = traced.code.inlined_graph, traced.at(other).code.inlined_graph
        if notes := differences(*graphs):
            raise TraceWarning(notes[0])
    return None


def _problem(checks: Sequence[OutputCheck]) -> str | None:
    return next((check.problem for check in checks if check.problem), None)


def _is_of_same_sizes(traced: Traced, other: Call) -> bool:
    pairs = zip(traced.leaves, tensor_leaves(other), strict=True)
    return all(one.value.shape == leaf.value.shape for one, leaf in pairs)


def check_own(traced: Traced) -> None:
    """Compares a trace with the module for its own arguments: sizes are tensors in a trace, which
    are other keys of a dict.

    Raises:
        TraceWarning: It returns something else.
        Exception: The errors of the module.
    """
    with contextlib.suppress(TraceWarning):
        if traced.run and traced.run.call is traced.call and not compare(traced, traced.call):
            return
    if error := compare(traced, traced.call, known=False):
        raise error


def _suppresses(traced: Traced) -> bool:
    """Whether a trace has a non-maximum suppression."""
    return bool(traced.code.inlined_graph.findAllNodes("torchvision::nms"))


def reads_values(traced: Traced) -> bool:
    """Whether the sizes or the code of a trace depend on values of its tensors."""
    return bool(traced.notes) or _suppresses(traced)


def _is_telling(result: torch.Tensor) -> bool:
    """Whether a result shows how it was computed: its elements are not all equal, nor all NaN."""
    flat = result.flatten()
    if result.numel() < 2:
        return bool((flat == flat).any())
    return bool(((flat != flat[0]) & ((flat == flat) | (flat == flat)[0])).any())


def run_at_other_sizes(call: Call) -> None:
    """Runs the module at other sizes of the dynamic dimensions.

    Raises:
        TraceWarning: It fails at all of them.
    """
    failure: Exception | None = None
    for example in _at_other_sizes(call, tensor_leaves(call)):
        try:
            run(call.of(example))
            return
        except Exception as error:
            failure = error
    if failure is not None:
        raise TraceWarning(fails(failure))


def notes_at_other_sizes(traced: Traced, strict: bool) -> list[str]:
    """Notes on how a trace at other sizes of the dynamic dimensions differs: the tracer does not
    warn of ``range(x.shape[0])``. If ``strict``, also that the module takes no other sizes."""
    notes: list[str] = []
    for example in _at_other_sizes(traced.call, traced.leaves):
        try:
            other = dataclasses.replace(traced.call, args=example.args, kwargs=example.kwargs)
            return differences(traced.code.inlined_graph, traced.at(other).code.inlined_graph)
        except Exception as error:
            notes = [fails(error)] if strict else []
    return notes


def _at_other_sizes(call: Call, leaves: Sequence[TensorLeaf]) -> Iterator[Example]:
    return _examples.of_leaves(positional_names(call), call.args, call.kwargs, leaves)


def positional_names(call: Call) -> list[str]:
    forward = cast(Model, getattr(call.model, "forward", call.model))
    return _leaves.positional_names(forward, len(call.args), call.kwargs)


def tensor_leaves(call: Call) -> list[TensorLeaf]:
    """The tensors within the arguments of a call, with their dynamic axes."""
    return [leaf for leaf in _all_leaves(call) if isinstance(leaf, TensorLeaf)]


def _all_leaves(call: Call) -> list[Leaf]:
    axes = _shapes.by_argument(call.model, call.args, call.kwargs, call.shapes)
    return _leaves.flatten(_leaves.by_name(positional_names(call), call.args, call.kwargs), axes)


def has_dynamic_numbers(call: Call) -> bool:
    """Whether dynamic shapes make a number dynamic, which a trace fixes."""
    return any(leaf.is_number and leaf.axes for leaf in _all_leaves(call))


def fails(error: Exception) -> str:
    """The note that a module fails at other sizes."""
    return f"The module fails at other sizes of the dynamic dimensions ({_errors.brief(error)})"


def differences(one: JitGraph, other: JitGraph) -> list[str]:
    """A note on the first node in which two traces differ: in the operator, or in a constant."""
    ours, theirs = list(one.nodes()), list(other.nodes())
    pairs = enumerate(zip(ours, theirs, strict=False))
    first = next((at for at, (a, b) in pairs if not _same_node(a, b)), None)
    if first is None and len(ours) == len(theirs):
        return []
    at = min(len(ours), len(theirs)) if first is None else first
    rest = max(ours, theirs, key=len)[at:]
    # Not every node has a line, nor one outside of torch.
    lines = [line for node in rest for line in _jit.lines(node.sourceRange())]
    outer = (line for line in lines if not line[0].startswith(_frames.torch_root()))
    line = next(outer, next(iter(lines), None))
    place = f"{line[0]}:{line[1]}" if line else rest[0].kind()
    return [f"The code does something else at other sizes ({place})"]


def _same_node(one: JitNode, other: JitNode) -> bool:
    if _symbolic.function_of(one.kind()) != _symbolic.function_of(other.kind()):
        return False
    return one.kind() != "prim::Constant" or _same(
        one.output().toIValue(), other.output().toIValue()
    )


def _same(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        equal = a.shape == b.shape and a.dtype == b.dtype
        return equal and bool(((a == b) | (a != a)).all())
    if type(a) is not type(b):
        return False
    return not isinstance(a, (bool, int, float, str)) or a == b or a != a


def traced(call: Call, other: Call | None = None) -> Traced:
    """Traces a module or function. It runs before, unless its tensors are copied instead.

    Args:
        call: The module.
        other: The module with other arguments, with which it runs if it takes them.

    Raises:
        Exception: The errors of PyTorch.
    """
    if other is None and call.snapshot.is_small:
        return trace_call(call, None)
    run = None
    if other is not None:
        with contextlib.suppress(Exception):
            run = _run_before(other)
    return trace_call(call, run or _run_before(call))


def trace_call(
    call: Call, run: Run | None, *, keep_results: bool = False, keep_ints: bool = False
) -> Traced:
    """Traces a module or function.

    Args:
        call: The module.
        run: A run of it.
        keep_results: Whether the trace has the results of the module while it was traced.
        keep_ints: Whether it computes ``int`` of sizes.

    Raises:
        Exception: The errors of PyTorch.
    """
    try:
        return _trace_once(call, run, keep_results, keep_ints)
    except TypeError as error:
        if not _causal.is_about(error):
            raise
    with _causal.computed(as_module(call.model)):
        return _trace_once(call, run, keep_results, keep_ints)


def _trace_once(call: Call, run: Run | None, keep_results: bool, keep_ints: bool) -> Traced:
    module = as_module(call.model)
    versions = _versions(module)
    forward: Callable[..., object] = module.forward
    args, kwargs = call.args, call.kwargs
    names = _leaves.positional_names(forward, len(args), kwargs)
    leaves = tensor_leaves(dataclasses.replace(call, model=module))
    paths = [leaf.path for leaf in leaves]
    if not paths:
        raise TypeError("a trace needs a tensor among the arguments")

    def flat(*tensors: torch.Tensor) -> object:
        pairs = zip(leaves, tensors, strict=True)
        values: dict[str, object] = {
            leaf.path: _numbers.like(tensor, leaf.value) for leaf, tensor in pairs
        }
        own_args, own_kwargs = _leaves.rebuild_call(names, args, kwargs, values)
        with _data.followed(module, call.snapshot):
            results = tuple(result_tensors(forward(*own_args, **own_kwargs)))
        notes.extend(sizes.of_data())
        recorded[:] = results if keep_results else ()
        return results if len(results) != 1 else results[0]

    recorded, notes = list[torch.Tensor](), list[str]()
    inputs = _input_names(paths)
    _sign(flat, inputs)
    named = list(zip(inputs, leaves, strict=True))
    static = {name: _static_axes(leaf) for name, leaf in named}
    has_dynamic = any(len(static[name]) < leaf.value.dim() for name, leaf in named)
    gradients = _gradients.GradientLog()
    with (
        # The tracer does not see convolutions that a mode of Python dispatches.
        call.snapshot.kept(exports=True, parameters=call.snapshot.is_small),
        _patches.replaced(module, "forward", flat),
        _patches.exporting(),
        warnings.catch_warnings(record=True) as caught,
        _gradients.logged(gradients),
        torch.no_grad(),
        _compare.same_numbers(),
        _size_reads.dropped(caught, static) as sizes,
        _ints.kept(module, static) if keep_ints else contextlib.nullcontext(),
    ):
        warnings.simplefilter("always")
        # The tracer keeps the tensors, and what is written into them.
        examples = tuple(leaf.value.detach().clone() for leaf in leaves)
        start = time.process_time()
        if _module_trace.supports(module):
            code: TraceCode = _module_trace.trace(module, inputs, examples)
        else:
            code = _jit_trace.trace(module, examples)
        seconds = time.process_time() - start
        # Buffers among them get their values back.
        results = [result.detach().clone() for result in recorded]
    # The run before may have gone another way, at other sizes or as it was not traced.
    writes = run is None or call.snapshot.writes or versions != _versions(module)
    gradients.check()
    _inline_functions(code)
    if sizes.decisions:
        if not has_dynamic:
            sizes = sizes.without_dynamic()
        else:
            code.keep_reads()
        for graph in code.graphs():
            _size_reads.remove_marks(graph)
    of_tracer = [w for w in caught if issubclass(w.category, torch_trace.TracerWarning)]
    # Numbers of a result become tensors here.
    notes += [_note(w) for w in of_tracer if w.filename != __file__]
    notes = list(dict.fromkeys(notes))
    found = Traced(call, code, flat, leaves, notes, sizes, run, writes, results, seconds, keep_ints)
    others = [w for w in caught if not issubclass(w.category, torch_trace.TracerWarning)]
    found.warnings = [
        f"{w.filename}:{w.lineno}: {w.category.__name__}: {w.message}" for w in others
    ]
    return found


def _versions(module: torch.nn.Module) -> list[int]:
    """How often parameters were written to."""
    return [one._version for one in module.parameters() if not one.is_inference()]


def _static_axes(leaf: TensorLeaf) -> set[int]:
    """The axes of an input whose sizes are fixed."""
    rank = leaf.value.dim()
    pairs = cast(Iterator[tuple[int, object]], _shapes.axis_sizes(leaf.axes))
    return set(range(rank)) - {axis % rank for axis, size in pairs if size is not None}


def _inline_functions(code: TraceCode) -> None:
    """Replaces calls of autograd functions in a trace by the nodes of their ``forward``: a trace
    that calls Python cannot be saved. Where symbolic functions are used, calls of those that have
    one are ops, and not among these."""
    for graph in code.graphs():
        while call := _function_call(graph):
            _inline(graph, call)


def _input_names(paths: Sequence[str]) -> list[str]:
    """The names of the inputs of a trace, by the paths of the values."""
    taken: set[str] = set()
    names = [re.sub(r"[^0-9a-zA-Z]+", "_", path) for path in paths]
    return [_leaves.free(f"{name}_" if keyword.iskeyword(name) else name, taken) for name in names]


def _function_call(graph: JitGraph) -> JitNode | None:
    """A call of an autograd function, if there is one."""
    calls = graph.findAllNodes("prim::PythonOp")
    return next((node for node in calls if node.hasAttribute("Subgraph")), None)


def _inline(graph: JitGraph, call: JitNode) -> None:
    """Replaces a call by the nodes of ``forward``."""
    for node in reversed(_left_behind(graph, call)):
        if node.hasUses():
            raise RuntimeError(
                f"the autograd function {call.pyname()} writes into a tensor that it does not "
                "return"
            )
        node.destroy()
    with graph.insert_point_guard(call):
        results = graph.insertGraph(call.g("Subgraph"), list(call.inputs()))
        if len(results) > 1:
            node = graph.create("prim::TupleConstruct", results, 1)
            results = [graph.insertNode(node).output()]
    results[0].setType(call.output().type())
    call.output().replaceAllUsesWith(results[0])
    call.destroy()


def _left_behind(graph: JitGraph, call: JitNode) -> list[JitNode]:
    """The nodes behind a call that are those of its ``forward`` a second time: the tracer leaves
    writes and calls there, and what they need."""
    inner = iter([(node.kind(), node.sourceRange()) for node in call.g("Subgraph").nodes()])
    behind = [node for node in graph.nodes() if node.isAfter(call)]
    if behind and behind[0].kind() == "prim::TupleUnpack":
        behind = behind[1:]
    same = list(itertools.takewhile(lambda n: (n.kind(), n.sourceRange()) in inner, behind))
    # Constants have no place in the code, so that the next ones may look the same.
    while same and not ("!)" in same[-1].schema() or same[-1].kind() == "prim::PythonOp"):
        same.pop()
    return same


def _sign(function: Callable[..., object], names: Sequence[str]) -> None:
    """Gives a function of ``*args`` parameters with names, which the trace takes over."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    vars(function)["__signature__"] = signature


def result_tensors(result: object) -> Iterator[torch.Tensor]:
    """The tensors and numbers within a result, in order.

    Raises:
        TypeError: It holds other values.
    """
    for leaf in _objects.results(result):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        elif isinstance(leaf, (bool, int, float)):
            yield torch.tensor(leaf)
        elif leaf is not None:
            kind = type(leaf).__name__
            raise TypeError(f"a result of type {kind} holds no tensors that are known")


def _note(warning: warnings.WarningMessage) -> str:
    """A warning of the tracer with its place, without its advice."""
    text = str(warning.message).split(". ")[0].strip()
    return f"{text} ({warning.filename}:{warning.lineno})"
