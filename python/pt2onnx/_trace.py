"""Modules that torch.export does not capture: by torch.jit.trace and torch.jit.script, which torch.onnx.export used before."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _capture, _script, _shapes, _symbolic, _verify


class TraceWarning(Exception):
    """A trace that holds for its arguments only. Its text says why."""


def traced(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool) -> tuple[_script.Script, list[str]]:
    """The trace of a module or function, and what the tracer says of values of tensors that Python code read. If ``strict``, the module
    must take other sizes of the dynamic dimensions.

    Tensors are its inputs, all other arguments keep their values. Raises what PyTorch raises.
    """
    from torch.jit import _trace

    made, leaves, said = _traced(model, args, kwargs, shapes)
    parameters = [leaf.path.replace(".", "_") for leaf in leaves]
    script = _script.of(made, (), {}, None)
    own = [_script.Leaf(name, leaf.value, leaf.axes) for name, leaf in zip(parameters, leaves)]
    notes = [_note(w) for w in said if issubclass(w.category, _trace.TracerWarning)] or _other_sizes(made, model, args, kwargs, leaves, strict)
    names = _names(getattr(model, "forward", model), len(args))
    return Traced(script.archive, names, own, [leaf.path for leaf in leaves]), list(dict.fromkeys(notes))


def _other_sizes(made: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[_script.Leaf], strict: bool) -> list[str]:
    """What a trace at other sizes of the dynamic dimensions does in another way: the tracer says nothing of ``range(x.shape[0])``. If
    ``strict``, also that the module takes no other sizes."""
    notes: list[str] = []
    names = _names(getattr(model, "forward", model), len(args))
    for other_args, other_kwargs, _ in _script.at_other_sizes(names, args, kwargs, leaves):
        try:
            other = _traced(model, other_args, other_kwargs, None)[0]
            return _differences(made.inlined_graph, other.inlined_graph)
        except Exception as error:
            notes = [_fails(error)] if strict else []
    return notes


def _fails(error: Exception) -> str:
    """The note that a module fails at other sizes."""
    return f"The module fails at other sizes of the dynamic dimensions ({_capture.brief(error)})"


def _differences(one: Any, other: Any) -> list[str]:
    """A note on the first node in which two traces differ, if there is one: their operators, and the constants among them."""
    import torch

    def steps(graph: Any) -> list[tuple[Any, Any]]:
        return [(node, node.output().toIValue() if node.kind() == "prim::Constant" else None) for node in graph.nodes()]

    def kind(node: Any) -> str:
        return _symbolic.function_of(node.kind())

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | (a != a)).all())
        return type(a) is type(b) and (not isinstance(a, (bool, int, float, str)) or a == b or a != a)

    ours, theirs = steps(one), steps(other)
    pairs = enumerate(zip(ours, theirs))
    first = next((at for at, ((a, value), (b, other)) in pairs if kind(a) != kind(b) or not same(value, other)), None)
    if first is None and len(ours) == len(theirs):
        return []
    # Not every node has a place.
    rest = max(ours, theirs, key=len)[min(len(ours), len(theirs)) if first is None else first :]
    places = (re.search(r"# (\S.*:\d+):\d+", str(node)) for node, _ in rest)
    place = next((found[1] for found in places if found), rest[0][0].kind())
    return [f"The code does something else at other sizes ({place})"]


def graph(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The graph of a trace, whose last inputs are the tensors of the arguments. Raises what PyTorch raises."""
    return _traced(model, args, kwargs, None)[0].inlined_graph.copy()


def _traced(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any
) -> tuple[Any, list[_script.Leaf], list[warnings.WarningMessage]]:
    """A trace, its inputs, and the warnings of the tracer."""
    import torch

    module = _capture.as_module(model)
    forward = module.forward
    names = _names(forward, len(args))
    axes = _shapes.by_argument(module, args, kwargs, shapes)
    leaves = _tensor_leaves(names, args, kwargs, axes)
    paths = [leaf.path for leaf in leaves]
    if not paths:
        raise TypeError("a trace needs a tensor among the arguments")

    def flat(*tensors: torch.Tensor) -> Any:
        values = dict(zip(paths, tensors))
        inner_args = tuple(_script.rebuilt(name, arg, values) for name, arg in zip(names, args))
        inner_kwargs = {name: _script.rebuilt(name, arg, values) for name, arg in kwargs.items()}
        results = tuple(_tensors(forward(*inner_args, **inner_kwargs)))
        return results if len(results) != 1 else results[0]

    _sign(flat, [path.replace(".", "_") for path in paths])
    module.__dict__["forward"], old = flat, module.__dict__.get("forward")
    try:
        kept = _verify.keeping_buffers(module)
        with _capture.exporting(), warnings.catch_warnings(record=True) as said, torch.no_grad(), kept:
            warnings.simplefilter("always")
            # The tracer keeps the tensors, and what is written into them.
            examples = tuple(leaf.value.detach().clone() for leaf in leaves)
            made: Any = torch.jit.trace(module, examples, check_trace=False, strict=False)  # type: ignore[no-untyped-call]
        _inline_functions(made)
    finally:
        del module.__dict__["forward"]
        if old is not None:
            module.__dict__["forward"] = old
    return made, leaves, said


def _inline_functions(made: Any) -> None:
    """Replaces calls of autograd functions in a trace by what their ``forward`` did: a trace that calls Python cannot be saved. Where
    symbolic functions are used, calls of those that have one are ops, and not among these."""
    for module in made.modules():
        for name in module._c._method_names():
            graph = module._c._get_method(name).graph
            while call := _function_call(graph):
                _inline(graph, call)


