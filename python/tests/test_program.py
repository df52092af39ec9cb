"""``ONNXProgram``: running it, its attributes, changes, and what it is saved as."""

from __future__ import annotations

import importlib.util
import pathlib
import unittest

import numpy as np
import onnx
import pt2onnx
import support

IR = unittest.skipUnless(importlib.util.find_spec("onnx_ir"), "needs onnx_ir")


def mlp(**options: object) -> pt2onnx.ONNXProgram:
    return pt2onnx.convert(support.MLP, **options)


def inputs(batch: int = 3) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.random((batch, 8), np.float32) for _ in range(3)]


def run(path: object, given: list[np.ndarray], **weights: np.ndarray) -> list[np.ndarray]:
    """The outputs of ONNX Runtime for a file."""
    import onnxruntime as ort

    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, {**dict(zip(names, given, strict=False)), **weights})


class Running(support.Test):
    def test_sizes(self) -> None:
        made = mlp()
        for batch in (3, 0, 1, 7):
            self.assertEqual(made(*inputs(batch))[0].shape, (batch, 2))

    def test_keywords(self) -> None:
        made, given = mlp(), inputs()
        self.assertEqualNumbers(
            made(**dict(zip(made.input_names, given, strict=False))), made(*given)
        )

    def test_reference(self) -> None:
        made, given = mlp(), inputs()
        self.assertEqualNumbers(made.call_reference(*given), made(*given))

    @IR
    def test_values(self) -> None:
        made, given = mlp(), inputs()
        joined, output = made.compute_values(["cat", "linear_4"], given)
        self.assertEqualNumbers([joined], [np.concatenate(given, 1)])
        self.assertEqualNumbers([output], made(*given))
        self.assertIn(
            "'nothing'",
            str(self.raised(ValueError, lambda: made.compute_values(["nothing"], given))),
        )
        self.assertEqual(made.output_names, ["linear_4"])

    def test_own_session(self) -> None:
        import onnxruntime as ort

        made, given, seen = mlp(), inputs(), []
        expected = made(*given)

        def session(model: str | bytes) -> ort.InferenceSession:
            seen.append(type(model))
            return ort.InferenceSession(model, providers=["CPUExecutionProvider"])

        made.initialize_inference_session(session)
        self.assertEqualNumbers(made(*given), expected)
        self.assertEqual(seen, [bytes])
        made.release()
        self.assertEqualNumbers(made(*given), expected)

    def test_wrong_inputs(self) -> None:
        for given in (
            inputs()[:2],
            [i[:, :5] for i in inputs()],
            [i.astype(np.float64) for i in inputs()],
        ):
            self.raised(Exception, lambda given=given: mlp()(*given))


class Attributes(support.Test):
    def test_names(self) -> None:
        made = mlp()
        self.assertEqual(made.input_names, ["tensor_x", "input_dict_tensor_x", "input_list_0"])
        self.assertEqual(made.output_names, ["linear_4"])
        self.assertEqual(made.opset_version, 20)
        self.assertIsNone(made.exported_program)
        self.assertIsNone(made.verification)

    def test_proto(self) -> None:
        proto = mlp().model_proto
        onnx.checker.check_model(proto, full_check=True)
        self.assertEqual(proto, onnx.load_from_string(mlp().to_bytes()))

    def test_text(self) -> None:
        made = mlp()
        self.assertIn("Gemm", made.to_text())
        self.assertIn(made.to_text(), repr(made))

    @IR
    def test_model(self) -> None:
        made, given = mlp(), inputs()
        expected = made(*given)
        model = made.model
        self.assertIs(made.model, model)
        self.assertEqual(made.input_names, ["tensor_x", "input_dict_tensor_x", "input_list_0"])
        self.assertEqual(made.opset_version, 20)
        self.assertEqualNumbers(made(*given), expected)
        onnx.checker.check_model(made.model_proto, full_check=True)
        # Changes of it are saved, run and shown.
        model.graph.outputs[0].name = "y"
        bias = model.graph.initializers["fc3.bias"]
        import onnx_ir

        bias.const_value = onnx_ir.tensor(np.array([100, 200], np.float32), name="fc3.bias")
        made.release()
        self.assertEqual(made.output_names, ["y"])
        self.assertEqual(made(*given)[0].round(-2).tolist(), [[100, 200]] * 3)
        made.save(self.folder / "m.onnx")
        self.assertEqualNumbers(run(self.folder / "m.onnx", given), made(*given))
        self.assertIn("float[s18,2] y", made.to_text())
        self.assertEqualNumbers(pt2onnx.load(made.to_bytes())(*given), made(*given))
        made.optimize()
        self.assertEqual(made.output_names, ["y"])
        self.assertEqual(made(*given)[0].round(-2).tolist(), [[100, 200]] * 3)

    @IR
    def test_model_is_set(self) -> None:
        made, given = mlp(), inputs()
        expected = made(*given)
        other = mlp(optimize=0, output_names=["y"]).model
        made.model = other
        self.assertIs(made.model, other)
        self.assertEqual(made.output_names, ["y"])
        self.assertEqualNumbers(made(*given), expected)

    @IR
    def test_weights_of_model_are_not_copied(self) -> None:
        """Arrays of onnx_ir are views of the archive's bytes."""
        array = mlp().model.graph.initializers["fc_combined.weight"].const_value.numpy()
        self.assertFalse(array.flags.writeable)
        self.assertFalse(array.flags.owndata)


