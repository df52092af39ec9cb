"""Modules and functions in TorchScript: the archive, and what is told of its inputs, as Rust takes them."""

from __future__ import annotations

import dataclasses
import io
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from . import _errors, _shapes

#: Arguments with other sizes, and what these are.
Other = tuple[tuple[Any, ...], dict[str, Any], str]

#: Element types of numbers that stay free.
_FREE = {bool: "bool[]", int: "int64[]", float: "float64[]"}


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A value within the arguments: its path (``x``, ``images.0``), and its dynamic axes as they were given. A ``default`` was not given."""

    path: str
    value: Any
    axes: Any = None
    default: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return is_tensor(self.value)


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor."""
    import torch

    return isinstance(value, torch.Tensor)


class Script:
    """An archive of TorchScript and the arguments that it is converted for.

    ``free`` says whether numbers are inputs of the model, as in torch.onnx's exporter of TorchScript, or have the values of the arguments;
    ``may_fix``, whether they get these if there is no model with free ones. Dynamic sizes whose names are in ``fixed`` are those of the
    arguments; ``may_fix_sizes`` says whether some may be, if there is no model in which all are dynamic.
    """

    def __init__(self, archive: bytes, parameters: Sequence[str], leaves: Sequence[Leaf], free: bool = True) -> None:
        self.archive = archive
        self.parameters = list(parameters)
        self.leaves = list(leaves)
        self.free = free
        self.may_fix = True
        self.fixed: frozenset[str] = frozenset()
        self.may_fix_sizes = False

    @property
    def sizes(self) -> list[str]:
        """The names of the dynamic sizes."""
        sizes = Sizes()
        for leaf in self.leaves:
            if leaf.is_tensor:
                sizes.of(leaf)
        return list(sizes.known)

    @property
    def has_numbers(self) -> bool:
        """Whether there are numbers that may be free."""
        return any(type(leaf.value) in _FREE and not leaf.default for leaf in self.leaves)

    @property
    def input_leaves(self) -> list[Leaf]:
        """The arguments that are inputs of the model, in order."""
        return [leaf for leaf in self.leaves if self._is_input(leaf)]

    @property
    def input_count(self) -> int:
        """How many inputs the model has."""
        return sum(len(parts(leaf.value)) for leaf in self.input_leaves)

    def _is_input(self, leaf: Leaf) -> bool:
        return leaf.is_tensor or self._is_free(leaf)

    def _is_free(self, leaf: Leaf) -> bool:
        return self.free and not leaf.default and type(leaf.value) in _FREE

    def told(self) -> tuple[dict[str, str], dict[str, str]]:
        """What the option ``input`` says of each argument, and the names that were given to sizes which are called otherwise there."""
        sizes = Sizes(self.fixed)
        told = {leaf.path: self._text(leaf, sizes) for leaf in self.leaves}
        return told, sizes.renamed

    def _text(self, leaf: Leaf, sizes: Sizes) -> str:
        value = leaf.value
        if leaf.is_tensor:
            dtype = str(value.dtype).removeprefix("torch.")
            return f"{dtype}[{','.join(sizes.of(leaf))}]"
        if self._is_free(leaf):
            return _FREE[type(value)]
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return f'"{value}"'
        return "[]" if isinstance(value, (list, tuple, dict)) else repr(value)

    def inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Other arguments as inputs of the model, in order."""
        leaves = self._leaves(args, kwargs)
        kept = {leaf.path for leaf in self.input_leaves}
        return [part for leaf in leaves if leaf.path in kept for part in parts(leaf.value)]

    def at_other_sizes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Other]:
        """Arguments with larger dynamic dimensions, to be tried in turn."""
        axes = self._axes()
        leaves = [dataclasses.replace(leaf, axes=axes.get(leaf.path)) for leaf in self._leaves(args, kwargs) if leaf.is_tensor]
        return at_other_sizes(self.parameters, args, kwargs, leaves, self.fixed)

    def _leaves(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Leaf]:
        """The values within other arguments."""
        return flatten(bound(self.parameters, args, kwargs), None)

    def _axes(self) -> dict[str, Any]:
        """The dynamic axes of each argument by its path."""
        return {leaf.path: leaf.axes for leaf in self.leaves}


def parts(value: Any, result: bool = False) -> list[Any]:
    """What stands for an argument or result in the model: three tensors for a quantised one, its integers, scales and zero points.
    The types of scales and zero points are those that torch.onnx's exporter of TorchScript gives them."""
    import torch

    if not (isinstance(value, torch.Tensor) and value.is_quantized):
        return [value]
    ints = value.int_repr()
    if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        scale, zero_point = torch.tensor(value.q_scale()), torch.tensor(value.q_zero_point())
    else:
        scale, zero_point = value.q_per_channel_scales(), value.q_per_channel_zero_points()
    types = (torch.float32, ints.dtype) if result else (torch.float64, torch.int64)
    return [ints, scale.to(types[0]), zero_point.to(types[1])]


