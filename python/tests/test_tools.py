"""``check``, ``inspect``, ``load``, ``optimize``, ``diff``."""

from __future__ import annotations

import importlib.util

import numpy as np
import onnx
import pt2onnx
import support


class Inspect(support.Test):
    def test_report(self) -> None:
        report = pt2onnx.inspect(str(support.MLP), opset=18)
        self.assertTrue(report["success"])
        self.assertEqual(
            [i["name"] for i in report["program"]["inputs"]],
            ["tensor_x", "input_dict_tensor_x", "input_list_0"],
        )
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
        self.assertEqual(
            set(failure) & {"kind", "node", "op", "file", "line", "reason", "suggestion"},
            {"kind", "node", "op", "file", "line", "reason", "suggestion"},
        )
        self.assertEqual(failure["op"], "mylib::mix")

    def test_not_an_archive(self) -> None:
        (failure,) = pt2onnx.check(self.folder / "nothing.pt2")
        self.assertEqual(failure["kind"], "archive")
        self.assertIn("nothing.pt2", failure["reason"])

    def test_options(self) -> None:
        functions = [support.TESTDATA / "generate/functions.onnxtxt"]
        self.assertEqual(
            pt2onnx.check(support.case("custom/mylib_mix").archive, op_functions=functions), []
        )


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
            error = self.raised(
                pt2onnx.OnnxExporterError, lambda source=source: pt2onnx.load(source)
            )
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
        pt2onnx.optimize(
            made.to_bytes(),
            path,
            weights="external",
            weights_file="w.bin",
            external_threshold=0,
            skip_pass=["gemm"],
        )
        self.assertEqual(self.files(), ["out.onnx", "w.bin"])
        self.assertEqual(pt2onnx.load(path).input_names, made.input_names)

    def test_options(self) -> None:
        made = pt2onnx.convert(support.MLP)
        other = pt2onnx.optimize(
            made, opset=13, fix_dim={"tensor_x.0": 4}, rename={"cat": "joined"}, target="ort"
        )
        self.assertEqual(other.model_proto.opset_import[0].version, 13)
        self.assertEqual(
            other.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value, 4
        )
        given = [np.ones((4, 8), np.float32)] * 3
        self.assertEqualNumbers(other(*given), made(*given))
        self.raised(ValueError, lambda: pt2onnx.optimize(made, rename={"nothing": "x"}))
        self.raised(TypeError, lambda: pt2onnx.optimize(made, mutations="outputs"))

    def test_runtimes(self) -> None:
        """ONNX Runtime has no kernel for ``Conv`` of float64, TensorRT no such type."""
        text = """<ir_version: 8, opset_import: ["" : 16]>
            g (double[1,1,4,4] x) => (double[1,1,3,3] y) <double[1,1,2,2] w = {1, 2, 3, 4}> { y =
            Conv (x, w) }"""
        model = onnx.parser.parse_model(text)
        with self.assertWarnsRegex(
            pt2onnx.OnnxExporterWarning, "no CPU kernel for Conv of float64"
        ):
            made = pt2onnx.optimize(model, target="ort-cpu")
        self.assertEqual(
            [node.op_type for node in made.model_proto.graph.node], ["Cast", "Cast", "Conv", "Cast"]
        )
        self.raised(RuntimeError, lambda: pt2onnx.optimize(model, target="tensorrt"))

    def test_compressed(self) -> None:
        made = pt2onnx.convert(support.MLP)
        small = pt2onnx.optimize(made, quantize="int8", min_elements=1)
        self.assertIn("DequantizeLinear", [node.op_type for node in small.model_proto.graph.node])
        self.raised(ValueError, lambda: pt2onnx.optimize(made, quantize="int8", accuracy_level=4))
        self.raised(ValueError, lambda: pt2onnx.optimize(made, quantize="static-int8"))


