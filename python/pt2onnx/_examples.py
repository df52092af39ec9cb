"""Arguments of other sizes: for dynamic dimensions whose size is 0 or 1 in the example, and for a
second comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import torch

from . import _leaves, _pytree, _shapes
from ._leaves import TensorLeaf
from ._program._origin import Example, NoExample
from ._sympy import sympy
from ._types import Args, Kwargs, Model

#: Sizes of a traced value: ints and ``torch.SymInt``.
_Sizes = Sequence[Any]

#: The size that dimensions get instead of 0 and 1.
LARGER = 5

#: Another size from that of the example.
Growth = Callable[[int], int]

#: The types of lengths and indices.
_INTEGERS = frozenset((torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8))

#: The new sizes that are tried in turn: sizes may have to be even, or multiples of the old ones.
GROWTHS: tuple[Growth, ...] = (lambda size: size + 1, lambda size: size * 2 or 2)


def resize(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """The tensor with another size of a dimension: rows are repeated, or zeros if there are none.
    Integers stay sorted."""
    count = tensor.shape[axis]
    if not count:
        return tensor.new_zeros((*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]))
    at = torch.arange(size, device=tensor.device)
    # Lengths of sequences are repeated one by one.
    order = at * count // size if _is_sorted(tensor) else at % count
    return tensor.index_select(axis, order)


def of_sizes(
    tensor: torch.Tensor, sizes: Mapping[int, int], shrunk: Mapping[int, int]
) -> torch.Tensor:
    """The tensor with other sizes of dimensions. Integers stay sorted, and within sizes.

    Args:
        tensor: The tensor.
        sizes: The new sizes by axis.
        shrunk: The sizes of the example that are smaller, and the new ones.
    """
    made = tensor
    # Smaller sizes first: in between, all elements of the larger ones would need memory.
    for axis, size in sorted(sizes.items(), key=lambda own: own[1] > tensor.shape[own[0]]):
        if made.shape[axis] != size:
            made = resize(made, axis, size)
    if made.numel() and made.dtype in _INTEGERS:
        largest = int(made.max())
        for size, new in sorted(shrunk.items()):
            # Lengths and indices of a dimension.
            if new + largest - size < largest <= size:
                made = made.clamp(max=max(new + largest - size, 0))
                break
    return made


def _is_sorted(tensor: torch.Tensor) -> bool:
    """Whether it has several integers in order."""
    if tensor.dim() != 1 or tensor.numel() < 2 or tensor.dtype not in _INTEGERS:
        return False
    steps = tensor.diff()
    return bool((steps >= 0).all() or (steps <= 0).all())


def other_floats(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, if it has floats, with these in another order; random ones in place of floats
    that are all equal, which do not show how they are used."""
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return tensor
    generator = torch.Generator().manual_seed(tensor.numel())
    flat = tensor.detach().flatten()
    if bool((flat == flat[0]).all()):
        return torch.rand(tensor.shape, generator=generator).to(tensor)
    order = torch.randperm(flat.numel(), generator=generator).to(flat.device)
    return flat[order].reshape(tensor.shape)


def enlarge(model: Model, args: Args, kwargs: Kwargs, shapes: object) -> tuple[Args, Kwargs]:
    """The arguments with larger dynamic dimensions in place of those that are 0 or 1."""
    made: dict[int, torch.Tensor] = {}

    def grow(leaf: object, axes: object) -> object:
        if isinstance(leaf, torch.Tensor) and axes:
            grown = leaf
            for axis, size in _dynamic(leaf, axes):
                if leaf.shape[axis] < 2:
                    largest = getattr(size, "max", None) or LARGER
                    grown = resize(grown, axis % leaf.ndim, min(largest, LARGER))
            made[id(leaf)] = grown
        return None

    _shapes.map_axes(grow, model, args, kwargs, shapes)
    grown = _pytree.transform(lambda leaf: made.get(id(leaf), leaf), (args, kwargs))
    return cast(tuple[Args, Kwargs], grown)


def has_small(model: Model, args: Args, kwargs: Kwargs, shapes: object) -> bool:
    """Whether dynamic dimensions are 0 or 1."""
    found: list[bool] = []

    def look(leaf: object, axes: object) -> object:
        if isinstance(leaf, torch.Tensor) and axes:
            found.extend(leaf.shape[axis] < 2 for axis, _ in _dynamic(leaf, axes))
        return None

    _shapes.map_axes(look, model, args, kwargs, shapes)
    return any(found)


def _dynamic(leaf: torch.Tensor, axes: object) -> Iterator[tuple[int, object]]:
    for axis, size in _shapes.axis_sizes(axes):
        if size is not None and not isinstance(size, int) and "STATIC" not in str(size):
            yield cast(int, axis), size


def without_small(model: Model, args: Args, kwargs: Kwargs, shapes: object) -> object:
    """Dynamic shapes without dimensions that are 0 or 1 in the example."""

    def static(leaf: object, axes: object) -> object:
        if not isinstance(leaf, torch.Tensor) or not axes:
            return axes
        pairs = cast(Iterator[tuple[int, object]], _shapes.axis_sizes(axes))
        return {axis: size for axis, size in pairs if leaf.shape[axis] > 1 and size is not None}

    return _shapes.map_axes(static, model, args, kwargs, shapes)


def same_result_sizes(
    one: torch.export.ExportedProgram, other: torch.export.ExportedProgram
) -> bool:
    """Whether the results of ``other`` have the sizes of those of ``one``, at the example of
    ``one``."""
    sizes: dict[object, int] = {}
    for given, shape in zip(_value_shapes(one, True), _value_shapes(other, True), strict=False):
        for a, b in zip(_hints(given), shape, strict=False):
            if not isinstance(b, int):
                sizes[b.node.expr] = a
    results = [
        [b if isinstance(b, int) else b.node.expr.xreplace(sizes) for b in shape]
        for shape in _value_shapes(other, False)
    ]
    return [_hints(shape) for shape in _value_shapes(one, False)] == results


