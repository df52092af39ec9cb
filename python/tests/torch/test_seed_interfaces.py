"""Interfaces that versions of torch.onnx have had, beside ``export`` of the present one."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pt2onnx
import pytest
import torch
from helpers import Call, check, same
from pt2onnx import compat


class Norm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.bn = torch.nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x)).relu()


X = torch.randn(2, 3, 5, 5)


# Files.


def test_save_to_an_object(tmp_path: pathlib.Path) -> None:
    """With the parameters that one file allows."""
    program = pt2onnx.export(Norm().eval(), (X,), optimize=False)
    program.save(path := tmp_path / "m.onnx", external_data=False)
    for options in ({}, {"external_data": False}):
        program.save(stream := io.BytesIO(), **options)
        assert stream.getvalue() == path.read_bytes()
    with open(tmp_path / "n.onnx", "wb") as file:
        program.save(file)
    assert (tmp_path / "n.onnx").read_bytes() == path.read_bytes()
    program.save(stream := io.BytesIO(), keep_initializers_as_inputs=True)
    graph = onnx.load_from_string(stream.getvalue()).graph
    assert len(graph.input) == 1 + len(graph.initializer) and graph.initializer
    program.save(stream := io.BytesIO(), include_initializers=False)
    assert not onnx.load_from_string(stream.getvalue()).graph.initializer
    with pytest.raises(TypeError, match="'external_data' needs a path"):
        program.save(io.BytesIO(), external_data=True)
    with pytest.raises(TypeError, match="'shard_size' needs a path"):
        program.save(io.BytesIO(), shard_size=4096)


@pytest.mark.filterwarnings("ignore:Saving ONNX model to a BytesIO object is deprecated")
@pytest.mark.parametrize("dynamo", [True, False])
def test_export_to_an_object(dynamo: bool, tmp_path: pathlib.Path) -> None:
    model = Norm().eval()
    with open(path := tmp_path / "m.onnx", "wb") as file:
        pt2onnx.export(model, (X,), file, dynamo=dynamo)
    same(pt2onnx.load(path)(X), model(X))
    stream = io.BytesIO()
    pt2onnx.export(model, (X,), stream, dynamo=dynamo, export_params=False, optimize=False)
    assert not onnx.load_from_string(stream.getvalue()).graph.initializer


# Names.


class Pools(torch.nn.Module):
    """Modules in lists, and one that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        rows = [torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.ReLU()) for _ in range(2)]
        self.rows = torch.nn.ModuleList(rows)
        self.pool = torch.nn.MaxPool2d(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for row in self.rows:
            x = row(x)
        return self.pool(self.pool(x)).relu() * 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_of_nodes_and_values() -> None:
    model, found = Pools().eval(), []
    for export in (torch.onnx.export, pt2onnx.export):
        export(model, (X,), stream := io.BytesIO(), dynamo=False)
        nodes = onnx.load_from_string(stream.getvalue()).graph.node
        kept = [node for node in nodes if node.op_type != "Constant"]
        # The last value is the output.
        found.append([(node.name, *node.output) for node in kept[:-1]])
    assert found[0] == found[1] and found[0][0][0] == "/rows.0/rows.0.0/Conv"


# Text.


def test_verbose_prints_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    """Its nodes have the lines of the user's source."""
    program = pt2onnx.export(Norm().eval(), (X,), dynamo=False, verbose=True)
    assert f"Exported graph: {program.to_text()}" in capsys.readouterr().out
    docs = [node.doc_string for node in program.model_proto.graph.node]
    assert all("test_seed_interfaces.py" in doc for doc in docs) and docs
    quiet = pt2onnx.export(Norm().eval(), (X,), dynamo=False)
    assert not any(node.doc_string for node in quiet.model_proto.graph.node)
    assert "Exported graph" not in capsys.readouterr().out


def test_pretty_strings() -> None:
    model = Norm().eval()
    text = compat.export_to_pretty_string(model, (X,), input_names=["image"], opset_version=13)
    assert '"" : 13' in text and "image" in text and "Conv" in text
    text = compat.export_to_pretty_string(model, X, google_printer=True, verbose=True)
    assert 'op_type: "Conv"' in text and "doc_string" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("example_outputs", torch.zeros(1)),
        ("enable_onnx_checker", True),
        ("_retain_param_name", False),
    ],
)
def test_keywords_of_older_versions(name: str, value: object) -> None:
    """Those without an effect are accepted, with a warning."""
    with pytest.warns(DeprecationWarning, match=f"'{name}' is deprecated: it has no effect"):
        check(Norm(), (X,), dynamo=False, **{name: value})


