"""``convert``: archives in, models out; options, warnings and errors."""

from __future__ import annotations

import json
import pathlib
import shutil
import warnings

import numpy as np
import pt2onnx
import support
from pt2onnx import _option_json, _options


class Numbers(support.Test):
    """Models give PyTorch's outputs."""

    def setUp(self) -> None:
        super().setUp()
        # Programs of the bundles drop state, have random ops, ...
        warnings.simplefilter("ignore", pt2onnx.OnnxExporterWarning)
        self.addCleanup(warnings.resetwarnings)

    def test_paths(self) -> None:
        for bundle in ("interface", "edges"):
            for case in support.cases(bundle):
                with self.subTest(case.name):
                    self.assertRuns(pt2onnx.convert(case.archive, target="ort-cpu"), case)

    def test_bytes_of_all_versions_of_torch(self) -> None:
        found = support.cases("archives")
        self.assertGreater(len(found), 200)
        for case in found:
            with self.subTest(case.name):
                self.assertRuns(pt2onnx.convert(case.archive.read_bytes()), case)

    def test_kinds_of_sources(self) -> None:
        text = pt2onnx.convert(support.MLP).to_text()
        data = support.MLP.read_bytes()
        for source in (
            str(support.MLP),
            pathlib.Path(support.MLP),
            data,
            bytearray(data),
            memoryview(data),
        ):
            self.assertEqual(pt2onnx.convert(source).to_text(), text)

    def test_weights_outlive_the_source(self) -> None:
        case = support.case("interface/resnet_fixed")
        copy = self.folder / "model.pt2"
        shutil.copy(case.archive, copy)
        mapped, held = pt2onnx.convert(copy), pt2onnx.convert(bytearray(copy.read_bytes()))
        copy.unlink()
        self.assertRuns(mapped, case)
        self.assertRuns(held, case)

    def test_file(self) -> None:
        path = self.folder / "model.onnx"
        made = pt2onnx.convert(support.MLP, path)
        self.assertEqual(self.files(), ["model.onnx"])
        self.assertEqual(pt2onnx.diff(path, made), "")


class Options(support.Test):
    def test_opset(self) -> None:
        for opset in (9, 18, 26):
            self.assertEqual(
                pt2onnx.convert(support.MLP, opset=opset).model_proto.opset_import[0].version, opset
            )

    def test_names(self) -> None:
        made = pt2onnx.convert(
            support.MLP, input_names=["a", "b"], output_names=["y"], rename_dim={"s18": "batch"}
        )
        self.assertEqual(made.input_names, ["a", "b", "input_list_0"])
        self.assertEqual(made.output_names, ["y"])
        dims = [
            d.dim_param or d.dim_value
            for d in made.model_proto.graph.input[0].type.tensor_type.shape.dim
        ]
        self.assertEqual(dims, ["batch", 8])

    def test_every_option(self) -> None:
        options = dict(
            opset=18,
            ir_version=9,
            target="ort-cpu",
            mutations="pairs",
            training="eval",
            unsupported_ops="aten-fallback",
            op_functions=[],
            seed=3,
            assume_finite=True,
            warnings_as_errors=False,
            input_names=("x",),
            output_names="from-tree",
            rename={"fc0.weight": "w"},
            rename_dim={"s18": "n"},
            dynamic_axes={},
            weights="external",
            weights_file="w.bin",
            external_threshold=4,
            alignment="4KiB",
            allow_external_paths=False,
            keep_initializers_as_inputs=True,
            optimize=1,
            skip_pass=["gelu", "gemm"],
            fold_limit=0,
            dedup_weights=True,
            provenance="none",
            strip_paths=True,
            scoped_names=True,
            node_docs=True,
            metadata_prop={"author": "me"},
            model_doc="text",
            model_version=7,
            producer="us",
        )
        reported = pt2onnx.convert(support.MLP, **options).report["options"]
        for key, value in options.items():
            found = reported[key.replace("_", "-")]
            expected = {"alignment": 4096, "input_names": ["x"]}.get(key, value)
            self.assertEqual(found, expected, key)

    def test_keywords_are_those_of_rust(self) -> None:
        """The typed keywords are all options that Rust knows, so that a new one needs no Python."""
        reported = pt2onnx.inspect(support.MLP)["options"]
        keywords = {key.replace("-", "_") for key in reported}
        self.assertEqual(keywords, set(_options.ConvertOptions.__annotations__))

    def test_levels(self) -> None:
        for level, number in ((0, 0), (1, 1), (2, 2), (False, 0), (True, 2)):
            self.assertEqual(
                pt2onnx.convert(support.MLP, optimize=level).report["options"]["optimize"], number
            )

    def test_fix(self) -> None:
        made = pt2onnx.convert(support.MLP, fix_dim={"s18": 5})
        self.assertEqual(
            [d.dim_value for d in made.model_proto.graph.output[0].type.tensor_type.shape.dim],
            [5, 2],
        )

    def test_old_keywords(self) -> None:
        """They stay until 0.2."""
        values = {"mutations": "outputs", "node_docs": True, "provenance": "none"}
        for old, new in _options.RENAMED.items():
            with self.subTest(old), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self.assertIn(new, _option_json.renamed({old: 1}))
                self.assertIn(new, _option_json.CONVERTING)
                if new in values:
                    made = pt2onnx.convert(support.MLP, **{old: values[new]})
                    key = new.replace("_", "-")
                    self.assertEqual(made.report["options"].get(key), values[new])
        program = pt2onnx.convert(support.MLP)
        with self.assertWarnsRegex(DeprecationWarning, "'fix' is called 'fix_dim' now") as caught:
            fixed = pt2onnx.optimize(program, fix={"s18": 5})
        self.assertNotIn("s18", fixed.to_text())
        self.assertEqual(caught.filename, __file__)
        with self.assertWarns(DeprecationWarning):
            program.save(self.folder / "m.onnx", link_outside=False)
        text = "the options 'dim' and 'rename_dim' are the same: give 'rename_dim'"
        error = self.raised(TypeError, lambda: pt2onnx.convert(support.MLP, dim={}, rename_dim={}))
        self.assertEqual(str(error), text)

    def test_unknown(self) -> None:
        error = self.raised(TypeError, lambda: pt2onnx.convert(support.MLP, opsett=18))
        self.assertEqual(str(error), "there is no option 'opsett': did you mean 'opset'?")
        for call in (pt2onnx.check, pt2onnx.inspect):
            self.raised(TypeError, lambda call=call: call(support.MLP, opsett=18))
        self.raised(TypeError, lambda: pt2onnx.optimize(pt2onnx.convert(support.MLP), nothing=1))
        self.raised(
            TypeError, lambda: pt2onnx.convert(support.MLP).save(self.folder / "m.onnx", nothing=1)
        )

    def test_wrong_values(self) -> None:
        for options in (
            {"opset": 99},
            {"opset": "x"},
            {"alignment": 3},
            {"mutations": "other"},
            {"optimize": 3},
            {"rename_dim": {"s0": 3}},
            {"input_names": "x"},
            {"cast_io": True},
        ):
            error = self.raised(
                ValueError, lambda options=options: pt2onnx.convert(support.MLP, **options)
            )
            self.assertIn(next(iter(options)), str(error).lower())

    def test_messages_name_parameters(self) -> None:
        error = self.raised(ValueError, lambda: pt2onnx.convert(support.MLP, cast_io=True))
        self.assertIn("`cast_io`", str(error))
        error = self.raised(
            ValueError, lambda: pt2onnx.convert(support.MLP, rename={"cast-io": "x"})
        )
        self.assertIn("no value `cast-io`", str(error))

    def test_target_without_the_opset(self) -> None:
        self.raised(ValueError, lambda: pt2onnx.convert(support.MLP, target="tract", opset=26))