class Sizes:
    """Names of dynamic sizes. The program tells which sizes are equal; dimensions of one name that have different sizes are not."""

    def __init__(self, fixed: Collection[str] = ()) -> None:
        self._fixed = fixed
        #: The size of each in the example.
        self.known: dict[str, int] = {}
        self.renamed: dict[str, str] = {}

    def of(self, leaf: Leaf) -> list[str]:
        """The sizes of a tensor: numbers, or names."""
        given = dict(enumerate(leaf.axes)) if isinstance(leaf.axes, (list, tuple)) else dict(leaf.axes or {})
        given = _shapes.from_front(given, len(leaf.value.shape))
        return [self._one(leaf, axis, size, given.get(axis)) for axis, size in enumerate(leaf.value.shape)]

    def _one(self, leaf: Leaf, axis: int, size: int, given: Any) -> str:
        hint = str(getattr(given, "name", given)) if type(given).__name__ == "_DimHint" else ""
        if given is None or isinstance(given, int) or "STATIC" in hint.upper():
            return str(size)
        name = given if isinstance(given, str) else "" if hint else getattr(given, "__name__", None)
        if name is None:
            raise TypeError(f"the dynamic shape of `{leaf.path}` has {given!r} for dimension {axis}: dynamic_shapes must be nested as the arguments are")
        name = name or f"{leaf.path}_dim_{axis}"
        symbol = re.sub(r"\W", "_", name)
        symbol = f"d{symbol}" if not symbol or symbol[0].isdigit() else symbol
        first = symbol
        while self.known.setdefault(symbol, size) != size:
            symbol += "_"
        if symbol in self._fixed:
            return str(size)
        if first != name and symbol == first:
            self.renamed[symbol] = name
        # Other sizes are taken to be 1 or more.
        return symbol if size else f"{symbol}>=0"


def is_one(model: Any) -> bool:
    """Whether this is a module or a function in TorchScript."""
    import torch

    return isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction))


