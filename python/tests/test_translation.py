"""``@pt2onnx.translation``: ops of a user's library, translated by Python functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pt2onnx
import support
from pt2onnx import _translation


class Translations(support.Test):
    def setUp(self) -> None:
        super().setUp()
        old = dict(_translation._REGISTERED)
        self.addCleanup(
            lambda: (_translation._REGISTERED.clear(), _translation._REGISTERED.update(old))
        )

    def converted(self, name: str) -> pt2onnx.ONNXProgram:
        """A case, converted, and compared with PyTorch."""
        case = support.case(f"custom/{name}")
        made = pt2onnx.convert(case.archive)
        self.assertRuns(made, case)
        return made

    def failing(self, name: str, function: Callable[..., Any]) -> str:
        """The reason that is given if a translation of mylib::mix is wrong."""
        pt2onnx.translation(name)(function)
        error = self.raised(
            pt2onnx.ConversionError,
            lambda: pt2onnx.convert(support.case("custom/mylib_mix").archive),
        )
        return str(error.failures[0]["reason"])

    def test_an_interrupt_is_not_a_failure(self) -> None:
        @pt2onnx.translation("mylib::minmax")
        def interrupt(cx: object, *_: object) -> None:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            pt2onnx.convert(support.case("custom/mylib_minmax").archive)

    def test_overloads_and_keywords(self) -> None:
        @pt2onnx.translation("mylib::mix")
        def mix(cx, x, y, *, weight=0.5):
            return cx.add(cx.mul(x, weight), cx.mul(y, 1 - weight))

        @pt2onnx.translation("mylib::mix.Scalar")
        def scalar(cx, x, y, *, weight=0.5):
            self.assertIsInstance(y, (int, float))
            return x * weight + y * (1 - weight)

        self.converted("mylib_mix")

    def test_optional_arguments(self) -> None:
        seen = []

        @pt2onnx.translation("mylib::scaled")
        def scaled(cx, x, alpha, beta=0.5, bias=None):
            seen.append((x.dtype, x.rank, x.shape[1:], alpha, beta, bias is None, cx.recorded()[0]))
            y = x * alpha + beta
            return y if bias is None else y + bias

        made = self.converted("mylib_scaled")
        self.assertEqual({s[:3] for s in seen}, {("float32", 2, (3,))})
        self.assertEqual([s[3:5] for s in seen], [(2.0, 0.5), (3.0, 1.0)])
        self.assertEqual(made.report["ops"][0]["failed"], 0)

    def test_lists_and_several_results(self) -> None:
        @pt2onnx.translation("mylib::minmax")
        def minmax(cx, xs, dims, gains):
            joined = cx.concat(*[cx.unsqueeze(x, [0]) for x in xs], axis=0)
            return (
                cx.reduce_max(joined, dims, keepdims=0) * gains[0],
                cx.ReduceMin(joined, cx.constant(dims), keepdims=0) * gains[1],
            )

        self.converted("mylib_minmax")

    def test_list_of_results(self) -> None:
        @pt2onnx.translation("mylib::halves")
        def halves(cx, x, at):
            return cx.slice(x, [0], [at], [1]), cx.slice(x, [at], [2**31], [1])

        self.converted("mylib_halves")

    def test_sizes(self) -> None:
        @pt2onnx.translation("mylib::tile_rows")
        def tile_rows(cx, x, sizes, n):
            sizes = [
                cx.reshape(s, [1]) if isinstance(s, _translation.Value) else cx.constant([s])
                for s in sizes
            ]
            return cx.expand(x, cx.concat(*sizes, axis=0)) * cx.cast(n, "float32")

        self.converted("mylib_tile_rows")

    def test_the_newest_is_used(self) -> None:
        made = pt2onnx.translation("aten::sigmoid")(lambda cx, x: cx.relu(x))
        self.assertTrue(callable(made))
        pt2onnx.translation("aten::sigmoid.default")(lambda cx, x: cx.tanh(x))
        self.assertEqual(
            pt2onnx.convert(support.MLP).report["model"]["operators"],
            {"Concat": 1, "Gemm": 5, "Tanh": 4},
        )

    def test_what_is_none(self) -> None:
        for op in ("x", "", "::", "a::", "::b"):
            with self.assertRaisesRegex(TypeError, "is not the name of an op: give its name"):
                pt2onnx.translation(op)
        with self.assertRaisesRegex(
            TypeError, "the translation of a::b must be a function, not int"
        ):
            pt2onnx.translation("a::b")(3)

    def test_older_opset(self) -> None:
        """Operators are of the newest opset, the model of any."""
        pt2onnx.translation("aten::sigmoid")(
            lambda cx, x: cx.reduce_sum(cx.unsqueeze(x, [0]), [0], keepdims=0)
        )
        made = pt2onnx.convert(support.MLP, opset=11)
        self.assertEqual(made.opset_version, 11)
        self.assertEqual(made(*[np.zeros((3, 8), np.float32)] * 3)[0].shape, (3, 2))

    def test_constants(self) -> None:
        @pt2onnx.translation("aten::sigmoid")
        def constants(cx, x):
            array = np.arange(8, dtype=np.float32)[: x.shape[1]]
            half = cx.cast(cx.constant(np.float64(0.5)), x.dtype)
            return cx.sum(x, array, half, cx.constant(1, "float32"), cx.constant([2.0]))

        made = pt2onnx.convert(support.MLP, optimize=0)
        self.assertEqual(made(*[np.zeros((3, 8), np.float32)] * 3)[0].shape, (3, 2))

    def test_arithmetic(self) -> None:
        @pt2onnx.translation("aten::sigmoid")
        def arithmetic(cx, x):
            y = -((1 + x) * 2 - 3) / 4
            z = (1 - x) ** 2 + 2 * x - 1 / (x * x + 1)
            less = cx.where(y < 0, y, z)
            more = cx.where(y >= 0.5, less, x)
            return cx.where(x > 0, more, cx.where(x <= 1, x, y))

        made = pt2onnx.convert(support.MLP)
        self.assertLess(
            {"Neg", "Div", "Pow", "Where", "Less"}, set(made.report["model"]["operators"])
        )
        self.assertEqual(made(*[np.ones((3, 8), np.float32)] * 3)[0].shape, (3, 2))

    def test_other_domains(self) -> None:
        pt2onnx.translation("aten::sigmoid")(
            lambda cx, x: cx.emit("QuickGelu", x, domain="com.microsoft", alpha=1.5)
        )
        made = pt2onnx.convert(support.MLP)
        x = np.ones((3, 8), np.float32)
        self.assertEqual(made(x, x, x)[0].shape, (3, 2))
        self.assertEqual(
            {o.domain: o.version for o in made.model_proto.opset_import},
            {"": 20, "com.microsoft": 1},
        )

    def test_errors(self) -> None:
        def raising(cx, x, y, *, weight=0.5):
            raise KeyError("what is wrong")

        reason = self.failing("mylib::mix", raising)
        self.assertIn("KeyError", reason)
        self.assertIn("what is wrong", reason)
        self.assertIn("test_translation.py", reason)
        wrong: dict[str, Callable[..., Any]] = {
            "argument": lambda cx, x: x,
            "attribute": lambda cx, x, y, **_: cx.relu(x, nothing=1),
            "operator": lambda cx, x, y, **_: cx.nothing(x),
            "cx.where": lambda cx, x, y, **_: x if x else y,
            "list of values": lambda cx, x, y, **_: cx.concat([x, y], axis=0),
            "cannot become a tensor": lambda cx, x, y, **_: cx.add(x, "text"),
            "element type": lambda cx, x, y, **_: cx.cast(x, "nothing"),
        }
        for text, function in wrong.items():
            with self.subTest(text):
                self.assertIn(text, self.failing("mylib::mix", function))

    def test_wrong_results(self) -> None:
        """Results of other types, shapes or number than PyTorch has."""
        for function in (
            lambda cx, x, y, **_: cx.cast(x, "float16"),
            lambda cx, x, y, **_: cx.reduce_sum(x, [0]),
            lambda cx, x, y, **_: (x, y),
            lambda cx, x, y, **_: None,
        ):
            with self.subTest():
                self.assertTrue(self.failing("mylib::mix", function))

    def test_no_op(self) -> None:
        for op in ("mix", 3, None):
            self.raised(TypeError, lambda op=op: pt2onnx.translation(op)(lambda cx: None))

    def test_scope_ends(self) -> None:
        kept = []

        @pt2onnx.translation("aten::sigmoid")
        def keeping(cx, x):
            kept.append((cx, x))
            return cx.relu(x)

        pt2onnx.convert(support.MLP)
        cx, x = kept[0]
        self.assertIn("returned", str(self.raised(RuntimeError, lambda: cx.relu(x))))

    def test_values_of_another_node(self) -> None:
        kept = []

        @pt2onnx.translation("aten::sigmoid")
        def mixing(cx, x):
            kept.append(x)
            return cx.add(x, kept[0].dtype and kept[0])

        error = self.raised(pt2onnx.ConversionError, lambda: pt2onnx.convert(support.MLP))
        self.assertEqual(len(error.failures), 3)

    def test_threads(self) -> None:
        """Translations run while other threads convert."""
        pt2onnx.translation("aten::sigmoid")(lambda cx, x: cx.tanh(x))
        made: list[Any] = []
        threads = [
            threading.Thread(target=lambda: made.append(pt2onnx.convert(support.MLP).to_text()))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(len(made), 8)
        self.assertEqual(len(set(made)), 1)
