"""Captures of one module at several sizes, each for the sizes that take the same branches, and the
tree of conditions that chooses between them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import time
import warnings
from collections.abc import Mapping, Sequence

from .. import _errors, _pytree
from .._conditions import FAR, Condition, Expr
from .._program import ONNXProgram
from .._sympy import sympy
from . import _recorded
from ._coverage import Coverage, Run
from ._guards import GuardLog
from ._torch_export import STRATEGIES, Call, Captured, Fixes, TorchExport

#: A decision: a region, the reason for which sizes are refused, or a condition with the decisions
#: where it holds and where not.
Tree = int | str | tuple[str, "Tree", "Tree"]

#: How many captures are made, as a multiple of the regions.
_ATTEMPTS = 3

#: At how many sizes a region is tried in place of another.
_TESTS = 7

#: How many captures look for conditions that others hide, and at how many numbers of their code.
_HIDING = 2
_NUMBERS = 6

#: Seconds that exploring takes at most, if captures take less than a quarter of it.
_BUDGET = 10.0


@dataclasses.dataclass(eq=False)
class Region:
    """A capture, and the conditions under which it is right.

    ``point`` are its sizes, ``checks`` what PyTorch asserts, ``run`` runs it. ``use`` is the region
    whose capture is right here as well, by tests. ``ignored`` are conditions that do not matter, by
    tests.
    """

    captured: Captured
    point: dict[str, int]
    conditions: list[Condition]
    checks: list[Condition]
    run: Run
    use: Region | None = None
    ignored: set[Expr] = dataclasses.field(default_factory=set[Expr])

    @property
    def decides(self) -> list[Condition]:
        """The conditions that matter."""
        return [one for one in self.conditions if one.expr not in self.ignored]

    def broken(self, sizes: Mapping[str, int]) -> list[Condition]:
        """The conditions that do not hold."""
        return [one for one in self.decides if not one.holds(sizes)]

    @property
    def model(self) -> Region:
        """The region whose capture is taken."""
        return self.use.model if self.use else self


class Explorer:
    """Finds the regions of a module.

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
        #: Sizes that the module takes, or may take, and that no region has.
        self.open: list[dict[str, int]] = []
        #: Sizes that the module takes, but that cannot be captured.
        self.lost: list[dict[str, int]] = []
        self._points: list[dict[str, int]] = []
        self._refused: set[object] = set()
        self._tried: set[object] = set()
        #: Conditions for which a capture was right on both sides.
        self._joined: set[Expr] = set()

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
        else:
            region = self._region(first, first.call, sizes.example)
        if region is None:
            return
        self.regions = [region]
        budget = max(_BUDGET, 4 * (time.process_time() - start))
        for _ in range(_ATTEMPTS * self._limit):
            self._points = sizes.candidates(self.conditions)
            self.open = [point for point in self._points if not self._is_known(point)]
            spent = time.process_time() - start > budget
            if not self.open or spent or len(self.models) > self._limit:
                return
            self._settle(self.open[0])

    @property
    def conditions(self) -> list[Condition]:
        """The conditions of all regions."""
        return [one for region in self.regions for one in region.conditions]

    @property
    def models(self) -> list[Region]:
        """The regions whose captures are taken."""
        return [region for region in self.regions if region.use is None]

    def _is_known(self, point: dict[str, int]) -> bool:
        all_sizes = self.coverage.sizes.complete(point)
        if any(not region.broken(all_sizes) for region in self.regions):
            return True
        return self._signature(point) in self._refused

    def _signature(self, point: dict[str, int]) -> object:
        """The same for sizes that the module refuses for the same reasons."""
        all_sizes = self.coverage.sizes.complete(point)
        answers = (c.holds(all_sizes) for r in self.regions for c in (*r.conditions, *r.checks))
        return (*answers, *(size < 2 for size in point.values()))

    def _settle(self, point: dict[str, int]) -> None:
        """Finds the region of sizes that have none."""
        if self._joins(point):
            return
        takes = self.coverage.is_right(None, point)
        region = None if takes is None else self._captured(point)
        if region is None:
            self._refused.add(self._signature(point))
            self.lost += [] if takes is None else [point]
            return
        self.regions.append(region)
        self._absorb(region)

    def _joins(self, point: dict[str, int]) -> bool:
        """Whether an existing capture is right at sizes at which its conditions do not hold, so
        that these do not matter."""
        complete = self.coverage.sizes.complete
        for region in self.models:
            broken = {one.expr for one in region.broken(complete(point))}
            key = (id(region), frozenset(broken))
            if len(broken) > 2 or key in self._tried:
                continue
            self._tried.add(key)
            alike = [
                other
                for other in self.open
                if {one.expr for one in region.broken(complete(other))} == broken
            ]
            # The code may ask more there.
            asked = (one for one in region.broken(complete(point)) if not one.internal)
            may_hide = any(one.expr not in self._joined for one in asked)
            if may_hide and any(other != point for other in alike):
                continue
            if self._is_right_at(region, [point, *alike]):
                region.ignored |= broken
                return True
        return False

    def hiding(
        self,
        captured: Captured,
        known: Sequence[Condition],
        untested: Mapping[Condition, dict[str, int]],
        run: Run,
    ) -> list[Condition]:
        """The conditions of a capture that hide others which matter: the capture is right on both
        sides of ``t <= 8``, but not where the code asks for ``t > 64`` on the other side, or takes
        ``x[:, :64]``.

        Args:
            captured: The capture.
            known: All of its conditions.
            untested: Some of them, with sizes on the other side.
            run: Runs the capture.
        """
        sizes, own = self.coverage.sizes, _numbers(captured)
        keys = {key for one in known for key in (one.key, one.opposite)}
        found: list[Condition] = []
        for condition, point in list(untested.items())[:_HIDING]:
            region = self._captured(point)
            if region is None:
                continue
            new = [one for one in region.conditions if one.key not in keys]
            numbers = sorted(_numbers(region.captured) - own)[:_NUMBERS]
            points = [other for other in sizes.borders(new, numbers) if not condition.holds(other)]
            if self.coverage.first_wrong(run, points):
                found.append(condition)
        return found

    def _is_right_at(self, region: Region, points: Sequence[dict[str, int]]) -> bool:
        """Whether a capture is right at some of these sizes, near and far, that the module
        takes."""
        near = [point for point in points if self.coverage.is_near(point, points[0])]
        ordered = sorted(near, key=lambda point: sum(point.values()))
        step = max(len(ordered) // (_TESTS - 2), 1)
        tried: list[dict[str, int]] = []
        for point in (points[0], *ordered[::step], ordered[-1]):
            if point not in tried:
                tried.append(point)
        found = [self.coverage.is_right(region.run, point) for point in tried[: _TESTS + 1]]
        return False not in found and True in found

    def _absorb(self, new: Region) -> None:
        """Takes a new capture in place of older ones that it is right for as well, as with ``if pad
        > 0: x = F.pad(x, pad)``, or an older one in its place."""
        complete = self.coverage.sizes.complete
        for old in self.models:
            if old is new:
                continue
            for taken, left in ((old, new), (new, old)):
                covered = [point for point in self._points if not left.broken(complete(point))]
                if self._is_right_at(taken, [left.point, *covered]):
                    left.use = taken
                    differ = (*old.broken(complete(new.point)), *new.broken(complete(old.point)))
                    self._joined.update(one.expr for one in differ)
                    break
            if new.use:
                return

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
            run = _recorded.runnable(captured.program).forward
        except Exception:
            # torch cannot make a module of it.
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
        covered = [point for point in points if self.at(point) in models]

        def run(*args: object, **kwargs: object) -> object:
            return made._run(args, kwargs, {})

        try:
            return self.coverage.first_wrong(run, covered) is None
        finally:
            made.release()

    def at(self, point: dict[str, int]) -> Region | None:
        """The capture that is taken at sizes."""
        all_sizes = self.coverage.sizes.complete(point)
        found = (region.model for region in self.regions if not region.broken(all_sizes))
        return next(found, None)

    def text(self, fails: str) -> str:
        """The sizes that have no region, in words.

        Args:
            fails: How a model behaves there.
        """
        sizes = self.coverage.sizes
        point = (self.lost or self.open)[0]
        where = dict.fromkeys(c.where for r in self.regions for c in r.conditions if c.place)
        why = "cannot be captured there" if self.lost else "takes more branches than max_regions"
        lines = "; ".join(list(where)[:3])
        return (
            f"{fails} sizes that dynamic_shapes asks for, such as "
            f"{sizes.at(point).sizes}: the module {why}. The code decides by sizes at {lines}"
        )

    # The tree.

    def tree(self, refusal: str) -> Tree:
        """The decisions.

        Args:
            refusal: The reason for which other sizes are refused.
        """
        complete = self.coverage.sizes.complete
        points = [complete(point) for point in (*self._points, self.coverage.sizes.example)]
        models = self.models

        def decide(points: list[dict[str, int]], facts: dict[Expr, bool]) -> Tree:
            for region in self.regions if points else ():
                unknown = [c for c in region.decides if c.key not in facts]
                if any(facts.get(c.key) is False for c in region.decides):
                    continue
                if not unknown:
                    return models.index(region.model)
                first = unknown[0]
                sides = [
                    decide(
                        [point for point in points if first.holds(point) is holds],
                        {**facts, first.key: holds, first.opposite: not holds},
                    )
                    for holds in (True, False)
                ]
                if sides[0] == sides[1]:
                    return sides[0]
                return first.text, sides[0], sides[1]
            return refusal

        return decide(points, {})

    def region(self, model: Region) -> Condition:
        """The sizes at which a capture is taken, as an assertion."""
        regions = [region for region in self.regions if region.model is model]
        paths = [sympy.And(*(one.expr for one in region.decides)) for region in regions]
        return Condition(sympy.simplify_logic(sympy.Or(*paths), deep=False), "check")

    @property
    def tested(self) -> list[str]:
        """The conditions that only tests joined."""
        found = [one for r in self.regions for one in r.conditions if one.expr in r.ignored]
        found += [one for region in self.regions if region.use for one in region.decides]
        return list(dict.fromkeys(one.text for one in found))


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