def of(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Script:
    """A module or function in TorchScript. ``shapes`` are its dynamic shapes, nested as the arguments."""
    import torch

    file = io.BytesIO()
    with warnings.catch_warnings():
        ignore_deprecation()
        torch.jit.save(model, file)
    schema = getattr(model, "forward", model).schema
    parameters = _parameters(schema, lambda: model.code)
    if isinstance(model, torch.jit.ScriptModule):
        parameters = parameters[1:]
    given = bound(parameters, args, kwargs)
    rest = [argument for argument in schema.arguments if argument.name in parameters and argument.name not in given]
    if given and (missing := [f"`{argument.name}: {argument.type}`" for argument in rest if not argument.has_default_value()]):
        raise TypeError(f"no argument is given for {', '.join(missing)}")
    leaves = flatten(given, shapes)
    if not isinstance(model, torch.jit.ScriptModule):
        # The archive of a function has no defaults.
        defaults = flatten({argument.name: argument.default_value for argument in rest if argument.has_default_value()}, None)
        leaves += [dataclasses.replace(leaf, default=True) for leaf in defaults]
    return Script(file.getvalue(), parameters, leaves)


def _parameters(schema: Any, code: Callable[[], str]) -> list[str]:
    """The names of parameters. The trace of a function of ``*args`` may have the same one twice, which its code tells apart."""
    names = [argument.name for argument in schema.arguments]
    if len(set(names)) == len(names):
        return names
    text = code()
    found = re.findall(r"(?:^|,)\s*(\w+)(?=:|,|$)", text[text.index("(") + 1 : text.index(") ->")])
    return found if len(set(found)) == len(names) else names


def ignore_deprecation() -> None:
    """Ignores the warnings that TorchScript is deprecated."""
    warnings.filterwarnings("ignore", message=r"`torch\.jit\.", category=FutureWarning)
    warnings.filterwarnings("ignore", message=r"`torch\.jit\.", category=DeprecationWarning)


def bound(parameters: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name of parameter, in their order. Raises TypeError if they do not fit."""
    if len(args) > len(parameters):
        raise TypeError(f"there are {len(args)} arguments, but the module takes {len(parameters)}")
    unknown = [name for name in kwargs if name not in parameters]
    if unknown:
        raise TypeError(f"the module has no parameter {unknown[0]!r}; it has {', '.join(parameters)}")
    return {**dict(zip(parameters, args)), **{name: kwargs[name] for name in parameters if name in kwargs}}


def flatten(arguments: Mapping[str, Any], shapes: Any) -> list[Leaf]:
    """The values within the arguments, with the axes that the shapes have for them: by name of parameter, or in order."""
    if isinstance(shapes, (list, tuple)):
        shapes = dict(zip(arguments, shapes))
    shapes = shapes or {}
    found = []
    for name, value in arguments.items():
        found += list(_leaves(name, value, shapes.get(name)))
    return found


def _leaves(path: str, value: Any, axes: Any) -> Iterator[Leaf]:
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        # A key that is a tensor is an input itself.
        parts = [item for at, key in enumerate(value) for item in _item(at, key, value[key])]
    elif isinstance(value, (list, tuple)):
        parts = list(enumerate(value))
    if not parts:
        yield Leaf(path, value, axes)
    for at, (key, part) in enumerate(parts):
        inner = None
        if isinstance(axes, Mapping):
            inner = axes.get(key)
        elif isinstance(axes, (list, tuple)) and at < len(axes):
            inner = axes[at]
        yield from _leaves(f"{path}.{key}", part, inner)


def _item(at: int, key: Any, value: Any) -> list[tuple[Any, Any]]:
    """What a dict holds under a key, and before it the key if that is a tensor."""
    return [(f"key_{at}", key), (f"value_{at}", value)] if is_tensor(key) else [(key, value)]


def at_other_sizes(
    names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Leaf], fixed: Collection[str] = ()
) -> Iterator[Other]:
    """Arguments with larger dynamic dimensions, but ``fixed`` ones, and what these are: by one, and twice as large, as sizes may have to
    be even, or multiples of what they are. ``leaves`` are the tensors within the arguments."""
    by_one_and_twice: tuple[Callable[[int], int], ...] = (lambda size: size + 1, lambda size: size * 2 or 2)
    for larger in by_one_and_twice:
        if grown := _grown(leaves, larger, fixed):
            sizes = Sizes(fixed)
            dims = {size.split(">")[0]: larger(count) for leaf in leaves for size, count in zip(sizes.of(leaf), leaf.value.shape)}
            yield (
                tuple(rebuilt(name, arg, grown) for name, arg in zip(names, args)),
                {name: rebuilt(name, arg, grown) for name, arg in kwargs.items()},
                ", ".join(f"{name}={size}" for name, size in dims.items() if not name.isdigit()),
            )


def _grown(leaves: Sequence[Leaf], larger: Callable[[int], int], fixed: Collection[str] = ()) -> dict[str, Any]:
    """The tensors by path, with larger dynamic dimensions: rows are repeated. Empty if there are no dynamic dimensions."""
    import torch

    sizes = Sizes(fixed)
    grown: dict[str, Any] = {}
    for leaf in leaves:
        tensor = leaf.value
        for axis, size in enumerate(sizes.of(leaf)):
            if size.isdigit():
                continue
            count = tensor.shape[axis]
            rows = torch.arange(larger(count)) % max(count, 1)
            shape = [*tensor.shape[:axis], len(rows), *tensor.shape[axis + 1 :]]
            tensor = tensor.index_select(axis, rows) if count else tensor.new_zeros(shape)
        if tensor is not leaf.value:
            grown[leaf.path] = tensor
    return {leaf.path: grown.get(leaf.path, leaf.value) for leaf in leaves} if grown else {}


def rebuilt(path: str, value: Any, tensors: Mapping[str, Any]) -> Any:
    """An argument with other tensors."""
    if path in tensors:
        return tensors[path]
    if isinstance(value, dict):
        items = dict(_rebuilt_item(path, at, item, tensors) for at, item in enumerate(value.items()))
        return items if type(value) is dict else type(value)(items)
    if isinstance(value, (list, tuple)):
        parts = [rebuilt(f"{path}.{at}", part, tensors) for at, part in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _rebuilt_item(path: str, at: int, item: tuple[Any, Any], tensors: Mapping[str, Any]) -> tuple[Any, Any]:
    """An item of a dict with other tensors."""
    key, part = item
    if not is_tensor(key):
        return key, rebuilt(f"{path}.{key}", part, tensors)
    return rebuilt(f"{path}.key_{at}", key, tensors), rebuilt(f"{path}.value_{at}", part, tensors)


def has_tensor_keys(value: Any) -> bool:
    """Whether a dict within the arguments has tensors for keys."""
    if isinstance(value, dict):
        return any(is_tensor(key) or has_tensor_keys(part) for key, part in value.items())
    return isinstance(value, (list, tuple)) and any(map(has_tensor_keys, value))


def with_axes(script: Script, dynamic_axes: Mapping[str, Any], input_names: Sequence[str] | None, output_names: Any) -> Script:
    """The script with ``dynamic_axes`` of torch.onnx.export: axes by name of input, which is one of ``input_names`` or its path."""
    names: dict[str, str] = {}
    at = 0
    for leaf in script.input_leaves:
        given = input_names[at] if input_names and at < len(input_names) else None
        at += len(parts(leaf.value))
        for name in (given, leaf.path, leaf.path.replace(".", "_")):
            if name is not None:
                names.setdefault(name, leaf.path)
    outputs = set(output_names or ()) if not isinstance(output_names, str) else set()
    axes: dict[str, Any] = {}
    for name, given in dynamic_axes.items():
        found = _shapes.axes_of(name, given)
        if name in names:
            axes[names[name]] = found
        elif name not in outputs:
            _errors.warn(f"Provided key {name} for dynamic axes is not a valid input/output name", UserWarning)
    leaves = [dataclasses.replace(leaf, axes=axes.get(leaf.path)) for leaf in script.leaves]
    return Script(script.archive, script.parameters, leaves, script.free)
