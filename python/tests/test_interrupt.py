"""Ctrl-C while native code works: it ends, and files are as before."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import threading
import time
from collections.abc import Iterator

import onnx
import pt2onnx
import support
from onnx import TensorProto, helper
from pt2onnx._pt2onnx import command

#: Nodes of a model that is optimised for seconds, and of one that is for some time.
LONG, SHORT = 40_000, 1_000


def chain(nodes: int) -> onnx.ModelProto:
    """A chain of products."""
    names = ["x", *(f"v{i}" for i in range(nodes))]
    made = [helper.make_node("Mul", [names[i], f"c{i % 99}"], [names[i + 1]]) for i in range(nodes)]
    info = helper.make_tensor_value_info
    constants = [
        helper.make_tensor(f"c{i}", TensorProto.FLOAT, [3], [i + 2.0] * 3) for i in range(99)
    ]
    ends = [[info(name, TensorProto.FLOAT, ["n", 3])] for name in (names[0], names[-1])]
    return helper.make_model(
        helper.make_graph(made, "chain", *ends, constants),
        opset_imports=[helper.make_opsetid("", 20)],
    )


class Interrupt(support.Test):
    def setUp(self) -> None:
        super().setUp()
        self.model = self.folder / "model.onnx"
        self.written = self.folder / "written.onnx"

    @contextlib.contextmanager
    def interrupted(self, handler: signal._HANDLER = signal.default_int_handler) -> Iterator[None]:
        """Ctrl-C some time after the block begins."""
        outer = signal.signal(signal.SIGINT, handler)
        begun = threading.Event()

        def press() -> None:
            begun.wait()
            time.sleep(0.1)
            signal.raise_signal(signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        try:
            begun.set()
            yield
        finally:
            thread.join()
            signal.signal(signal.SIGINT, outer)

    def optimize(self) -> int:
        """The exit code of the command that optimises the model."""
        return command(
            ["pt2onnx", "optimize", os.fspath(self.model), "-o", os.fspath(self.written)]
        )

    def files(self) -> list[str]:
        return sorted(path.name for path in pathlib.Path(self.folder).iterdir())

    def test_no_file_is_written(self) -> None:
        onnx.save(chain(LONG), self.model)
        with self.assertRaises(KeyboardInterrupt), self.interrupted():
            self.optimize()
        self.assertEqual(self.files(), ["model.onnx"])

    def test_a_file_stays(self) -> None:
        self.written.write_text("before")
        onnx.save(chain(LONG), self.model)
        with self.assertRaises(KeyboardInterrupt), self.interrupted():
            self.optimize()
        self.assertEqual(self.written.read_text(), "before")
        self.assertEqual(self.files(), ["model.onnx", "written.onnx"])

    def test_a_model_stays(self) -> None:
        onnx.save(chain(LONG), self.model)
        program = pt2onnx.load(self.model)
        before = len(program.model_proto.graph.node)
        with self.assertRaises(KeyboardInterrupt), self.interrupted():
            program.optimize()
        self.assertEqual(len(program.model_proto.graph.node), before)

    def test_a_handler_that_returns_ends_nothing(self) -> None:
        onnx.save(chain(SHORT), self.model)
        pressed = []
        with self.interrupted(lambda *_: pressed.append(1)):
            self.assertEqual(self.optimize(), 0)
        self.assertEqual(pressed, [1])
        self.assertTrue(self.written.exists())
