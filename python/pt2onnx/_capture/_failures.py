"""The error if no strategy captures a module: what was tried, the likely cause, what to do."""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback

from .. import _errors
from .._frames import package_root, torch_root

#: The lines of the message. The report has all else.
_LINES = 10

#: The characters of a line.
_WIDTH = 300


#: Lines of errors that are not about the model.
_DEBUGGING = re.compile(r"TORCH\w*_|https?://|^(Caused by|Developer debug|For \w+ information)")


def failed(
    failures: dict[str, BaseException], *, allows_value_traces: bool = True
) -> _errors.TorchExportError:
    """The error if no strategy gives a model.

    Args:
        failures: The error of each strategy.
        allows_value_traces: Whether a trace was allowed to follow the values of the arguments.
    """
    first = next(iter(failures.values()))
    tried = [f"  {name}: {_errors.brief(error)}" for name, error in failures.items()]
    # Errors of torch may have no hash.
    places = [(error, _user_line(error)) for error in failures.values()]
    cause, place = next((pair for pair in places if pair[1]), (first, None))
    where = f" at {place}" if place else ""
    lines = [
        "torch.export.export cannot capture the model, which is step 1 of 2 of the export:",
        *tried,
        f"The likely cause is {type(cause).__name__}{where}",
        f"{_advice(cause, failures, allows_value_traces)} `report=True` writes all errors to a "
        "file.",
    ]
    # The first line of an error may not be the one that matters.
    rest = [line.strip() for line in str(cause).strip().splitlines()[1:]]
    details = [line for line in rest if line and not _DEBUGGING.search(line)]
    at, room = len(lines) - 1, max(_LINES - len(lines), 0)
    lines[at:at] = [f"  {line}" for line in details[:room]]
    text = "\n".join(line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..." for line in lines)
    error = _errors.new_error(_errors.TorchExportError, text)
    error.failures_by_strategy = failures
    error.__cause__ = first
    return error


def _advice(
    cause: BaseException, failures: dict[str, BaseException], allows_value_traces: bool
) -> str:
    text, kind = f"{type(cause).__name__}: {cause}", type(cause).__name__
    others = [error for error in failures.values() if error is not cause]
    if kind != "TraceWarning" and any(
        type(error) is type(cause) and str(error) == str(cause) for error in others
    ):
        return "The module itself raises this: call it with these arguments."
    traced = failures.get("TraceStrategy")
    if not allows_value_traces and type(traced).__name__ == "TraceWarning":
        return "`dynamo=False` or `fallback=True` gives a model for arguments like these only."
    if "ata-dependent" in text or "DataDependent" in text:
        return "Replace branches and sizes that depend on data: torch.where, torch.cond."
    if any("Tensor.backward()" in str(error) for error in failures.values()):
        return "Replace `y.backward()` by `torch.autograd.grad(y, x)`, which captures follow."
    if "onstraints violated" in text:
        return "Leave dimensions static that the code fixes, or give `Dim.AUTO`."
    return "Change this line, or the arguments."


def _user_line(error: BaseException) -> str | None:
    """The line of the user's code that an error comes from, with its text."""
    found: tuple[str, int] | None = None
    # Dynamo and torch.export write the line into the message.
    for file, line in re.findall(r'File "([^"]+)", line (\d+)', str(error)):
        if _is_of_user(file):
            found = file, int(line)
    if found is None:
        for frame, line in traceback.walk_tb(error.__traceback__):
            if _is_of_user(frame.f_code.co_filename):
                found = frame.f_code.co_filename, line
    if found is None:
        return None
    text = linecache.getline(*found).strip()
    return f"{found[0]}:{found[1]}" + (f": `{text}`" if text else "")


def _is_of_user(file: str) -> bool:
    """Whether a file is neither torch's, ours, Python's nor that of a library of torch's."""
    python = os.path.join(os.path.dirname(os.__file__), "")
    installed = os.path.join("site-packages", "")
    if file.startswith((torch_root(), package_root(), "<")) or f"{os.sep}sympy{os.sep}" in file:
        return False
    return installed in file or not file.startswith((python, sys.prefix))
