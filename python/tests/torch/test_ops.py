"""Captures with a rule each: recurrent modules, ONNX's ops, code that asks whether it is exported,
training mode."""

from __future__ import annotations

import warnings
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import Call, check, operators, same, since

KINDS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_with_dynamic_time(kind: str, batch_first: bool) -> None:
    model = KINDS[kind](3, 4, batch_first=batch_first)
    shape = {0: "batch", 1: "time"} if batch_first else {0: "time", 1: "batch"}
    program = check(
        model,
        (torch.randn(5, 2, 3),),
        dynamic_shapes=(shape,),
        others=[(torch.randn(7, 3, 3),), (torch.randn(1, 1, 3),)],
    )
    assert operators(program).count(kind) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 2},
        {"bidirectional": True},
        {"bias": False},
        {"num_layers": 2, "bidirectional": True, "dropout": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_options(kind: str, options: dict[str, Any]) -> None:
    model = KINDS[kind](3, 4, **options)
    check(
        model,
        (torch.randn(5, 2, 3),),
        dynamic_shapes=({0: "time", 1: "batch"},),
        others=[(torch.randn(2, 3, 3),)],
    )


def test_recurrent_states() -> None:
    states = tuple(torch.randn(1, 2, 4) for _ in range(2))
    other = tuple(torch.randn(1, 3, 4) for _ in range(2))
    check(
        torch.nn.LSTM(3, 4),
        (torch.randn(5, 2, 3), states),
        dynamic_shapes=({0: "time", 1: "batch"}, ({1: "batch"}, {1: "batch"})),
        others=[(torch.randn(9, 3, 3), other)],
    )
    check(
        torch.nn.LSTM(3, 6, proj_size=2),
        (torch.randn(5, 2, 3),),
        dynamic_shapes=({0: "time"},),
        others=[(torch.randn(2, 2, 3),)],
    )
    check(
        torch.nn.RNN(3, 4, nonlinearity="relu"),
        (torch.randn(5, 2, 3),),
        dynamic_shapes=({0: "time"},),
        others=[(torch.randn(2, 2, 3),)],
    )


def test_recurrent_cells() -> None:
    check(
        torch.nn.LSTMCell(3, 4),
        (torch.randn(2, 3),),
        dynamic_shapes=({0: "batch"},),
        others=[(torch.randn(5, 3),)],
    )
    check(torch.nn.GRUCell(3, 4), (torch.randn(2, 3),))


def test_recurrent_fixed() -> None:
    for kind in KINDS.values():
        check(kind(3, 4), (torch.randn(5, 2, 3),))


def test_is_in_onnx_export() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + (1 if torch.onnx.is_in_onnx_export() else 100)

    x = torch.randn(2)
    same(pt2onnx.export(Call(function), (x,))(x), x + 1)
    assert not torch.onnx.is_in_onnx_export()
    with pytest.raises(pt2onnx.OnnxExporterError):
        pt2onnx.export(Call(lambda x: None.missing), (x,))
    assert not torch.onnx.is_in_onnx_export()


def test_training_warns_once() -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4)
    )
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pt2onnx.export(model, (torch.randn(2, 4),))
    assert [str(w.message)[:51] for w in seen if "training" in str(w.message)] == [
        "Exporting a model while it is in training mode. Ple"
    ]
    assert [w.filename for w in seen if "training" in str(w.message)] == [__file__]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pt2onnx.export(model.eval(), (torch.randn(2, 4),))
    assert [str(w.message) for w in seen] == []


@pytest.mark.filterwarnings("ignore:.*training mode")
@pytest.mark.filterwarnings("ignore:the program writes")
def test_training_options() -> None:
    model, x = (
        torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).train(),
        torch.randn(2, 4),
    )
    program = pt2onnx.export(model, (x,), training="eval")
    same(program(x), model.eval()(x))
    with pytest.raises(pt2onnx.OnnxExporterError):
        pt2onnx.export(model.train(), (x,), training="error")
    pt2onnx.export(model.train(), (x,), training=torch.onnx.TrainingMode.EVAL)


@since(2, 10)
@pytest.mark.parametrize("opset", [20, 23, 24])
def test_rotary_embedding(opset: int) -> None:
    x, cos, sin, positions = (
        torch.randn(2, 4, 3, 8),
        torch.randn(10, 4),
        torch.randn(10, 4),
        torch.arange(3).repeat(2, 1),
    )
    model = Call(lambda x, c, s, p: torch.onnx.ops.rotary_embedding(x, c, s, p))
    program = check(model, (x, cos, sin, positions), opset_version=opset)
    assert ("RotaryEmbedding" in operators(program)) == (opset >= 23)


@since(2, 8)
@pytest.mark.parametrize("opset", [20, 23, 24])
def test_attention(opset: int) -> None:
    model = Call(lambda q, k, v: torch.onnx.ops.attention(q, k, v)[0])
    program = check(model, tuple(torch.randn(2, 4, 3, 8) for _ in range(3)), opset_version=opset)
    assert ("Attention" in operators(program)) == (opset >= 23)


@since(2, 8)
def test_symbolic() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        gelu = torch.onnx.ops.symbolic(
            "Gelu", (x,), attrs={"approximate": "tanh"}, dtype=x.dtype, shape=x.shape
        )
        top, _ = torch.onnx.ops.symbolic_multi_out(
            "TopK",
            (gelu, torch.tensor([2])),
            attrs={"axis": -1},
            dtypes=(x.dtype, torch.int64),
            shapes=((2, 2), (2, 2)),
        )
        return top

    x = torch.randn(2, 3)
    program = pt2onnx.export(Call(function), (x,))
    same(program(x), torch.nn.functional.gelu(x, approximate="tanh").topk(2).values)


@since(2, 8)
def test_symbolic_with_dynamic_sizes() -> None:
    """The sizes of several results may be dynamic."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shapes = ((x.shape[0], 2), (x.shape[0], 2))
        one, two = torch.onnx.ops.symbolic_multi_out(
            "TopK", (x, torch.tensor([2])), dtypes=(x.dtype, torch.int64), shapes=shapes
        )
        return one, two

    program = pt2onnx.export(Call(function), (torch.randn(2, 3),), dynamic_shapes=(({0: "n"},),))
    x = torch.randn(5, 3)
    same(program(x), tuple(x.topk(2)))


@since(2, 8)
def test_symbolic_of_another_domain() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.symbolic(
            "my.domain::Foo", (x,), attrs={"a": 1}, dtype=x.dtype, shape=x.shape, version=3
        )

    proto = pt2onnx.export(Call(function), (torch.randn(2, 3),)).model_proto
    assert [(n.domain, n.op_type) for n in proto.graph.node] == [("my.domain", "Foo")]
    assert {o.domain: o.version for o in proto.opset_import}["my.domain"] == 3
