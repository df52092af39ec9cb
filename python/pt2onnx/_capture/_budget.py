"""Work that is done in any case, and more of it while there is time."""

from __future__ import annotations

import time

#: The operators of code that is small: it is compared at more sizes.
SMALL = 1 << 7


class Budget:
    """Runs of operators that are made in any case, and seconds of CPU time in which more are.

    Results must not depend on how busy a machine is: time alone ends the work on large models
    only.

    Args:
        operators: How many operators run in any case.
        seconds: The CPU time, in seconds.
    """

    def __init__(self, operators: int, seconds: float) -> None:
        self._operators = operators
        self._deadline = time.process_time() + seconds

    def spend(self, operators: int) -> None:
        """Notes a run of some operators."""
        self._operators -= operators

    @property
    def is_spent(self) -> bool:
        """Whether all operators have run, and the time is over."""
        return self._operators <= 0 and time.process_time() > self._deadline
