"""``check``, ``inspect``, ``load``, ``optimize``, ``diff``."""

from __future__ import annotations

import importlib.util

import numpy as np
import onnx
import support

import pt2onnx


class Inspect(support.Test):
    def test_report(self) -> None:
        report = pt2onnx.inspect(str(support.MLP), opset=18)
        self.assertTrue(report["success"])
        self.assertEqual([i["name"] for i in report["program"]["inputs"]], ["tensor_x", "input_dict_tensor_x", "input_list_0"])
        self.assertEqual(report["model"]["opset"], 18)

    def test_failures(self) -> None:
        archive = support.case("custom/mylib_minmax").archive
        self.assertEqual([f["op"] for f in pt2onnx.inspect(archive)["failures"]], ["mylib::minmax"])

    def test_not_an_archive(self) -> None:
        report = pt2onnx.inspect(self.folder / "nothing.pt2")
        self.assertFalse(report["success"])
        self.assertEqual(report["error"]["kind"], "archive")


class Check(support.Test):
    def test_good(self) -> None:
        self.assertEqual(pt2onnx.check(support.MLP), [])

    def test_failures(self) -> None:
        (failure,) = pt2onnx.check(support.case("custom/mylib_mix").archive)[:1]
        self.assertEqual(set(failure) & {"kind", "node", "op", "file", "line", "reason", "suggestion"}, {"kind", "node", "op", "file", "line", "reason", "suggestion"})
        self.assertEqual(failure["op"], "mylib::mix")

    def test_not_an_archive(self) -> None:
        (failure,) = pt2onnx.check(self.folder / "nothing.pt2")
        self.assertEqual(failure["kind"], "archive")
        self.assertIn("nothing.pt2", failure["reason"])

    def test_options(self) -> None:
        functions = [support.TESTDATA / "generate/functions.onnxtxt"]
        self.assertEqual(pt2onnx.check(support.case("custom/mylib_mix").archive, functions=functions), [])


class Load(support.Test):
    def test_kinds(self) -> None:
        path = self.folder / "model.onnx"
        made = pt2onnx.convert(support.MLP, path)
        for source in (path, str(path), made.to_bytes(), bytearray(made.to_bytes())):
            self.assertEqual(pt2onnx.diff(pt2onnx.load(source), made), "")

    def test_external(self) -> None:
        path = self.folder / "model.onnx"
        made = pt2onnx.convert(support.MLP)
        made.save(path, weights="external", external_threshold=0)
        found = pt2onnx.load(path)
        given = [np.ones((2, 8), np.float32)] * 3
        self.assertEqualNumbers(found(*given), made(*given))

    def test_no_model(self) -> None:
        for source in (b"nothing", self.folder / "nothing.onnx", support.MLP):
            error = self.raised(pt2onnx.OnnxExporterError, lambda source=source: pt2onnx.load(source))
            self.assertEqual(error.kind, "model")


class Optimize(support.Test):
    def test_kinds(self) -> None:
        case = support.case("interface/resnet_fixed")
        plain = pt2onnx.convert(case.archive, optimize=0)
        path = self.folder / "plain.onnx"
        plain.save(path)
        sources = [path, str(path), plain.to_bytes(), plain.model_proto, plain]
        if importlib.util.find_spec("onnx_ir"):
            sources.append(pt2onnx.load(path).model)
        for source in sources:
            made = pt2onnx.optimize(source)
            self.assertEqual(len(made.model_proto.graph.node), 22)
            self.assertRuns(made, case)
        # The source is as it was.
        self.assertEqual(len(onnx.load(path).graph.node), 31)
        self.assertEqual(len(plain.model_proto.graph.node), 31)

    def test_file(self) -> None:
        made = pt2onnx.convert(support.MLP, optimize=0)
        path = self.folder / "out.onnx"
        pt2onnx.optimize(made.to_bytes(), path, weights="external", weights_file="w.bin", external_threshold=0, skip_pass=["gemm"])
        self.assertEqual(self.files(), ["out.onnx", "w.bin"])
        self.assertEqual(pt2onnx.load(path).input_names, made.input_names)


class Diff(support.Test):
    def test_equal(self) -> None:
        self.assertEqual(pt2onnx.diff(pt2onnx.convert(support.MLP), pt2onnx.convert(support.MLP)), "")

    def test_kinds(self) -> None:
        old, new = pt2onnx.convert(support.MLP), pt2onnx.convert(support.MLP, output_names=["y"])
        path = self.folder / "old.onnx"
        old.save(path)
        for source in (path, old.to_bytes(), old.model_proto, old):
            self.assertIn("y", pt2onnx.diff(source, new))

    def test_itself(self) -> None:
        made = pt2onnx.convert(support.MLP)
        self.assertEqual(pt2onnx.diff(made, made), "")
