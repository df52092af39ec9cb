"""Logs, prints and warnings of a capture: they are shown only if it succeeds."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Generator, Iterator
from typing import Any, TextIO, cast

from .._frames import torch_root
from . import _patches


@contextlib.contextmanager
def held_back() -> Generator[None, None, None]:
    """Holds back what torch logs and prints, and warnings, until the end of this context: after an
    error they are kept for the report. Prints of the user's code are shown."""
    records: list[logging.LogRecord] = []
    prints: list[tuple[TextIO, str]] = []
    seen: list[warnings.WarningMessage] = []
    with contextlib.ExitStack() as stack:
        # As warnings.catch_warnings does, without showing all warnings a second time.
        default = cast(Any, warnings)._showwarning_orig
        stack.enter_context(_patches.replaced(warnings, "_showwarnmsg_impl", seen.append))
        stack.enter_context(_patches.replaced(warnings, "showwarning", default))
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None:
                stack.enter_context(_patches.replaced(sys, name, _Stream(stream, prints)))
        if "TORCH_LOGS" not in os.environ:
            keep = _keeping(records)
            for handler in _handlers():
                handler.addFilter(keep)
                stack.callback(handler.removeFilter, keep)
        try:
            yield
        except Exception as error:
            texts = [record.getMessage() for record in records]
            texts += [text for _, text in prints]
            texts += [f"{one.category.__name__}: {one.message}" for one in seen]
            vars(error)[_KEY] = "\n".join(texts)
            raise
    for record in records:
        if not record.name.startswith(_ANALYSIS):
            logging.getLogger(record.name).handle(record)
    for stream, text in prints:
        stream.write(text)
    for one in seen:
        warnings.showwarning(
            one.message, one.category, one.filename, one.lineno, one.file, one.line
        )


_KEY = "_pt2onnx_output"

#: Torch's analysis of sizes. It logs errors after which it takes a wider range.
_ANALYSIS = "torch.utils._sympy."


def output_of(error: BaseException) -> str:
    """The output that was held back before an error."""
    return str(vars(error).get(_KEY, ""))


def _keeping(records: list[logging.LogRecord]) -> Any:
    """A filter that keeps warnings and errors of torch's logs. Others are shown where the user
    asked for them."""

    def keep(record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.name.partition(".")[0] != "torch":
            return True
        if record not in records:
            records.append(record)
        return False

    return keep


def _handlers() -> Iterator[logging.Handler]:
    """The handlers that logs of torch reach."""
    loggers: dict[str, Any] = dict(logging.root.manager.loggerDict)
    for name, logger in loggers.items():
        if name.partition(".")[0] == "torch":
            yield from getattr(logger, "handlers", ())
    yield from logging.root.handlers
    if logging.lastResort is not None:
        yield logging.lastResort


class _Stream:
    """A stream that holds back what torch writes."""

    def __init__(self, stream: TextIO, prints: list[tuple[TextIO, str]]) -> None:
        self._stream, self._prints, self._root = stream, prints, torch_root()

    def write(self, text: str) -> int:
        """Writes, unless code of torch does."""
        if sys._getframe(1).f_code.co_filename.startswith(self._root):
            self._prints.append((self._stream, text))
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
