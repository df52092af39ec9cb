"""The sizes that dynamic shapes ask for: ranges of the dimensions by name, conditions on them, and
the sizes at which a model is tried.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

import torch

from . import _examples, _leaves, _shapes
from ._conditions import Condition, Expr, Point, as_text, symbol
from ._leaves import TensorLeaf
from ._program._origin import Example
from ._types import Args, Kwargs

#: All sizes below these are looked at, by the number of dimensions.
_ALL = {1: 65, 2: 18}

#: How many sizes are looked at for a condition.
_MOST = 4000

#: Arguments of so many elements need little memory.
_MANY = 1 << 20

#: How many times as many elements as those of the example, if that is more, are tried.
_TIMES = 8

#: The largest bound of the user's at which a model is tried.
_LARGEST = 4096

#: How many sizes a model is tried at.
MOST = 12


@dataclasses.dataclass(frozen=True)
class Size:
    """A dynamic dimension as the user asks for it.

    ``name`` is its symbol, ``text`` the user's name. ``exact`` is whether the user gave its range,
    ``automatic`` whether it may be static.
    """

    name: str
    text: str
    low: int
    high: int | None
    example: int
    exact: bool = False
    automatic: bool = False

    def takes(self, size: int) -> bool:
        """Whether the range has a size."""
        return self.low <= size and (self.high is None or size <= self.high)


class Sizes:
    """The dynamic dimensions of a call.

    Args:
        names: The names of the positional arguments.
        args: The positional arguments.
        kwargs: The keyword arguments.
        leaves: The tensors within the arguments, with their dynamic axes.
        fixed: Names of dimensions that are static.
    """

    def __init__(
        self,
        names: Sequence[str],
        args: Args,
        kwargs: Kwargs,
        leaves: Sequence[TensorLeaf],
        fixed: Collection[str] = (),
    ) -> None:
        self._names, self._args, self._kwargs, self._leaves = names, args, kwargs, leaves
        self._known = _shapes.SizeNames(fixed)
        #: The symbols of the axes of each tensor by path; None for those that are static.
        self.symbols: dict[str, list[str | None]] = {}
        given: dict[str, list[object]] = {}
        for leaf in leaves:
            named = [name.split(">")[0] for name in self._known.of(leaf)]
            own = [None if name.isdigit() else name for name in named]
            self.symbols[leaf.path] = own
            for axis, size in _shapes.axis_sizes(leaf.axes):
                symbol = own[cast(int, axis)]
                if symbol is not None:
                    given.setdefault(symbol, []).append(size)
        known = self._known.known
        computed = self._known.computed
        #: Assertions of PyTorch on several dimensions: sizes that do not meet them do not belong
        #: together.
        self.relations: list[Condition] = []
        #: The branches of the capture that has these assertions: others may not have them.
        self._branches: list[Condition] = []
        #: The dimensions whose sizes do not follow from others, by symbol.
        self.dims = {
            name: self._size(name, known[name], sizes)
            for name, sizes in given.items()
            if name not in computed
        }

    def _size(self, name: str, example: int, given: Sequence[object]) -> Size:
        low, high = min(1, example), None
        exact = automatic = False
        for one in given:
            least, most = getattr(one, "min", None), getattr(one, "max", None)
            automatic = automatic or (type(one).__name__ == "_DimHint" and "AUTO" in str(one))
            # An infinity of torch is a number of SymPy.
            if isinstance(least, int) and least > 0:
                # A name alone asks for sizes from 1, too.
                low, exact = max(low, least), exact or least > 1
            if isinstance(most, int) and most < _NO_LIMIT:
                high, exact = min(most, high or most), True
        text = self._known.renamed.get(name, name)
        return Size(name, text, low, high, example, exact, automatic)

    @property
    def example(self) -> dict[str, int]:
        """The sizes of the arguments."""
        return {name: dim.example for name, dim in self.dims.items()}

    def complete(self, point: Point) -> dict[str, int]:
        """The sizes with those that follow from them."""
        return self._known.related({**self._known.known, **point})

    def takes(self, point: Point) -> bool:
        """Whether all of these sizes are asked for."""
        in_ranges = all(dim.takes(point[name]) for name, dim in self.dims.items())
        return in_ranges and self._belong_together(point)

    def relate(self, conditions: Sequence[Condition]) -> None:
        """Takes what PyTorch asserts on several dimensions for a part of what is asked for, and two
        branches that are one equation."""
        several = [one for one in conditions if len(one.names) > 1]
        gaps = {one: one.expr.lts - one.expr.gts for one in several if hasattr(one.expr, "lts")}
        opposite = {(-gap).expand() for gap in gaps.values()}
        found = [
            one
            for one in several
            if one.kind == "check" or (one in gaps and gaps[one].expand() in opposite)
        ]
        example = self.complete(self.example)
        self.relations = [one for one in found if one.holds(example)]
        others = (one for one in conditions if one not in found)
        self._branches = [one for one in others if one.kind == "branch"]

    def _belong_together(self, point: Point) -> bool:
        all_sizes = self.complete(point) if self.relations else point
        together = all(one.holds(all_sizes) for one in self.relations)
        return together or not all(one.holds(all_sizes) for one in self._branches)

    def at(self, point: Point) -> Example:
        """The arguments at other sizes, with other numbers."""
        dims = self.complete(point)
        made: dict[str, object] = {}
        for leaf in self._leaves:
            resized = _examples.of_sizes(leaf.value, self._new(leaf, dims), self._shrunk(dims))
            made[leaf.path] = _examples.other_floats(resized)
        text = ", ".join(f"{self._known.renamed.get(n, n)}={dims[n]}" for n in self.dims)
        args, kwargs = _leaves.rebuild_call(self._names, self._args, self._kwargs, made)
        return Example(args, kwargs, text)

    def tensors_at(self, point: Point) -> dict[str, torch.Tensor]:
        """The tensors of the arguments at other sizes, by path: for code that reads sizes, and
        integers. All floats are 0, and take no memory."""
        dims = self.complete(point)
        made: dict[str, torch.Tensor] = {}
        for leaf in self._leaves:
            new, value = self._new(leaf, dims), leaf.value.detach()
            if value.is_floating_point():
                shape = [new.get(axis, size) for axis, size in enumerate(value.shape)]
                made[leaf.path] = value.new_zeros(()).expand(shape)
            else:
                made[leaf.path] = _examples.of_sizes(value, new, self._shrunk(dims))
        return made

    def _new(self, leaf: TensorLeaf, dims: Point) -> dict[int, int]:
        """The sizes of the dynamic dimensions of a tensor, by axis."""
        symbols = enumerate(self.symbols[leaf.path])
        return {axis: dims[name] for axis, name in symbols if name is not None}

    def _shrunk(self, dims: Point) -> dict[int, int]:
        """The smaller sizes by those of the example."""
        known = self._known.known
        return {known[name]: size for name, size in dims.items() if size < known[name]}

    def names(self) -> dict[str, str]:
        """The user's names by symbol."""
        return {name: self._known.renamed.get(name, name) for name in self._known.known}

    # Conditions.

    def broken(self, condition: Condition) -> Iterator[dict[str, int]]:
        """Sizes that are asked for at which a condition does not hold, nearest first. Those for
        which arguments are too large are left out, unless there are no others."""
        if self._is_implied(condition.expr):
            return
        found, large = False, list[dict[str, int]]()
        for point in self.candidates([condition]):
            if condition.holds(self.complete(point)):
                continue
            if self._is_small(point):
                found = True
                yield point
            else:
                large.append(point)
        if large and not found:
            yield min(large, key=self.elements)

    def _is_implied(self, expr: Expr) -> bool:
        """Whether the ranges imply a condition."""
        try:
            ranges = importlib.import_module("torch.utils._sympy.value_ranges")
            numbers = importlib.import_module("torch.utils._sympy.numbers")
            bounds = {
                symbol(name): ranges.ValueRanges(
                    dim.low, numbers.int_oo if dim.high is None else dim.high
                )
                for name, dim in self.dims.items()
            }
            found = ranges.bound_sympy(expr, bounds)
            return bool(found.is_singleton() and found.lower)
        except Exception:
            # torch's own analysis does not know such expressions.
            return False

    def candidates(self, conditions: Sequence[Condition]) -> list[dict[str, int]]:
        """The sizes that are looked at for conditions, those of the example first."""
        symbols = {name for condition in conditions for name in condition.names}
        names = [name for name in self.dims if name in symbols]
        if symbols - self.dims.keys():
            # Some follow from others.
            names = list(self.dims)
        critical = [self._critical(self.dims[name], conditions, len(names)) for name in names]
        count = math.prod(map(len, critical))
        if count <= _MOST:
            points: Iterable[tuple[int, ...]] = itertools.product(*critical)
        else:
            choose = random.Random(0)
            points = [tuple(map(choose.choice, critical)) for _ in range(_MOST)]
        example = self.example

        def cost(point: Point) -> tuple[int, int, float]:
            small = sum(size < 2 for size in point.values())
            changed = sum(point[name] != example[name] for name in names)
            far = sum(abs(math.log2((point[n] + 1) / (example[n] + 1))) for n in names)
            return small, changed, far

        found = [{**example, **dict(zip(names, point, strict=True))} for point in points]
        return sorted(filter(self._belong_together, found), key=cost)

    def _critical(self, dim: Size, conditions: Sequence[Condition], count: int) -> list[int]:
        """The sizes of a dimension that are looked at."""
        found = {dim.low, dim.low + 1, dim.example, *range(_ALL.get(count, 6))}
        found.update({dim.high, dim.high - 1} if dim.high is not None else ())
        if count == 1:
            found.update(1 << power for power in range(13))
        others = {d.example for d in self.dims.values() if d is not dim}
        found.update(size + step for size in others for step in (-1, 0, 1))
        for condition in conditions:
            for number in condition.numbers:
                multiples = (number // 2, 2 * number, 2 * number + 1, 3 * number - 1)
                found.update((number - 1, number, number + 1, number + 2, *multiples))
            for low, high in self._borders(dim, condition):
                found.update((low - 1, low, high, high + 1))
        return sorted(filter(dim.takes, found))

    def _borders(
        self, dim: Size, condition: Condition, near: Point | None = None
    ) -> list[tuple[int, int]]:
        """The neighbours between which a condition changes along a dimension, from the sizes of the
        example or others: two pairs where a function of the size has to have one value."""
        if dim.name not in condition.names:
            return []
        numbers = [4 * number for number in condition.numbers]
        lowest, highest = dim.low, max(4 * dim.example, 64, *numbers)
        highest = highest if dim.high is None else min(highest, dim.high)

        def at(size: int) -> int:
            return condition.side(self.complete({**(near or self.example), dim.name: size}))

        first, last = at(lowest), at(highest)
        if first == last:
            return []

        def change(is_after: Callable[[int], bool]) -> tuple[int, int]:
            low, high = lowest, highest
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if is_after(at(middle)) else (middle, high)
            return low, high

        found = change(lambda side: side != first), change(lambda side: side == last)
        return [*dict.fromkeys(found)]

    def to_try(
        self, conditions: Sequence[Condition] = (), most: int = MOST
    ) -> list[dict[str, int]]:
        """The sizes at which a model is tried: on both sides of where conditions change, the ends
        of the ranges, and others, each dimension alone and all together.

        Args:
            conditions: Those that the code asks for.
            most: How many.
        """
        branches = [one for one in conditions if one.kind == "branch"]
        checks = [one for one in conditions if one.kind == "check"]
        found: list[dict[str, int]] = []
        for point in (*self.borders(branches), *self.generic()):
            if len(found) >= most:
                break
            all_sizes = self.complete(point)
            # Assertions are those of these branches.
            is_other = not all(one.holds(all_sizes) for one in branches)
            if point not in found and (is_other or all(one.holds(all_sizes) for one in checks)):
                found.append(point)
        return found

    def borders(
        self,
        conditions: Sequence[Condition],
        numbers: Iterable[int] = (),
        near: Point | None = None,
    ) -> list[dict[str, int]]:
        """The sizes on both sides of where conditions change, or of numbers that the code compares
        sizes with: all of them, and each alone.

        Args:
            conditions: The conditions.
            numbers: The numbers.
            near: The sizes of other dimensions, by default those of the example.
        """
        near = near or self.example
        found: list[dict[str, int]] = []
        for condition in conditions:
            for point in itertools.islice(self.broken(condition), 2):
                found.append(
                    {**near, **{name: point[name] for name in condition.names & near.keys()}}
                )
            for name in self.dims:
                pairs = self._borders(self.dims[name], condition, near)
                found += [{**near, name: size} for size in itertools.chain(*pairs)]
        for number in numbers:
            for size in (number + 1, number, number - 1):
                found.append(dict.fromkeys(self.dims, size))
                found += [{**near, name: size} for name in self.dims]
        return self._asked(found)

    def generic(self) -> list[dict[str, int]]:
        """Sizes at which every model is tried."""
        found: list[dict[str, int]] = []
        steps = [
            [size for step in _STEPS if (size := step(dim)) is not None and dim.takes(size)]
            for dim in self.dims.values()
        ]
        for sizes in itertools.zip_longest(*steps):
            pairs = zip(self.dims.values(), sizes, strict=True)
            point = {dim.name: dim.example if size is None else size for dim, size in pairs}
            found += [point, *({**self.example, name: size} for name, size in point.items())]
        return self._asked(found)

    def elements(self, point: Point) -> int:
        """How many elements the tensors with dynamic dimensions have."""
        dims = self.complete(point)
        shapes = ((leaf.value.shape, self._new(leaf, dims)) for leaf in self._leaves)
        return sum(
            math.prod(new.get(axis, size) for axis, size in enumerate(shape))
            for shape, new in shapes
            if new
        )

    @functools.cached_property
    def _most(self) -> int:
        """How many elements the arguments may have at which a model is tried."""
        return max(_MANY, _TIMES * self.elements(self.example))

    def _is_small(self, point: Point) -> bool:
        return self.elements(point) <= self._most

    def _asked(self, points: Iterable[dict[str, int]]) -> list[dict[str, int]]:
        """The points without those of other sizes than asked for, of the example, and those that
        are too large."""
        found: list[dict[str, int]] = []
        for point in points:
            is_new = self.takes(point) and point not in (self.example, *found)
            if is_new and self._is_small(point):
                found.append(point)
        return found

    # Texts.

    def texts(self, conditions: Sequence[Condition]) -> Iterator[tuple[str, str]]:
        """Conditions in words, those on one dimension together, and the lines that decide by
        them."""
        groups: dict[str, list[Condition]] = {}
        for at, condition in enumerate(conditions):
            own = next(iter(condition.names)) if len(condition.names) == 1 else ""
            has_range = own in self.dims and self._limits(self.dims[own], [condition])
            groups.setdefault(own if has_range else str(at), []).append(condition)
        for name, group in groups.items():
            where = "; ".join(dict.fromkeys(condition.where for condition in group))
            if name not in self.dims:
                yield as_text(group[0].expr, self.names()), where
                continue
            dim = self.dims[name]
            low, high = self._limits(dim, group) or (dim.example, dim.example)
            held, asked = _range(low, high), _range(dim.low, dim.high)
            yield f"`{dim.text}` is {held}, but dynamic_shapes asks for {asked}", where

    def _limits(self, dim: Size, conditions: Sequence[Condition]) -> tuple[int, int | None] | None:
        """The range of a dimension in which conditions on it hold; None if they are not a range."""
        sizes = self._critical(dim, conditions, 1)
        points = [self.complete({**self.example, dim.name: size}) for size in sizes]
        good = [all(c.holds(point) for c in conditions) for point in points]
        if not good[sizes.index(dim.example)]:
            return None
        first, last = good.index(True), len(good) - 1 - good[::-1].index(True)
        if not all(good[first : last + 1]):
            return None
        is_open = last == len(sizes) - 1 and dim.high is None
        return sizes[first], None if is_open else sizes[last]


@dataclasses.dataclass(frozen=True)
class Asked:
    """The dynamic axes of arguments by path, and the conditions on sizes that the code asks for.

    ``names`` are those of the positional arguments.
    """

    names: Sequence[str]
    axes: Mapping[str, object]
    conditions: Sequence[Condition]

    def examples(self, args: Args, kwargs: Kwargs) -> Iterator[Example]:
        """Arguments of the sizes at which a model is tried."""
        given = _leaves.tensors(_leaves.by_name(self.names, args, kwargs), None)
        leaves = [dataclasses.replace(leaf, axes=self.axes.get(leaf.path)) for leaf in given]
        sizes = Sizes(self.names, args, kwargs, leaves)
        sizes.relate(self.conditions)
        yield from map(sizes.at, sizes.to_try(self.conditions))


#: Sizes at which every model is tried.
_STEPS: tuple[Callable[[Size], int | None], ...] = (
    lambda dim: 2 * dim.example + 1,
    lambda dim: dim.low,
    lambda dim: dim.example + 1,
    lambda dim: dim.high if dim.high is not None and dim.high <= _LARGEST else None,
    lambda dim: 2 * dim.example,
    lambda dim: dim.example - 1,
    lambda _: 1,
    lambda _: 7,
    lambda _: 31,
    lambda _: 67,
    lambda dim: dim.low + 1,
)


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"


#: Upper bounds from here on are none.
_NO_LIMIT = 1 << 31
