"""Symbolic functions of torch.onnx's exporter of TorchScript: those of autograd functions, and
those that are registered for ops.

The registry of torch.onnx is not public. Where a version has another one, its functions are not
used.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from . import _errors
from ._capture import _patches
from ._capture._jit import JitSchema
from ._cx import Cx, Function, Value
from ._types import is_items

if TYPE_CHECKING:
    from ._pt2onnx import OutputType

#: The namespace of the ops that stand for calls of autograd functions.
_NAMESPACE = "pt2onnx_autograd"

_NUMBERS = itertools.count()

#: The names of element types in TorchScript, where they are not those of torch, capitalised.
_SCALAR_TYPES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "int64": "Long",
    "int32": "Int",
}


class _State(threading.local):
    """The state of a thread.

    ``found`` are translations of the calls that become ops, while a module is captured, ``within``
    is whether such a call runs, and ``exact`` whether sizes in a trace are those of all inputs.
    """

    found: dict[object, Function] | None = None
    within = False
    exact = False


_STATE = _State()


class Graph:
    """The parameter ``g`` of symbolic functions: it emits nodes. ``types`` are those of the
    results, if only a trace knows them."""

    def __init__(self, cx: Cx, types: Sequence[OutputType] | None = None) -> None:
        self._cx, self._types = cx, types

    def op(self, name: str, *inputs: object, outputs: int = 1, **attributes: object) -> object:
        """Emits a node. The names of attributes end in their kind: ``alpha_f``, ``value_t``."""
        domain, _, operator = name.rpartition("::")
        domain = "" if domain == "onnx" else domain
        named = {key[:-2] if key[-2:-1] == "_" else key: value for key, value in attributes.items()}
        given = [_plain(value) for value in inputs]
        if not domain:
            _attributes_as_inputs(operator, given, named)
        count = None if outputs == 1 and not domain else outputs
        made = self._cx.emit_typed(operator, given, domain, count, named, self._types)
        if is_items(made):
            return tuple(Node(self._cx, cast(Value, one)) for one in made)
        return Node(self._cx, made)


def _attributes_as_inputs(
    operator: str, inputs: list[object], attributes: dict[str, object]
) -> None:
    """Makes inputs of attributes of older opsets: the axes of ``Unsqueeze``. Integers become
    vectors, as ``k`` of ``TopK``."""
    try:
        from onnx import defs
    except ImportError:
        return
    if not defs.has(operator):
        return
    schema = defs.get_schema(operator)
    for at, formal in enumerate(schema.inputs):
        known = (name for name in attributes if name.lower() == formal.name.lower())
        name = next((name for name in known if name not in schema.attributes), None)
        if name is not None:
            inputs += [None] * (at + 1 - len(inputs))
            value = attributes.pop(name)
            inputs[at] = [value] if isinstance(value, int) else value


class Node:
    """A value as symbolic functions have it. Types are inferred; those that they set are not
    used."""

    def __init__(self, cx: Cx, value: Value) -> None:
        self._cx, self._value = cx, value

    def type(self) -> Node:
        """The type: this object."""
        return self

    def setType(self, _: object) -> Node:
        """The value itself."""
        return self

    def scalarType(self) -> str:
        """The element type, as TorchScript calls it."""
        dtype = str(self._value.dtype)
        return _SCALAR_TYPES.get(dtype, dtype.capitalize())

    def dim(self) -> int:
        """The number of dimensions."""
        return self._value.rank

    def sizes(self) -> list[int | None]:
        """The sizes; None for those that are dynamic."""
        return [size if isinstance(size, int) else None for size in self._value.shape]


def _plain(value: object) -> object:
    return value._value if isinstance(value, Node) else value


def _translation(
    symbolic: Function,
    arguments: Callable[[Sequence[object]], tuple[object, ...]] | None = None,
    types: Sequence[OutputType] | None = None,
) -> Function:
    """A symbolic function as a translation.

    Args:
        symbolic: The function.
        arguments: Makes its arguments from the tensors among them.
        types: The types of its results, if they are known.
    """

    def translate(cx: Cx, *args: object, **kwargs: object) -> object:
        if arguments is None:
            given = tuple(_node(cx, value) for value in (*args, *kwargs.values()))
        else:
            given = arguments([_node(cx, value) for value in cast(list[object], args[0])])
        found: object = symbolic(Graph(cx, types), *given)
        plain = [_plain(one) for one in (found if is_items(found) else [found])]
        return plain[0] if len(plain) == 1 else plain

    return translate


def _node(cx: Cx, value: object) -> object:
    return Node(cx, value) if isinstance(value, Value) else value


class Registered:
    """Translations of the ops for which ``torch.onnx.register_custom_op_symbolic`` was called.

    Args:
        opset: The opset, which a function must not be newer than.
    """

    def __init__(self, opset: int | None) -> None:
        #: The translations by op.
        self.table: dict[object, Function] = {}
        #: The names of the ops, of those that the model has, and of those that were translated
        #: since the last ``clear``.
        self._names: set[str] = set()
        self._present: set[str] = set()
        self._called: set[str] = set()
        for name, symbolic in _registered(opset):
            self._names.add(name)
            translate = self._logged(name, _translation(symbolic))
            namespace, op = name.split("::")
            packet = getattr(getattr(torch.ops, namespace), op, None)
            if packet is None:
                self.table[name] = translate
                continue
            for overload in packet.overloads():
                own = getattr(packet, overload)
                self.table[own] = _with_defaults(own._schema, translate)

    def clear(self) -> None:
        """Begins a translation."""
        self._called.clear()

    def check(self, ops: Collection[str]) -> None:
        """Checks that each function was called whose op is in a program, or in another one of the
        same model.

        Args:
            ops: The names of the ops of the program.

        Raises:
            UnsupportedOperatorError: One was not.
        """
        self._present |= self._names.intersection(ops)
        for name in sorted(self._present - self._called):
            raise _errors.new_error(
                _errors.UnsupportedOperatorError,
                f"the symbolic function that is registered for {name} cannot be used: the model "
                "has no node for this op. Remove it by torch.onnx.unregister_custom_op_symbolic",
                "unsupported_operator",
            )

    def _logged(self, name: str, translate: Function) -> Function:
        def call(cx: Cx, *args: object, **kwargs: object) -> object:
            self._called.add(name)
            return translate(cx, *args, **kwargs)

        return call


def _registered(opset: int | None) -> Iterator[tuple[str, Function]]:
    """The functions of users: the newest of each op that fits the opset."""
    for place in (
        "torch.onnx._internal.torchscript_exporter.registration",
        "torch.onnx._internal.registration",
    ):
        with contextlib.suppress(ImportError, AttributeError):
            groups = importlib.import_module(place).registry._registry
            for name, group in groups.items():
                versions = group._functions._overrides
                fitting = [
                    version
                    for version, function in versions.items()
                    if (opset is None or version <= opset) and _is_of_user(function)
                ]
                if fitting:
                    yield name, versions[max(fitting)]
            break


def _with_defaults(schema: JitSchema, translate: Function) -> Function:
    """A translation that gets all arguments in order: programs leave out those that have their
    default, and graphs of TorchScript have all."""

    def complete(cx: Cx, *args: object, **kwargs: object) -> object:
        rest = schema.arguments[len(args) :]
        given = [kwargs.get(one.name, one.default_value) for one in rest]
        return translate(cx, *args, *given)

    return complete


def _is_of_user(function: Function) -> bool:
    """Whether a symbolic function is not one of PyTorch or torchvision: these are for ops that have
    translations."""
    return not str(getattr(function, "__module__", "")).startswith(("torch.", "torchvision."))


@contextlib.contextmanager
def used(found: dict[object, Function], *, exact: bool = False) -> Generator[None, None, None]:
    """In this context, a call of an autograd function that has a symbolic function is an op.

    Args:
        found: Gets the translations of these ops, which live on: the captured program has them.
        exact: Whether sizes in a trace are those of all inputs.
    """
    with _patches.LOCK, contextlib.ExitStack() as stack:
        for cls in _with_symbolic(torch.autograd.Function):
            forward = staticmethod(_as_op_while_captured(cls, cls.forward))
            stack.enter_context(_patches.replaced(cls, "forward", forward))
        stack.callback(setattr, _STATE, "found", None)
        _STATE.found, _STATE.exact = found, exact
        yield


def _with_symbolic(cls: Any) -> Iterator[Any]:
    """The autograd functions that have a symbolic function."""
    for inner in cls.__subclasses__():
        if hasattr(inner, "symbolic"):
            yield inner
        yield from _with_symbolic(inner)


def _as_op_while_captured(cls: Any, forward: Callable[..., object]) -> Callable[..., object]:
    """``forward`` of an autograd function that calls an op. Callers may hold its ``apply``, so that
    ``forward`` is replaced."""
    with_ctx = cls.setup_context == torch.autograd.Function.setup_context

    def replaced(*args: object) -> object:
        if _STATE.found is None or _STATE.within:
            return forward(*args)
        return _as_op(cls, args[1:] if with_ctx else args, _STATE.found)

    return replaced


def function_of(kind: str) -> str:
    """The kind of a node in a trace, without the number of the call if it is one of an autograd
    function."""
    return kind.rpartition("_")[0] if kind.startswith(f"{_NAMESPACE}::") else kind


@functools.cache
def _library() -> torch.library.Library:
    make: Callable[..., torch.library.Library] = torch.library.Library
    return make(_NAMESPACE, "FRAGMENT")


def _as_op(cls: Any, args: tuple[object, ...], found: dict[object, Function]) -> object:
    """Calls the op that stands for one call of an autograd function."""
    at = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
    tensors = [args[i] for i in at]
    others = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
    single = True

    def arguments(tensors: Sequence[object]) -> tuple[object, ...]:
        given = list(others)
        for i, tensor in zip(at, tensors, strict=True):
            given[i] = tensor
        return tuple(given)

    def forward(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        nonlocal single
        _STATE.within = True
        try:
            results = cls.apply(*arguments(tensors))
        finally:
            _STATE.within = False
        single = isinstance(results, torch.Tensor)
        # An op returns no tensor that it was given.
        return [
            one.clone() if any(one is tensor for tensor in tensors) else one
            for one in ([results] if single else results)
        ]

    name = f"{cls.__name__}_{next(_NUMBERS)}"
    library: Any = _library()
    library.define(f"{name}(Tensor[] tensors) -> Tensor[]")
    library.impl(name, forward, "CompositeExplicitAutograd")
    cast(Any, torch.library).register_fake(f"{_NAMESPACE}::{name}", forward, lib=library)
    op = getattr(getattr(torch.ops, _NAMESPACE), name)
    results: list[torch.Tensor] = op(tensors)
    # A program has the types of results, a trace has not.
    types = _types(results) if torch._C._get_tracing_state() else None
    found[op] = _translation(cls.symbolic, arguments, types)
    return results[0] if single else tuple(results)


def _types(results: list[torch.Tensor]) -> list[OutputType]:
    """Element types and sizes of results in a trace."""
    tracer: Any = torch._C
    state = tracer._get_tracing_state()
    # Else it warns of sizes that become numbers.
    tracer._set_tracing_state(None)
    try:
        return [
            (
                str(result.dtype).removeprefix("torch."),
                [size if _STATE.exact else None for size in result.shape],
            )
            for result in results
        ]
    finally:
        tracer._set_tracing_state(state)
