"""Captures of a module at other sizes than those of the example."""

from __future__ import annotations

import dataclasses
import warnings

from . import _recorded
from ._coverage import Coverage
from ._guards import GuardLog
from ._regions import Region
from ._torch_export import STRATEGIES, Call, Captured, Fixes


class Recapture:
    """Captures a module, by the way in which its example was captured.

    Args:
        coverage: The sizes that are asked for.
        call: The module, with dynamic shapes for torch.export.
        captured: The capture of the example, if there is one.
    """

    def __init__(self, coverage: Coverage, call: Call, captured: Captured | None) -> None:
        self.coverage, self._call = coverage, call
        own = [one for one in STRATEGIES if captured and one.name == captured.strategy]
        self._strategy = (own or list(STRATEGIES))[0]

    @property
    def strategy(self) -> str:
        """The name of the way."""
        return self._strategy.name

    def at(self, point: dict[str, int]) -> Region | None:
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
            region = self.region(captured, captured.call or call, point)
            covers = region and not region.broken(sizes.complete(point))
            if region and covers and self.coverage.is_right(region.run, point):
                return region
        return None

    def region(self, captured: Captured, call: Call, point: dict[str, int]) -> Region | None:
        """A capture at sizes; None if torch cannot run it.

        Args:
            captured: The capture.
            call: The module, with the arguments that were captured.
            point: The sizes.
        """
        conditions = self.coverage.of_capture(dataclasses.replace(captured, call=call))
        branches = [one for one in conditions if one.kind == "branch"]
        assert captured.program is not None
        try:
            run = _recorded.runner(captured.program)
        except Exception:
            return None
        checks = [one for one in conditions if one.kind == "check"]
        return Region(captured, point, branches, checks, run)
