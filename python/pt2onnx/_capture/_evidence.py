"""The sizes at which captures were compared with their module, and at which their conditions hold.
Sets of sizes are the bits of integers.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence

from .._conditions import Condition, Expr, truths
from .._sizes import Sizes
from . import _decisions
from ._decisions import union

#: At how many sizes for which all conditions have one answer the module fails, until it is taken to
#: fail at all of them.
_FAILURES = 3

#: The conditions of a capture, and the assertions of PyTorch.
Conditions = tuple[Sequence[Condition], Sequence[Condition]]

#: Whether each capture is right at sizes, as far as it is known; None if the module does not take
#: them.
Answers = Mapping[tuple[int, ...], dict[int, bool] | None]


class Evidence:
    """Where each capture is right.

    Args:
        sizes: The sizes that are asked for.
        captures: The conditions of each capture.
        points: Sizes that are looked at besides.
        answers: Those of tests before.
    """

    def __init__(
        self,
        sizes: Sizes,
        captures: Sequence[Conditions],
        points: Iterable[dict[str, int]],
        answers: Answers,
    ) -> None:
        branches = [one for conditions, _ in captures for one in conditions]
        self.points = sizes.candidates(branches)
        known = {tuple(point.values()) for point in self.points}
        self.points += [point for point in points if tuple(point.values()) not in known]
        #: The sizes as keys of tests.
        self.keys = [tuple(point.values()) for point in self.points]
        self.all = (1 << len(self.points)) - 1
        complete = [sizes.complete(point) for point in self.points]
        self._holds: dict[Expr, int] = {}
        for one in (*branches, *(one for _, checks in captures for one in checks)):
            if one.key not in self._holds:
                found = truths(one.expr, complete)
                own = sum(1 << at for at, holds in enumerate(found) if holds is not False)
                self._holds[one.key] = own
                self._holds.setdefault(one.opposite, self.all & ~own)
        #: The conditions of all captures, each once, the shortest first.
        different = {min((one.key, one.opposite), key=str): one for one in branches}
        self.conditions = sorted(different.values(), key=lambda one: one.expr.count_ops())
        self.splits = [self.holds(one) for one in self.conditions]
        #: Where all conditions of each capture hold.
        self.proven = [self.all & ~self.broken(conditions) for conditions, _ in captures]
        #: Where tests show that each is right, or not.
        self.right, self.wrong = [0] * len(captures), [0] * len(captures)
        #: Where the module was run, and where it failed.
        self.run = self.failed = 0
        self._alike = self._classes()
        for at, key in enumerate(self.keys):
            if key in answers:
                self.add(at, answers[key])

    def _classes(self) -> list[int]:
        columns = list(self._holds.values())
        found: dict[object, int] = collections.defaultdict(int)
        signatures: list[object] = []
        for at, key in enumerate(self.keys):
            small = tuple(size < 2 for size in key)
            signatures.append((small, *(own >> at & 1 for own in columns)))
            found[signatures[-1]] |= 1 << at
        return [found[one] for one in signatures]

    def holds(self, condition: Condition) -> int:
        """Where a condition holds."""
        return self._holds[condition.key]

    def broken(self, conditions: Iterable[Condition]) -> int:
        """Where one of these does not hold."""
        return union(self.all & ~self.holds(one) for one in conditions)

    def alike(self, points: int) -> int:
        """The sizes for which all conditions have the answers of one of these."""
        return union(self._alike[at] for at in _decisions.bits(points))

    def add(self, at: int, answers: Mapping[int, bool] | None) -> None:
        """Adds a test at a position: whether each capture is right; None if the module fails."""
        self.run |= 1 << at
        if answers is None:
            self.failed |= 1 << at
        for model, is_right in (answers or {}).items():
            side = self.right if is_right else self.wrong
            side[model] |= 1 << at

    def known_right(self, model: int) -> int:
        """Where a capture is right by its conditions, or by a test."""
        return (self.proven[model] | self.right[model]) & ~self.known_wrong(model)

    def known_wrong(self, model: int) -> int:
        """Where it is not, and at sizes that are alike."""
        return self.alike(self.wrong[model])

    def failing(self) -> int:
        """Where the module fails, also at sizes that are alike."""
        classes = {self._alike[at] for at in _decisions.bits(self.failed)}
        alike = (
            one
            for one in classes
            if (one & self.failed).bit_count() >= _FAILURES and not one & self.run & ~self.failed
        )
        return self.failed | union(alike)
