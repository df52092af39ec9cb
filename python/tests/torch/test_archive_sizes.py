"""Conditions on sizes in archives: warnings, checks in the model, models merged by them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pt2onnx
import pytest
import torch
from helpers import TORCH
from pt2onnx import _pt2onnx
from torch import Tensor, nn

DYNAMIC = torch.export.Dim.DYNAMIC


class Limit(nn.Module):
    """Decides by a size."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.cumsum(1)
        return (x * 2 if x.shape[1] <= 8 else x * 3).relu()


class Nested(nn.Module):
    """Decides by sizes of inputs within others."""

    def forward(self, x: Tensor, d: dict[str, list[Tensor]]) -> Tensor:
        y = d["l"][1]
        if y.shape[0] % 4 == 0 and x.shape[0] < y.shape[0]:
            return x * 2
        return x * 3


class Quotient(nn.Module):
    """Has a condition with functions of Python."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] / x.shape[1] < 3.5 else x * 3


def saved(path: Path, module: nn.Module, args: tuple[Any, ...], shapes: Any) -> str:
    program = torch.export.export(module.eval(), args, dynamic_shapes=shapes, strict=False)
    torch.export.save(program, path)
    return os.fspath(path)


def limit(path: Path, size: int) -> str:
    return saved(path, Limit(), (torch.ones(2, size),), ({1: DYNAMIC},))


def run(model: pt2onnx.ONNXProgram | bytes, *inputs: Tensor) -> np.ndarray[Any, Any]:
    data = model if isinstance(model, bytes) else model.to_bytes()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options)
    names = [end.name for end in session.get_inputs()]
    (output,) = session.run(None, dict(zip(names, (x.numpy() for x in inputs), strict=True)))
    return np.asarray(output)


def test_conversion_warns_of_sizes(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"the model holds only where `t` is (at most 8|2 to 8)"):
        pt2onnx.convert(limit(tmp_path / "m.pt2", 5), rename_dim={"x.1": "t"})


def test_inspect_warns_of_sizes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _pt2onnx.command(["pt2onnx", "inspect", limit(tmp_path / "m.pt2", 5)]) == 0
    assert "\nwarning: the model holds only where" in capfd.readouterr().out


@pytest.mark.skipif(TORCH < (2, 9), reason="older archives have ranges only")
@pytest.mark.parametrize(
    ("module", "args", "shapes", "text"),
    [
        (
            Nested(),
            (torch.ones(3), {"l": [torch.ones(1), torch.ones(8)]}),
            ({0: DYNAMIC}, {"l": [{}, {0: DYNAMIC}]}),
            r"% 4 == 0`",
        ),
        (Quotient(), (torch.ones(3, 2),), ({0: DYNAMIC, 1: DYNAMIC},), r"< 3.5`"),
    ],
    ids=["nested", "quotient"],
)
def test_conditions_of_several_sizes(
    tmp_path: Path, module: nn.Module, args: tuple[Any, ...], shapes: Any, text: str
) -> None:
    path = saved(tmp_path / "m.pt2", module, args, shapes)
    with pytest.warns(UserWarning, match=text):
        pt2onnx.convert(path)


@pytest.mark.skipif(TORCH < (2, 9), reason="older archives have ranges only")
@pytest.mark.filterwarnings("error")
def test_ranges_of_the_user_are_no_warning(tmp_path: Path) -> None:
    dim = torch.export.Dim("t", min=3, max=64)
    pt2onnx.convert(saved(tmp_path / "m.pt2", nn.ReLU(), (torch.ones(2, 5),), ({1: dim},)))


@pytest.mark.parametrize("opset", [9, 20])
def test_checks_fail_with_the_reason(tmp_path: Path, opset: int) -> None:
    with pytest.warns(UserWarning, match="it fails for others"):
        model = pt2onnx.convert(limit(tmp_path / "m.pt2", 5), size_checks=True, opset=opset)
    for size in (2, 5, 8):
        x = torch.rand(2, size)
        np.testing.assert_allclose(run(model, x), Limit()(x).numpy(), rtol=1e-5)
    for size in (9, 20):
        with pytest.raises(Exception, match=r"the model holds only where .* 8"):
            run(model, torch.rand(2, size))


class Bounded(nn.Module):
    """Takes at most so many rows."""

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[0] <= 8, "too long"
        if x.shape[1] % 2 != 0:
            raise ValueError("odd")
        return x * 2


def test_exceptions_of_scripts_are_checked(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "m.pt")
    torch.jit.save(torch.jit.script(Bounded()), path)
    model = pt2onnx.convert(path, input={"x": "float32[n,m]"}, size_checks=True)
    for sizes in ((1, 2), (8, 6)):
        x = torch.rand(sizes)
        np.testing.assert_allclose(run(model, x), Bounded()(x).numpy(), rtol=1e-5)
    for sizes in ((9, 2), (8, 5)):
        with pytest.raises(Exception, match="only where n is at most 8 and m % 2 == 0"):
            run(model, torch.rand(sizes))


@pytest.mark.filterwarnings("ignore:the model holds only where")
def test_models_of_archives_are_merged(tmp_path: Path) -> None:
    paths = []
    for size in (5, 12):
        path = tmp_path / f"{size}.onnx"
        model = pt2onnx.convert(limit(tmp_path / f"{size}.pt2", size), rename_dim={"x.1": "t"})
        model.save(path)
        paths.append(os.fspath(path))
    merged = os.fspath(tmp_path / "merged.onnx")
    words = ["pt2onnx", "optimize", "--choose", *paths, "-o", merged]
    assert _pt2onnx.command(words) == 0
    data = Path(merged).read_bytes()
    for size in range(1, 20):
        x = torch.rand(2, size)
        np.testing.assert_allclose(run(data, x), Limit()(x).numpy(), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:the model holds only where")
def test_models_are_merged_by_a_tree(tmp_path: Path) -> None:
    programs = [
        _pt2onnx.convert_path(limit(tmp_path / f"{size}.pt2", size), "{}", []) for size in (5, 12)
    ]
    tree: _pt2onnx.Tree = ("t <= 8", 0, ("t <= 16", 1, "no model is for a t above 16"))
    merged = _pt2onnx.choose(programs, tree, {"t": ("x", 1)}, {"t": (1, None)}, ["t > 12"])
    assert merged.inputs() == [("x", "float32", ["2", "t"])]
    data = merged.to_bytes()
    for size in range(1, 17):
        x = torch.rand(2, size)
        np.testing.assert_allclose(run(data, x), Limit()(x).numpy(), rtol=1e-5)
    with pytest.raises(Exception, match="no model is for a t above 16"):
        run(data, torch.rand(2, 17))
    with pytest.raises(_pt2onnx.Failure, match="which is not a size of an input"):
        _pt2onnx.choose(programs, ("h <= 8", 0, 1), {"t": ("x", 1)}, {}, [])
    with pytest.raises(ValueError, match="the condition `t <=`"):
        _pt2onnx.choose(programs, ("t <=", 0, 1), {"t": ("x", 1)}, {}, [])
