"""Captures one module at several sizes, until each of the sizes that are asked for has a capture
that is right there.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Sequence

from .._conditions import Condition, Expr
from . import _decisions
from ._decisions import Chosen, Decision, Leaf, Split, union
from ._evidence import Evidence
from ._patience import Patience
from ._recapture import Recapture
from ._regions import Region, Regions
from ._torch_export import Captured

#: How many captures are made, as a multiple of the regions.
_ATTEMPTS = 3

#: At how many sizes a capture is tried where its conditions do not hold: at least, and at most.
_TESTS, _MOST_TESTS = 7, 40

#: How many times the elements of the example arguments have at which a capture is tried far away.
_LARGEST = 16

#: Seconds that exploring may take in any case.
_BUDGET = 10.0

#: At how many sizes the module is run to find some that it takes.
_RUNS = 8


class Explorer:
    """Finds the regions of a module.

    Captures are tried at sizes at which their conditions do not hold: where one is right anyway, it
    is taken there, and the conditions do not matter. Where none is right, the module is captured.

    Args:
        recapture: Captures the module.
        limit: How many models there may be.
    """

    def __init__(self, recapture: Recapture, limit: int) -> None:
        self._recapture, self._coverage = recapture, recapture.coverage
        self._limit = limit
        self._captures: list[Region] = []
        #: Sizes that the module takes, but that cannot be captured.
        self._lost: list[dict[str, int]] = []
        self._answers: dict[tuple[int, ...], dict[int, bool] | None] = {}
        #: How many captures were tried, and how many captures and tests were made.
        self._attempts = self._done = 0
        #: How many captures would be taken without a limit.
        self._needed = 0
        #: The seconds of CPU time of the slowest capture, and when exploring started.
        self._seconds = self._start = 0.0

    def run(self, first: Captured | None) -> Regions | None:
        """The regions; None if the module cannot be captured.

        Args:
            first: The capture of the example, if there is one.
        """
        start = time.process_time()
        sizes = self._coverage.sizes
        if first is None or first.call is None or first.log.notes:
            # It is static where it may be dynamic.
            region = self._recapture.at(sizes.example)
            seconds = time.process_time() - start
        else:
            region = self._recapture.region(first, first.call, sizes.example)
            seconds = first.seconds
        if region is None:
            return None
        self._seconds, self._start = seconds, time.process_time()
        self._add(region)
        goes_on = True
        while goes_on and self._left > 0:
            done = self._done
            goes_on = self._improve(self._decision()) and self._done > done
        return self._taken(self._decision(tested=goes_on))

    @property
    def _left(self) -> float:
        """The seconds of CPU time that are left: those of one capture for each region."""
        limit = max(_BUDGET, self._limit * self._seconds)
        return limit - (time.process_time() - self._start)

    @property
    def has_other_sizes(self) -> bool:
        """Whether the module takes other sizes than those of the example, and than 1 in their
        place, which broadcasts."""
        example = self._coverage.sizes.example
        return any(
            any(size > 1 and size != example[name] for name, size in region.point.items())
            for region in self._captures
        )

    def _add(self, region: Region) -> None:
        self._captures.append(region)
        points = [self._coverage.sizes.example, *(one.point for one in self._captures)]
        captures = [(one.conditions, one.checks) for one in self._captures]
        self._evidence = Evidence(self._coverage.sizes, captures, points, self._answers)

    def _decision(self, *, tested: bool = False) -> Decision:
        """Decides between the captures.

        Args:
            tested: Whether a capture is taken only where it was tried at sizes that are alike.
        """
        evidence = self._evidence
        points = evidence.all & ~evidence.failing()
        models = range(len(self._captures))
        known = [evidence.known_right(model) & points for model in models]
        wrong = [evidence.known_wrong(model) for model in models]
        right = [
            (evidence.alike(known[model]) if tested else points) & ~wrong[model] for model in models
        ]

        def decided(order: list[int]) -> Decision:
            own = [right[model] for model in order]
            found = _decisions.learned(points, evidence.splits, own)
            return _decisions.renamed(found, order)

        order = sorted(models, key=lambda model: -known[model].bit_count())
        found = decided(order)
        self._needed = len(_decisions.models(found))
        if self._needed > self._limit:
            found = decided(_decisions.fewest(points, known, self._limit))
        return found

    def _improve(self, decision: Decision) -> bool:
        """Captures the module at sizes that no capture has, or tries captures at more sizes.

        Returns:
            False if there is nothing to be done.
        """
        evidence = self._evidence
        found = list(_decisions.leaves(decision))
        lost = evidence.alike(self._positions(self._lost))
        may_capture = self._attempts < _ATTEMPTS * self._limit
        open_ = union(leaf.points for leaf in found if leaf.model is None) & ~lost
        if open_ and may_capture and self._needed <= self._limit:
            unseen = self._unseen()
            right = union(map(evidence.known_right, range(len(self._captures))))
            others = evidence.all & ~(right | evidence.failing() | lost)
            attempts = self._attempts
            self._seek(others & evidence.broken(unseen), unseen)
            if self._attempts == attempts:
                self._seek(open_, ())
            return True
        if any(self._tries(leaf) for leaf in found):
            return True
        for leaf in found if may_capture else ():
            unseen = [] if leaf.model is None else self._unseen(self._captures[leaf.model])
            if broken := evidence.broken(unseen) & leaf.points & ~lost:
                self._seek(broken, unseen, joined=True)
                return True
        return False

    def _positions(self, points: Sequence[dict[str, int]]) -> int:
        keys = {tuple(point.values()) for point in points}
        return sum(1 << at for at, key in enumerate(self._evidence.keys) if key in keys)

    def _unseen(self, region: Region | None = None) -> list[Condition]:
        """The conditions of the user's code that hold in all captures: the code may ask more where
        they do not.

        Args:
            region: One whose conditions are looked at, or all.
        """
        complete = self._coverage.sizes.complete
        points = [complete(one.point) for one in self._captures]
        found = region.conditions if region else self._evidence.conditions
        return [
            one for one in found if not one.internal and all(one.holds(point) for point in points)
        ]

    def _seek(self, points: int, unseen: Sequence[Condition], *, joined: bool = False) -> None:
        """Captures the module at the most telling sizes that it takes: see ``_most_telling``.

        Args:
            points: Those to choose from.
            unseen: The conditions.
            joined: Whether it is captured where a capture is right as well.
        """
        for _ in range(_RUNS):
            if not points:
                return
            at = self._most_telling(points, unseen)
            if self._try(at) is not None:
                self._settle(at, joined=joined)
                return
            points &= ~self._evidence.alike(1 << at)

    def _most_telling(self, points: int, unseen: Sequence[Condition]) -> int:
        """The position of sizes, near the first, at which the most conditions do not hold for the
        first time."""
        evidence = self._evidence
        broken = [evidence.all & ~evidence.holds(one) for one in unseen]
        near = self._near(points)

        example = self._coverage.sizes.example

        def gain(at: int) -> tuple[bool, int, int]:
            count = sum(own >> at & 1 for own in broken)
            # Modules fail at small sizes more often.
            sizes = evidence.points[at].items()
            is_large = count > 0 and all(size >= example[name] for name, size in sizes)
            return is_large, count, evidence.run >> at & 1

        return max(_decisions.bits(near), key=gain)

    def _near(self, points: int) -> int:
        """Those that are near the first."""
        own = self._evidence.points
        order = list(_decisions.bits(points))
        return sum(1 << at for at in order if self._coverage.is_near(own[at], own[order[0]]))

    def _largest(self, points: int) -> int:
        """The largest of those that are not too large."""
        sizes = self._coverage.sizes
        most = _LARGEST * sizes.elements(sizes.example)
        elements = {at: sizes.elements(self._evidence.points[at]) for at in _decisions.bits(points)}
        small = [at for at, count in elements.items() if count <= most]
        return 1 << max(small, key=elements.__getitem__) if small else 0

    def _settle(self, at: int, *, joined: bool = False) -> None:
        """Captures the module at sizes, unless a capture is right there.

        Args:
            at: The position of the sizes.
            joined: Whether it is captured in any case.
        """
        answers = self._try(at)
        right = union(map(self._evidence.known_right, range(len(self._captures))))
        if answers is None or (right >> at & 1 and not joined):
            return
        point = self._evidence.points[at]
        self._attempts += 1
        self._done += 1
        start = time.process_time()
        try:
            with Patience(max(_BUDGET, self._left), "as others took less").limited():
                region = self._recapture.at(point)
        finally:
            self._seconds = max(self._seconds, time.process_time() - start)
        if region is None:
            self._lost.append(point)
            return
        answers[len(self._captures)] = True
        self._add(region)

    def _try(self, at: int) -> dict[int, bool] | None:
        """Whether each capture is right at sizes; None if the module does not take them."""
        evidence = self._evidence
        key = evidence.keys[at]
        known = self._answers.get(key, {})
        if known is None:
            return None
        missing = [model for model in range(len(self._captures)) if model not in known]
        if not missing:
            return known
        self._done += 1
        runs = [self._captures[model].run for model in missing]
        found = self._coverage.are_right(runs, evidence.points[at])
        answers = None if found is None else {**known, **dict(zip(missing, found, strict=True))}
        self._answers[key] = answers
        evidence.add(at, answers)
        return answers

    def _tries(self, leaf: Leaf) -> bool:
        """Tries the capture of a leaf at sizes at which its conditions do not hold, until it is
        wrong: at some for each answer to each condition, and for each two of them. Before, it is
        tried at the sizes of other captures, as PyTorch asks nothing about sizes of 0 and 1.

        Returns:
            Whether there were some.
        """
        evidence, model = self._evidence, leaf.model
        if model is None:
            return False
        captured = self._positions([one.point for one in self._captures]) & leaf.points
        tried = evidence.right[model] | evidence.wrong[model] | evidence.failed
        if untried := captured & ~tried:
            for at in _decisions.bits(untried):
                self._try(at)
            return True
        points = leaf.points & ~evidence.proven[model]
        if not points:
            return False
        near = self._near(points)
        sides = [side & near for own in evidence.splits for side in (own, ~own)]
        pairs = [one & other for one, other in itertools.combinations(sides, 2)]
        choose = random.Random(0)
        choose.shuffle(pairs)
        # The first and the last, far larger ones, and some of all.
        far = self._largest(points)
        near |= far
        ends = [near & -near, 1 << near.bit_length() >> 1, far]
        has_tried = False
        for at, wanted in enumerate((*ends, *sides, *[near] * _TESTS, *pairs)):
            tried = evidence.right[model] & near
            some = at < len(ends) + len(sides)
            if wanted & tried if some or wanted != near else tried.bit_count() >= _TESTS:
                continue
            if not some and wanted != near and tried.bit_count() >= _MOST_TESTS:
                break
            rest = wanted & ~(tried | evidence.failing())
            if rest:
                found = list(_decisions.bits(rest))
                self._try(choose.choice(found) if wanted == near else found[0])
                has_tried = True
                if evidence.wrong[model] & points or self._left < 0:
                    break
        return has_tried

    def _taken(self, decision: Decision) -> Regions:
        """Takes the captures of a decision, and finds sizes that none has."""
        evidence = self._evidence
        taken = sorted(_decisions.models(decision))
        models = [self._captures[model] for model in taken]
        within = {
            model: union(x.points for x in _decisions.leaves(decision) if x.model == model)
            for model in taken
        }
        # Tests show that these do not matter.
        ignored = {
            model: {c.key for c in self._captures[model].conditions if points & ~evidence.holds(c)}
            for model, points in within.items()
        }

        def chosen(decision: Decision, facts: frozenset[Expr]) -> Chosen:
            if isinstance(decision, Split):
                one = evidence.conditions[decision.condition]
                known = facts | {one.key, one.opposite}
                sides = chosen(decision.holds, known), chosen(decision.fails, known)
                return sides[0] if sides[0] == sides[1] else (one, *sides)
            if decision.model is None:
                return None
            own = self._captures[decision.model].conditions
            done = facts | ignored[decision.model]
            rest = {c.key: c for c in own if not c.internal and c.key not in done}
            return _decisions.within(rest.values(), taken.index(decision.model))

        found = Regions(self._coverage, models, chosen(decision, frozenset()))
        decided = {
            key
            for path, _ in _decisions.paths(found.chosen)
            for one, _ in path
            for key in (one.key, one.opposite)
        }
        own = (one for region in models for one in region.conditions)
        found.tested = list(dict.fromkeys(one.text for one in own if one.key not in decided))
        found.conditions = [one for region in self._captures for one in region.conditions]
        refused = union(x.points for x in _decisions.leaves(decision) if x.model is None)
        lost = self._positions(self._lost) & refused
        found.lost = [evidence.points[at] for at in _decisions.bits(lost)]
        rest = refused & ~evidence.alike(lost)
        known = [at for at in _decisions.bits(rest) if evidence.run >> at & 1]
        others = [at for at in _decisions.bits(rest) if not evidence.run >> at & 1]
        tried = known[:1] or [at for at in others[:_RUNS] if self._try(at) is not None][:1]
        found.open = [evidence.points[at] for at in tried]
        return found

    def of_example(self, regions: Regions, conditions: Sequence[Condition]) -> Regions:
        """The capture of the example alone, where there is no model of several.

        Args:
            regions: Those of several.
            conditions: Those that do not hold at all sizes that are asked for.
        """
        complete = self._coverage.sizes.complete
        broken = (
            point
            for point in self._evidence.points
            if not all(one.holds(complete(point)) for one in conditions)
        )
        return dataclasses.replace(
            regions,
            models=self._captures[:1],
            chosen=_decisions.within(conditions, 0),
            open=[*itertools.islice(broken, 1)],
            lost=[],
            why="has a model of one branch only",
        )