def _value_shapes(program: torch.export.ExportedProgram, inputs: bool) -> list[_Sizes]:
    output = next(node for node in reversed(program.graph.nodes) if node.op == "output")
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    nodes = placeholders if inputs else output.all_input_nodes
    values = [node.meta.get("val") for node in nodes]
    return [value.shape for value in values if hasattr(value, "shape")]


def _hints(shape: _Sizes) -> list[int]:
    return [size if isinstance(size, int) else int(size.node.hint) for size in shape]


def of_leaves(
    names: Sequence[str],
    args: Args,
    kwargs: Kwargs,
    leaves: Sequence[TensorLeaf],
    fixed: Collection[str] = (),
    growths: Sequence[Growth] = GROWTHS,
) -> Iterator[Example]:
    """Arguments with other dynamic dimensions: by default larger by one, and twice as large.

    Args:
        names: The names of the positional arguments.
        args: The positional arguments.
        kwargs: The keyword arguments.
        leaves: The tensors within the arguments.
        fixed: Names of dimensions that keep their size.
        growths: The sizes to try.
    """
    sizes = _shapes.SizeNames(fixed)
    symbols = [[size.split(">")[0] for size in sizes.of(leaf)] for leaf in leaves]
    dynamic = {name for names in symbols for name in names if not name.isdigit()}
    for growth in growths if dynamic else ():
        dims = sizes.related({name: growth(sizes.known[name]) for name in sorted(dynamic)})
        shrunk = {
            sizes.known[name]: size for name, size in dims.items() if size < sizes.known[name]
        }
        grown: dict[str, object] = {}
        for leaf, own in zip(leaves, symbols, strict=True):
            new = {axis: dims[name] for axis, name in enumerate(own) if name in dims}
            grown[leaf.path] = of_sizes(leaf.value, new, shrunk)
        text = ", ".join(f"{name}={size}" for name, size in dims.items())
        yield Example(*_leaves.rebuild_call(names, args, kwargs, grown), text)


def of_program(
    program: torch.export.ExportedProgram, relations: Sequence[object], args: Args, kwargs: Kwargs
) -> Example:
    """Arguments with each dynamic dimension larger by one where its range allows that, and by more
    where the program needs it.

    Args:
        program: The program.
        relations: Its assertions about sizes, as relations of SymPy.
        args: The positional arguments.
        kwargs: The keyword arguments.

    Raises:
        NoExample: There are none.
    """
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    ranges = _pytree.range_constraints(program)
    leaves, tree = _pytree.flatten((args, kwargs))
    inputs = _shapes.inputs(program)
    if len(inputs) != len(leaves):
        raise NoExample(f"the program has {len(inputs)} inputs, but {len(leaves)} are given")
    dims: list[list[object]] = []
    sizes: dict[object, int] = {}
    given: dict[object, int] = {}
    for name, leaf in zip(inputs, leaves, strict=True):
        value = nodes[name].meta.get("val") if name in nodes else None
        dims.append([])
        if not isinstance(leaf, torch.Tensor) or value is None:
            continue
        for axis, size in enumerate(value.shape):
            expr = size if isinstance(size, int) else size.node.expr
            dims[-1].append(expr)
            if not isinstance(expr, int) and expr.is_Symbol and expr not in sizes:
                limits = ranges.get(expr)
                larger = leaf.shape[axis] + 1
                fits = limits is None or limits.upper >= larger
                sizes[expr] = larger if fits else leaf.shape[axis]
                given[expr] = leaf.shape[axis]
    if sizes == given:
        raise NoExample("the program takes no larger ones")
    if not _satisfy(sizes, relations):
        raise NoExample("none were found at which all checks of the program hold")
    made = [_with_sizes(leaf, expected, sizes) for leaf, expected in zip(leaves, dims, strict=True)]
    grown = cast(tuple[Args, Kwargs], _pytree.unflatten(made, tree))
    return Example(*grown, ", ".join(f"{symbol}={size}" for symbol, size in sizes.items()))


def _with_sizes(leaf: object, dims: Sequence[object], sizes: dict[object, int]) -> object:
    """An argument with other sizes: its dimensions are ints and expressions of SymPy."""
    for axis, size in enumerate(dims):
        if isinstance(leaf, torch.Tensor) and not isinstance(size, int):
            known = sympy.sympify(size).subs(sizes)
            if not known.is_Integer:
                raise NoExample(f"{list(dims)} does not follow from those of other inputs")
            leaf = resize(leaf, axis, int(known))
    return leaf


def _satisfy(sizes: dict[object, int], relations: Sequence[object]) -> bool:
    """Enlarges sizes until the relations of the program hold. False if they still do not after some
    steps."""
    exprs = [sympy.sympify(relation) for relation in relations]
    for _ in range(2 * len(sizes) + 2):
        broken = next((r for r in exprs if r.subs(sizes) == sympy.false), None)
        if broken is None:
            return True
        if not hasattr(broken, "lhs"):
            return False
        gap = (broken.rhs - broken.lhs).subs(sizes)
        symbols = (broken.lhs if gap > 0 else broken.rhs).free_symbols
        smaller = [symbol for symbol in symbols if symbol in sizes]
        if not smaller or not gap.is_Integer:
            return False
        sizes[min(smaller, key=str)] += max(abs(int(gap)), 1)
    return False
