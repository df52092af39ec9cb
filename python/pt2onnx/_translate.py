"""Translations of ops that are written in Python: by decorator, and in torch.onnx's ``custom_translation_table``."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ._pt2onnx import OPERATORS, Scope
from ._pt2onnx import Value as _Native

F = TypeVar("F", bound=Callable[..., Any])

#: The translations that were registered by decorator: by the name of the op, with its schema if that is known.
_REGISTERED: dict[str, tuple[str, Callable[..., Any]]] = {}

#: The operators of ONNX, by their names in lower case and without underscores.
_BY_NAME = {name.lower(): name for name in OPERATORS}

#: The attributes of ONNX's Constant that hold numbers, and their element types.
_CONSTANTS = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}


def translation(op: Any) -> Callable[[F], F]:
    """Registers a function as the translation of an op, for all exports and conversions that follow.

    ``op`` is the op's name, ``"mylib::mix"`` or ``"aten::add.Tensor"``, or the op itself, ``torch.ops.mylib.mix.default``. The function
    takes a ``Cx`` and the arguments of the op as the program gives them: tensors are ``Value``, numbers and lists are Python's, element
    types are names (``"float32"``), sizes that are known at run time only are ``Value`` of type int64. It returns the result, or a tuple
    of results, with the types and shapes that PyTorch has::

        @pt2onnx.translation("mylib::mix")
        def mix(cx, x, y, weight=0.5):
            return cx.add(cx.mul(x, weight), cx.mul(y, 1 - weight))

    It replaces any other translation of that op. Raises TypeError if ``op`` is neither a name nor an op, or the translation no function.
    """
    names = list(zip(_names(op), _told(op)))

    def register(function: F) -> F:
        if not callable(function):
            raise TypeError(f"the translation of {op} must be a function, not {type(function).__name__}")
        for name, told in names:
            _REGISTERED[name] = told, function
        return function

    return register


class Value:
    """A value of the model that is being made. Arithmetic emits operators: ``x * 2 + y``."""

    def __init__(self, cx: Cx, value: _Native) -> None:
        self._cx = cx
        self._value = value

    def __repr__(self) -> str:
        return f"Value({self.dtype}{list(self.shape)})"

    @property
    def dtype(self) -> Any:
        """The element type, as PyTorch and NumPy call it: ``"float32"``."""
        return self._cx._scope.dtype(self._value).name

    @property
    def shape(self) -> Any:
        """The sizes: ints, and names or expressions of dynamic dimensions."""
        return tuple(self._cx._scope.shape(self._value))

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self._cx._scope.shape(self._value))

    def __bool__(self) -> bool:
        raise TypeError("the elements of a tensor are known when the model runs, not when it is made: use cx.where or cx.If")

    def __add__(self, other: Any) -> Any:
        return self._cx.emit("Add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._cx.emit("Add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._cx.emit("Sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._cx.emit("Sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._cx.emit("Mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._cx.emit("Mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._cx.emit("Div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._cx.emit("Div", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._cx.emit("Pow", self, other)

    def __mod__(self, other: Any) -> Any:
        return self._cx.emit("Mod", self, other)

    def __matmul__(self, other: Any) -> Any:
        return self._cx.emit("MatMul", self, other)

    def __neg__(self) -> Any:
        return self._cx.emit("Neg", self)

    def __lt__(self, other: Any) -> Any:
        return self._cx.emit("Less", self, other)

    def __le__(self, other: Any) -> Any:
        return self._cx.emit("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._cx.emit("Greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._cx.emit("GreaterOrEqual", self, other)


class Cx:
    """Emits operators: ``cx.add(x, y)``, ``cx.reduce_sum(x, [-1], keepdims=0)``, ``cx.mat_mul(a, b)``.

    There is a method for each operator of ONNX; its name may be written ``mat_mul``, ``matmul`` or ``MatMul``. Positional arguments are
    the inputs, keywords the attributes, of the newest opset; models of older opsets are rewritten afterwards. Inputs may be None,
    numbers and lists of numbers, which get the type of the other inputs. ``outputs=N`` says how many outputs there are where some are
    optional. The result is a ``Value``, or a tuple of them.
    """

    _wrapper: type[Value] = Value

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operator = _BY_NAME.get(name.replace("_", "").lower())
        if operator is None:
            raise AttributeError(f"ONNX has no operator {name!r}")
        return lambda *inputs, **attributes: self.emit(operator, *inputs, **attributes)

    def emit(self, operator: str, *inputs: Any, domain: str = "", outputs: int | None = None, **attributes: Any) -> Any:
        """Emits a node of any domain: ``cx.emit("FusedMatMul", a, b, domain="com.microsoft", alpha=0.5)``."""
        return self._emit(operator, inputs, domain, outputs, attributes)

    def _emit(
        self, operator: str, inputs: Sequence[Any], domain: str, outputs: int | None, attributes: Mapping[str, Any], types: Any = None
    ) -> Any:
        """Emits a node. ``types`` are those of the outputs, as (element type, sizes), if PyTorch recorded none."""
        attributes = {name: value for name, value in attributes.items() if value is not None}
        if operator == "Constant" and not domain and len(attributes) == 1 and attributes.keys() <= {"value", *_CONSTANTS}:
            ((name, value),) = attributes.items()
            return self.constant(value, _CONSTANTS.get(name))
        given = [self._constant(value) for value in inputs]
        named = {name: self._constant(value) for name, value in attributes.items()}
        made = [self._wrapper(self, v) for v in self._scope.emit(domain, operator, given, named, outputs, types)]
        return made[0] if len(made) == 1 else tuple(made)

    def constant(self, value: Any, dtype: str | None = None) -> Value:
        """A constant of a number, a list of numbers or a NumPy array."""
        return self._wrapper(self, self._scope.constant(self._constant(value), dtype))

    def cast(self, x: Any, dtype: Any = None, **attributes: Any) -> Any:
        """``x`` with elements of another type: ``"float16"``. No node is emitted if it has that type."""
        if dtype is None:
            return self.emit("Cast", x, **attributes)
        return self._wrapper(self, self._scope.cast(x, dtype))

    def size_of(self, x: Any, axis: int) -> Value:
        """The size of a dimension, as a 0-d int64 value."""
        return self._wrapper(self, self._scope.size(x, axis))

    def recorded(self, output: int = 0) -> tuple[str, tuple[int | str, ...]] | None:
        """Element type and sizes that PyTorch recorded for an output of the op; None if it is not a tensor."""
        found = self._scope.recorded(output)
        return (found[0].name, tuple(found[1])) if found else None

    @staticmethod
    def _constant(value: Any) -> Any:
        """An array or TensorProto as (element type, sizes, bytes); anything else as it is."""
        if hasattr(value, "raw_data") and hasattr(value, "data_type"):
            import onnx.numpy_helper

            value = onnx.numpy_helper.to_array(value)
        if isinstance(value, Value):
            return value
        if hasattr(value, "numpy"):
            value = value.numpy()
        if hasattr(value, "dtype") and hasattr(value, "tobytes"):
            return str(value.dtype), list(value.shape), value.tobytes()
        if isinstance(value, (list, tuple)) and any(isinstance(item, Value) for item in value):
            raise TypeError("a list of values is no input: give them one by one, or join them by cx.concat")
        return list(value) if isinstance(value, tuple) else value


def translations(table: Mapping[Any, Any] | None = None) -> list[tuple[str, Callable[..., Any]] | bytes]:
    """The registered translations, then those of a table, as Rust takes them: with a model that has the functions which they call."""
    found: list[tuple[str, Any]] = list(_REGISTERED.values())
    for op, function in (table or {}).items():
        functions = list(function) if isinstance(function, Sequence) else [function]
        if not all(callable(f) for f in functions):
            raise TypeError(f"custom_translation_table: the value for {op} is not a function")
        found += [(told, functions) for told in _told(op)]
    scripts = [f for _, given in found for f in (given if isinstance(given, list) else [given]) if _is_script(f)]
    called = _library(scripts)
    return [(op, _caller(function)) for op, function in found] + ([called] if called else [])


def entries(table: Mapping[Any, Callable[..., Any]]) -> list[tuple[str, Callable[..., Any]]]:
    """Translations with a parameter ``cx``, as Rust takes them."""
    return [(told, _caller(function)) for op, function in table.items() for told in _told(op)]


def _told(op: Any) -> list[str]:
    """The schemas of an op, or its names if it has none: archives of TorchScript have neither types nor schemas."""
    if hasattr(op, "overloads"):
        return [told for overload in op.overloads() for told in _told(getattr(op, overload))]
    schema = getattr(getattr(op, "_opoverload", op), "_schema", None)
    return _names(op) if schema is None else [str(schema)]


def _names(op: Any) -> list[str]:
    """The names of an op, as the program has them: ``aten::add.Tensor``; of an op without an overload, all of its overloads."""
    if isinstance(op, str):
        namespace, separator, own = op.partition("::")
        if not (namespace and own):
            named = "its name, as in 'mylib::mix'" if separator or not op else f"its namespace, as in 'mylib::{op}'"
            raise TypeError(f"{op!r} is not the name of an op: give {named}")
        return [op.removesuffix(".default")]
    if hasattr(op, "overloads"):
        return [name for overload in op.overloads() for name in _names(getattr(op, overload))]
    if hasattr(op, "_opoverload"):
        # What torch.library.custom_op returns.
        return _names(op._opoverload)
    schema = getattr(op, "_schema", None)
    if schema is not None:
        return [f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name]
    module, name = getattr(op, "__module__", None), getattr(op, "__name__", None)
    if callable(op) and module and name:
        return [f"{module.removeprefix('_')}.{name}", f"{module}.{name}"]
    raise TypeError(f"{op!r} is neither an op nor the name of one")


def _caller(function: Any) -> Callable[[Scope, list[tuple[str, bool, Any]]], list[Any]]:
    """The function as Rust calls it: with a scope and (name, by name, value) of each argument."""

    def call(scope: Scope, given: list[tuple[str, bool, Any]]) -> list[Any]:
        functions = function if isinstance(function, list) else [function]
        own = [f for f in functions if next(iter(_parameters(f)), None) == "cx"]
        cx = Cx(scope) if own else _script_cx(scope)
        args = [_wrapped(cx, value) for _, by_name, value in given if not by_name]
        kwargs = {name: _wrapped(cx, value) for name, by_name, value in given if by_name}
        if own:
            result = own[0](cx, *args, **kwargs)
        else:
            result = _traced(cx, _fitting(functions, args), args, kwargs)
        results = result if isinstance(result, (tuple, list)) else [result]
        return [r if r is None or isinstance(r, Value) else cx.constant(r) for r in results]

    return call


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(getattr(function, "function", function)).parameters)
    except (TypeError, ValueError):
        return []


def _wrapped(cx: Cx, value: Any) -> Any:
    """An argument as functions get it."""
    if isinstance(value, _Native):
        return cx._wrapper(cx, value)
    if isinstance(value, list):
        return [_wrapped(cx, item) for item in value]
    if type(value).__name__ == "ElementType":
        # torch.onnx gives numbers of TensorProto.DataType.
        return value.name if cx._wrapper is Value else value.number
    return value


# Functions over ONNX Script.


def _script_cx(scope: Scope) -> Cx:
    """A ``Cx`` whose values look like those of ONNX Script."""
    import onnx_ir as ir

    class ScriptValue(Value):
        """A value with the types of onnx_ir."""

        @property
        def dtype(self) -> Any:
            return ir.DataType(self._cx._scope.dtype(self._value).number)

        @property
        def shape(self) -> Any:
            return ir.Shape(self._cx._scope.shape(self._value))

    cx = Cx(scope)
    cx._wrapper = ScriptValue
    return cx


def _is_script(function: Any) -> bool:
    """Whether this is a function that ``onnxscript.script`` has compiled."""
    return hasattr(function, "function_ir") and hasattr(function, "to_function_proto")


def _called(function: Any) -> list[Any]:
    """A compiled function, and those that it calls."""
    found = [function]
    for one in found:
        inner = one.function_ir.get_called_functions().values()
        found += [f for f in inner if all(f is not known for known in found)]
    return found


def _has_bodies(function: Any) -> bool:
    """Whether a compiled function, or one that it calls, chooses or loops. Python cannot run it then without its inputs."""
    nodes = [node for one in _called(function) for node in one.to_function_proto().node]
    return any(attribute.HasField("g") for node in nodes for attribute in node.attribute)


def _library(functions: list[Any]) -> bytes | None:
    """A model with the functions that are called as they are, because they have bodies. None if there are none."""
    called = [one for function in functions for inner in _called(function) if _has_bodies(inner) for one in _called(inner)]
    unique = {id(one): one for one in called}.values()
    if not unique:
        return None
    import onnx

    protos = [one.to_function_proto() for one in unique]
    if len({(proto.domain, proto.name) for proto in protos}) < len(protos):
        raise ValueError("custom_translation_table: two functions with control flow have the same name and domain")
    graph = onnx.helper.make_graph([], "functions", [], [])
    versions = {opset.domain: opset.version for proto in protos for opset in proto.opset_import}
    versions.update({proto.domain: 1 for proto in protos})
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]
    bound: bytes = onnx.helper.make_model(graph, functions=protos, opset_imports=opsets).SerializeToString()
    return bound


def _call(cx: Cx, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Emits a call of a compiled function."""
    ir = function.function_ir
    names = list(inspect.signature(function.function).parameters)
    given = {**dict(zip(names, args)), **_known(function, dict(kwargs))}
    inputs = [value.name for value in ir.inputs]
    attributes = {name: given.get(name, attribute.value) for name, attribute in ir.attributes.items()}
    values = [given.get(name) for name in inputs]
    return cx.emit(ir.name, *values, domain=ir.domain, outputs=len(ir.outputs), **attributes)


