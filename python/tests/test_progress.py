"""The line on a terminal that shows how much of a file is written."""

from __future__ import annotations

import contextlib
import io

import pt2onnx
import support
from pt2onnx import _progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Progress(support.Test):
    def shown(self, stream: io.StringIO, verbose: bool | None = None) -> str:
        with contextlib.redirect_stderr(stream), _progress.shown("write", verbose):
            show = _progress.of_writing()
            if show is not None:
                show(1_000_000, 4_000_000)
        self.assertIsNone(_progress.of_writing())
        return stream.getvalue()

    def test_a_terminal_shows_the_part_that_is_written(self) -> None:
        text = self.shown(_Terminal())
        self.assertIn("\rpt2onnx: write... 25 % of 4 MB", text)
        self.assertTrue(text.endswith("\r\x1b[K"), text)

    def test_others_show_nothing(self) -> None:
        self.assertEqual(self.shown(io.StringIO()), "")
        self.assertEqual(self.shown(_Terminal(), verbose=False), "")
        self.assertEqual(self.shown(_Terminal(), verbose=True), "")

    def test_writing_calls_it(self) -> None:
        native = pt2onnx.convert(support.MLP)._native
        calls: list[tuple[int, int]] = []
        path = str(self.folder / "m.onnx")
        size = native.save(path, None, lambda done, total: calls.append((done, total)))
        self.assertGreater(size, 0)
        self.assertTrue(calls and all(0 <= done <= total for done, total in calls), calls)
        # An error of the message changes nothing.
        self.assertEqual(native.save(path, None, lambda done, total: 1 / 0), size)

    def test_interrupts_of_the_message_end_the_work(self) -> None:
        native = pt2onnx.convert(support.MLP)._native
        path = self.folder / "m.onnx"

        def interrupted(_: int, total: int) -> None:
            raise KeyboardInterrupt(total)

        with self.assertRaises(KeyboardInterrupt):
            native.save(str(path), None, interrupted)
        self.assertFalse(path.exists())
