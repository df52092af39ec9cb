"""The sizes at which each of several captures of one module is taken."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence

from .. import _errors
from .._conditions import Condition
from .._program import ONNXProgram
from .._sympy import sympy
from . import _decisions
from ._coverage import Coverage, Run
from ._decisions import Chosen
from ._torch_export import Captured

#: A decision: a region, the reason for which sizes are refused, or a condition with the decisions
#: where it holds and where not.
Tree = int | str | tuple[str, "Tree", "Tree"]

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


@dataclasses.dataclass
class Regions:
    """The captures that are taken, and the decisions between them.

    Args:
        coverage: The sizes that are asked for.
        models: The captures.
        chosen: The decisions.
        conditions: Those of all captures, also of those that are not taken.
        tested: Conditions that only tests joined.
        open: Sizes that the module takes and that no capture has.
        lost: Sizes that the module takes, but that cannot be captured.
        why: The reason for which sizes are refused that could be captured.
    """

    coverage: Coverage
    models: Sequence[Region]
    chosen: Chosen
    conditions: Sequence[Condition] = ()
    tested: Sequence[str] = ()
    open: Sequence[dict[str, int]] = ()
    lost: Sequence[dict[str, int]] = ()
    why: str = "takes more branches than max_regions"

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

    def at(self, point: dict[str, int]) -> Region | None:
        """The capture that is taken at sizes."""
        all_sizes, chosen = self.coverage.sizes.complete(point), self.chosen
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

        return text(self.chosen)

    def region(self, model: Region) -> Condition:
        """The sizes at which a capture is taken, as an assertion."""
        at = self.models.index(model)
        paths = [
            sympy.And(*_decisions.exprs(path))
            for path, found in _decisions.paths(self.chosen)
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
        where = dict.fromkeys(c.where for c in self.conditions if c.place)
        why = "cannot be captured there" if self.lost else self.why
        lines = "; ".join(list(where)[:3])
        return (
            f"{fails} sizes that dynamic_shapes asks for, such as "
            f"{sizes.at(point).sizes}: the module {why}. The code decides by sizes at {lines}"
        )
