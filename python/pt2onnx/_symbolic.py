"""Symbolic functions of torch.onnx's exporter of TorchScript: those of autograd functions, and those that are registered for ops.

The registry of torch.onnx is not public. Where it is another one, what is registered is not used.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import _capture
from ._translate import Cx, Value

#: The namespace of the ops that stand for calls of autograd functions.
_NAMESPACE = "pt2onnx_autograd"

_NUMBERS = itertools.count()


class _State(threading.local):
    """What a thread does: translations of the calls that become ops, while a module is captured, whether such a call runs, and whether
    sizes in a trace are those of all inputs."""

    found: dict[Any, Callable[..., Any]] | None = None
    within = False
    exact = False


_STATE = _State()


class Graph:
    """What symbolic functions call ``g``: it emits nodes. ``types`` are those of the results, if only a trace knows them."""

    def __init__(self, cx: Cx, types: Any = None) -> None:
        self._cx, self._types = cx, types

    def op(self, name: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Emits a node. The names of attributes end in their kind: ``alpha_f``, ``axes_i``, ``value_t``."""
        domain, _, operator = name.rpartition("::")
        domain = "" if domain == "onnx" else domain
        named = {key[:-2] if key[-2:-1] == "_" else key: value for key, value in attributes.items()}
        given = [value._value if isinstance(value, Node) else value for value in inputs]
        if not domain:
            _attributes_as_inputs(operator, given, named)
        made = self._cx._emit(operator, given, domain, None if outputs == 1 and not domain else outputs, named, self._types)
        return tuple(Node(self._cx, one) for one in made) if isinstance(made, tuple) else Node(self._cx, made)


