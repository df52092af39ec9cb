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
