"""Conditions of a capture that hide others which matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import _pytree
from .._conditions import FAR, Condition
from ._budget import SMALL
from ._coverage import Run
from ._recapture import Recapture
from ._torch_export import Captured

#: How many captures look for conditions that others hide, and at how many numbers of their code.
_HIDING = 2
_NUMBERS = 6


def hiding(
    recapture: Recapture,
    captured: Captured,
    known: Sequence[Condition],
    untested: Mapping[Condition, dict[str, int]],
    run: Run,
) -> list[Condition]:
    """The conditions of a capture that hide others which matter: the capture is right on both
    sides of ``t <= 8``, but not where the code asks for ``t > 64`` on the other side, or takes
    ``x[:, :64]`` on one of them.

    Args:
        recapture: Captures the module.
        captured: The capture.
        known: All of its conditions.
        untested: Some of them, with sizes on the other side.
        run: Runs the capture.
    """
    sizes, own = recapture.coverage.sizes, _numbers(captured)
    keys = {key for one in known for key in (one.key, one.opposite)}
    is_small = captured.program is not None and len(captured.program.graph.nodes) <= SMALL
    found: list[Condition] = []
    # Code asks for a size of 1 often, and another capture takes long.
    larger = [c for c, point in untested.items() if _has_larger(point, sizes.example)]
    for condition, point in untested.items():
        others = list[dict[str, int]]()
        if is_small:
            side = {name: point[name] for name in condition.names & point.keys()}
            others += ({**other, **side} for other in sizes.generic())
            others += sizes.borders((), sorted(own)[:_NUMBERS], point)
        if condition in larger[:_HIDING] and (region := recapture.at(point)):
            new = [one for one in region.conditions if one.key not in keys]
            numbers = sorted(_numbers(region.captured) ^ own)[:_NUMBERS]
            others += (*sizes.borders(new, numbers, point), *sizes.borders(new, numbers))
        points = [other for other in others if not condition.holds(other)]
        if recapture.coverage.first_wrong(run, points):
            found.append(condition)
    return found


def _has_larger(point: Mapping[str, int], example: Mapping[str, int]) -> bool:
    """Whether a size is another one than in the example, and more than 1."""
    return any(1 < size != example.get(name) for name, size in point.items())


def _numbers(captured: Captured) -> set[int]:
    """The numbers in the code of a capture that may be compared with sizes."""
    nodes = captured.program.graph.nodes if captured.program else ()
    leaves = (leaf for node in nodes for leaf in _pytree.leaves((node.args, node.kwargs)))
    return {abs(leaf) for leaf in leaves if type(leaf) is int and 1 < abs(leaf) < FAR}
