"""The interface of translations in Python: ``Cx``, which emits operators, and ``Value``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._pt2onnx import OPERATORS, Scope
from ._pt2onnx import Value as NativeValue
from ._types import is_items

if TYPE_CHECKING:
    from ._pt2onnx import Constant, OutputType

#: A translation, or a function over ONNX Script.
Function = Callable[..., Any]

#: The operators of ONNX, by their names in lower case and without underscores.
_BY_NAME = {name.lower(): name for name in OPERATORS}

#: The attributes of ONNX's Constant that hold numbers, and their element types.
_CONSTANTS = {
    "value_int": "int64",
    "value_ints": "int64",
    "value_float": "float32",
    "value_floats": "float32",
}


class Value:
    """A value of the model that is being made. Arithmetic emits operators: ``x * 2 + y``."""

    def __init__(self, cx: Cx, value: NativeValue) -> None:
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
        raise TypeError(
            "the elements of a tensor are known when the model runs, not when it is made: "
            "use cx.where or cx.If"
        )

    def __add__(self, other: object) -> Value:
        return self._binary("Add", self, other)

    def __radd__(self, other: object) -> Value:
        return self._binary("Add", other, self)

    def __sub__(self, other: object) -> Value:
        return self._binary("Sub", self, other)

    def __rsub__(self, other: object) -> Value:
        return self._binary("Sub", other, self)

    def __mul__(self, other: object) -> Value:
        return self._binary("Mul", self, other)

    def __rmul__(self, other: object) -> Value:
        return self._binary("Mul", other, self)

    def __truediv__(self, other: object) -> Value:
        return self._binary("Div", self, other)

    def __rtruediv__(self, other: object) -> Value:
        return self._binary("Div", other, self)

    def __pow__(self, other: object) -> Value:
        return self._binary("Pow", self, other)

    def __mod__(self, other: object) -> Value:
        return self._binary("Mod", self, other)

    def __matmul__(self, other: object) -> Value:
        return self._binary("MatMul", self, other)

    def __neg__(self) -> Value:
        made: Value = self._cx.emit("Neg", self)
        return made

    def __lt__(self, other: object) -> Value:
        return self._binary("Less", self, other)

    def __le__(self, other: object) -> Value:
        return self._binary("LessOrEqual", self, other)

    def __gt__(self, other: object) -> Value:
        return self._binary("Greater", self, other)

    def __ge__(self, other: object) -> Value:
        return self._binary("GreaterOrEqual", self, other)

    def _binary(self, operator: str, left: object, right: object) -> Value:
        made: Value = self._cx.emit(operator, left, right)
        return made


class Cx:
    """Emits operators: ``cx.add(x, y)``, ``cx.reduce_sum(x, [-1], keepdims=0)``, ``cx.mat_mul(a,
    b)``.

    There is a method for each operator of ONNX; its name may be written ``mat_mul``, ``matmul`` or
    ``MatMul``. Positional arguments are the inputs, keywords the attributes, of the newest opset;
    models of older opsets are rewritten afterwards. Inputs may be None, numbers and lists of
    numbers, which get the type of the other inputs. ``outputs=N`` is the number of outputs where
    some are optional. The result is a ``Value``, or a tuple of them.
    """

    #: The class of the values of functions over this object.
    _value_class: type[Value] = Value

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operator = _BY_NAME.get(name.replace("_", "").lower())
        if operator is None:
            raise AttributeError(f"ONNX has no operator {name!r}")
        return lambda *inputs, **attributes: self.emit(operator, *inputs, **attributes)

    def emit(
        self,
        operator: str,
        *inputs: object,
        domain: str = "",
        outputs: int | None = None,
        **attributes: object,
    ) -> Any:
        """Emits a node of any domain: ``cx.emit("FusedMatMul", a, b, domain="com.microsoft")``.

        Args:
            operator: The operator.
            *inputs: Values, numbers, lists of numbers, arrays or None.
            domain: Its domain.
            outputs: The number of outputs, if some are optional.
            **attributes: Its attributes.
        """
        return self.emit_typed(operator, inputs, domain, outputs, attributes)

    def emit_typed(
        self,
        operator: str,
        inputs: Sequence[object],
        domain: str,
        outputs: int | None,
        attributes: Mapping[str, object],
        types: Sequence[OutputType] | None = None,
    ) -> Any:
        """Emits a node with outputs whose types PyTorch has not recorded.

        Args:
            operator: The operator.
            inputs: As for ``emit``.
            domain: Its domain.
            outputs: The number of outputs, if some are optional.
            attributes: Its attributes; those that are None are left out.
            types: Element type and sizes of each output.
        """
        attributes = {name: value for name, value in attributes.items() if value is not None}
        known = attributes.keys() <= {"value", *_CONSTANTS}
        if operator == "Constant" and not domain and len(attributes) == 1 and known:
            ((name, value),) = attributes.items()
            return self.constant(value, _CONSTANTS.get(name))
        given = [to_constant(value) for value in inputs]
        named = {name: to_constant(value) for name, value in attributes.items()}
        made = self._scope.emit(domain, operator, given, named, outputs, types)
        values = [self.wrap(value) for value in made]
        return values[0] if len(values) == 1 else tuple(values)

    def constant(self, value: object, dtype: str | None = None) -> Value:
        """A constant of a number, a list of numbers or a NumPy array."""
        return self.wrap(self._scope.constant(to_constant(value), dtype))

    def cast(self, x: object, dtype: str | None = None, **attributes: object) -> Any:
        """``x`` with elements of another type: ``"float16"``. Emits no node if it has that type."""
        if dtype is None:
            return self.emit_typed("Cast", [x], "", None, attributes)
        return self.wrap(self._scope.cast(x, dtype))

    def size_of(self, x: object, axis: int) -> Value:
        """The size of a dimension, as a 0-d int64 value."""
        return self.wrap(self._scope.size(x, axis))

    def recorded(self, output: int = 0) -> tuple[str, tuple[int | str, ...]] | None:
        """Element type and sizes that PyTorch recorded for an output of the op; None if the output
        is not a tensor."""
        found = self._scope.recorded(output)
        return (found[0].name, tuple(found[1])) if found else None

    def wrap(self, value: NativeValue) -> Value:
        """A value of Rust as functions get it."""
        return self._value_class(self, value)


def to_constant(value: Any) -> Constant:
    """An array or TensorProto as (element type, sizes, bytes); anything else stays."""
    if hasattr(value, "raw_data") and hasattr(value, "data_type"):
        import onnx.numpy_helper

        value = onnx.numpy_helper.to_array(value)
    if isinstance(value, Value):
        return value
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        return str(value.dtype), list(value.shape), value.tobytes()
    if is_items(value) and any(isinstance(item, Value) for item in value):
        raise TypeError(
            "a list of values cannot be an input: give them one by one, or join them by cx.concat"
        )
    return list(value) if is_items(value) else value


def is_script(function: object) -> bool:
    """Whether ``onnxscript.script`` compiled this function."""
    return hasattr(function, "function_ir") and hasattr(function, "to_function_proto")
