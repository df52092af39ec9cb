"""Dynamic shapes: what users give, what torch.export takes, and what the dimensions are called in the model."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _errors

if TYPE_CHECKING:
    import torch

#: Classes of sizes of dynamic shapes.
_DIMS = ("Dim", "_Dim", "_DerivedDim", "_StaticDim", "_DimHint")


def for_torch(shapes: Any) -> Any:
    """The dynamic shapes with ``Dim.DYNAMIC`` for names, which torch.export does not take."""
    import torch
    from torch.utils import _pytree

    if shapes is None:
        return None
    leaves, tree = _flatten(shapes)

    def dim(size: Any) -> Any:
        return torch.export.Dim.DYNAMIC if isinstance(size, str) else size

    def axes(leaf: Any) -> Any:
        if isinstance(leaf, dict):
            return {axis: dim(size) for axis, size in leaf.items()}
        if isinstance(leaf, (list, tuple)):
            return type(leaf)(dim(size) for size in leaf)
        return leaf

    return _pytree.tree_unflatten([axes(leaf) for leaf in leaves], tree)


def problem(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Exception | None:
    """What is wrong with dynamic shapes whatever the model does: names, structure, axes, and sizes unlike those of the arguments."""
    import torch
    from torch.export import dynamic_shapes as of_torch
    from torch.utils import _pytree

    if not shapes:
        return None
    found: list[str] = []

    def check(path: Any, leaf: Any, axes: Any) -> None:
        name = f"{path[0].key}{_pytree.keystr(path[1:])}"
        sizes = list(leaf.shape) if isinstance(leaf, torch.Tensor) else []
        for axis, size in axes.items() if isinstance(axes, dict) else enumerate(axes or ()):
            if not isinstance(axis, int) or not -len(sizes) <= axis < len(sizes):
                found.append(f"`dynamic_shapes` has axis {axis!r} of {name}, which has {len(sizes)} dimensions")
            elif type(size) is int and size != sizes[axis]:
                found.append(f"`dynamic_shapes` says that axis {axis} of {name} is {size}, but it is {sizes[axis]}")

    try:
        inputs = of_torch._combine_args(model, args, kwargs)
        validate = of_torch._check_dynamic_shapes
    except Exception:
        # What is wrong with the arguments, torch.export says.
        return None
    try:
        # Integers may be dynamic.
        whole = getattr(of_torch, "_IntWrapper", None)
        validate(_pytree.tree_map_only(int, whole, inputs) if whole else inputs, shapes)
    except Exception as error:
        return error
    by_name = shapes if isinstance(shapes, dict) else dict(zip(inputs, shapes))
    try:
        of_torch._tree_map_with_path(check, inputs, by_name, tree_name="inputs")
    except Exception as error:
        return error if type(error).__name__ == "UserError" else None
    return ValueError("; ".join(found)) if found else None


def by_parameter(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, input_names: Any) -> Any:
    """Dynamic shapes by the model's parameters. Their keys may also be ``input_names``, or names of what ``*args`` and ``**kwargs``
    hold."""
    if not isinstance(shapes, dict):
        return shapes
    parameters = signature(model).parameters
    if input_names and shapes.keys() <= set(input_names) and not shapes.keys() <= {*parameters, *kwargs}:
        names = list(by_name(model, args, kwargs))
        shapes = {names[list(input_names).index(name)]: axes for name, axes in shapes.items()}
    found: dict[str, Any] = {}
    by_kind = {parameter.kind: name for name, parameter in parameters.items()}
    many, rest = by_kind.get(inspect.Parameter.VAR_POSITIONAL), by_kind.get(inspect.Parameter.VAR_KEYWORD)
    for name, axes in shapes.items():
        if name in parameters:
            found[name] = axes
        elif rest and name in kwargs:
            found[rest] = {**found.get(rest, {}), name: axes}
        elif many and name.startswith(f"{many}_"):
            found[many] = (*found.get(many, ()), axes)
        else:
            found[name] = axes
    return found


def inputs(program: torch.export.ExportedProgram) -> list[str | None]:
    """The inputs that a user gives, by name; None for numbers, texts and None, whose values the program has."""
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    return [None if type(spec.arg).__name__ == "ConstantArgument" else spec.arg.name for spec in specs]


def names(program: torch.export.ExportedProgram, shapes: Any) -> dict[str, str]:
    """The names that the dynamic shapes give to symbols of the program. Warns of names that cannot be used."""
    found: dict[str, str] = {}
    for value, leaf in _by_input(program, shapes):
        for axis, name in _named(leaf):
            size = value.shape[axis]
            # A size of the program, or one that follows from others and is called after them.
            if isinstance(size, int) or not size.node.expr.is_Symbol:
                continue
            first = found.setdefault(str(size.node.expr), name)
            if first != name:
                _errors.warn(
                    f"# The axis name: {name} will not be used, since it shares the same shape constraints with another axis: "
                    f"{first}.",
                    UserWarning,
                )
    return found


def from_dynamic_axes(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], axes: tuple[Any, Any, Any], *, lenient: bool
) -> dict[str, Any]:
    """``dynamic_axes`` of torch.onnx.export as dynamic shapes by name of argument. ``axes`` are ``dynamic_axes``, ``input_names`` and
    ``output_names``.

    The names are those of ``input_names`` or of the model's parameters; where they are neither, the axes are in the order of the
    inputs. Names of outputs have no effect on shapes. If ``lenient``, other names have none either, and are warned of.

    Raises ValueError for axes that are not understood, and for names of inputs that do not exist.
    """
    dynamic_axes, input_names, output_names = axes
    from torch.utils import _pytree

    arguments = by_name(model, args, kwargs)
    leaves, tree = _pytree.tree_flatten(list(arguments.values()))
    outputs = set(output_names or ())
    given = {name: axes_of(name, axes) for name, axes in dynamic_axes.items() if name not in outputs}
    parameters = {name: at for at, name in enumerate(arguments) if len(leaves) == len(arguments)}
    if lenient:
        places = _places(input_names or (), leaves, numbers=True)
        # A parameter that is given another name is not known by its own.
        places = {**{name: at for name, at in parameters.items() if at not in places.values()}, **places}
        for name in [name for name in given if name not in places]:
            _errors.warn(f"Provided key {name} for dynamic axes is not a valid input/output name", UserWarning)
    else:
        both = _places(input_names or (), leaves), parameters
        places = next((places for places in both if given.keys() <= set(places)), {})
        if not places:
            count = len(input_names or ())
            if len(given) > len(leaves) or count >= len(leaves) or (count and len(given) != len(leaves)):
                unknown = [name for name in given if name not in (input_names or arguments)]
                raise ValueError(f"dynamic_axes has {unknown[:3]}, which are not names of inputs")
            places = {name: at for at, name in enumerate(given)}
    by_position = {places[name]: found for name, found in given.items() if name in places}
    shapes = [by_position.get(at) for at in range(len(leaves))]
    return dict(zip(arguments, _pytree.tree_unflatten(_counted(shapes, leaves), tree)))


def by_name(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, in the order of the parameters; those of ``*args`` are numbered. Raises TypeError if they do not fit."""
    return _flat(model, signature(model).bind(*args, **kwargs).arguments)


