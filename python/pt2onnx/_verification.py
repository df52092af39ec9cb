"""The results of comparisons with PyTorch."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class OutputCheck:
    """The comparison of one output.

    ``problem`` is how it differs, None if it does not. ``max_abs_diff`` and ``max_rel_diff`` are
    the largest differences of numbers that are finite on both sides. ``inputs`` are the sizes of
    the inputs: ``"given"``, or the sizes that were changed. ``note`` is on how PyTorch ran.
    """

    name: str
    problem: str | None
    max_abs_diff: float
    max_rel_diff: float
    inputs: str = "given"
    note: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it is as expected."""
        return self.problem is None

    def __str__(self) -> str:
        equal = f"equal within tolerance, largest difference {self.max_abs_diff:.3g}"
        return f"{self.name} ({self.inputs}): {self.problem or equal}"


@dataclasses.dataclass(frozen=True)
class Verification:
    """The comparison of all outputs. ``notes`` are comparisons that were left out, and why."""

    outputs: tuple[OutputCheck, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all outputs are as expected."""
        return all(output.ok for output in self.outputs)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.outputs), *self.notes])
