"""Numbers that ``int`` and functions of ``math`` make of sizes."""

from __future__ import annotations

import math
from typing import Any

import pt2onnx
import pytest
import torch
import torch.nn.functional as F
from helpers import same
from pt2onnx._capture import _ints, _strategies, _trace
from torch import nn

#: The axes of images, which are last to first.
AXES = {"x": {0: "batch", 1: "height", 2: "width"}}


class Windows(torch.nn.Module):
    """Windows of an image, put together as in Swin-like networks."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, h, w, c = x.shape
        windows = x.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5)
        windows = windows.reshape(-1, 16, c).softmax(1).view(-1, 4, 4, c)
        return reverse(windows, h, w)


def reverse(windows: torch.Tensor, h: int, w: int) -> torch.Tensor:
    b = int(windows.shape[0] / (h * w / 4 / 4))
    assert isinstance(windows.dim(), int) and int("3") == 3
    x = windows.view(b, h // 4, w // 4, 4, 4, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, -1)


class Half(torch.nn.Module):
    """The first half of the columns, by the number of columns, and by that of channels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = 1 + int(x.shape[2] * 0.5)
        return x[:, :, :kept, : int(x.shape[3] / 2)]


class Typed(torch.nn.Module):
    """Needs the class itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        index = torch.zeros(1, dtype=int)  # type: ignore[call-overload]
        return x[:, :, : int(x.shape[2] * 0.5)][index]


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Gets an entry for each trace. torch.export is not used."""
    found: list[object] = []
    once = _trace._trace_once

    def count(*args: Any) -> Any:
        found.append(args)
        return once(*args)

    def fails(*_: Any, **__: Any) -> Any:
        raise AssertionError("there is a trace that holds")

    monkeypatch.setattr(_trace, "_trace_once", count)
    monkeypatch.setattr(_strategies._torch_export, "capture", fails)
    return found


@pytest.mark.parametrize("module", [Windows(), Half()])
@pytest.mark.parametrize("batch", [1, 2])
def test_numbers_from_sizes(batch: int, module: torch.nn.Module, traces: list[object]) -> None:
    x = torch.randn(batch, 8, 8, 3)
    program = pt2onnx.export(module, (x,), dynamo=False, input_names=["x"], dynamic_axes=AXES)
    assert program._capture_strategy == "TraceStrategy" and len(traces) == 2
    for sizes in ((1, 8, 8), (3, 12, 8), (2, 4, 20)):
        other = torch.randn(*sizes, 3)
        same(program(other), module(other))
    assert "int" not in globals()


def test_static_sizes_stay_numbers(traces: list[object]) -> None:
    x = torch.randn(2, 8, 8, 3)
    axes = {"x": {0: "batch"}}
    program = pt2onnx.export(Half(), (x,), dynamo=False, input_names=["x"], dynamic_axes=axes)
    assert program._capture_strategy == "TraceStrategy" and len(traces) == 1


def test_files_that_need_the_class() -> None:
    """The second trace fails, and other strategies follow."""
    x = torch.randn(2, 8, 8, 3)
    program = pt2onnx.export(Typed(), (x,), dynamo=False, input_names=["x"], dynamic_axes=AXES)
    assert program._capture_strategy != "TraceStrategy"
    other = torch.randn(2, 8, 12, 3)
    same(program(other), Typed()(other))
    assert "int" not in globals()


def test_the_class_in_place_of_int() -> None:
    with _ints.kept(Windows(), {}):
        kind: Any = globals()["int"]
        assert {int: 1}[kind] == 1 and issubclass(bool, kind)
        assert isinstance(3, kind) and not isinstance("3", kind)
        assert kind("11", 2) == 3 and kind.from_bytes(b"\x03", "big") == 3
        assert kind(torch.tensor(3.5)) == 3
    assert "int" not in globals()


class Power(nn.Module):
    """The number is 1 up to 69."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.pad(x, (0, 0, 0, int(1.01 ** x.shape[1])))


class Logarithm(nn.Module):
    """torch.export has no logarithms of sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x * math.log2(x.shape[1])
        return F.pad(scaled, (0, 0, 0, int(math.log2(x.shape[1]))))


class Exponential(nn.Module):
    """The branch changes at 110."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if math.exp(x.shape[1] / 100) < 3 else x


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("kind", [Power, Logarithm, Exponential])
def test_numbers_that_change_far_away(kind: type[nn.Module], dynamo: bool) -> None:
    """A trace computes them, or is not taken where the code decides by them."""
    module, x = kind().eval(), torch.randn(2, 6, 4)
    options: Any = {"dynamic_shapes": ({1: "t"},)}
    if not dynamo:
        options = {"dynamo": False, "input_names": ["x"], "dynamic_axes": {"x": {1: "t"}}}
    program = pt2onnx.export(module, (x,), **options)
    for size in (1, 2, 7, 8, 64, 69, 70, 100, 109, 110, 200, 256):
        x = torch.randn(2, size, 4)
        same(program(x), module(x))


class Levels(nn.Module):
    """As detectors choose levels of a pyramid."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if math.log2(x.shape[1]) > 2 else x * 3


def test_logarithms_of_static_sizes_refute_no_trace() -> None:
    x = torch.ones(2, 6)
    program = pt2onnx.export(Levels(), (x,), dynamo=False)
    assert program is not None and program._capture_strategy == "TraceStrategy"
    same(program(x), Levels()(x))
