"""Needs of the exports of libraries: names of axes of outputs, bare inputs and outputs, sizes as
tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import Call, dims, same
from pt2onnx._capture import _torch_export
from torch.onnx import operators


class Decoder(torch.nn.Module):
    """A step of a decoder: the keys so far and the new ones."""

    def forward(self, x: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> Any:
        keys = torch.cat([past, x * 2], dim=1)
        return (x @ keys.mT + mask[:, None]).softmax(-1) @ keys, keys, x.sum((0, 1))


ARGS = torch.rand(2, 3, 4), torch.rand(2, 5, 4), torch.rand(2, 8)
AXES = {
    "x": {0: "batch", 1: "length"},
    "past": {0: "batch", 1: "past"},
    "mask": {0: "batch", 1: "past + length"},
}
OUTPUTS = {"y": {0: "batch", 1: "length"}, "keys": {0: "batch", 1: "past + length"}}


def decoder(model: Any, **options: Any) -> pt2onnx.ONNXProgram:
    return pt2onnx.export(
        model,
        ARGS,
        input_names=list(AXES),
        output_names=["y", "keys", "sum"],
        **{"dynamo": False, "dynamic_axes": {**AXES, **OUTPUTS}, **options},
    )


@pytest.mark.parametrize("kind", ["trace", "script", "export"])
def test_names_of_axes_of_outputs(kind: str) -> None:
    model = torch.jit.script(Decoder()) if kind == "script" else Decoder()
    program = decoder(model, **({"dynamo": True} if kind == "export" else {}))
    found = dims(program)
    assert found["y"] == ["batch", "length", 4]
    assert found["keys"] == ["batch", "past + length", 4]
    if kind != "export":
        assert found["mask"] == ["batch", "past + length"]
    for batch, length, past in ((1, 1, 2), (3, 2, 7)):
        args = torch.rand(batch, length, 4), torch.rand(batch, past, 4)
        mask = torch.rand(batch, past + length)
        same(program(*args, mask), Decoder()(*args, mask))


def test_sizes_of_expressions_follow_from_others() -> None:
    """The trace is compared at other sizes, and verify runs there."""
    program = decoder(Decoder().eval(), verify=True)
    assert program._capture_strategy == "TraceStrategy"
    assert program.verification is not None
    assert program.verification.ok
    inputs = {output.inputs for output in program.verification.outputs}
    assert len(inputs) == 2, "compared at the given sizes, and at others"
    assert not program.verification.notes


def test_names_of_static_axes_of_outputs() -> None:
    axes = {**AXES, **OUTPUTS, "sum": {0: "features", 3: "more"}}
    with pytest.warns(UserWarning) as seen:
        program = decoder(Decoder(), dynamic_axes=axes)
    text = "\n".join(str(warning.message) for warning in seen)
    assert "axis 0 of the output `sum` is 4 for all inputs, so it is not called `features`" in text
    assert "`sum` has 1 axes, so there is no axis 3" in text
    assert dims(program)["sum"] == [4]


def test_names_of_sizes_that_only_outputs_have() -> None:
    program = pt2onnx.export(
        Call(lambda x: ((x > 0.5).nonzero(), x + 1)),
        (torch.rand(3, 4),),
        dynamo=False,
        input_names=["x"],
        output_names=["found", "y"],
        dynamic_axes={"x": {0: "rows"}, "found": {0: "count"}, "y": {0: "rows of y"}},
    )
    assert dims(program) == {"x": ["rows", 4], "found": ["count", 2], "y": ["rows of y", 4]}


def test_names_of_axes_stay_with_other_weights() -> None:
    linear = torch.nn.Linear(4, 4)
    program = pt2onnx.export(
        linear,
        (ARGS[0],),
        input_names=["x"],
        output_names=["y"],
        dynamic_shapes={"input": {0: "n"}},
        dynamic_axes={"y": {0: "m"}},
    )
    program.apply_weights({name: weight * 2 for name, weight in linear.state_dict().items()})
    assert dims(program)["y"] == ["m", 3, 4]


@pytest.mark.parametrize("kind", ["trace", "script", "export"])
def test_no_metadata_of_inputs_and_outputs(kind: str) -> None:
    def grown(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[i] * i for i in range(x.shape[0])])

    model: Any = Call(grown) if kind == "export" else Decoder()
    model = torch.jit.script(model) if kind == "script" else model
    args = ARGS[:1] if kind == "export" else ARGS
    proto = pt2onnx.export(model, args, dynamo=False).model_proto
    assert all(not value.metadata_props for value in (*proto.graph.input, *proto.graph.output))
    assert any(node.metadata_props for node in proto.graph.node)


def reshaped(x: torch.Tensor) -> Any:
    sizes = operators.shape_as_tensor(x)
    rows = torch.cat([sizes[:1], sizes[1:].prod().reshape(1)])
    return operators.reshape_from_tensor_shape(x * 2, rows), sizes


def inferred(x: torch.Tensor) -> torch.Tensor:
    sizes = torch._shape_as_tensor(x)
    return torch._reshape_from_tensor(x, torch.stack([sizes[0] * sizes[1], torch.tensor(-1)]))


def ranged(x: torch.Tensor) -> torch.Tensor:
    sizes = torch._shape_as_tensor(x)
    return x / sizes[-1] + torch.arange(sizes[1], device=x.device)[:, None] + sizes[0]


def scalar(x: torch.Tensor) -> Any:
    return torch._shape_as_tensor(x.sum()), x + 1


@pytest.mark.parametrize("function", [reshaped, inferred, ranged, scalar])
@pytest.mark.parametrize("strategy", ["trace", "script", "export", "strict"])
def test_sizes_as_tensors(
    function: Callable[..., Any], strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, other = torch.rand(2, 6, 4), torch.rand(3, 8, 4)
    if strategy == "strict":
        monkeypatch.setattr(_torch_export, "STRATEGIES", _torch_export.STRATEGIES[1:])
    model: Any = Call(function)
    if strategy in ("export", "strict"):
        shapes = {"args": ({0: "batch", 1: "length"},)}
        program = pt2onnx.export(model, (x,), dynamic_shapes=shapes)
    else:
        if strategy == "script":
            model = torch.jit.script(function)
        axes = {"x": {0: "batch", 1: "length"}}
        program = pt2onnx.export(model, (x,), dynamo=False, input_names=["x"], dynamic_axes=axes)
    for value in (x, other):
        same(program(value), function(value))
