"""Dynamic shapes: as users give them, as torch.export takes them, and the names of dimensions."""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch.export import dynamic_shapes as of_torch
from torch.utils import _pytree as torch_pytree

from . import _errors, _leaves, _pytree
from ._leaves import TensorLeaf
from ._types import Args, Kwargs, Model, is_dict, is_items

#: Classes of sizes of dynamic shapes.
_DIMS = ("Dim", "_Dim", "_DerivedDim", "_StaticDim", "_DimHint")


def for_torch(shapes: object) -> object:
    """The dynamic shapes with ``Dim.DYNAMIC`` for names, which torch.export does not take."""
    if shapes is None:
        return None

    def dim(size: object) -> object:
        return torch.export.Dim.DYNAMIC if isinstance(size, str) else size

    def axes(leaf: object) -> object:
        if is_dict(leaf):
            return {axis: dim(size) for axis, size in leaf.items()}
        if is_items(leaf):
            return cast(Callable[..., object], type(leaf))(dim(size) for size in leaf)
        return leaf

    leaves, tree = _pytree.flatten(shapes, is_axes)
    return _pytree.unflatten([axes(leaf) for leaf in leaves], tree)


def is_program(model: object) -> bool:
    """Whether it is a program, whose shapes are known."""
    return isinstance(model, torch.export.ExportedProgram)


