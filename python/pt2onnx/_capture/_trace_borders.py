"""Sizes at which the code of a trace may do something else: what it reads of sizes is computed for
other arguments by the trace itself.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable

import torch

from .._conditions import FAR
from .._sizes import Sizes
from ._budget import Budget
from ._jit import JitGraph
from ._torch_export import Call
from ._trace import Traced

#: How many sizes beside numbers are compared where one dimension is dynamic.
_MOST = 8

#: How many sizes are compared at which the code reads something else, each another one.
_MOST_OTHERS = 8

#: How many sizes are compared at which two dimensions are exchanged.
_MOST_EXCHANGED = 4

#: Numbers beside which sizes are looked at in any case.
_LOOKED_AT = (2, 5, 8, 11, 14, 17, 32, 64, 128)

#: The reads that decide what code does. Others are numbers that it computes with.
_DECIDING = ("__bool__", "__index__")

#: Reads of sizes by the code, those that decide first. None where the trace fails.
_Reads = tuple[tuple[object, ...], tuple[object, ...]] | None


@dataclasses.dataclass
class Borders:
    """Other sizes at which a trace is compared with its module.

    At ``others`` the code reads something else than at the sizes of the trace. ``points`` are those
    beside numbers that the code computes with, and those at which dimensions are exchanged, where
    it is not known that the code reads the same.
    """

    others: list[dict[str, int]]
    points: list[dict[str, int]]


def borders(traced: Traced, sizes: Sizes, most: float, budget: Budget) -> Borders:
    """The sizes at which a trace is compared, as its code reads sizes.

    Args:
        traced: The trace.
        sizes: The dynamic dimensions.
        most: How many elements the arguments may have.
        budget: When to look at no more sizes.
    """
    points = _beside_numbers(traced, sizes)
    points += _exchanged(sizes) if traced.sizes.branches else ()
    points = [point for point in points if sizes.elements(point) <= most]
    known = own_reads(traced)
    if known is None:
        return Borders([], points)
    found, same = dict[_Reads, dict[str, int]](), list[dict[str, int]]()
    largest = dict[_Reads, dict[str, int]]()
    looked_at = (*points, *sizes.generic(), *sizes.borders((), _LOOKED_AT))
    operators = traced.code.read_operators
    for point in looked_at:
        if budget.is_spent:
            break
        if sizes.elements(point) <= most:
            budget.spend(operators)
            read = reads(traced, sizes, point)
            found.setdefault(read, point)
            largest[read] = max(largest.get(read, point), point, key=sizes.elements)
            if read == known:
                same.append(point)
    found.pop(known, None)
    # Those that decide, each once, come first. Numbers differ most at the smallest and largest.
    deciding = {read and read[0]: point for read, point in reversed(found.items())}
    deciding.pop(known[0], None)
    first = [point for point in found.values() if point in deciding.values()]
    # The code may do the same at small sizes only.
    far = [largest[read] for read, point in found.items() if point in first]
    first += [point for point in far if point not in first]
    rest = sorted((p for p in found.values() if p not in first), key=sizes.elements)
    chosen = first + [rest.pop(0 if at % 2 == 0 else -1) for at in range(len(rest))]
    others = chosen[:_MOST_OTHERS]
    return Borders(others, [point for point in points if point not in (*others, *same)])


def own_reads(traced: Traced) -> _Reads:
    """The reads of the code while it was traced; None if it read other things than sizes."""
    if traced.notes or traced.writes or traced.sizes.keys:
        return None
    return _parted(traced.sizes.decisions) if traced.code.has_reads else None


def reads(traced: Traced, sizes: Sizes, point: dict[str, int]) -> _Reads:
    """The reads of the code at other sizes, if it did the same."""
    tensors = sizes.tensors_at(point)
    inputs = [tensors[leaf.path] for leaf in traced.leaves]
    try:
        with traced.call.snapshot.memory_kept(), torch.no_grad():
            found = traced.code.reads(*inputs)
    except RuntimeError:
        # The trace takes no such arguments.
        return None
    ways = (way for way, _ in traced.sizes.decisions)
    return _parted((way, getattr(one, way)()) for way, one in zip(ways, found, strict=True))


def _parted(decisions: Iterable[tuple[str, object]]) -> _Reads:
    pairs = list(decisions)
    first, rest = (
        tuple(value for way, value in pairs if (way in _DECIDING) == deciding)
        for deciding in (True, False)
    )
    return first, rest


def call_at(traced: Traced, sizes: Sizes, point: dict[str, int]) -> Call:
    """The module with arguments of other sizes."""
    return traced.call.of(sizes.at(point))


def numbers(traced: Traced) -> set[int]:
    """The numbers in the code of a trace that may be compared with sizes."""
    return traced.sizes.numbers.union(*map(_constants, traced.code.graphs())) - {1}


def numbers_of_script(run: object) -> set[int]:
    """The numbers in the code of a module or function in TorchScript."""
    graph: JitGraph | None = getattr(run, "inlined_graph", None)
    return set[int]() if graph is None else _constants(graph)


def _constants(graph: JitGraph) -> set[int]:
    values = (node.output().toIValue() for node in graph.findAllNodes("prim::Constant"))
    return {abs(value) for value in values if type(value) is int and 1 < abs(value) < FAR}


def _beside_numbers(traced: Traced, sizes: Sizes) -> list[dict[str, int]]:
    """Sizes on both sides of numbers that the code computes with."""
    own = sorted(traced.sizes.numbers - {1})
    products = {a * b for a, b in itertools.combinations(own, 2)}
    most = _MOST * (len(sizes.dims) + 1) // 2
    return sizes.borders((), [*own, *sorted(products)])[:most]


def _exchanged(sizes: Sizes) -> list[dict[str, int]]:
    """Sizes at which another dimension is the larger one, or both are equal."""
    example, found = sizes.example, list[dict[str, int]]()
    for (a, one), (b, other) in itertools.combinations(example.items(), 2):
        if one != other:
            found += [{**example, a: other, b: one}, {**example, a: other}]
    return [point for point in found if sizes.takes(point)][:_MOST_EXCHANGED]