class Warnings(support.Test):
    CACHE = support.CASES / "archives/2.15/cache/model.pt2"

    def test_shown_and_kept(self) -> None:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            made = pt2onnx.convert(self.CACHE)
        self.assertEqual([str(w.message) for w in seen], made.warnings)
        self.assertEqual(len(seen), 1)
        self.assertTrue(issubclass(seen[0].category, pt2onnx.OnnxExporterWarning))
        self.assertEqual(seen[0].filename, __file__)

    def test_as_errors(self) -> None:
        self.raised(
            pt2onnx.OnnxExporterError, lambda: pt2onnx.convert(self.CACHE, warnings_as_errors=True)
        )


class Errors(support.Test):
    def test_unsupported(self) -> None:
        archive = support.case("custom/mylib_minmax").archive
        error = self.raised(pt2onnx.UnsupportedOperatorError, lambda: pt2onnx.convert(archive))
        self.assertIsInstance(error, pt2onnx.ConversionError)
        self.assertIsInstance(error, pt2onnx.OnnxExporterError)
        self.assertIsInstance(error, RuntimeError)
        self.assertEqual(error.kind, "unsupported_operator")
        self.assertEqual([failure["op"] for failure in error.failures], ["mylib::minmax"])
        self.assertEqual(error.report["success"], False)
        self.assertIn("mylib.minmax", str(error))
        self.assertIn("mylib::minmax", error.markdown)
        self.assertEqual(pt2onnx.check(archive), error.failures)

    def test_not_an_archive(self) -> None:
        path = self.folder / "model.pt2"
        for data in (b"", b"nothing", support.MLP.read_bytes()[:-100]):
            path.write_bytes(data)
            for source in (path, data):
                error = self.raised(
                    pt2onnx.OnnxExporterError, lambda source=source: pt2onnx.convert(source)
                )
                self.assertEqual(
                    (error.kind, [f["kind"] for f in error.failures]), ("archive", ["archive"])
                )

    def test_no_file(self) -> None:
        error = self.raised(
            pt2onnx.OnnxExporterError, lambda: pt2onnx.convert(self.folder / "model.pt2")
        )
        self.assertIn("model.pt2", str(error))

    def test_nothing_is_written(self) -> None:
        self.raised(
            pt2onnx.OnnxExporterError,
            lambda: pt2onnx.convert(
                support.case("custom/mylib_minmax").archive, self.folder / "model.onnx"
            ),
        )
        self.assertEqual(self.files(), [])


class Report(support.Test):
    def test_report(self) -> None:
        made = pt2onnx.convert(support.MLP, opset=18)
        self.assertEqual(made.report["options"]["opset"], 18)
        self.assertEqual(made.report["model"]["operators"], {"Concat": 1, "Gemm": 5, "Sigmoid": 4})
        self.assertIn("aten::linear", made.report_markdown())
        self.assertEqual(json.loads(json.dumps(made.report)), made.report)

    def test_threads(self) -> None:
        """Conversions in several threads at once."""
        import concurrent.futures

        inputs = [np.zeros((3, 8), np.float32)] * 3
        expected = pt2onnx.convert(support.MLP)(*inputs)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for made in pool.map(lambda _: pt2onnx.convert(support.MLP), range(16)):
                self.assertEqualNumbers(made(*inputs), expected)
