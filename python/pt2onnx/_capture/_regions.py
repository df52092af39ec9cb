"""Captures of one module at several sizes, each for the sizes that take the same branches, and the
tree of conditions that chooses between them.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import itertools
import random
import time
import warnings
from collections.abc import Mapping, Sequence

from .. import _errors, _pytree
from .._conditions import FAR, Condition, Expr
from .._program import ONNXProgram
from .._sympy import sympy
from . import _decisions, _recorded
from ._budget import SMALL
from ._coverage import Coverage, Run
from ._decisions import Chosen, Decision, Leaf, Split, union
from ._evidence import Evidence
from ._guards import GuardLog
from ._patience import Patience
from ._torch_export import STRATEGIES, Call, Captured, Fixes, TorchExport

#: A decision: a region, the reason for which sizes are refused, or a condition with the decisions
#: where it holds and where not.
Tree = int | str | tuple[str, "Tree", "Tree"]

#: How many captures are made, as a multiple of the regions.
_ATTEMPTS = 3

#: At how many sizes a capture is tried where its conditions do not hold: at least, and at most.
_TESTS, _MOST_TESTS = 7, 40

#: How many times the elements of the example arguments have at which a capture is tried far away.
_LARGEST = 16

#: How many captures look for conditions that others hide, and at how many numbers of their code.
_HIDING = 2
_NUMBERS = 6

#: Seconds that exploring may take in any case.
_BUDGET = 10.0

#: At how many sizes the module is run to find some that it takes.
_RUNS = 8

#: Numbers beside which the model of several captures is compared: all sizes up to 18.
_COMPARED = (2, 5, 8, 11, 14, 17)

#: The characters of conditions in a warning.
_LONGEST = 160


@dataclasses.dataclass(eq=False)
class Region:
    """A capture, and the conditions under which it is right.

    ``point`` are its sizes, ``checks`` what PyTorch asserts, ``run`` runs it.
    """

    captured: Captured
    point: dict[str, int]
    conditions: list[Condition]
    checks: list[Condition]
    run: Run

    def broken(self, sizes: Mapping[str, int]) -> list[Condition]:
        """The conditions that do not hold."""
        return [one for one in self.conditions if not one.holds(sizes)]


class Explorer:
    """Finds the regions of a module.

    Captures are tried at sizes at which their conditions do not hold: where one is right anyway, it
    is taken there, and the conditions do not matter. Where none is right, the module is captured.

    Args:
        coverage: The sizes that are asked for.
        call: The module, with dynamic shapes for torch.export.
        strategy: The way to capture it.
        limit: How many models there may be.
    """

    def __init__(self, coverage: Coverage, call: Call, strategy: TorchExport, limit: int) -> None:
        self.coverage, self._call, self._strategy = coverage, call, strategy
        self._limit = limit
        self.regions: list[Region] = []
        #: The captures that are taken.
        self.models: list[Region] = []
        #: Sizes that the module takes and that no capture has.
        self.open: list[dict[str, int]] = []
        #: Sizes that the module takes, but that cannot be captured.
        self.lost: list[dict[str, int]] = []
        #: Conditions that only tests joined.
        self.tested: list[str] = []
        self._chosen: Chosen = None
        #: The reason for which sizes are refused.
        self._why = "takes more branches than max_regions"
        self._answers: dict[tuple[int, ...], dict[int, bool] | None] = {}
        #: How many captures were tried, and how many captures and tests were made.
        self._attempts = self._done = 0
        #: How many captures would be taken without a limit.
        self._needed = 0
        #: The seconds of CPU time of the slowest capture, and when exploring started.
        self._seconds = self._start = 0.0

    def run(self, first: Captured | None) -> None:
        """Finds the regions.

        Args:
            first: The capture of the example, if there is one.
        """
        start = time.process_time()
        sizes = self.coverage.sizes
        if first is None or first.call is None or first.log.notes:
            # It is static where it may be dynamic.
            region = self._captured(sizes.example)
            seconds = time.process_time() - start
        else:
            region = self._region(first, first.call, sizes.example)
            seconds = first.seconds
        if region is None:
            return
        self._seconds, self._start = seconds, time.process_time()
        self._add(region)
        goes_on = True
        while goes_on and self._left > 0:
            done = self._done
            goes_on = self._improve(self._decision()) and self._done > done
        self._take(self._decision(tested=goes_on))

    @property
    def _left(self) -> float:
        """The seconds of CPU time that are left: those of one capture for each region."""
        limit = max(_BUDGET, self._limit * self._seconds)
        return limit - (time.process_time() - self._start)

    @property
    def conditions(self) -> list[Condition]:
        """The conditions of all regions."""
        return [one for region in self.regions for one in region.conditions]

    # Exploring.

    def _add(self, region: Region) -> None:
        self.regions.append(region)
        points = [self.coverage.sizes.example, *(one.point for one in self.regions)]
        captures = [(one.conditions, one.checks) for one in self.regions]
        self._evidence = Evidence(self.coverage.sizes, captures, points, self._answers)

    def _decision(self, *, tested: bool = False) -> Decision:
        """Decides between the captures.

        Args:
            tested: Whether a capture is taken only where it was tried at sizes that are alike.
        """
        evidence = self._evidence
        points = evidence.all & ~evidence.failing()
        models = range(len(self.regions))
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
        lost = evidence.alike(self._positions(self.lost))
        may_capture = self._attempts < _ATTEMPTS * self._limit
        open_ = union(leaf.points for leaf in found if leaf.model is None) & ~lost
        if open_ and may_capture and self._needed <= self._limit:
            unseen = self._unseen()
            right = union(map(evidence.known_right, range(len(self.regions))))
            others = evidence.all & ~(right | evidence.failing() | lost)
            attempts = self._attempts
            self._seek(others & evidence.broken(unseen), unseen)
            if self._attempts == attempts:
                self._seek(open_, ())
            return True
        if any(self._tries(leaf) for leaf in found):
            return True
        for leaf in found if may_capture else ():
            unseen = [] if leaf.model is None else self._unseen(self.regions[leaf.model])
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
        complete = self.coverage.sizes.complete
        points = [complete(one.point) for one in self.regions]
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

        example = self.coverage.sizes.example

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
        return sum(1 << at for at in order if self.coverage.is_near(own[at], own[order[0]]))

    def _largest(self, points: int) -> int:
        """The largest of those that are not too large."""
        sizes = self.coverage.sizes
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
        right = union(map(self._evidence.known_right, range(len(self.regions))))
        if answers is None or (right >> at & 1 and not joined):
            return
        point = self._evidence.points[at]
        self._attempts += 1
        self._done += 1
        start = time.process_time()
        try:
            with Patience(max(_BUDGET, self._left), "as others took less").limited():
                region = self._captured(point)
        finally:
            self._seconds = max(self._seconds, time.process_time() - start)
        if region is None:
            self.lost.append(point)
            return
        answers[len(self.regions)] = True
        self._add(region)

    def _try(self, at: int) -> dict[int, bool] | None:
        """Whether each capture is right at sizes; None if the module does not take them."""
        evidence = self._evidence
        key = evidence.keys[at]
        known = self._answers.get(key, {})
        if known is None:
            return None
        missing = [model for model in range(len(self.regions)) if model not in known]
        if not missing:
            return known
        self._done += 1
        runs = [self.regions[model].run for model in missing]
        found = self.coverage.are_right(runs, evidence.points[at])
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
        captured = self._positions([one.point for one in self.regions]) & leaf.points
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

    def hiding(
        self,
        captured: Captured,
        known: Sequence[Condition],
        untested: Mapping[Condition, dict[str, int]],
        run: Run,
    ) -> list[Condition]:
        """The conditions of a capture that hide others which matter: the capture is right on both
        sides of ``t <= 8``, but not where the code asks for ``t > 64`` on the other side, or takes
        ``x[:, :64]`` on one of them.

        Args:
            captured: The capture.
            known: All of its conditions.
            untested: Some of them, with sizes on the other side.
            run: Runs the capture.
        """
        sizes, own = self.coverage.sizes, _numbers(captured)
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
            if condition in larger[:_HIDING] and (region := self._captured(point)):
                new = [one for one in region.conditions if one.key not in keys]
                numbers = sorted(_numbers(region.captured) ^ own)[:_NUMBERS]
                others += (*sizes.borders(new, numbers, point), *sizes.borders(new, numbers))
            points = [other for other in others if not condition.holds(other)]
            if self.coverage.first_wrong(run, points):
                found.append(condition)
        return found

    def _captured(self, point: dict[str, int]) -> Region | None:
        """The capture at sizes, which takes them; None if there is none."""
        sizes = self.coverage.sizes
        example = sizes.at(point)
        small = {name for name, size in point.items() if size < 2}
        for static in (set[str](), small, set(point)) if small else (set[str](), set(point)):
            shapes = self.coverage.automatic(self._call, static)
            call = dataclasses.replace(
                self._call, args=example.args, kwargs=example.kwargs, shapes=shapes
            )
            logs: list[GuardLog] = []
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    captured = self._strategy.capture(call, {}, Fixes.ALL, logs)
            except Exception:
                continue
            region = self._region(captured, captured.call or call, point)
            covers = region and not region.broken(sizes.complete(point))
            if region and covers and self.coverage.is_right(region.run, point):
                return region
        return None

    def _region(self, captured: Captured, call: Call, point: dict[str, int]) -> Region | None:
        conditions = self.coverage.of_capture(dataclasses.replace(captured, call=call))
        branches = [one for one in conditions if one.kind == "branch"]
        assert captured.program is not None
        try:
            run = _recorded.runner(captured.program)
        except Exception:
            # torch cannot run it.
            return None
        checks = [one for one in conditions if one.kind == "check"]
        return Region(captured, point, branches, checks, run)

    @property
    def has_other_sizes(self) -> bool:
        """Whether the module takes other sizes than those of the example, and than 1 in their
        place, which broadcasts."""
        example = self.coverage.sizes.example
        return any(
            any(size > 1 and size != example[name] for name, size in region.point.items())
            for region in self.regions
        )

    def is_right(self, made: ONNXProgram, model: Region | None = None) -> bool:
        """Whether a model is right at sizes that have a region, or at those of one capture."""
        if importlib.util.find_spec("onnxruntime") is None:
            _errors.warn(
                "The model was made of captures at several sizes, and not compared with the "
                "module, as onnxruntime is not installed."
            )
            return True
        sizes = self.coverage.sizes
        points = [sizes.example, *sizes.to_try(self.conditions)]
        models = [model] if model else self.models
        points += [one.point for one in models if one.point not in points]
        # Tests at some sizes decide for others.
        points += sizes.borders((), _COMPARED)
        covered = [point for point in points if self.at(point) in models]

        def run(*args: object, **kwargs: object) -> object:
            return made._run(args, kwargs, {})

        try:
            return self.coverage.first_wrong(run, covered) is None
        finally:
            made.release()

    # Reports.

    def _take(self, decision: Decision) -> None:
        """Takes the captures of a decision, and finds sizes that none has."""
        evidence = self._evidence
        taken = sorted(_decisions.models(decision))
        self.models = [self.regions[model] for model in taken]
        within = {
            model: union(x.points for x in _decisions.leaves(decision) if x.model == model)
            for model in taken
        }
        # Tests show that these do not matter.
        ignored = {
            model: {c.key for c in self.regions[model].conditions if points & ~evidence.holds(c)}
            for model, points in within.items()
        }
        decided = set[Expr]()

        def chosen(decision: Decision, facts: frozenset[Expr]) -> Chosen:
            if isinstance(decision, Split):
                one = evidence.conditions[decision.condition]
                known = facts | {one.key, one.opposite}
                sides = chosen(decision.holds, known), chosen(decision.fails, known)
                return sides[0] if sides[0] == sides[1] else (one, *sides)
            if decision.model is None:
                return None
            found: Chosen = taken.index(decision.model)
            own = self.regions[decision.model].conditions
            done = facts | ignored[decision.model]
            rest = {c.key: c for c in own if not c.internal and c.key not in done}
            for one in reversed(rest.values()):
                found = (one, found, None)
            return found

        self._chosen = chosen(decision, frozenset())
        for path, _ in _decisions.paths(self._chosen):
            decided |= {key for one, _ in path for key in (one.key, one.opposite)}
        own = (one for region in self.models for one in region.conditions)
        self.tested = list(dict.fromkeys(one.text for one in own if one.key not in decided))
        refused = union(x.points for x in _decisions.leaves(decision) if x.model is None)
        lost = self._positions(self.lost) & refused
        self.lost = [evidence.points[at] for at in _decisions.bits(lost)]
        rest = refused & ~evidence.alike(lost)
        known = [at for at in _decisions.bits(rest) if evidence.run >> at & 1]
        others = [at for at in _decisions.bits(rest) if not evidence.run >> at & 1]
        tried = known[:1] or [at for at in others[:_RUNS] if self._try(at) is not None][:1]
        self.open = [evidence.points[at] for at in tried]

    def take_first(self, conditions: Sequence[Condition]) -> None:
        """Takes the capture of the example alone, as there is no model of several.

        Args:
            conditions: Those that do not hold at all sizes that are asked for.
        """
        self.models, self._chosen, self.lost = self.regions[:1], 0, []
        for one in reversed(conditions):
            self._chosen = (one, self._chosen, None)
        complete = self.coverage.sizes.complete
        broken = (
            point
            for point in self._evidence.points
            if not all(one.holds(complete(point)) for one in conditions)
        )
        self.open = [*itertools.islice(broken, 1)]
        self._why = "has a model of one branch only"

    def at(self, point: dict[str, int]) -> Region | None:
        """The capture that is taken at sizes."""
        all_sizes, chosen = self.coverage.sizes.complete(point), self._chosen
        while isinstance(chosen, tuple):
            condition, holds, fails = chosen
            chosen = holds if condition.holds(all_sizes) else fails
        return None if chosen is None else self.models[chosen]

    def tree(self, refusal: str) -> Tree:
        """The decisions.

        Args:
            refusal: The reason for which other sizes are refused.
        """

        def text(chosen: Chosen) -> Tree:
            if isinstance(chosen, tuple):
                return chosen[0].text, text(chosen[1]), text(chosen[2])
            return refusal if chosen is None else chosen

        return text(self._chosen)

    def region(self, model: Region) -> Condition:
        """The sizes at which a capture is taken, as an assertion."""
        at = self.models.index(model)
        paths = [
            sympy.And(*_decisions.exprs(path))
            for path, found in _decisions.paths(self._chosen)
            if found == at
        ]
        return Condition(sympy.simplify_logic(sympy.Or(*paths), deep=False), "check")

    def text(self, fails: str) -> str:
        """The sizes that have no region, in words.

        Args:
            fails: How a model behaves there.
        """
        sizes = self.coverage.sizes
        point = (self.lost or self.open)[0]
        where = dict.fromkeys(c.where for r in self.regions for c in r.conditions if c.place)
        why = "cannot be captured there" if self.lost else self._why
        lines = "; ".join(list(where)[:3])
        return (
            f"{fails} sizes that dynamic_shapes asks for, such as "
            f"{sizes.at(point).sizes}: the module {why}. The code decides by sizes at {lines}"
        )


def _has_larger(point: Mapping[str, int], example: Mapping[str, int]) -> bool:
    """Whether a size is another one than in the example, and more than 1."""
    return any(1 < size != example.get(name) for name, size in point.items())


def _numbers(captured: Captured) -> set[int]:
    """The numbers in the code of a capture that may be compared with sizes."""
    nodes = captured.program.graph.nodes if captured.program else ()
    leaves = (leaf for node in nodes for leaf in _pytree.leaves((node.args, node.kwargs)))
    return {abs(leaf) for leaf in leaves if type(leaf) is int and 1 < abs(leaf) < FAR}


def explored(coverage: Coverage, call: Call, captured: Captured | None, limit: int) -> Explorer:
    """The regions of a module.

    Args:
        coverage: The sizes that are asked for.
        call: The module, with dynamic shapes for torch.export.
        captured: The capture of the example, if there is one.
        limit: How many models there may be.
    """
    found = explorer(coverage, call, captured, limit)
    found.run(captured)
    return found


def explorer(coverage: Coverage, call: Call, captured: Captured | None, limit: int) -> Explorer:
    """Finds regions by the way in which the example was captured: see ``explored``."""
    own = [one for one in STRATEGIES if captured and one.name == captured.strategy]
    return Explorer(coverage, call, (own or list(STRATEGIES))[0], limit)
