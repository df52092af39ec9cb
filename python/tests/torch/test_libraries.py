"""Needs of the exports of libraries: names of axes of outputs, bare inputs and outputs, sizes as
tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pt2onnx
import pytest
import torch
from helpers import Call, dims, same
from onnx import helper
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
    names = {"input_names": ["a", "b", "c"][: len(args)], "output_names": ["d", "e", "f"]}
    if kind == "export":
        names["output_names"] = ["d"]
    for given in ({}, names):
        proto = pt2onnx.export(model, args, dynamo=False, **given).model_proto
        assert all(not value.metadata_props for value in (*proto.graph.input, *proto.graph.output))
        assert any(node.metadata_props for node in proto.graph.node)


class Generator(torch.nn.Module):
    """A decoder of two layers with the keys and values of text and of an encoder, as those of
    transformers are."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(11, 8)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 24) for _ in range(2))

    def forward(self, ids: torch.Tensor, encoded: torch.Tensor, past: Any = None) -> Any:
        x, present = self.embed(ids), []
        for at, layer in enumerate(self.layers):
            q, k, v = layer(x).chunk(3, -1)
            if past is None:
                cross = encoded.tanh(), encoded * 2
            else:
                k, v = torch.cat([past[at][0], k], 1), torch.cat([past[at][1], v], 1)
                cross = past[at][2:]
            mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool)
            mask = mask.tril(k.shape[1] - q.shape[1])
            x = x + torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
            x = x + torch.nn.functional.scaled_dot_product_attention(x, *cross)
            present.append((k, v, *(cross if past is None else ())))
        return {"logits": x @ self.embed.weight.T, "present": tuple(present)}


def past_names(prefix: str, kinds: str) -> list[str]:
    return [f"{prefix}.{layer}.{kind}" for layer in range(2) for kind in kinds.split()]


def generators() -> tuple[Generator, list[onnx.ModelProto]]:
    """A decoder, and its models without and with keys and values of the text before."""
    text, total = {0: "batch", 1: "length"}, {0: "batch", 1: "past + length"}
    encoded = {0: "batch", 1: "encoded"}
    model, models = Generator().eval(), list[onnx.ModelProto]()
    ids, states = torch.randint(0, 11, (2, 6)), torch.rand(2, 5, 8)
    past = tuple((*torch.rand(2, 2, 7, 8), *torch.rand(2, 2, 5, 8)) for _ in range(2))
    for given in (None, past):
        outputs = past_names("present", "k v" if given else "k v cross_k cross_v")
        inputs = past_names("past", "k v cross_k cross_v") if given else []
        axes = {"ids": text, "encoded": encoded, "logits": text}
        for name in (*inputs, *outputs):
            own = {0: "batch", 1: "past"} if name in inputs else total
            axes[name] = encoded if "cross" in name else own
        program = pt2onnx.export(
            model,
            ({"ids": ids, "encoded": states, **({"past": given} if given else {})},),
            dynamo=False,
            opset_version=17,
            input_names=["ids", "encoded", *inputs],
            output_names=["logits", *outputs],
            dynamic_axes=axes,
        )
        models.append(program.model_proto)
    return model, models


def test_names_of_nested_caches() -> None:
    _, (first, then) = generators()
    for proto in (first, then):
        found = {
            value.name: [
                axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim
            ]
            for value in (*proto.graph.input, *proto.graph.output)
        }
        assert found["logits"] == ["batch", "length", 11]
        assert found["present.1.v"] == ["batch", "past + length", 8]
    assert found["past.0.k"] == ["batch", "past", 8]
    assert found["past.0.cross_k"] == ["batch", "encoded", 8]
    assert "encoded" not in found, "an input that is not read"


def test_merged_decoders() -> None:
    """Both models as branches of an If, as optimum has them."""
    model, (first, then) = generators()
    interface = {value.name: value for value in first.graph.output}
    assert all(interface[value.name] == value for value in then.graph.output)
    cross = [name for name in interface if "cross" in name]
    for name in cross:
        empty = helper.make_tensor("empty", onnx.TensorProto.FLOAT, [0, 1, 8], [])
        then.graph.node.append(helper.make_node("Constant", [], [name], value=empty))
    branches = []
    for at, graph in enumerate((first.graph, then.graph)):
        for value in graph.initializer:
            value.name, old = f"{value.name}_{at}", value.name
            for node in graph.node:
                names = [value.name if name == old else name for name in node.input]
                node.input[:] = names
        outputs = list(interface.values())
        branches.append(helper.make_graph(graph.node, f"branch {at}", [], outputs))
    inputs = {value.name: value for graph in (first.graph, then.graph) for value in graph.input}
    chooses = helper.make_tensor_value_info("use_past", onnx.TensorProto.BOOL, [1])
    node = helper.make_node(
        "If", ["use_past"], list(interface), then_branch=branches[1], else_branch=branches[0]
    )
    weights = [*first.graph.initializer, *then.graph.initializer]
    graph = helper.make_graph(
        [node], "merged", [*inputs.values(), chooses], list(interface.values()), weights
    )
    merged = helper.make_model(graph, opset_imports=first.opset_import, ir_version=9)
    onnx.checker.check_model(merged)
    session = onnxruntime.InferenceSession(merged.SerializeToString())

    ids, states = torch.randint(0, 11, (1, 4)), torch.rand(1, 3, 8)
    past: Any = None
    for step in range(4):
        expected = model(ids, states, past)
        feeds = {
            name: np.zeros((1, 1, 8), np.float32)
            for name in past_names("past", "k v cross_k cross_v")
        }
        if past is not None:
            leaves = [leaf for layer in past for leaf in layer]
            feeds = dict(zip(feeds, (leaf.detach().numpy() for leaf in leaves), strict=True))
        feeds |= {"ids": ids.numpy(), "encoded": states.numpy(), "use_past": np.array([step > 0])}
        found = dict(zip(interface, session.run(None, feeds), strict=True))
        same(found["logits"], expected["logits"])
        same(found["present.1.v"], expected["present"][1][1])
        present = expected["present"]
        past = [
            (*layer[:2], *(layer[2:] if past is None else past[at][2:]))
            for at, layer in enumerate(present)
        ]
        ids = expected["logits"][:, -1:].argmax(-1)


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