class Axes(support.Test):
    def check(self, made: pt2onnx.ONNXProgram) -> None:
        with self.assertWarnsRegex(UserWarning, "Dimension 'other' not found"):
            made.rename_axes({"s18": "batch", "other": "n"})
        proto = made.model_proto
        dims = [
            v.type.tensor_type.shape.dim[0].dim_param
            for v in (*proto.graph.input, *proto.graph.output)
        ]
        self.assertEqual(dims, ["batch"] * 4)
        self.assertEqual(made(*inputs())[0].shape, (3, 2))

    def test_native(self) -> None:
        self.check(mlp())

    @IR
    def test_model(self) -> None:
        made = mlp()
        self.assertTrue(made.model)
        self.check(made)

    @IR
    def test_symbols(self) -> None:
        made = mlp()
        made.rename_axes({mlp().model.graph.inputs[0].shape[0]: "batch"})
        self.assertIn("float[batch,8] tensor_x", made.to_text())

    def test_expressions(self) -> None:
        """Names within an expression of a dimension."""
        made = pt2onnx.convert(support.case("interface/derived_dim").archive)
        words = {d for _, _, dims in made._native.inputs() for d in dims if not d.isdigit()}
        symbol = min(words, key=len)
        made.rename_axes({symbol: "batch"})
        left = {
            d
            for _, _, dims in (*made._native.inputs(), *made._native.outputs())
            for d in dims
            if not d.isdigit()
        }
        self.assertTrue(all(symbol not in dim for dim in left), left)
        self.assertRuns(made, support.case("interface/derived_dim"))


class Saving(support.Test):
    def setUp(self) -> None:
        super().setUp()
        self.path = self.folder / "model.onnx"
        self.given = inputs()
        # Its weights are large enough for their own file.
        self.case = support.case("interface/resnet_fixed")
        self.expected = list(mlp()(*self.given))

    def programs(self, archive: pathlib.Path = support.MLP) -> list[pt2onnx.ONNXProgram]:
        """A program that Rust writes, and one that onnx_ir writes."""
        made = [pt2onnx.convert(archive)]
        if importlib.util.find_spec("onnx_ir"):
            made.append(pt2onnx.convert(archive))
            self.assertTrue(made[1].model)
        return made

    def test_external(self) -> None:
        for made in self.programs(self.case.archive):
            made.save(self.path, external_data=True)
            self.assertEqual(self.files(), ["model.onnx", "model.onnx.data"])
            self.assertEqualNumbers(
                run(self.path, *self.case.samples[0][:1]), self.case.samples[0][1]
            )

    def test_embedded(self) -> None:
        for made in self.programs():
            for options in ({}, {"external_data": False}):
                made.save(self.path, **options)
                self.assertEqual(self.files(), ["model.onnx"])
                self.assertEqualNumbers(run(self.path, self.given), self.expected)

    def test_without_weights(self) -> None:
        for made in self.programs():
            made.save(self.path, include_initializers=False)
            self.assertEqual(self.files(), ["model.onnx"])
            graph = onnx.load(self.path).graph
            self.assertEqual(
                (len(graph.node), len(graph.initializer), len(graph.input)), (10, 0, 3)
            )
            # The program keeps them.
            self.assertEqualNumbers(made(*self.given), self.expected)

    def test_weights_as_inputs(self) -> None:
        for made in self.programs():
            made.save(self.path, keep_initializers_as_inputs=True)
            names = [i.name for i in onnx.load(self.path).graph.input]
            self.assertEqual(len(names), 13)
            self.assertIn("fc3.bias", names)
            zero = np.zeros(2, np.float32)
            found = run(
                self.path,
                self.given,
                **{"fc3.bias": zero, "fc3.weight": np.zeros((2, 2), np.float32)},
            )
            self.assertEqualNumbers(found, [np.zeros((3, 2), np.float32)])
            self.assertEqual(len(made.input_names), 3)

    def test_options(self) -> None:
        mlp().save(
            self.path, weights="external", weights_file="w.bin", external_threshold=0, alignment=64
        )
        self.assertEqual(self.files(), ["model.onnx", "w.bin"])
        self.assertEqualNumbers(run(self.path, self.given), self.expected)
        mlp().save(self.path, weights="external", shard_size="1KB", external_threshold=0)
        self.assertGreater(len(self.files()), 3)
        self.assertEqualNumbers(run(self.path, self.given), self.expected)

    def test_options_after_a_change(self) -> None:
        for made in self.programs():
            made.save(self.path, weights_file="w.bin", weights="external", external_threshold=0)
            self.assertIn("w.bin", self.files())
            self.assertEqualNumbers(run(self.path, self.given), self.expected)

    def test_options_of_the_conversion(self) -> None:
        made = mlp(weights="external", external_threshold=0)
        made.save(self.path)
        self.assertEqual(self.files(), ["model.onnx", "model.onnx.data"])

    def test_again(self) -> None:
        """A model may replace the file that it was read from."""
        mlp().save(self.path, external_data=True, external_threshold=0)
        pt2onnx.load(self.path).save(self.path, external_data=True)
        self.assertEqualNumbers(run(self.path, self.given), self.expected)

    def test_bytes(self) -> None:
        for made in self.programs():
            self.path.write_bytes(made.to_bytes())
            self.assertEqualNumbers(run(self.path, self.given), self.expected)


class Optimize(support.Test):
    def test_program(self) -> None:
        case = support.case("interface/resnet_fixed")
        made = pt2onnx.convert(case.archive, optimize=0)
        self.assertEqual(len(made.model_proto.graph.node), 31)
        made.optimize()
        self.assertEqual(len(made.model_proto.graph.node), 22)
        self.assertRuns(made, case)
