"""Translations that are functions over ONNX Script: they are traced, or called if they have
bodies."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol, cast

import onnx
import onnx_ir as ir
from onnxscript import evaluator

from ._cx import Cx, Function, Value, is_script
from ._pt2onnx import Scope


class _FunctionIr(Protocol):
    """The form of a compiled function that versions of onnxscript share."""

    name: str
    domain: str
    inputs: Sequence[ir.Value]
    outputs: Sequence[ir.Value]
    attributes: Mapping[str, ir.Attr]

    def get_called_functions(self) -> Mapping[str, Script]: ...


class Script(Protocol):
    """A function that ``onnxscript.script`` compiled."""

    function: Function
    function_ir: _FunctionIr

    def to_function_proto(self) -> onnx.FunctionProto: ...


class _Op(Protocol):
    """An operator of ONNX Script."""

    name: str
    domain: str
    op_schema: onnx.defs.OpSchema | None


class _ScriptValue(Value):
    """A value with the types of onnx_ir."""

    @property
    def dtype(self) -> ir.DataType:
        return ir.DataType(self._cx._scope.dtype(self._value).number)

    @property
    def shape(self) -> ir.Shape:
        return ir.Shape(self._cx._scope.shape(self._value))


def context(scope: Scope) -> Cx:
    """A ``Cx`` whose values look like those of ONNX Script."""
    cx = Cx(scope)
    cx._value_class = _ScriptValue
    return cx


def library(functions: Sequence[Function]) -> list[bytes]:
    """A model with the functions that are called because they have bodies, if there are any.

    Raises:
        ValueError: Two of them have the same name and domain.
    """
    scripts = [cast(Script, function) for function in functions]
    callers = [inner for one in scripts for inner in _with_called(one) if _has_bodies(inner)]
    unique = {id(one): one for caller in callers for one in _with_called(caller)}.values()
    if not unique:
        return []
    protos = [one.to_function_proto() for one in unique]
    if len({(proto.domain, proto.name) for proto in protos}) < len(protos):
        raise ValueError(
            "custom_translation_table: two functions with control flow have the same name and "
            "domain"
        )
    graph = onnx.helper.make_graph([], "functions", [], [])
    versions = {opset.domain: opset.version for one in protos for opset in one.opset_import}
    versions.update({proto.domain: 1 for proto in protos})
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = onnx.helper.make_model(graph, functions=protos, opset_imports=opsets)
    return [model.SerializeToString()]


def trace(
    cx: Cx, functions: Sequence[Function], args: Sequence[object], kwargs: Mapping[str, object]
) -> object:
    """Calls a function over ONNX Script's operators; each call emits a node.

    Args:
        cx: The context.
        functions: The overloads: the first whose annotations allow the element types is called.
        args: The positional arguments of the op.
        kwargs: Its keyword arguments. The function may leave out those that it ignores.
    """
    function = _overload(functions, args)
    if is_script(function) and _has_bodies(cast(Script, function)):
        return _call(cx, cast(Script, function), args, kwargs)
    with _evaluating(cx):
        # The body of a scripted function is traced, so that its nodes become the model's.
        return _plain(function)(*args, **_accepted(function, kwargs))


def _plain(function: object) -> Callable[..., object]:
    """The function of Python, which a compiled function holds."""
    return cast(Callable[..., object], getattr(function, "function", function))


def _with_called(function: Script) -> list[Script]:
    """A compiled function, and those that it calls."""
    found = [function]
    for one in found:
        inner = one.function_ir.get_called_functions().values()
        found += [f for f in inner if all(f is not known for known in found)]
    return found


def _has_bodies(function: Script) -> bool:
    """Whether a compiled function, or one that it calls, branches or loops. Python cannot run it
    then without its inputs."""
    nodes = [node for one in _with_called(function) for node in one.to_function_proto().node]
    return any(attribute.HasField("g") for node in nodes for attribute in node.attribute)


def _call(cx: Cx, function: Script, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Emits a call of a compiled function."""
    of = function.function_ir
    names = list(inspect.signature(function.function).parameters)
    given = {**dict(zip(names, args, strict=False)), **_accepted(function, kwargs)}
    attributes = {name: given.get(name, attr.value) for name, attr in of.attributes.items()}
    values = [given.get(value.name or "") for value in of.inputs]
    return cx.emit_typed(of.name, values, of.domain, len(of.outputs), attributes)


def _accepted(function: object, kwargs: Mapping[str, object]) -> Mapping[str, object]:
    """The keywords that a function has parameters for."""
    try:
        parameters = inspect.signature(_plain(function)).parameters
    except (TypeError, ValueError):
        return kwargs
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return kwargs
    return {name: value for name, value in kwargs.items() if name in parameters}


def _overload(functions: Sequence[Function], args: Sequence[object]) -> Function:
    """The first function whose annotations allow the element types of the arguments."""
    if len(functions) == 1:
        return functions[0]
    return next((f for f in functions if _allows(f, args)), functions[0])


def _allows(function: Function, args: Sequence[object]) -> bool:
    try:
        signature = inspect.signature(_plain(function), eval_str=True)
    except Exception:
        # Annotations of names that are known to type checkers only.
        return True
    for parameter, arg in zip(signature.parameters.values(), args, strict=False):
        wanted = getattr(parameter.annotation, "dtype", None)
        if wanted is not None and isinstance(arg, Value) and int(wanted) != int(arg.dtype):
            return False
    return True


class _Emitter:
    """The evaluator that ONNX Script calls for each operator."""

    def __init__(self, cx: Cx) -> None:
        self._cx = cx

    def eval_op(self, op: _Op, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        """Emits a node."""
        return self._emit(op.name, op.domain, op.op_schema, args, kwargs)

    def eval(
        self,
        schema: onnx.defs.OpSchema,
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        """Emits a node: ``eval_op`` of versions before 0.6."""
        return self._emit(schema.name, schema.domain, schema, args, kwargs)

    def eval_function(
        self, function: Script, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        """Calls a compiled function."""
        if _has_bodies(function):
            return _call(self._cx, function, args, kwargs)
        return function.function(*args, **kwargs)

    def _emit(
        self,
        name: str,
        domain: str,
        schema: onnx.defs.OpSchema | None,
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        inputs, attributes = list(args), dict(kwargs)
        if schema is not None:
            # Inputs may be given by name, attributes by position.
            formal = [i.name for i in schema.inputs]
            variadic = bool(formal) and "variadic" in str(schema.inputs[-1].option).lower()
            if len(inputs) > len(formal) and not variadic:
                rest = inputs[len(formal) :]
                attributes.update(zip(schema.attributes, rest, strict=False))
                inputs = inputs[: len(formal)]
            for at, parameter in enumerate(formal):
                if parameter in attributes:
                    inputs += [None] * (at + 1 - len(inputs))
                    inputs[at] = attributes.pop(parameter)
        if any(callable(value) and hasattr(value, "function_ir") for value in attributes.values()):
            raise TypeError(f"{name} with a body cannot be emitted by a translation")
        outputs = attributes.pop("_outputs", None)
        return self._cx.emit_typed(name, inputs, domain, cast("int | None", outputs), attributes)


@contextlib.contextmanager
def _evaluating(cx: Cx) -> Generator[None, None, None]:
    """ONNX Script's operators emit nodes in this context."""
    with evaluator.default_as(cast(Any, _Emitter(cx))):
        yield
