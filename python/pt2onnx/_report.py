"""What an export says while it runs, and the files about it: report, profile, program."""

from __future__ import annotations

import contextlib
import datetime
import pathlib
import sys
import time
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    import torch

    from ._capture import Captured
    from ._program import ONNXProgram


class Steps:
    """The steps of an export: how long each took, and what is said of them."""

    def __init__(self, verbose: bool | None) -> None:
        self._verbose = verbose
        self._line = verbose is None and sys.stderr is not None and sys.stderr.isatty()
        self.seconds: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Prints a step if all are to be printed."""
        if self._verbose:
            print("[pt2onnx]", text)

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Measures a step. On a terminal, a line says meanwhile what goes on."""
        if self._line:
            sys.stderr.write(f"\rpt2onnx: {step}...\x1b[K")
            sys.stderr.flush()
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start
            if self._line:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


class Artifacts:
    """The files about an export. Their names start with ``onnx_export_`` and the time, as torch.onnx has them."""

    def __init__(
        self, folder: str | os.PathLike[str], steps: Steps, *, report: bool, profile: bool, dump: bool
    ) -> None:
        self._folder = pathlib.Path(folder)
        self._steps = steps
        self._report, self._profile, self._dump = report, profile, dump
        self._stem = f"onnx_export_{datetime.datetime.now():%Y-%m-%d_%H-%M-%S-%f}"

    def _write(self, name: str, text: str) -> pathlib.Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def dump(self, program: torch.export.ExportedProgram) -> None:
        """Writes the program, if it was asked for."""
        if self._dump:
            import torch

            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{self._stem}.pt2"
            torch.export.save(program, path)
            self._steps.say(f"ExportedProgram has been saved to '{path}'.")

    @contextlib.contextmanager
    def failing(self, status: str) -> Iterator[None]:
        """Writes a report about an error, if one was asked for, and adds its path to the error."""
        try:
            yield
        except Exception as error:
            if self._report:
                text = getattr(error, "markdown", None) or _error_report(error)
                path = self._write(f"{self._stem}_{status}.md", text + self._times())
                error.add_note(f"The report is in '{path}'.")
            raise

    def done(self, program: ONNXProgram, captured: Captured | None) -> None:
        """Writes the report about a model, or prints the profile, if they were asked for."""
        if self._report:
            checked = program.verification
            status = "success" if not (captured and captured.failures) else "strategies"
            if checked is not None and not checked.ok:
                status = "accuracy"
            text = program.report_markdown()
            if captured and captured.failures:
                text += "\n## Captures that failed\n" + "".join(
                    f"\n### {name}\n\n```\n{_trace(error)}```\n" for name, error in captured.failures.items()
                )
            if checked is not None:
                text += f"\n## Verification\n\n```\n{checked}\n```\n"
            path = self._write(f"{self._stem}_{status}.md", text + self._times())
            self._steps.say(f"Export report has been saved to '{path}'.")
        elif self._profile:
            print(self._times())

    def _times(self) -> str:
        """The time of each step, if it was asked for."""
        if not self._profile:
            return ""
        rows = "".join(f"| {step} | {seconds:.3f} |\n" for step, seconds in self._steps.seconds.items())
        return f"\n## Profile\n\n| step | seconds |\n| --- | --- |\n{rows}"


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _error_report(error: BaseException) -> str:
    """A report about an error that comes before there is a program."""
    each = getattr(error, "failures_by_strategy", None) or {type(error).__name__: error}
    parts = [f"\n### {name}\n\n```\n{_trace(failure)}```\n" for name, failure in each.items()]
    return "# Export report\n\n**Failed:** PyTorch cannot capture the model.\n" + "".join(parts)