def test_keywords_that_have_other_names(tmp_path: pathlib.Path) -> None:
    with pytest.warns(DeprecationWarning, match="use external_data"):
        pt2onnx.export(
            torch.nn.Linear(300, 40),
            (torch.randn(2, 300),),
            tmp_path / "m.onnx",
            dynamo=False,
            use_external_data_format=True,  # pyright: ignore[reportCallIssue]
        )
    assert (tmp_path / "m.onnx.data").exists()
    with pytest.warns(DeprecationWarning, match="use node_docs"):
        made = pt2onnx.export(
            Norm().eval(),
            (X,),
            dynamo=False,
            strip_doc_string=False,  # pyright: ignore[reportCallIssue]
        )
    assert all(node.doc_string for node in made.model_proto.graph.node)


# Functions of modules.


class Scale(torch.nn.Module):
    by: int
    shift: float
    negate: bool
    label: str
    sizes: list[int]
    unset: float

    def __init__(self, by: int, shift: float, negate: bool) -> None:
        super().__init__()
        self.by, self.shift, self.negate = by, shift, negate
        self.label, self.sizes = f"by {by}", [by, by + 1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.leaky_relu(x * self.by + self.shift, self.shift)
        return -x if self.negate else x


class Twice(torch.nn.Module):
    def __init__(self, by: int) -> None:
        super().__init__()
        self.first, self.second = Scale(by, 0.5, True), Scale(by + 1, 0.25, True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def test_functions_have_the_attributes_of_modules() -> None:
    """Annotated attributes by their names, others with a prefix, as in torch.onnx."""
    model = torch.nn.Sequential(Twice(2), Twice(5), torch.nn.LayerNorm(4)).eval()
    x = torch.randn(2, 4)
    for dynamo in (True, False):
        program = check(
            model,
            (x,),
            export_modules_as_functions={Scale, torch.nn.LayerNorm},
            dynamo=dynamo,
            opset_version=17,
        )
        nodes = [node for node in program.model_proto.graph.node if node.op_type == "Scale"]
        found = [{a.name: onnx.helper.get_attribute_value(a) for a in n.attribute} for n in nodes]
        assert [one["by"] for one in found] == [2, 3, 5, 6]
        assert [one["shift"] for one in found] == [0.5, 0.25, 0.5, 0.25]
        assert found[0]["negate"] == 1 and found[0]["label"] == b"by 2"
        assert found[0]["sizes"] == [2, 3] and "unset" not in found[0]
        assert found[0]["inferred::LeakyRelu_alpha"] == 0.5
        assert {"inferred::Constant_value"} <= found[0].keys()
        norm = next(n for n in program.model_proto.graph.node if n.op_type == "LayerNorm")
        assert {"eps", "elementwise_affine"} <= {a.name for a in norm.attribute}
        onnx.checker.check_model(program.model_proto)


def test_functions_of_modules_in_functions() -> None:
    """A function that several modules share passes on what differs within."""
    model, x = torch.nn.Sequential(Twice(2), Twice(5)).eval(), torch.randn(2, 4)
    program = check(model, (x,), export_modules_as_functions=True, opset_version=17)
    functions = {one.name: one for one in program.model_proto.functions}
    assert functions.keys() == {"Twice", "Scale"}
    assert "inferred::Scale_by" in functions["Twice"].attribute
    onnx.checker.check_model(program.model_proto)


# Registries.


def conjugate_product(cx: Any, x: Any, y: Any) -> Any:
    """``conj(x) * y`` of pairs."""
    a, b = (cx.gather(x, at, axis=-1) for at in (0, 1))
    c, d = (cx.gather(y, at, axis=-1) for at in (0, 1))
    parts = [cx.add(a * c, b * d), cx.sub(a * d, b * c)]
    return cx.concat(*(cx.unsqueeze(part, [-1]) for part in parts), axis=-1)


def test_translations_of_complex_tensors() -> None:
    """They are used where a tensor is complex, the others where none is."""
    real, of_pairs = [], []

    def product(cx: Any, x: Any, y: Any) -> Any:
        real.append(x.dtype)
        return cx.mul(x, y)

    def product_of_pairs(cx: Any, x: Any, y: Any) -> Any:
        of_pairs.append(x.shape)
        return conjugate_product(cx, x, y)

    registry = compat.OnnxRegistry()
    registry.register_op(product, "aten", "mul", "Tensor")
    registry.register_op(product_of_pairs, "aten", "mul", "Tensor", is_complex=True)
    assert registry.get_op_functions("aten", "mul", "Tensor") == [product, product_of_pairs]
    options = compat.ExportOptions(onnx_registry=registry)
    x, y = (torch.randn(2, 3, dtype=torch.complex64) for _ in range(2))

    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.mul(x, y)) * x.real[..., None]

    program = compat.dynamo_export(Call(forward), x, y, export_options=options)
    expected = torch.view_as_real(x.conj() * y) * x.real[..., None]
    same(program(x, y), expected)
    assert real == ["float32"] and of_pairs == [(2, 3, 2)]


def test_complex_translations_of_decorators() -> None:
    try:
        pt2onnx.translation("aten::mul.Tensor", is_complex=True)(conjugate_product)
        x, y = (torch.randn(2, 3, dtype=torch.complex64) for _ in range(2))
        program = pt2onnx.export(Call(lambda x, y: torch.view_as_real(x * y)), (x, y))
        same(program(x, y), torch.view_as_real(x.conj() * y))
        check(Call(lambda x: x * x), (X,))
    finally:
        pt2onnx._translation._REGISTERED.clear()


def test_ops_have_a_namespace() -> None:
    registry = compat.OnnxRegistry()
    for namespace, name in (("", "mix"), ("mylib", "")):
        with pytest.raises(ValueError, match="neither may be empty"):
            registry.register_op(conjugate_product, namespace, name)
        with pytest.raises(ValueError, match="neither may be empty"):
            registry.is_registered_op(namespace, name)


# Weights and training.


def test_initializers_are_inputs_of_models_with_aten() -> None:
    """``keep_initializers_as_inputs=None`` decides by ``operator_export_type``."""
    kinds = torch.onnx.OperatorExportTypes

    def inputs(**options: Any) -> int:
        made = pt2onnx.export(Norm().eval(), (X,), keep_initializers_as_inputs=None, **options)
        return len(made.model_proto.graph.input)

    assert inputs(dynamo=False) == 1
    assert inputs(dynamo=False, operator_export_type=kinds.ONNX) == 1
    assert inputs(dynamo=False, operator_export_type=kinds.ONNX_ATEN_FALLBACK) > 1
    assert inputs(operator_export_type=kinds.ONNX_ATEN_FALLBACK) == 1


@pytest.mark.parametrize("opset", [13, 14, 17])
def test_training_mode(opset: int) -> None:
    """A node that trains, with the new statistics; before opset 14, its formula."""
    model = Norm().train()
    mode = torch.onnx.TrainingMode.TRAINING
    program = pt2onnx.export(model, (X,), dynamo=False, training=mode, opset_version=opset)
    nodes = {node.op_type: node for node in program.model_proto.graph.node}
    if opset > 13:
        node = nodes["BatchNormalization"]
        values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        assert values["training_mode"] == 1 and values.get("momentum", 0.9) == pytest.approx(0.9)
        assert len(node.output) == 3
        assert list(node.input)[1:] == ["bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"]
    with torch.no_grad():
        expected = model(X)
    evaluator = onnx.reference.ReferenceEvaluator(program.model_proto)
    found = evaluator.run(None, {program.input_names[0]: X.numpy()})
    np.testing.assert_allclose(found[0], expected.numpy(), rtol=1e-4, atol=1e-5)
    same(program(X), expected)


def test_statistics_of_training() -> None:
    """The new statistics have PyTorch's numbers: its variance is the unbiased one."""
    model = Norm().train()
    model.bn.momentum = 0.3
    program = pt2onnx.export(
        model,
        (X,),
        dynamo=False,
        training=torch.onnx.TrainingMode.TRAINING,
        mutations="outputs",
    )
    found = dict(zip(program.output_names, program(X), strict=True))
    with torch.no_grad():
        model(X)
    same(found["bn.running_mean"], model.bn.running_mean)
    same(found["bn.running_var"], model.bn.running_var)


def test_training_of_norms_without_statistics() -> None:
    """They have no node that trains: ONNX Runtime would write into constants."""
    model = torch.nn.BatchNorm1d(3, affine=False, track_running_stats=False).train()
    x = torch.randn(4, 3)
    program = pt2onnx.export(model, (x,), dynamo=False, training=torch.onnx.TrainingMode.TRAINING)
    same(program(x), model(x))