def all_automatic(args: Args, kwargs: Kwargs) -> tuple[object, ...]:
    """Dynamic shapes in which all sizes are dynamic where the program allows it."""

    def automatic(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return dict.fromkeys(range(value.dim()), torch.export.Dim.AUTO)
        return None

    shapes = cast(tuple[Args, Kwargs], _pytree.transform(automatic, (args, kwargs)))
    return (*shapes[0], *shapes[1].values())


def problem(
    model: Model, args: Args, kwargs: Kwargs, shapes: object, *, by_torch: bool = True
) -> Exception | None:
    """The error in dynamic shapes that is one for every model, if there is one.

    Names, structure, axes, and sizes unlike those of the arguments are checked. Errors in the
    arguments are left to torch.export.

    Args:
        model: The module or function.
        args: The positional arguments.
        kwargs: The keyword arguments.
        shapes: The dynamic shapes.
        by_torch: Whether torch's own check is made, which loads Dynamo.
    """
    if not shapes:
        return None
    found: list[str] = []

    def check(path: Sequence[Any], leaf: object, axes: object) -> None:
        name = f"{path[0].key}{torch_pytree.keystr(tuple(path[1:]))}"
        found.extend(problems(_leaves.Leaf(name, leaf, axes)))

    try:
        inputs = of_torch._combine_args(model, args, kwargs)
        validate: Callable[..., None] = of_torch._check_dynamic_shapes
    except Exception:
        return None
    try:
        # Integers may be dynamic.
        wrap = getattr(of_torch, "_IntWrapper", None)
        tree: object = torch_pytree.tree_map_only(int, wrap, inputs) if wrap else inputs
        if by_torch:
            validate(tree, shapes)
    except Exception as error:
        return error
    by_name: object = shapes if is_dict(shapes) else _zipped(inputs, shapes)
    try:
        of_torch._tree_map_with_path(check, inputs, by_name, tree_name="inputs")
    except Exception as error:
        return error if type(error).__name__ == "UserError" else None
    return ValueError("; ".join(found)) if found else None


def problems(leaf: _leaves.Leaf) -> Iterator[str]:
    """The faults of the axes that dynamic shapes have for a value."""
    sizes = list(leaf.value.shape) if isinstance(leaf.value, torch.Tensor) else []
    for axis, size in axis_sizes(leaf.axes):
        if not isinstance(axis, int) or not -len(sizes) <= axis < len(sizes):
            text = f"axis {axis!r} of {leaf.path}, which has {len(sizes)} dimensions"
            yield f"`dynamic_shapes` has {text}"
        elif type(size) is int and size != sizes[axis]:
            text = f"axis {axis} of {leaf.path} is {size}, but it is {sizes[axis]}"
            yield f"`dynamic_shapes` says that {text}"


def map_axes(
    function: Callable[[object, object], object],
    model: Model,
    args: Args,
    kwargs: Kwargs,
    shapes: object,
) -> object:
    """Dynamic shapes with other axes.

    Args:
        function: The new axes, by a value within the arguments and its axes.
        model: The module.
        args: The positional arguments.
        kwargs: The keyword arguments.
        shapes: Dynamic shapes by name of parameter, or in order.
    """
    inputs = of_torch._combine_args(model, args, kwargs)
    tree: object = inputs
    if not isinstance(shapes, dict):
        tree = cast(Callable[..., object], type(shapes))(inputs.values())

    def with_path(_: object, leaf: object, axes: object) -> object:
        return function(leaf, axes)

    mapped: object = of_torch._tree_map_with_path(with_path, tree, shapes, tree_name="inputs")
    return mapped


def axis_sizes(axes: object) -> Iterator[tuple[object, object]]:
    """Pairs of axis and size of one input.

    Raises:
        TypeError: The axes are not a dict, a list, a tuple or None.
    """
    if isinstance(axes, Mapping):
        yield from cast(Mapping[object, object], axes).items()
    elif is_items(axes):
        yield from enumerate(axes)
    elif axes:
        raise TypeError(f"the axes of an input are a dict or a list, not {axes!r}")


def by_parameter(
    model: Model, args: Args, kwargs: Kwargs, shapes: object, input_names: Sequence[str] | None
) -> object:
    """Dynamic shapes by the model's parameters.

    Args:
        model: The module.
        args: The positional arguments.
        kwargs: The keyword arguments.
        shapes: Dynamic shapes. Their keys may also be ``input_names``, or names of the items of
            ``*args`` and ``**kwargs``.
        input_names: The names of the inputs.
    """
    if not isinstance(shapes, dict):
        return shapes
    given = cast(dict[str, object], shapes)
    parameters = signature(model).parameters
    own = {*parameters, *kwargs}
    if input_names and given.keys() <= set(input_names) and not given.keys() <= own:
        names = list(by_name(model, args, kwargs))
        given = {names[list(input_names).index(name)]: axes for name, axes in given.items()}
    if given.keys() <= parameters.keys():
        return given
    try:
        bound = signature(model).bind(*args, **kwargs).arguments
    except TypeError:
        # torch.export reports it.
        return given
    places = _places_of(model, bound)
    found: dict[str, object] = {}
    for name, axes in given.items():
        parameter, key = places.get(name, (name, None)) if name not in parameters else (name, None)
        if isinstance(key, str):
            given_to_rest = cast(Mapping[str, object], bound[parameter])
            of_rest = found.setdefault(parameter, dict.fromkeys(given_to_rest))
            cast(dict[str, object], of_rest)[key] = axes
        elif key is not None:
            items = found.setdefault(parameter, (None,) * len(cast(Args, bound[parameter])))
            of_items = list(cast(Args, items))
            of_items[key] = axes
            found[parameter] = tuple(of_items)
        else:
            found[name] = axes
    return found


def from_front_of_all(model: Model, args: Args, kwargs: Kwargs, shapes: object) -> object:
    """Dynamic shapes with negative axes, which count from the last, counted from the first; the
    shapes if these do not fit, which torch.export reports.

    Raises:
        ValueError: An axis is there twice.
    """
    leaves, tree = _pytree.flatten(shapes, is_axes)
    if not any(is_dict(axes) and any(_is_negative(axis) for axis in axes) for axes in leaves):
        return shapes
    # One dict may be that of several inputs.
    leaves = [dict(axes) if is_dict(axes) else axes for axes in leaves]
    ranks: dict[int, int] = {}

    def rank(leaf: object, axes: object) -> None:
        if isinstance(leaf, torch.Tensor):
            ranks[id(axes)] = leaf.dim()

    own = _pytree.unflatten(list(leaves), tree)
    try:
        map_axes(rank, model, args, kwargs, own)
    except Exception:
        return shapes
    for at, axes in enumerate(leaves):
        if is_dict(axes) and id(axes) in ranks:
            leaves[at] = from_front(cast(Mapping[int, object], axes), ranks[id(axes)])
    return _pytree.unflatten(leaves, tree)


def _is_negative(axis: object) -> bool:
    return isinstance(axis, int) and axis < 0


def inputs(program: torch.export.ExportedProgram) -> list[str | None]:
    """The inputs that a user gives, by name; None for numbers, texts and None, whose values the
    program has."""
    specs = [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    return [None if type(s.arg).__name__ == "ConstantArgument" else s.arg.name for s in specs]


def names(program: torch.export.ExportedProgram, shapes: object) -> dict[str, str]:
    """The names that the dynamic shapes give to symbols of the program.

    Warns of names that cannot be used.
    """
    found: dict[str, str] = {}
    for value, leaf in _by_input(program, shapes):
        for axis, name in _named(leaf):
            size = cast(Any, value.shape[axis])
            # A size of the program, or one that follows from others and is called after them.
            if isinstance(size, int) or not size.node.expr.is_Symbol:
                continue
            first = found.setdefault(str(size.node.expr), name)
            if first != name:
                _errors.warn(
                    f"# The axis name: {name} will not be used, since it shares the same shape "
                    f"constraints with another axis: {first}.",
                    UserWarning,
                )
    return found


def by_name(model: Model, args: Args, kwargs: Kwargs) -> dict[str, object]:
    """The arguments by name, in the order of the parameters; those of ``*args`` are numbered.

    Raises:
        TypeError: They do not fit.
    """
    bound = signature(model).bind(*args, **kwargs).arguments
    return _unpacked(_places_of(model, bound), bound)


def by_argument(model: Model, args: Args, kwargs: Kwargs, shapes: object) -> dict[str, object]:
    """Dynamic shapes, given by parameter or in their order, by name of argument.

    Raises:
        TypeError: The arguments do not fit.
    """
    given = signature(model).bind(*args, **kwargs).arguments
    own = _zipped(given, shapes) if is_items(shapes) else cast(dict[str, object], shapes or {})
    return _unpacked(_places_of(model, given), own)


def _zipped(names: Mapping[str, object], shapes: object) -> dict[str, object]:
    return dict(zip(names, cast(Sequence[object], shapes), strict=False))


def _places_of(
    model: Model, bound: Mapping[str, object]
) -> dict[str, tuple[str, str | int | None]]:
    """The parameter of each argument by name, and the key or number of one of ``**kwargs`` and
    ``*args``.

    Args:
        model: The module.
        bound: The arguments by parameter.
    """
    parameters = signature(model).parameters
    of_kind = {parameters[name].kind: name for name in bound}
    many = of_kind.get(inspect.Parameter.VAR_POSITIONAL)
    rest = of_kind.get(inspect.Parameter.VAR_KEYWORD)
    keywords = list(cast(Mapping[str, object], bound[rest])) if rest else []
    positional = [one.name for one in parameters.values() if one.kind is one.POSITIONAL_ONLY]
    taken = {*keywords, *(name for name in parameters if name not in positional)}
    places: dict[str, tuple[str, str | int | None]] = {}
    for name in bound:
        if name == many:
            names = _leaves.item_names(name, len(cast(Args, bound[name])), taken)
            places.update({one: (name, at) for at, one in enumerate(names)})
        elif name == rest:
            places.update({key: (name, key) for key in keywords})
        else:
            own = _leaves.free(name, taken) if name in positional else name
            places[own] = (name, None)
    return places


def _unpacked(
    places: Mapping[str, tuple[str, str | int | None]], values: Mapping[str, object]
) -> dict[str, object]:
    """Values by parameter, with the items of ``*args`` and ``**kwargs`` under their own names."""
    found: dict[str, object] = {}
    for name, (parameter, key) in places.items():
        if parameter not in values:
            continue
        value = values[parameter]
        if isinstance(key, str):
            of = cast(Mapping[str, object], value or {})
            found.update({name: of[key]} if key in of else {})
        elif key is not None:
            items = cast(Sequence[object], value or ())
            found.update({name: items[key]} if key < len(items) else {})
        else:
            found[name] = value
    known = {parameter for parameter, _ in places.values()}
    return {**found, **{name: value for name, value in values.items() if name not in known}}


def by_leaf(model: Model, args: Args, kwargs: Kwargs, shapes: object) -> object:
    """The axes of each value within the arguments, in the order of a program's inputs; the shapes
    if these do not fit, which torch.export reports."""
    leaves: list[object] = []

    def collect(_: object, __: object, axes: object) -> None:
        leaves.append(axes or None)

    try:
        arguments = by_name(model, args, kwargs)
        axes = by_argument(model, args, kwargs, shapes)
        order = [*(name for name in arguments if name not in kwargs), *kwargs]
        of_torch._tree_map_with_path(
            collect,
            {name: arguments[name] for name in order},
            {name: axes[name] for name in order},
            tree_name="inputs",
        )
    except Exception:
        return shapes
    return {str(at): axes for at, axes in enumerate(leaves)}


def in_order(model: Model, kwargs: Kwargs) -> Kwargs:
    """Keyword arguments in the order of the parameters, if these are known."""
    try:
        parameters = list(signature(model).parameters)
    except (TypeError, ValueError):
        return kwargs
    return {
        name: kwargs[name]
        for name in sorted(kwargs, key=lambda name: [*parameters, name].index(name))
    }


def signature(model: Model) -> inspect.Signature:
    """The parameters of a module or function."""
    return inspect.signature(getattr(model, "forward", model))


def fits(model: Model, args: Args, kwargs: Kwargs) -> bool:
    """Whether a module or function takes these arguments; False if its parameters are unknown."""
    try:
        signature(model).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return True


def from_front(axes: Mapping[int, object], rank: int) -> dict[int, object]:
    """The axes with negative ones, which count from the last, counted from the first.

    Raises:
        ValueError: An axis is there twice.
    """
    found: dict[int, object] = {}
    for axis, size in axes.items():
        own = axis + rank if -rank <= axis < 0 else axis
        if own in found:
            raise ValueError(f"the dynamic axes {dict(axes)} have axis {own} twice")
        found[own] = size
    return found


def axes_of(name: str, axes: object) -> dict[int, object] | None:
    """The axes of one input in ``dynamic_axes``.

    Raises:
        ValueError: They are not understood.
    """
    if axes is not None and not isinstance(axes, (dict, list, tuple)):
        text = "is neither a dict of names by axis nor a list of axes"
        raise ValueError(f"dynamic_axes[{name!r}] {text}")
    if not all(isinstance(axis, int) for axis in cast(Collection[object], axes or ())):
        raise ValueError(f"dynamic_axes[{name!r}] has an axis that is not an int")
    if axes is None or isinstance(axes, dict):
        return cast("dict[int, object] | None", axes)
    return dict.fromkeys(cast(Collection[int], axes), torch.export.Dim.DYNAMIC)


def is_axes(shapes: object) -> bool:
    """Whether these are the axes of one input."""
    if is_dict(shapes):
        return all(isinstance(axis, int) and _is_size(size) for axis, size in shapes.items())
    # An empty list or tuple is a container without inputs, a named tuple one of several.
    if not is_items(shapes) or not shapes or hasattr(shapes, "_fields"):
        return False
    return all(map(_is_size, shapes))


def is_dynamic(axes: object) -> bool:
    """Whether the axes of an input give a size."""
    if is_items(axes):
        return any(size is not None for size in axes)
    return bool(axes)


def _is_size(size: object) -> bool:
    # Dim is a class whose instances are classes up to torch 2.6, and a plain class since.
    return size is None or isinstance(size, (str, int)) or type(size).__name__ in _DIMS


def _named(axes: object) -> Iterator[tuple[int, str]]:
    """Axes that are given a name, and their names."""
    for axis, size in axis_sizes(axes):
        if isinstance(size, str):
            yield cast(int, axis), size
        elif size is not None and not isinstance(size, int) and type(size).__name__ != "_DimHint":
            yield cast(int, axis), getattr(size, "__name__", "")


def _by_input(
    program: torch.export.ExportedProgram, shapes: object
) -> Iterator[tuple[torch.Tensor, object]]:
    """The tensor of each input, and its axes. Nothing if the shapes have another number of
    inputs."""
    if not shapes:
        return
    leaves, _ = _pytree.flatten(shapes, is_axes)
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    found = inputs(program)
    if len(found) != len(leaves):
        # Numbers and None may have no axes.
        found = [name for name in found if name is not None]
    if len(found) != len(leaves):
        _errors.warn(
            f"The dynamic shapes have {len(leaves)} inputs, the program has {len(found)}. "
            "The dimensions keep their symbols as names.",
            UserWarning,
        )
        return
    for name, leaf in zip(found, leaves, strict=True):
        value = nodes[name].meta.get("val") if name in nodes else None
        if hasattr(value, "shape"):
            yield cast(torch.Tensor, value), leaf


#: Operators of names that are expressions.
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b if b else 0,
    ast.Div: lambda a, b: a // b if b else 0,
}


def evaluate(name: str, sizes: Mapping[str, int]) -> int | None:
    """The value of a name that is an expression of other names; None if it is none, or has names
    without a size."""

    def value(node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.Name):
            return sizes.get(node.id)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = value(node.left), value(node.right)
            if left is not None and right is not None:
                return _OPERATORS[type(node.op)](left, right)
        return None

    try:
        return value(ast.parse(name.strip(), mode="eval").body)
    except SyntaxError:
        return None


def output_axes(axes: Mapping[str, object], outputs: Collection[str]) -> list[tuple[str, int, str]]:
    """Output, axis and name of each axis of these outputs that ``dynamic_axes`` names."""
    return [
        (name, axis, dim) for name in outputs for axis, dim in _named(axes_of(name, axes.get(name)))
    ]


class SizeNames:
    """Names of dynamic sizes.

    The program shows which sizes are equal; dimensions of one name with different sizes are not.
    """

    def __init__(self, fixed: Collection[str] = ()) -> None:
        self._fixed = fixed
        #: The size of each in the example.
        self.known: dict[str, int] = {}
        #: The names that were given to sizes with another symbol.
        self.renamed: dict[str, str] = {}

    def of(self, leaf: TensorLeaf) -> list[str]:
        """The sizes of a tensor: numbers, or symbols.

        Raises:
            TypeError: The dynamic shapes are not nested as the arguments are.
        """
        pairs = cast(Iterator[tuple[int, object]], axis_sizes(leaf.axes))
        given = from_front(dict(pairs), leaf.value.dim())
        sizes = enumerate(leaf.value.shape)
        return [self._one(leaf, axis, size, given.get(axis)) for axis, size in sizes]

    def related(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Other sizes, with those that have an expression of others for a name (``past + length``),
        and have its value in the example, computed from these."""
        names = {symbol: self.renamed.get(symbol, symbol) for symbol in self.known}
        known = {names[symbol]: size for symbol, size in self.known.items()}
        new = {**known, **{names[symbol]: size for symbol, size in sizes.items()}}
        computed = {
            symbol: evaluate(names[symbol], new)
            for symbol in sizes
            if names[symbol] != symbol and evaluate(names[symbol], known) == self.known[symbol]
        }
        return {symbol: computed.get(symbol) or size for symbol, size in sizes.items()}

    @property
    def computed(self) -> set[str]:
        """The symbols whose sizes follow from others: see ``related``."""
        names = {symbol: self.renamed.get(symbol, symbol) for symbol in self.known}
        known = {names[symbol]: size for symbol, size in self.known.items()}
        return {
            symbol
            for symbol, name in names.items()
            if name != symbol and evaluate(name, known) == self.known[symbol]
        }

    def _one(self, leaf: TensorLeaf, axis: int, size: int, given: object) -> str:
        is_hint = type(given).__name__ == "_DimHint"
        hint = str(getattr(given, "name", given)) if is_hint else ""
        if given is None or isinstance(given, int) or "STATIC" in hint.upper():
            return str(size)
        name = given if isinstance(given, str) else "" if hint else getattr(given, "__name__", None)
        if name is None:
            raise TypeError(
                f"the dynamic shape of `{leaf.path}` has {given!r} for dimension {axis}: "
                "dynamic_shapes must be nested as the arguments are"
            )
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