def _attributes_as_inputs(operator: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    """Makes inputs of what was an attribute in older opsets: the axes of ``Unsqueeze``. Integers are vectors then, as ``k`` of ``TopK``."""
    try:
        from onnx import defs
    except ImportError:
        return
    if not defs.has(operator):
        return
    schema = defs.get_schema(operator)
    for at, formal in enumerate(schema.inputs):
        name = next((name for name in attributes if name.lower() == formal.name.lower() and name not in schema.attributes), None)
        if name is not None:
            inputs += [None] * (at + 1 - len(inputs))
            value = attributes.pop(name)
            inputs[at] = [value] if isinstance(value, int) else value


class Node:
    """A value as symbolic functions have it. Types are inferred; what they set is not needed."""

    def __init__(self, cx: Cx, value: Value) -> None:
        self._cx, self._value = cx, value

    def type(self) -> Node:
        """The type: this object."""
        return self

    def setType(self, _: Any) -> Node:  # noqa: N802
        """The value itself."""
        return self

    def scalarType(self) -> str:  # noqa: N802
        """The element type, as TorchScript calls it."""
        import torch

        dtype = getattr(torch, self._value.dtype)
        return {torch.float32: "Float", torch.float64: "Double", torch.float16: "Half", torch.int64: "Long", torch.int32: "Int"}.get(
            dtype, str(self._value.dtype).capitalize()
        )

    def dim(self) -> int:
        """The number of dimensions."""
        return self._value.rank

    def sizes(self) -> list[int | None]:
        """The sizes; None for those that are dynamic."""
        return [size if isinstance(size, int) else None for size in self._value.shape]


def _translation(
    symbolic: Callable[..., Any], arguments: Callable[[list[Any]], tuple[Any, ...]] | None = None, types: Any = None
) -> Callable[..., Any]:
    """A symbolic function as a translation. ``arguments`` makes its arguments of the tensors among them, ``types`` are those of its results,
    if they are known."""

    def translate(cx: Cx, *args: Any, **kwargs: Any) -> Any:
        given = tuple(Node(cx, value) if isinstance(value, Value) else value for value in (*args, *kwargs.values()))
        if arguments:
            given = arguments([Node(cx, value) for value in args[0]])
        found = symbolic(Graph(cx, types), *given)
        plain = [one._value if isinstance(one, Node) else one for one in (found if isinstance(found, (list, tuple)) else [found])]
        return plain[0] if len(plain) == 1 else plain

    return translate


def registered(opset: int | None) -> dict[Any, Callable[..., Any]]:
    """Translations of the ops for which ``torch.onnx.register_custom_op_symbolic`` was called."""
    import torch

    found: dict[Any, Callable[..., Any]] = {}
    for place in ("torch.onnx._internal.torchscript_exporter.registration", "torch.onnx._internal.registration"):
        with contextlib.suppress(ImportError, AttributeError):
            groups = importlib.import_module(place).registry._registry
            for name, group in groups.items():
                versions = group._functions._overrides
                fitting = [version for version in versions if (opset is None or version <= opset) and _is_of_user(versions[version])]
                if not fitting:
                    continue
                namespace, op = name.split("::")
                packet = getattr(getattr(torch.ops, namespace), op, None)
                found[name if packet is None else packet] = _translation(versions[max(fitting)])
            break
    return found


def _is_of_user(function: Any) -> bool:
    """Whether a symbolic function is not one of PyTorch or torchvision: these are for ops that have translations."""
    return not str(getattr(function, "__module__", "")).startswith(("torch.", "torchvision."))


@contextlib.contextmanager
def used(found: dict[Any, Callable[..., Any]], *, exact: bool = False) -> Iterator[None]:
    """While this lasts, a call of an autograd function that has a symbolic function is an op. ``found`` gets the translations of these
    ops, which live on: the captured program has them. ``exact`` says that sizes in a trace are those of all inputs."""
    import torch

    with _capture.LOCK, contextlib.ExitStack() as stack:
        for cls in _with_symbolic(torch.autograd.Function):
            if "forward" in vars(cls):
                stack.callback(setattr, cls, "forward", vars(cls)["forward"])
            else:
                stack.callback(delattr, cls, "forward")
            cls.forward = staticmethod(_as_op_while_captured(cls, cls.forward))
        stack.callback(setattr, _STATE, "found", None)
        _STATE.found, _STATE.exact = found, exact
        yield


def _with_symbolic(cls: Any) -> Iterator[Any]:
    """The autograd functions that have a symbolic function."""
    for inner in cls.__subclasses__():
        if hasattr(inner, "symbolic"):
            yield inner
        yield from _with_symbolic(inner)


def _as_op_while_captured(cls: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
    """``forward`` of an autograd function that calls an op. Callers may hold its ``apply``, so that this is what can be replaced."""
    import torch

    with_ctx = cls.setup_context == torch.autograd.Function.setup_context

    def replaced(*args: Any) -> Any:
        if _STATE.found is None or _STATE.within:
            return forward(*args)
        return _as_op(cls, args[1:] if with_ctx else args, _STATE.found)

    return replaced


def function_of(kind: str) -> str:
    """The kind of a node in a trace, without the number of the call if it is one of an autograd function."""
    return kind.rpartition("_")[0] if kind.startswith(f"{_NAMESPACE}::") else kind


@functools.cache
def _library() -> Any:
    import torch

    library: Any = torch.library.Library
    return library(_NAMESPACE, "FRAGMENT")


def _as_op(cls: Any, args: tuple[Any, ...], found: dict[Any, Callable[..., Any]]) -> Any:
    """Calls the op that stands for one call of an autograd function."""
    import torch

    at = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
    tensors = [args[i] for i in at]
    others = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
    single = True

    def arguments(tensors: list[Any]) -> tuple[Any, ...]:
        given = list(others)
        for i, tensor in zip(at, tensors):
            given[i] = tensor
        return tuple(given)

    def forward(tensors: list[Any]) -> list[Any]:
        nonlocal single
        _STATE.within = True
        try:
            results = cls.apply(*arguments(tensors))
        finally:
            _STATE.within = False
        single = isinstance(results, torch.Tensor)
        # An op returns no tensor that it was given.
        return [one.clone() if any(one is tensor for tensor in tensors) else one for one in ([results] if single else results)]

    name = f"{cls.__name__}_{next(_NUMBERS)}"
    library = _library()
    library.define(f"{name}(Tensor[] tensors) -> Tensor[]")
    library.impl(name, forward, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{_NAMESPACE}::{name}", forward, lib=library)
    op = getattr(getattr(torch.ops, _NAMESPACE), name)
    results = op(tensors)
    # A program has the types of results, a trace has not.
    types = _types(results) if torch._C._get_tracing_state() else None
    found[op] = _translation(cls.symbolic, arguments, types)
    return results[0] if single else tuple(results)


def _types(results: list[Any]) -> list[tuple[str, list[int | None]]]:
    """Element types and sizes of results in a trace."""
    import torch

    tracer: Any = torch._C
    state = tracer._get_tracing_state()
    # Else it warns of sizes that become numbers.
    tracer._set_tracing_state(None)
    try:
        return [(str(r.dtype).removeprefix("torch."), [size if _STATE.exact else None for size in r.shape]) for r in results]
    finally:
        tracer._set_tracing_state(state)
