"""Lines of code on the stack: the line that called this package, and the line that asks torch."""

from __future__ import annotations

import os
import sys


def torch_root() -> str:
    """The folder of torch, with a separator at its end."""
    return f"{os.path.dirname(sys.modules['torch'].__file__ or '')}{os.sep}"


def package_root() -> str:
    """The folder of this package, with a separator at its end."""
    return f"{os.path.dirname(__file__)}{os.sep}"


def line_outside(*files: str) -> tuple[str, int]:
    """The innermost file and line on the stack whose path starts with none of ``files``."""
    skipped = (*files, __file__)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(skipped):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def line_within(until: str, *files: str) -> tuple[str, int] | None:
    """The innermost file and line on the stack whose path starts with none of ``files``; None if
    there is none within the call of the file ``until``."""
    skipped = (*files, __file__)
    frame = sys._getframe(1)
    while (file := frame.f_code.co_filename) != until and frame.f_back is not None:
        if not file.startswith(skipped):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def caller_level() -> int:
    """The ``stacklevel`` with which the calling function warns at the line that called the package.

    It counts from the function that calls this one, as ``warnings.warn`` does.
    """
    level, frame = 1, sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame.f_back is not None and _package(frame.f_globals) == package:
        level, frame = level + 1, frame.f_back
    return level


def _package(module: dict[str, object]) -> str:
    return str(module.get("__package__") or "").partition(".")[0]
