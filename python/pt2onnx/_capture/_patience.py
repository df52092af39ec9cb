"""A limit of the time that torch.export may take where there is a trace."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from typing import Any

from . import _patches

#: Seconds of CPU time that all captures of an export may take, and how many times that of a trace
#: besides. Sizes that are computed from several others can take torch hours.
SECONDS, TRACES = 30.0, 10.0


class GivenUp(Exception):
    """torch.export takes too long."""


class Patience:
    """The time that is left for captures by torch.export.

    Args:
        seconds: The CPU time.
        why: The reason for a limit.
    """

    def __init__(self, seconds: float, why: str) -> None:
        self._limit = self._left = seconds
        self._why = why

    @classmethod
    def of_trace(cls, seconds: float) -> Patience:
        """The patience for captures where there is a trace that took some seconds."""
        why = "as there is a trace; dynamo=True has no limit"
        return cls(SECONDS + TRACES * seconds, why)

    @contextlib.contextmanager
    def limited(self) -> Generator[None, None, None]:
        """In this context, operators of fake tensors raise ``GivenUp`` when no time is left."""
        start = time.process_time()
        deadline = start + self._left
        text = f"torch.export was given up after {self._limit:.0f} s of CPU time, {self._why}"

        def watched(dispatch: Callable[..., object]) -> Callable[..., object]:
            def watch(*args: Any, **kwargs: Any) -> object:
                if time.process_time() > deadline:
                    raise GivenUp(text)
                return dispatch(*args, **kwargs)

            return watch

        try:
            with _patches.applied("patience", {"dispatch": watched}):
                yield
        finally:
            self._left -= time.process_time() - start