def _function_call(graph: Any) -> Any:
    """A call of an autograd function, if there is one."""
    return next((node for node in graph.findAllNodes("prim::PythonOp") if node.hasAttribute("Subgraph")), None)


def _inline(graph: Any, call: Any) -> None:
    """Puts what ``forward`` did in the place of a call."""
    for node in reversed(_left_behind(graph, call)):
        if node.hasUses():
            raise RuntimeError(f"the autograd function {call.pyname()} writes into a tensor that it does not return")
        node.destroy()
    with graph.insert_point_guard(call):
        results = graph.insertGraph(call.g("Subgraph"), list(call.inputs()))
        if len(results) > 1:
            results = [graph.insertNode(graph.create("prim::TupleConstruct", results, 1)).output()]
    results[0].setType(call.output().type())
    call.output().replaceAllUsesWith(results[0])
    call.destroy()


def _left_behind(graph: Any, call: Any) -> list[Any]:
    """The nodes behind a call that are those of its ``forward`` a second time: the tracer leaves writes and calls there, and what they
    need."""
    inner = iter([(node.kind(), node.sourceRange()) for node in call.g("Subgraph").nodes()])
    behind = [node for node in graph.nodes() if node.isAfter(call)]
    if behind and behind[0].kind() == "prim::TupleUnpack":
        behind = behind[1:]
    alike = list(itertools.takewhile(lambda node: (node.kind(), node.sourceRange()) in inner, behind))
    # Constants have no place in the code, so that the next ones may look alike.
    while alike and not ("!)" in alike[-1].schema() or alike[-1].kind() == "prim::PythonOp"):
        alike.pop()
    return alike


class Traced(_script.Script):
    """A trace, whose inputs are the tensors of nested arguments."""

    def __init__(self, archive: bytes, parameters: list[str], leaves: list[_script.Leaf], paths: list[str]) -> None:
        super().__init__(archive, parameters, leaves)
        self._paths = paths

    def inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Other arguments as inputs of the model, in order."""
        values = {leaf.path: leaf.value for leaf in self._leaves(args, kwargs)}
        return [part for path in self._paths if path in values for part in _script.parts(values[path])]

    def _leaves(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[_script.Leaf]:
        return _script.flatten({**dict(zip(self.parameters, args)), **kwargs}, None)

    def _axes(self) -> dict[str, Any]:
        return {path: leaf.axes for path, leaf in zip(self._paths, self.leaves)}


def run(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Runs the module or function in Python. Raises what it raises."""
    import torch

    with _capture.exporting(), torch.no_grad(), _verify.keeping_buffers(model):
        model(*copy.deepcopy(args), **copy.deepcopy(kwargs))


def scripted(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool) -> _script.Script:
    """The module or function in TorchScript. Raises what PyTorch raises, also when it runs, and if ``strict`` when it takes no other
    sizes of the dynamic dimensions."""
    import torch

    # What fails in Python is no model, even if it can be translated.
    run(model, args, kwargs)
    if strict:
        run_at_other_sizes(model, args, kwargs, shapes)
    with warnings.catch_warnings():
        _script.ignore_deprecation()
        return _script.of(torch.jit.script(model), args, kwargs, shapes)


def run_at_other_sizes(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> None:
    """Runs the module at other sizes of the dynamic dimensions. Raises TraceWarning if it fails at all of them."""
    names = _names(getattr(model, "forward", model), len(args))
    axes = _shapes.by_argument(model, args, kwargs, shapes)
    leaves = _tensor_leaves(names, args, kwargs, axes)
    failure: Exception | None = None
    for other_args, other_kwargs, _ in _script.at_other_sizes(names, args, kwargs, leaves):
        try:
            return run(model, other_args, other_kwargs)
        except Exception as error:
            failure = error
    if failure is not None:
        raise TraceWarning(_fails(failure))


def _names(forward: Callable[..., Any], count: int) -> list[str]:
    """The names of the parameters that may be given by position; those of ``*args`` are numbered."""
    names: list[str] = []
    for parameter in inspect.signature(forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    if count > len(names):
        raise TypeError(f"there are {count} arguments, but the module takes {len(names)}")
    return names


def _tensor_leaves(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any], axes: Any) -> list[_script.Leaf]:
    """The tensors within the arguments, with their dynamic axes. ``names`` are those of the positional arguments."""
    return [leaf for leaf in _script.flatten({**dict(zip(names, args)), **kwargs}, axes) if leaf.is_tensor]


def _sign(function: Any, names: list[str]) -> None:
    """Gives a function of ``*args`` parameters with names, which the trace takes over."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])


def _tensors(result: Any) -> Iterator[Any]:
    """The tensors and numbers within a result, in order."""
    import torch

    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, (bool, int, float)):
        yield torch.tensor(result)
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from _tensors(value)
    elif isinstance(result, (list, tuple)):
        for value in result:
            yield from _tensors(value)
    elif dataclasses.is_dataclass(result):
        for field in dataclasses.fields(result):
            yield from _tensors(getattr(result, field.name))
    elif result is not None:
        raise TypeError(f"a result of type {type(result).__name__} holds no tensors that are known")


def _note(warning: warnings.WarningMessage) -> str:
    """A warning of the tracer with its place, without its advice."""
    text = str(warning.message).split(". ")[0].strip()
    return f"{text} ({warning.filename}:{warning.lineno})"
