"""dynamo=False: code that runs as often as a dynamic size decides."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import same, since
from pt2onnx._capture import _strategies, _trace

AXES = {"x": {0: "batch"}}


class Rows(torch.nn.Module):
    """A loop over the batch, which TorchScript knows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows: list[torch.Tensor] = []
        for i in range(x.shape[0]):
            rows.append(self.linear(x[i]) * i)
        return torch.stack(rows)


class Unscriptable(Rows):
    """A loop over the batch, which TorchScript does not know."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        import math

        return torch.stack([self.linear(x[i]) * math.cos(i) for i in range(x.shape[0])])


class Suppressed(torch.nn.Module):
    """Boxes of each image are suppressed, up to a number of images that has no effect on sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torchvision.ops import nms

        found = x.new_zeros(x.shape[0], 3)
        for i in range(x.shape[0]):
            corner = x[i, :, :2].abs()
            boxes = torch.cat([corner, corner + 1 + x[i, :, 2:].abs()], dim=1)
            kept = nms(boxes, x[i, :, 0], 0.5)[:3]
            found[i] = torch.nn.functional.pad(x[i, kept, 0], [0, 3 - kept.shape[0]])
        return found


class Padded(torch.nn.Module):
    """One image, whose batched suppression has another formula while it is traced: a loop over the
    kinds otherwise."""

    def __init__(self, kinds: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.kinds = kinds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torchvision.ops import batched_nms

        corner = (x[:, :2] * 4).round()
        boxes = torch.cat([corner, corner + 2], dim=1)
        kept = batched_nms(boxes, torch.ones_like(x[:, 0]), self.kinds(x), 0.5)
        return boxes[kept].sum(0)


def exported(
    module: torch.nn.Module, x: torch.Tensor, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[pt2onnx.ONNXProgram, list[str]]:
    """The model and its warnings. torch.export is not used."""

    def fails(*_: Any, **__: Any) -> Any:
        raise AssertionError("torch.export has no such sizes")

    monkeypatch.setattr(_strategies._torch_export, "capture", fails)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        program = pt2onnx.export(
            module.eval(), (x,), dynamo=False, input_names=["x"], dynamic_axes=AXES, **options
        )
    return program, [str(one.message) for one in seen]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Gets an entry for each trace."""
    traces: list[object] = []
    once = _trace._trace_once

    def count(*args: Any) -> Any:
        traces.append(args)
        return once(*args)

    monkeypatch.setattr(_trace, "_trace_once", count)
    return traces


@pytest.mark.parametrize("batch", [1, 3])
def test_loops_become_loops(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = Rows()
    program, notes = exported(module, torch.rand(batch, 4), monkeypatch)
    assert program._capture_strategy == "ScriptStrategy" and not notes
    for size in (1, 2, 5):
        x = torch.rand(size, 4)
        same(program(x), module(x))


def test_loops_that_stay_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    program, notes = exported(Unscriptable(), torch.rand(3, 4), monkeypatch, sizes="warn")
    assert program._capture_strategy == "LenientTraceStrategy"
    assert len(notes) == 1 and "as often as a size of the example decides" in notes[0]
    assert "test_loops.py:" in notes[0]


@since(2, 8)
def test_loops_of_several_sizes() -> None:
    """Each capture by torch.export has another loop, and the model fails at other sizes."""
    module = Unscriptable().eval()
    options: Any = {"dynamo": False, "input_names": ["x"], "dynamic_axes": AXES}
    with pytest.warns(UserWarning, match="The model fails at sizes .* such as batch="):
        program = pt2onnx.export(module, (torch.rand(3, 4),), max_regions=3, **options)
    right = [size for size in range(1, 9) if _is_right(program, module, torch.rand(size, 4))]
    assert 3 in right and len(right) == 3


def _is_right(program: pt2onnx.ONNXProgram, module: torch.nn.Module, x: torch.Tensor) -> bool:
    """Whether a model has these sizes. It must be right there, and fail with the reason else."""
    try:
        found = program(x)
    except Exception as error:
        assert "the model has no branch for these sizes of batch" in str(error)
        return False
    same(found, module(x))
    return True


def test_suppression_for_each_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of another batch have the right sizes, but those of one image are zeros."""
    pytest.importorskip("torchvision")
    traces = counted(monkeypatch)
    program, notes = exported(Suppressed(), torch.randn(1, 9, 4), monkeypatch)
    assert len(traces) == 1
    assert program._capture_strategy == "LenientTraceStrategy"
    assert len(notes) == 1 and "as often as a size of the example decides" in notes[0]


@pytest.mark.parametrize(
    "kinds", [lambda x: (x[:, 2] > 0).long(), lambda x: torch.arange(x.shape[0]) // 100]
)
def test_suppression_by_another_formula(kinds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is compared with the module while it is traced. The loop is not in the trace."""
    pytest.importorskip("torchvision")
    program, notes = exported(Padded(kinds), torch.rand(3000, 4), monkeypatch)
    assert program._capture_strategy == "TraceStrategy" and not notes