class Calibrate(support.Test):
    def setUp(self) -> None:
        super().setUp()
        made = pt2onnx.convert(support.MLP)
        self.samples = self.folder / "samples.npz"
        numbers = np.random.default_rng(0).standard_normal((3, 6, 8)).astype(np.float32)
        np.savez(self.samples, **{name: numbers[i] for i, name in enumerate(made.input_names)})
        self.given, self.expected = list(numbers), made(*numbers)

    def test_methods(self) -> None:
        for method in ("min-max", "percentile", "entropy"):
            options = {
                "quantize": "static-int8",
                "calibration_data": self.samples,
                "calibration_method": method,
                "min_elements": 1,
            }
            for small in (
                pt2onnx.convert(support.MLP, **options),
                pt2onnx.optimize(pt2onnx.convert(support.MLP), **options),
            ):
                self.assertIn(
                    "QuantizeLinear", [node.op_type for node in small.model_proto.graph.node]
                )
                for found, wanted in zip(small(*self.given), self.expected, strict=False):
                    self.assertLess(abs(found - wanted).max(), 0.1 * abs(wanted).max())

    def test_without_runtime(self) -> None:
        code = (
            "import importlib.util, sys; find = importlib.util.find_spec\n"
            "importlib.util.find_spec = lambda name, *rest: "
            "None if name == 'onnxruntime' else find(name, *rest)\n"
            "import pt2onnx; "
            "pt2onnx.convert(sys.argv[1], quantize='static-int8', calibration_data=['x.npz'])"
        )
        run = support.python("-c", code, str(support.MLP), without="ORT_DYLIB_PATH")
        self.assertTrue(run.returncode == 1 and "pip install onnxruntime" in run.stderr, run.stderr)

    def test_no_samples(self) -> None:
        def call() -> object:
            return pt2onnx.convert(
                support.MLP, quantize="static-int8", calibration_data=["none.npz"]
            )

        self.assertIn("none.npz", str(self.raised(pt2onnx.OnnxExporterError, call)))


class Diff(support.Test):
    def test_equal(self) -> None:
        self.assertEqual(
            pt2onnx.diff(pt2onnx.convert(support.MLP), pt2onnx.convert(support.MLP)), ""
        )

    def test_kinds(self) -> None:
        old, new = pt2onnx.convert(support.MLP), pt2onnx.convert(support.MLP, output_names=["y"])
        path = self.folder / "old.onnx"
        old.save(path)
        for source in (path, old.to_bytes(), old.model_proto, old):
            self.assertIn("y", pt2onnx.diff(source, new))

    def test_itself(self) -> None:
        made = pt2onnx.convert(support.MLP)
        self.assertEqual(pt2onnx.diff(made, made), "")


class Wrong(support.Test):
    """Arguments of the wrong kind, and files of the wrong kind."""

    def test_no_model(self) -> None:
        for wrong in (None, 3, ["model.onnx"], {}, np.zeros(3)):
            for tool in (pt2onnx.load, pt2onnx.optimize, lambda m: pt2onnx.diff(m, m)):
                with self.assertRaises(TypeError):
                    tool(wrong)
        for wrong in (self.folder, self.folder / "nothing.onnx", b"", b"text", ""):
            for tool in (pt2onnx.load, pt2onnx.optimize, lambda m: pt2onnx.diff(m, m)):
                with self.assertRaises(pt2onnx.OnnxExporterError):
                    tool(wrong)

    def test_an_archive_in_place_of_a_model(self) -> None:
        for archive in (support.MLP, support.MLP.read_bytes()):
            with self.assertRaisesRegex(
                pt2onnx.OnnxExporterError, "this is an archive, not an ONNX model: pt2onnx.convert"
            ) as raised:
                pt2onnx.load(archive)
            self.assertEqual(raised.exception.kind, "model")

    def test_errors_name_the_file(self) -> None:
        path = self.folder / "empty.onnx"
        path.write_bytes(b"")
        with self.assertRaisesRegex(
            pt2onnx.OnnxExporterError, "empty.onnx: the model: there is no graph"
        ):
            pt2onnx.load(path)

    def test_a_folder_in_place_of_an_archive(self) -> None:
        with self.assertRaisesRegex(pt2onnx.OnnxExporterError, "is a directory"):
            pt2onnx.convert(self.folder)

    def test_options(self) -> None:
        model = pt2onnx.convert(support.MLP)
        for options in (
            {"opset": 3},
            {"opset": 27},
            {"opset": 26, "target": "tract"},
            {"fix_dim": {"s18": 2**62}},
            {"input_shape": {"tensor_x": "1.5,8"}},
        ):
            with self.assertRaises(ValueError):
                pt2onnx.optimize(model, **options)
        with self.assertRaisesRegex(
            TypeError, "'weights' says how a model is written: give a destination"
        ):
            pt2onnx.optimize(model, weights="external")
        for wrong in (model.apply_weights, model.rename_axes):
            with self.assertRaisesRegex(TypeError, "must be a dict, not int"):
                wrong(3)

    def test_more_inputs_than_the_model_has(self) -> None:
        x = np.ones((2, 8), np.float32)
        with self.assertRaisesRegex(TypeError, "the model takes 3 inputs .*, but 4 are given"):
            pt2onnx.convert(support.MLP)(x, x, x, x)
