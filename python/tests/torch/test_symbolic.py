"""Symbolic functions, which torch.onnx's exporter of TorchScript calls: with ``dynamo=False``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import Call, check, operators, same


class Suppress(torch.autograd.Function):
    """A node of a runtime. As usual for such functions, ``forward`` only makes results of the right
    sizes."""

    @staticmethod
    def forward(
        ctx: Any, boxes: torch.Tensor, scores: torch.Tensor, limit: int = 5, threshold: float = 0.5
    ) -> Any:
        batch = boxes.shape[0]
        return torch.zeros(batch, 1, dtype=torch.int32), torch.randn(batch, limit, 4)

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, limit: int = 5, threshold: float = 0.5) -> Any:
        return g.op(
            "TRT::Suppress",
            boxes,
            scores,
            limit_i=limit,
            threshold_f=threshold,
            kind_s="fast",
            outputs=2,
        )


class Scaled(torch.autograd.Function):
    """Has another formula than ``forward``, with the same results."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, by: float) -> torch.Tensor:
        return torch.maximum(x, torch.zeros(())) * by

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None

    @staticmethod
    def symbolic(g: Any, x: Any, by: float) -> Any:
        assert (
            x.type().scalarType() == "Float"
            and x.type().sizes() in ([None, 3], [2, 3])
            and x.type().dim() == 2
        )
        return g.op("Mul", g.op("Relu", x), g.op("Constant", value_t=torch.tensor(by))).setType(
            x.type()
        )


class Broken(Scaled):
    @staticmethod
    def symbolic(g: Any, x: Any, by: float) -> Any:
        raise RuntimeError("no such form")


class Detector(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return Suppress.apply(x[..., :4], x[..., 4:] * 2, 7, 0.25)


def test_nodes_of_runtimes() -> None:
    args, options = (
        (torch.rand(2, 30, 9),),
        {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}},
    )
    program = pt2onnx.export(
        Detector().eval(),
        args,
        output_names=["count", "boxes"],
        dynamo=False,
        opset_version=12,
        **options,
    )
    (node,) = [node for node in program.model_proto.graph.node if node.domain == "TRT"]
    found = {
        a.name: a.s.decode() or a.i or a.f
        for a in node.attribute
        if a.name in ("limit", "threshold", "kind")
    }
    assert found == {"limit": 7, "threshold": 0.25, "kind": "fast"}
    shapes = [
        [d.dim_param or d.dim_value for d in o.type.tensor_type.shape.dim]
        for o in program.model_proto.graph.output
    ]
    assert shapes == [["batch", 1], ["batch", 7, 4]]


def test_nodes_of_onnx() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return Scaled.apply(Scaled.apply(self.linear(x), 2.0), 3.0)

    model, x = Net().eval(), torch.randn(2, 3)
    axes = {"x": {0: "batch"}}
    program = check(
        model,
        (x,),
        others=[(torch.randn(5, 3),)],
        dynamo=False,
        input_names=["x"],
        dynamic_axes=axes,
        optimize=False,
    )
    assert operators(program).count("Relu") == 2
    # The function is as it was.
    model(x).sum().backward()
    assert model.linear.weight.grad is not None
    assert "Relu" not in operators(pt2onnx.export(model, (x,), optimize=False))


class Read(torch.nn.Module):
    """Reads a number, so that torch.export does not capture it."""

    def forward(self, x: torch.Tensor) -> Any:
        count = int((x.sum() * 0).item()) + 1
        scaled = Scaled.apply(x[:, 0, :3] * 2, 0.5)
        return [*Suppress.apply(x[..., :4], x[..., 4:], 7, 0.25), scaled] * count


