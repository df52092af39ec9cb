"""A line on a terminal that shows the step of an export, and how much of a file is written."""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Callable, Generator

_STEP: contextvars.ContextVar[str | None] = contextvars.ContextVar("step", default=None)


@contextlib.contextmanager
def shown(step: str, verbose: bool | None = None) -> Generator[None, None, None]:
    """Shows a step until it ends, if standard errors go to a terminal and ``verbose`` says
    nothing."""
    # A program without a console has no stream.
    stream: object = sys.stderr
    if verbose is not None or stream is None or not sys.stderr.isatty():
        yield
        return
    token = _STEP.set(step)
    _show(f"pt2onnx: {step}...")
    try:
        yield
    finally:
        _STEP.reset(token)
        _show("")


def of_writing() -> Callable[[int, int], None] | None:
    """Shows the bytes that are written, of so many, in the line of the present step, if there is
    one."""
    step = _STEP.get()
    if step is None:
        return None

    def show(done: int, total: int) -> None:
        part = 100 * done // max(total, 1)
        _show(f"pt2onnx: {step}... {part} % of {total / 1e6:,.0f} MB")

    return show


def _show(text: str) -> None:
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()