def _traced(cx: Cx, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a function over ONNX Script's operators, each of which emits a node."""
    if _is_script(function) and _has_bodies(function):
        return _call(cx, function, args, kwargs)
    with _evaluating(cx):
        # The body of a scripted function is traced, so that its nodes become the model's.
        return getattr(function, "function", function)(*args, **_known(function, kwargs))


def _known(function: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that a function takes: it may leave out those that mean nothing to it."""
    try:
        parameters = inspect.signature(getattr(function, "function", function)).parameters
    except (TypeError, ValueError):
        return kwargs
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return kwargs
    return {name: value for name, value in kwargs.items() if name in parameters}


def _fitting(functions: list[Any], args: list[Any]) -> Any:
    """Of several functions, the first whose annotations allow the element types of the arguments."""

    def fits(function: Any) -> bool:
        try:
            signature = inspect.signature(getattr(function, "function", function), eval_str=True)
        except Exception:
            # Annotations of names that are known to type checkers only.
            return True
        for parameter, arg in zip(signature.parameters.values(), args):
            wanted = getattr(parameter.annotation, "dtype", None)
            if wanted is not None and isinstance(arg, Value) and int(wanted) != int(arg.dtype):
                return False
        return True

    if len(functions) == 1:
        return functions[0]
    return next((f for f in functions if fits(f)), functions[0])


@contextlib.contextmanager
def _evaluating(cx: Cx) -> Iterator[None]:
    """While this lasts, ONNX Script's operators emit nodes."""
    from onnxscript import evaluator

    class Emitter:
        """What ONNX Script calls for each operator; ``eval`` is how versions before 0.6 call it."""

        def eval_op(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            return emit(op.name, op.domain, op.op_schema, args, kwargs)

        def eval(self, schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            return emit(schema.name, schema.domain, schema, args, kwargs)

        def eval_function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            if _has_bodies(function):
                return _call(cx, function, args, kwargs)
            return function.function(*args, **kwargs)

    def emit(name: str, domain: str, schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        inputs, attributes = list(args), dict(kwargs)
        if schema is not None:
            # Inputs may be given by name, attributes by position.
            formal = [i.name for i in schema.inputs]
            variadic = bool(schema.inputs) and "variadic" in str(schema.inputs[-1].option).lower()
            if len(inputs) > len(formal) and not variadic:
                attributes.update(zip(schema.attributes, inputs[len(formal) :]))
                inputs = inputs[: len(formal)]
            for i, name_ in enumerate(formal):
                if name_ in attributes:
                    inputs += [None] * (i + 1 - len(inputs))
                    inputs[i] = attributes.pop(name_)
        if any(callable(value) and hasattr(value, "function_ir") for value in attributes.values()):
            raise TypeError(f"{name} with a body cannot be emitted by a translation")
        outputs = attributes.pop("_outputs", None)
        return cx.emit(name, *inputs, domain=domain, outputs=outputs, **attributes)

    with evaluator.default_as(Emitter()):
        yield