def test_traces() -> None:
    """A trace has no types of results: they are known without dynamic sizes only."""
    x = torch.rand(2, 3, 9)
    program = pt2onnx.export(Read().eval(), (x,), dynamo=False, optimize=False)
    assert [o for o in operators(program) if o in ("Suppress", "Relu")] == ["Relu", "Suppress"]
    shapes = [
        [d.dim_value for d in o.type.tensor_type.shape.dim]
        for o in program.model_proto.graph.output
    ]
    assert shapes == [[2, 1], [2, 7, 4], [2, 3]]
    axes = {"x": {0: "batch"}}
    program = pt2onnx.export(
        Read().eval(), (x,), dynamo=False, input_names=["x"], dynamic_axes=axes
    )
    assert [node.domain for node in program.model_proto.graph.node].count("TRT") == 1
    shapes = [
        [d.dim_param or d.dim_value for d in o.type.tensor_type.shape.dim]
        for o in program.model_proto.graph.output
    ]
    assert shapes[2] == ["batch", 3]


class Older(torch.autograd.Function):
    """Emits operators in the form of older opsets."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x[None, :, 1:].clamp(-1, 1), x, x.topk(2).values

    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        part = g.op("Slice", x, axes_i=[1], starts_i=[1], ends_i=[100])
        top, _ = g.op("TopK", x, k_i=2, axis_i=-1, outputs=2)
        return g.op("Clip", g.op("Unsqueeze", part, axes_i=[0]), min_f=-1.0, max_f=1.0), x, top


older = Older.apply


@pytest.mark.parametrize("opset", [9, 11, 18])
def test_older_forms(opset: int) -> None:
    """The method ``apply`` may be held by the module."""
    check(Call(lambda x: older(x * 2)), (torch.randn(2, 3),), dynamo=False, opset_version=opset)


def test_errors_of_symbolic_functions() -> None:
    """They are errors of the export, also where it could do without."""
    with pytest.raises(pt2onnx.ConversionError, match="no such form"):
        pt2onnx.export(Call(lambda x: Broken.apply(x, 2.0)), (torch.randn(2, 3),), dynamo=False)


@pytest.fixture
def registered() -> Iterator[Any]:
    """Registers symbolic functions for the time of a test."""
    names = []

    def register(name: str, function: Any, opset: int) -> None:
        torch.onnx.register_custom_op_symbolic(name, function, opset)
        names.append((name, opset))

    yield register
    for name, opset in names:
        torch.onnx.unregister_custom_op_symbolic(name, opset)


def test_registered_functions(registered: Any) -> None:
    from torch.onnx import symbolic_helper

    @torch.library.custom_op(
        "symbolictest::scale", mutates_args=(), schema="(Tensor x, float by, int[] more) -> Tensor"
    )
    def scale(x: torch.Tensor, by: float, more: list[int]) -> torch.Tensor:
        return x * by + sum(more)

    @scale.register_fake
    def _(x: torch.Tensor, by: float, more: list[int]) -> torch.Tensor:
        return torch.empty_like(x)

    @symbolic_helper.parse_args("v", "f", "is")
    def symbolic(g: Any, x: Any, by: float, more: list[int]) -> Any:
        return g.op("my::Scale", x, by_f=by, more_i=more)

    registered("symbolictest::scale", symbolic, 9)
    registered(
        "symbolictest::scale",
        lambda g, x, by, more: g.op("Mul", x, g.op("Constant", value_t=torch.tensor(by))),
        15,
    )
    model, x = Call(lambda x: torch.ops.symbolictest.scale(x, 0.5, [0, 0])), torch.randn(2, 3)
    program = pt2onnx.export(model, (x,), dynamo=False, opset_version=13, custom_opsets={"my": 2})
    assert operators(program) == ["Scale"]
    assert {o.domain: o.version for o in program.model_proto.opset_import} == {"": 13, "my": 2}
    check(model, (x,), dynamo=False, opset_version=15)
    # A translation that is given for one export wins.
    table = {torch.ops.symbolictest.scale.default: lambda cx, x, by, more: cx.neg(x)}
    same(pt2onnx.export(model, (x,), dynamo=False, custom_translation_table=table)(x), -x)
    with pytest.raises(pt2onnx.UnsupportedOperatorError):
        pt2onnx.export(model, (x,))


@pytest.mark.parametrize(
    ("name", "count", "function"),
    [
        ("aten::gelu", 2, torch.nn.functional.gelu),
        ("aten::hardtanh", 3, torch.nn.functional.hardtanh),
        ("aten::layer_norm", 6, lambda x: torch.nn.functional.layer_norm(x, (3,))),
        ("aten::softmax", 3, lambda x: x.softmax(-1)),
        ("aten::sum", 2, lambda x: x.sum()),
        ("aten::to", 5, lambda x: x.to(torch.float64)),
    ],
)
def test_registered_functions_get_all_arguments(
    name: str, count: int, function: Any, registered: Any
) -> None:
    counts: list[int] = []

    def symbolic(g: Any, x: Any, *rest: Any) -> Any:
        counts.append(1 + len(rest))
        return g.op("my::Op", x)

    registered(name, symbolic, 16)
    model = Call(function)
    for shapes in (None, (({0: "n"},),)):
        counts.clear()
        program = pt2onnx.export(
            model, (torch.randn(2, 3),), dynamo=False, opset_version=16, dynamic_shapes=shapes
        )
        assert operators(program) == ["Op"]
        assert set(counts) == {count}


def test_registered_functions_that_cannot_be_used(registered: Any) -> None:
    """An op that the model has no node for, and a function that fails."""
    registered("aten::size", lambda g, *args: g.op("my::Size", args[0]), 16)
    with pytest.raises(pt2onnx.UnsupportedOperatorError, match=r"for aten::size cannot be used"):
        pt2onnx.export(Call(lambda x: x * x.size(0)), (torch.randn(2, 3),), dynamo=False)
    # It does not matter to other models.
    check(Call(lambda x: x * 2), (torch.randn(2, 3),), dynamo=False)
    registered("aten::silu", lambda g, x: x.unknown(), 16)
    with pytest.raises(pt2onnx.UnsupportedOperatorError, match="unknown"):
        pt2onnx.export(Call(torch.nn.functional.silu), (torch.randn(2, 3),), dynamo=False)


class Scripted(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        first, second = torch.ops.symbolictest.halves(x, 1)
        return [first * 2, second.sum(1)]


def test_registered_functions_in_scripts(registered: Any) -> None:
    """An archive has no schemas. A symbolic function has what PyTorch knows of its op, a
    translation by name has not."""

    @torch.library.custom_op("symbolictest::halves", mutates_args=())
    def halves(x: torch.Tensor, at: int) -> list[torch.Tensor]:
        return [x[:, :at].clone(), x[:, at:].clone()]

    def part(g: Any, x: Any, start: int, end: int) -> Any:
        return g.op("Slice", x, axes_i=[1], starts_i=[start], ends_i=[end])

    script, x = torch.jit.script(Scripted()), torch.randn(2, 3)
    options: dict[str, Any] = {"dynamo": False, "input_names": ["x"], "dynamic_axes": {"x": [0]}}
    with pytest.raises(pt2onnx.UnsupportedOperatorError, match="symbolictest::halves"):
        pt2onnx.export(script, (x,), **options)

    def translate(cx, x, at):
        return (cx.slice(x, [0], [at], [1]), cx.slice(x, [at], [9], [1]))

    for op in (torch.ops.symbolictest.halves, "symbolictest::halves"):
        check(
            script,
            (x,),
            others=[(torch.randn(5, 3),)],
            custom_translation_table={op: translate},
            **options,
        )
    pt2onnx.translation(torch.ops.symbolictest.halves)(
        lambda cx, x, at: tuple(-part for part in translate(cx, x, at))
    )
    same(pt2onnx.export(script, (x,), **options)(x)[0], -2 * x[:, :1])
    registered("symbolictest::halves", lambda g, x, at: (part(g, x, 0, at), part(g, x, at, 9)), 9)
    check(script, (x,), others=[(torch.randn(5, 3),)], **options)


def test_registered_functions_for_ops_of_pytorch(registered: Any) -> None:
    registered("::hardswish", lambda g, x: g.op("Relu", x), 9)
    x = torch.randn(2, 3)
    same(pt2onnx.export(Call(torch.nn.functional.hardswish), (x,), dynamo=False)(x), x.relu())
    check(Call(torch.nn.functional.hardswish), (x,))
