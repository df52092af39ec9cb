"""Translations of ops that are written in Python: by decorator, and in torch.onnx's
``custom_translation_table``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ._cx import Cx, Function, Value, is_script
from ._pt2onnx import ElementType, Scope
from ._pt2onnx import Value as NativeValue
from ._types import is_items

if TYPE_CHECKING:
    from ._pt2onnx import Argument, Translation

F = TypeVar("F", bound=Callable[..., Any])

#: An op: ``torch.ops.mylib.mix``, one of its overloads, its name, or a function of Python.
Op = object

#: The translations that were registered by decorator: by the name of the op and whether they are
#: for complex tensors, with its schema if that is known.
_REGISTERED: dict[tuple[str, bool], tuple[str, Function]] = {}


class Complex:
    """A translation in a table that is for nodes with complex tensors.

    Args:
        function: The translation.
    """

    def __init__(self, function: Function) -> None:
        self.function = function


def translation(op: Op, *, is_complex: bool = False) -> Callable[[F], F]:
    """Registers a function as the translation of an op, for all later exports and conversions.

    The function takes a ``Cx`` and the arguments of the op as the program has them: tensors are
    ``Value``, numbers and lists are Python's, element types are names (``"float32"``), sizes that
    are known at run time only are ``Value`` of type int64. It returns the result, or a tuple of
    results, with the types and shapes that PyTorch has::

        @pt2onnx.translation("mylib::mix")
        def mix(cx, x, y, weight=0.5):
            return cx.add(cx.mul(x, weight), cx.mul(y, 1 - weight))

    It replaces any other translation of that op.

    Args:
        op: The op's name, ``"mylib::mix"`` or ``"aten::add.Tensor"``, or the op itself,
            ``torch.ops.mylib.mix.default``.
        is_complex: Whether the function is for nodes that take or give complex tensors, instead of
            those that do not. It gets and returns pairs of real and imaginary parts, in a last
            dimension of 2.

    Raises:
        TypeError: ``op`` is neither a name nor an op, or the translation is not a function.
    """
    names = list(zip(_names(op), _schemas(op), strict=False))

    def register(function: F) -> F:
        if not callable(function):
            kind = type(function).__name__
            raise TypeError(f"the translation of {op} must be a function, not {kind}")
        for name, schema in names:
            _REGISTERED[name, is_complex] = schema, function
        return function

    return register


def translations(
    table: Mapping[Op, Function | Complex | Sequence[Function | Complex]] | None = None,
) -> list[Translation]:
    """The registered translations, then those of a table, as Rust takes them.

    Args:
        table: ``custom_translation_table``.

    Returns:
        Schema, function, and whether it is for complex tensors; last the bytes of a model with the
        functions over ONNX Script that are called instead of traced, if there are any.

    Raises:
        TypeError: A value of the table is not a function.
    """
    found = [
        (schema, [function], is_complex)
        for (_, is_complex), (schema, function) in _REGISTERED.items()
    ]
    for op, function in (table or {}).items():
        given: list[Function | Complex] = []
        if isinstance(function, Sequence):
            given += function
        else:
            given.append(function)
        of_pairs = [each.function for each in given if isinstance(each, Complex)]
        functions = [each for each in given if not isinstance(each, Complex)]
        if not all(callable(f) for f in (*functions, *of_pairs)):
            raise TypeError(f"custom_translation_table: the value for {op} is not a function")
        for schema in _schemas(op):
            each = ((functions, False), (of_pairs, True))
            found += [(schema, some, is_complex) for some, is_complex in each if some]
    made: list[Translation] = [
        (op, _native_callback(functions), is_complex) for op, functions, is_complex in found
    ]
    if scripts := [f for _, functions, _ in found for f in functions if is_script(f)]:
        from . import _onnxscript

        made += _onnxscript.library(scripts)
    return made


def entries(table: Mapping[Op, Function]) -> list[Translation]:
    """Translations with a parameter ``cx``, as Rust takes them."""
    return [
        (schema, _native_callback([function]), False)
        for op, function in table.items()
        for schema in _schemas(op)
    ]


def _schemas(op: Op) -> list[str]:
    """The schemas of an op. Archives of TorchScript have neither types nor schemas: names then."""
    if hasattr(op, "overloads"):
        return [schema for overload in _overloads(op) for schema in _schemas(overload)]
    schema = getattr(getattr(op, "_opoverload", op), "_schema", None)
    return _names(op) if schema is None else [str(schema)]


def _overloads(op: Any) -> list[Op]:
    return [getattr(op, overload) for overload in op.overloads()]


def _names(op: Op) -> list[str]:
    """The names of an op, as the program has them: ``aten::add.Tensor``; of an op without an
    overload, all of its overloads."""
    if isinstance(op, str):
        namespace, separator, own = op.partition("::")
        if not (namespace and own):
            named = (
                "its name, as in 'mylib::mix'"
                if separator or not op
                else f"its namespace, as in 'mylib::{op}'"
            )
            raise TypeError(f"{op!r} is not the name of an op: give {named}")
        return [op.removesuffix(".default")]
    if hasattr(op, "overloads"):
        return [name for overload in _overloads(op) for name in _names(overload)]
    # torch.library.custom_op returns an object with the op.
    inner = getattr(op, "_opoverload", None)
    if inner is not None:
        return _names(inner)
    schema = getattr(op, "_schema", None)
    if schema is not None:
        overload = schema.overload_name
        return [f"{schema.name}.{overload}" if overload else schema.name]
    module, name = getattr(op, "__module__", None), getattr(op, "__name__", None)
    if callable(op) and module and name:
        return [f"{module.removeprefix('_')}.{name}", f"{module}.{name}"]
    raise TypeError(f"{op!r} is neither an op nor the name of one")


def _native_callback(functions: list[Function]) -> Callable[[Scope, list[Argument]], list[object]]:
    """The first of several functions that fits, as Rust calls it: with a scope, and for each
    argument its name, whether it was given by name, and its value."""

    def call(scope: Scope, given: list[Argument]) -> list[object]:
        own = next((f for f in functions if _takes_cx(f)), None)
        if own is None:
            from . import _onnxscript

            cx = _onnxscript.context(scope)
        else:
            cx = Cx(scope)
        args = [_to_value(cx, value) for _, by_name, value in given if not by_name]
        kwargs = {name: _to_value(cx, value) for name, by_name, value in given if by_name}
        if own is None:
            from . import _onnxscript

            result: object = _onnxscript.trace(cx, functions, args, kwargs)
        else:
            result = own(cx, *args, **kwargs)
        results = result if is_items(result) else [result]
        return [r if r is None or isinstance(r, Value) else cx.constant(r) for r in results]

    return call


def _takes_cx(function: Function) -> bool:
    try:
        parameters = inspect.signature(getattr(function, "function", function)).parameters
    except (TypeError, ValueError):
        return False
    return next(iter(parameters), None) == "cx"


def _to_value(cx: Cx, value: object) -> object:
    """An argument as functions get it."""
    if isinstance(value, NativeValue):
        return cx.wrap(value)
    if isinstance(value, list):
        return [_to_value(cx, item) for item in cast(list[object], value)]
    if isinstance(value, ElementType):
        # torch.onnx passes numbers of TensorProto.DataType.
        return value.name if cx._value_class is Value else value.number
    return value