def by_argument(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> dict[str, Any]:
    """Dynamic shapes, given by parameter or in their order, by name of argument. Raises TypeError if the arguments do not fit."""
    given = signature(model).bind(*args, **kwargs).arguments
    return _flat(model, dict(zip(given, shapes)) if isinstance(shapes, (list, tuple)) else shapes or {})


def _flat(model: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by parameter, with those that ``*args`` and ``**kwargs`` hold by their own names."""
    parameters = signature(model).parameters
    found: dict[str, Any] = {}
    for name, value in values.items():
        kind = parameters[name].kind if name in parameters else None
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value or {})
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            found.update({f"{name}_{at}": part for at, part in enumerate(value or ())})
        else:
            found[name] = value
    return found


def by_leaf(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Any:
    """The axes of each value within the arguments, in the order of a program's inputs; the shapes if these do not fit."""
    leaves: list[Any] = []
    try:
        from torch.export.dynamic_shapes import _tree_map_with_path

        arguments, axes = by_name(model, args, kwargs), by_argument(model, args, kwargs, shapes)
        order = [*(name for name in arguments if name not in kwargs), *kwargs]
        given, axes = {name: arguments[name] for name in order}, {name: axes[name] for name in order}
        _tree_map_with_path(lambda _, leaf, axes: leaves.append(axes or None), given, axes, tree_name="inputs")
    except Exception:
        # What is wrong, torch.export says.
        return shapes
    return {str(at): axes for at, axes in enumerate(leaves)}


def in_order(model: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments in the order of the parameters, if these are known."""
    try:
        parameters = list(signature(model).parameters)
    except (TypeError, ValueError):
        return kwargs
    return {name: kwargs[name] for name in sorted(kwargs, key=lambda name: [*parameters, name].index(name))}


def signature(model: Any) -> inspect.Signature:
    """The parameters of a module or function."""
    return inspect.signature(getattr(model, "forward", model))


def _places(names: Sequence[str], leaves: list[Any], *, numbers: bool = False) -> dict[str, int]:
    """Where the inputs with these names are among the arguments. Names are those of tensors, and of numbers if these are inputs, unless
    there are more names."""
    import torch

    kinds = (torch.Tensor, bool, int, float) if numbers else torch.Tensor
    places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, kinds)]
    return dict(zip(names, places if len(names) <= len(places) else range(len(leaves))))


def _counted(shapes: list[Any], leaves: list[Any]) -> list[Any]:
    """The axes of each input, counted from the first. Warns of axes that it does not have, which are left out."""
    counted = []
    for axes, leaf in zip(shapes, leaves):
        rank = getattr(leaf, "ndim", 0)
        found = from_front(axes or {}, rank)
        for axis in [axis for axis in found if not 0 <= axis < rank]:
            _errors.warn(f"dynamic_axes has axis {axis} of an input that has {rank} dimensions", UserWarning)
            del found[axis]
        counted.append(found or None)
    return counted


def from_front(axes: dict[int, Any], rank: int) -> dict[int, Any]:
    """The axes with those that are counted from the last, which are negative, counted from the first."""
    return {axis + rank if -rank <= axis < 0 else axis: size for axis, size in axes.items()}


def axes_of(name: str, axes: Any) -> dict[int, Any] | None:
    """The axes of one input, as ``dynamic_axes`` has them. Raises ValueError if they are not understood."""
    import torch

    if axes is not None and not isinstance(axes, (dict, list, tuple)):
        raise ValueError(f"dynamic_axes[{name!r}] is neither a dict of names by axis nor a list of axes")
    if not all(isinstance(axis, int) for axis in axes or ()):
        raise ValueError(f"dynamic_axes[{name!r}] has an axis that is not an int")
    if axes is None or isinstance(axes, dict):
        return axes
    return dict.fromkeys(axes, torch.export.Dim.DYNAMIC)


def _flatten(shapes: Any) -> tuple[list[Any], Any]:
    """The axes of each input: dicts, lists, tuples or None."""
    from torch.utils import _pytree

    return _pytree.tree_flatten(shapes, is_leaf=_is_axes)


def _is_axes(shapes: Any) -> bool:
    """Whether these are the axes of one input."""
    if isinstance(shapes, dict):
        return all(isinstance(axis, int) and _is_size(size) for axis, size in shapes.items())
    # An empty list or tuple is a container without inputs.
    return isinstance(shapes, (list, tuple)) and len(shapes) > 0 and all(_is_size(size) for size in shapes)


def _is_size(size: Any) -> bool:
    # Dim is a class whose instances are classes up to torch 2.6, and a plain class since.
    return size is None or isinstance(size, (str, int)) or type(size).__name__ in _DIMS


def _named(leaf: Any) -> Iterator[tuple[int, str]]:
    """Axes that are given a name, and their names."""
    pairs: Iterable[tuple[int, Any]] = leaf.items() if isinstance(leaf, dict) else enumerate(leaf or ())
    for axis, size in pairs:
        if isinstance(size, str):
            yield axis, size
        elif size is not None and not isinstance(size, int) and type(size).__name__ != "_DimHint":
            yield axis, size.__name__


def _by_input(program: torch.export.ExportedProgram, shapes: Any) -> Iterator[tuple[Any, Any]]:
    """The tensor of each input, and its axes. Nothing if the shapes have another number of inputs."""
    if not shapes:
        return
    leaves, _ = _flatten(shapes)
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    found = inputs(program)
    if len(found) != len(leaves):
        # Numbers and None may have no axes.
        found = [name for name in found if name is not None]
    if len(found) != len(leaves):
        _errors.warn(
            f"The dynamic shapes have {len(leaves)} inputs, the program has {len(found)}. The dimensions keep their symbols as names.",
            UserWarning,
        )
        return
    for name, leaf in zip(found, leaves):
        value = nodes[name].meta.get("val") if name in nodes else None
        if hasattr(value, "shape"):
            yield value, leaf
