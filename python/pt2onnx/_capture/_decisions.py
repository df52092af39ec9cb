"""Decisions between captures by conditions on sizes, learned from the sizes at which each capture
is right. Sets of sizes are the bits of integers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from .._conditions import Condition, Expr
from .._sympy import sympy


@dataclasses.dataclass(frozen=True)
class Leaf:
    """Sizes, and the capture that is taken there: None if none is right at all of them."""

    points: int
    model: int | None


@dataclasses.dataclass(frozen=True)
class Split:
    """A condition, and the decisions where it holds and where not."""

    condition: int
    holds: Decision
    fails: Decision


#: A decision between captures.
Decision = Leaf | Split

#: A decision with its conditions: None for sizes that are refused.
Chosen = int | None | tuple[Condition, "Chosen", "Chosen"]


def union(sets: Iterable[int]) -> int:
    """The sizes that are in one of these sets."""
    found = 0
    for one in sets:
        found |= one
    return found


def learned(points: int, splits: Sequence[int], right: Sequence[int]) -> Decision:
    """A small tree whose leaves have a capture that is right.

    Args:
        points: All sizes.
        splits: Those at which each condition holds. The first of conditions that are as good is
            taken.
        right: Those at which each capture is right. The first of several is taken.
    """
    anywhere = union(right)
    classes = (*right, ~anywhere)

    def errors(part: int) -> int:
        """At how many sizes the best single decision is wrong."""
        return part.bit_count() - max((part & own).bit_count() for own in classes)

    def decide(part: int) -> Decision:
        model = next((at for at, own in enumerate(right) if not part & ~own), None)
        if model is not None or not part & anywhere:
            return Leaf(part, model)
        sides = [(part & own, part & ~own) for own in splits]
        costs = [
            (errors(one) + errors(other), at)
            for at, (one, other) in enumerate(sides)
            if one and other
        ]
        if not costs:
            # They differ in no condition that is known.
            return Leaf(part, None)
        _, at = min(costs)
        return Split(at, decide(sides[at][0]), decide(sides[at][1]))

    return decide(points)


def leaves(decision: Decision) -> Iterator[Leaf]:
    """All leaves."""
    if isinstance(decision, Leaf):
        yield decision
    else:
        yield from leaves(decision.holds)
        yield from leaves(decision.fails)


def models(decision: Decision) -> set[int]:
    """The captures that are taken."""
    return {leaf.model for leaf in leaves(decision) if leaf.model is not None}


def renamed(decision: Decision, names: Sequence[int]) -> Decision:
    """A decision with other numbers for captures."""
    if isinstance(decision, Split):
        sides = renamed(decision.holds, names), renamed(decision.fails, names)
        return Split(decision.condition, *sides)
    return Leaf(decision.points, None if decision.model is None else names[decision.model])


def fewest(points: int, right: Sequence[int], most: int) -> list[int]:
    """The captures that are right at the most sizes together.

    Args:
        points: All sizes.
        right: Those at which each capture is right.
        most: How many captures.
    """
    found: list[int] = []
    while points and len(found) < most:
        at = max(range(len(right)), key=lambda at: (points & right[at]).bit_count())
        if not points & right[at]:
            break
        found.append(at)
        points &= ~right[at]
    return found


def bits(points: int) -> Iterator[int]:
    """The positions of the sizes in a set."""
    while points:
        low = points & -points
        yield low.bit_length() - 1
        points ^= low


def within(conditions: Iterable[Condition], model: int) -> Chosen:
    """The decision for a capture where all of these conditions hold, and for none elsewhere."""
    found: Chosen = model
    for one in reversed([*conditions]):
        found = (one, found, None)
    return found


def paths(
    chosen: Chosen, path: tuple[tuple[Condition, bool], ...] = ()
) -> Iterator[tuple[tuple[tuple[Condition, bool], ...], int | None]]:
    """Each path of decisions with its capture."""
    if isinstance(chosen, tuple):
        condition, *sides = chosen
        for holds, side in zip((True, False), sides, strict=True):
            yield from paths(side, (*path, (condition, holds)))
    else:
        yield path, chosen


def exprs(path: Sequence[tuple[Condition, bool]]) -> list[Expr]:
    """The conditions of a path, as they hold on it."""
    return [one.expr if holds else sympy.Not(one.expr) for one, holds in path]
