"""The messages of an export while it runs, and the files about it: report, profile, program."""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import pathlib
import time
import traceback
from collections.abc import Generator, Mapping

import torch

from . import _progress
from ._capture import _noise
from ._capture._torch_export import Captured
from ._program import ONNXProgram

_LOGGER = logging.getLogger("pt2onnx")


class Steps:
    """The steps of an export: the time of each, and messages about them.

    Messages go to the logger ``pt2onnx``. If ``verbose``, they are printed as well; if it is None,
    those about files that were asked for are, and a line on a terminal shows the current step.
    """

    def __init__(self, verbose: bool | None) -> None:
        self._verbose = verbose
        self.seconds: dict[str, float] = {}

    def say(self, text: str, *, asked: bool = False) -> None:
        """Reports a step. If it was ``asked`` for, it is printed unless nothing shall be."""
        _LOGGER.info(text)
        if self._verbose or (asked and self._verbose is None):
            print("[pt2onnx]", text)

    @contextlib.contextmanager
    def timed(self, step: str) -> Generator[None, None, None]:
        """Measures a step, and shows it on a terminal."""
        start = time.perf_counter()
        try:
            with _progress.shown(step, self._verbose):
                yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start


class Artifacts:
    """The files about an export. Their names start with ``onnx_export_`` and the time, as those of
    torch.onnx do.

    Args:
        folder: Their folder.
        steps: The steps of the export.
        report: Whether to write a report.
        profile: Whether to report the time of each step.
        dump: Whether to write the captured program.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        steps: Steps,
        *,
        report: bool,
        profile: bool,
        dump: bool,
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
        """Writes the program, if that is requested."""
        if self._dump:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{self._stem}.pt2"
            torch.export.save(program, path)
            self._steps.say(f"ExportedProgram has been saved to '{path}'.", asked=True)

    @contextlib.contextmanager
    def failing(self, status: str) -> Generator[None, None, None]:
        """Writes a report about an error, if that is requested, and adds its path to the error."""
        try:
            yield
        except Exception as error:
            if self._report:
                text = getattr(error, "markdown", None) or _error_report(error)
                path = self._write(f"{self._stem}_{status}.md", text + self._times())
                error.add_note(f"The report is in '{path}'.")
            raise

    def done(self, program: ONNXProgram, captured: Captured | None) -> None:
        """Writes the report about a model, or prints the profile, if that is requested."""
        if self._report:
            checked = program.verification
            status = "success" if not (captured and captured.failures) else "strategies"
            if checked is not None and not checked.ok:
                status = "accuracy"
            text = program.report_markdown()
            if captured and captured.failures:
                text += "\n## Captures that failed\n" + _sections(captured.failures)
            if captured and captured.warnings:
                listed = "\n".join(captured.warnings)
                text += f"\n## Warnings of libraries\n\n```\n{listed}\n```\n"
            if checked is not None:
                text += f"\n## Verification\n\n```\n{checked}\n```\n"
            path = self._write(f"{self._stem}_{status}.md", text + self._times())
            self._steps.say(f"Export report has been saved to '{path}'.", asked=True)
        elif self._profile:
            print(self._times())

    def _times(self) -> str:
        """The time of each step, if that is requested."""
        if not self._profile:
            return ""
        seconds = self._steps.seconds.items()
        rows = "".join(f"| {step} | {time:.3f} |\n" for step, time in seconds)
        return f"\n## Profile\n\n| step | seconds |\n| --- | --- |\n{rows}"


def _sections(errors: Mapping[str, BaseException]) -> str:
    """A section for each error, with its stack trace, and logs and warnings before it."""
    traces = {
        name: "".join(traceback.format_exception(one)) + _noise.output_of(one)
        for name, one in errors.items()
    }
    return "".join(f"\n### {name}\n\n```\n{text}```\n" for name, text in traces.items())


def _error_report(error: BaseException) -> str:
    """A report about an error that comes before there is a program."""
    each = getattr(error, "failures_by_strategy", None) or {type(error).__name__: error}
    return "# Export report\n\n**Failed:** PyTorch cannot capture the model.\n" + _sections(each)
