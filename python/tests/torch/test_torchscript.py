"""Files of torch.jit.save, converted without PyTorch."""

from __future__ import annotations

import io
import pathlib

import pt2onnx
import pytest
import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, twice: bool = False) -> torch.Tensor:
        y = self.linear(x).relu()
        if twice:
            y = y * 2
        return y


X = torch.randn(2, 4)


def test_trace(tmp_path: pathlib.Path) -> None:
    """A trace brings the types of its inputs."""
    net = Net().eval()
    torch.jit.trace(net, (X,)).save(str(tmp_path / "net.pt"))
    program = pt2onnx.convert(tmp_path / "net.pt", tmp_path / "net.onnx")
    torch.testing.assert_close(program(X)[0], net(X))
    torch.testing.assert_close(pt2onnx.load(tmp_path / "net.onnx")(X)[0], net(X))


@pytest.mark.parametrize("twice", [False, True])
def test_script(twice: bool) -> None:
    """A script is told the types of its inputs; names are dynamic sizes, numbers and bools are fixed."""
    net = Net().eval()
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(net), file)
    program = pt2onnx.convert(file.getvalue(), input={"x": "float32[batch,4]", "twice": str(twice).lower()})
    for size in (2, 5):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x)[0], net(x, twice))


def test_script_without_types() -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Net()), file)
    with pytest.raises(ValueError, match="x: Tensor"):
        pt2onnx.convert(file.getvalue())


def test_dynamic_axes() -> None:
    """Axes of a trace become dynamic, by the names of inputs as they are in the model."""
    net, file = Net().eval(), io.BytesIO()
    torch.jit.save(torch.jit.trace(net, (X,)), file)
    for names in (None, ["image"]):
        axes = {(names or ["x"])[0]: {0: "batch"}}
        program = pt2onnx.convert(file.getvalue(), input_names=names, dynamic_axes=axes)
        for size in (2, 5):
            x = torch.randn(size, 4)
            torch.testing.assert_close(program(x)[0], net(x))


def test_parameters_as_inputs() -> None:
    net, file = Net().eval(), io.BytesIO()
    torch.jit.save(torch.jit.script(net), file)
    program = pt2onnx.convert(
        file.getvalue(), input={"x": "float32[n,4]"}, weights="none", keep_initializers_as_inputs=True, input_names=["x", "w", "b"]
    )
    assert program.input_names == ["x", "w", "b"]
    torch.testing.assert_close(program(X, net.linear.weight.detach(), net.linear.bias.detach())[0], net(X))


def test_the_line_of_an_error() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.lstsq(x, x).solution

    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Odd()), file)
    with pytest.raises(pt2onnx.UnsupportedOperatorError, match="test_torchscript.py:[0-9]+: return torch.linalg.lstsq"):
        pt2onnx.convert(file.getvalue(), input={"x": "float32[3,3]"})


def test_options_of_torchscript_for_others() -> None:
    file = io.BytesIO()
    torch.export.save(torch.export.export(Net().eval(), (X,)), file)
    for options in ({"input": {"x": "none"}}, {"method": "encode"}):
        with pytest.raises(ValueError, match="for TorchScript archives"):
            pt2onnx.convert(file.getvalue(), **options)


def test_the_callers_of_the_torchscript_exporter(tmp_path: pathlib.Path) -> None:
    net = Net().eval()
    program = pt2onnx.export(net, (X,), tmp_path / "net.onnx", input_names=["x", "w", "b"], export_params=False, dynamo=False)
    assert program.input_names == ["x", "w", "b"]
    saved = pt2onnx.load(tmp_path / "net.onnx")
    torch.testing.assert_close(saved(X, net.linear.weight.detach(), net.linear.bias.detach())[0], net(X))
    kind = torch.onnx.OperatorExportTypes.ONNX_ATEN
    nodes = pt2onnx.export(net, (X,), dynamo=False, operator_export_type=kind).model_proto.graph.node
    assert {(node.domain, node.op_type) for node in nodes} == {("org.pytorch.aten", "ATen")}
