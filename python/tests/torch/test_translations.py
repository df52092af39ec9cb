"""Translations of ops: ``custom_translation_table`` with ONNX Script's functions, and
``@pt2onnx.translation``."""

from __future__ import annotations

from typing import Any

import onnxscript
import pt2onnx
import pytest
import torch
from helpers import Call, check, operators, same
from onnxscript import FLOAT, INT64, opset18, opset20


@torch.library.custom_op("pytests::mix", mutates_args=())
def mix(x: torch.Tensor, y: torch.Tensor, weight: float = 0.5) -> torch.Tensor:
    return x * weight + y * (1 - weight)


@mix.register_fake
def _(x: torch.Tensor, y: torch.Tensor, weight: float = 0.5) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("pytests::ends", mutates_args=())
def ends(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.amin(-1), x.amax(-1)


@ends.register_fake
def _(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.new_empty(x.shape[:-1]), x.new_empty(x.shape[:-1])


class Mix(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.pytests.mix(x, y) + torch.ops.pytests.mix(x, y, 0.25)


ARGS = torch.randn(2, 3), torch.randn(2, 3)


def plain_mix(x, y, weight: float = 0.5):
    return opset18.Add(opset18.Mul(x, weight), opset18.Mul(y, 1 - weight))


def test_no_translation() -> None:
    with pytest.raises(pt2onnx.UnsupportedOperatorError) as caught:
        pt2onnx.export(Mix(), ARGS)
    assert {failure["op"] for failure in caught.value.failures} == {"pytests::mix"}
    assert isinstance(caught.value, torch.onnx.OnnxExporterError)


@pytest.mark.parametrize(
    "op",
    [
        "pytests::mix",
        "pytests::mix.default",
        torch.ops.pytests.mix.default,
        torch.ops.pytests.mix,
        mix,
    ],
    ids=["name", "overload's name", "overload", "packet", "CustomOpDef"],
)
def test_names_of_ops(op: Any) -> None:
    check(Mix(), ARGS, custom_translation_table={op: plain_mix})


@pytest.mark.parametrize("opset", [opset18, opset20], ids=["18", "20"])
def test_scripted_function(opset: Any) -> None:
    @onnxscript.script(default_opset=opset)
    def scripted(x, y, weight: float = 0.5):
        return opset.Add(opset.Mul(x, weight), opset.Mul(y, 1.0 - weight))

    program = check(Mix(), ARGS, custom_translation_table={torch.ops.pytests.mix.default: scripted})
    # Inlined.
    assert len(program.model_proto.functions) == 0


@onnxscript.script(default_opset=opset18)
def choosing(x, y, weight: float = 0.5):
    if opset18.ReduceSum(x, keepdims=0) > 0.0:
        result = x * weight + y * (1.0 - weight)
    else:
        result = y * (1.0 - weight) - x * weight
    return result


@onnxscript.script(default_opset=opset18)
def calling(x, y, weight: float = 0.5):
    return choosing(x, y, weight) + 1.0


@pytest.mark.parametrize(("function", "more"), [(choosing, 0.0), (calling, 1.0)])
def test_scripted_function_with_control_flow(function: Any, more: float) -> None:
    """Its branches become those of an ``If`` of the model."""
    program = pt2onnx.export(
        Mix(), ARGS, custom_translation_table={torch.ops.pytests.mix.default: function}
    )
    assert len(program.model_proto.functions) == 0
    assert "If" in [node.op_type for node in program.model_proto.graph.node]
    x, y = (argument.abs() for argument in ARGS)
    for first in (x, -x):
        same(program(first, y), Mix()(x, y) + 2 * more)


def test_scripted_function_that_calls_another() -> None:
    @onnxscript.script(default_opset=opset18)
    def half(x):
        return x * 0.5

    @onnxscript.script(default_opset=opset18)
    def scripted(x):
        return half(x) + half(x) + 1.0

    program = pt2onnx.export(
        Call(torch.relu),
        (ARGS[0],),
        custom_translation_table={torch.ops.aten.relu.default: scripted},
    )
    same(program(ARGS[0]), ARGS[0] + 1)


def test_operators_of_values() -> None:
    """Arithmetic on ONNX Script's values."""

    def arithmetic(x, y, weight: float = 0.5):
        return x * weight + (1 - weight) * y

    check(Mix(), ARGS, custom_translation_table={torch.ops.pytests.mix.default: arithmetic})


def test_several_results() -> None:
    def both(x):
        return opset18.ReduceMin(x, [-1], keepdims=0), opset18.ReduceMax(x, [-1], keepdims=0)

    check(
        Call(lambda x: torch.ops.pytests.ends(x)),
        (ARGS[0],),
        custom_translation_table={torch.ops.pytests.ends.default: both},
    )


def test_several_operators_with_results() -> None:
    def both(x):
        values, _ = opset18.TopK(x, opset18.Constant(value_ints=[1]), axis=-1, largest=0)
        return opset18.Squeeze(values, [-1]), opset18.ReduceMax(x, [-1], keepdims=0)

    check(
        Call(lambda x: torch.ops.pytests.ends(x)),
        (ARGS[0],),
        custom_translation_table={torch.ops.pytests.ends.default: both},
    )


def test_overloads_by_type() -> None:
    """The function of a list whose annotations fit the arguments is called."""

    def of_floats(x: FLOAT[...], y: FLOAT[...], weight: float = 0.5):
        return plain_mix(x, y, weight)

    def of_ints(x: INT64[...], y: INT64[...], weight: float = 0.5):
        raise AssertionError("the wrong overload")

    check(
        Mix(), ARGS, custom_translation_table={torch.ops.pytests.mix.default: [of_ints, of_floats]}
    )


def test_built_in_op() -> None:
    """A translation in place of a built-in one, for one export only."""
    model, x = Call(lambda x: torch.relu(x) + 1), torch.randn(3)
    table = {torch.ops.aten.relu.default: lambda x: opset18.Sigmoid(x)}
    same(pt2onnx.export(model, (x,), custom_translation_table=table)(x), x.sigmoid() + 1)
    same(pt2onnx.export(model, (x,))(x), x.relu() + 1)


def test_shapes_and_types_of_arguments() -> None:
    seen = []

    def annotated(x, y, weight: float = 0.5):
        seen.append((x.dtype, list(x.shape), x.shape[0], len(x.shape)))
        return plain_mix(x, y, weight)

    program = pt2onnx.export(
        Mix(), ARGS, custom_translation_table={torch.ops.pytests.mix.default: annotated}
    )
    same(program(*ARGS), Mix()(*ARGS))
    assert int(seen[0][0]) == 1
    assert [int(size) for size in seen[0][1]] == [2, 3]


def test_dynamic_shapes() -> None:
    def annotated(x, y, weight: float = 0.5):
        shape = opset18.Shape(x)
        return opset18.Reshape(plain_mix(x, y, weight), shape)

    check(
        Mix(),
        ARGS,
        custom_translation_table={torch.ops.pytests.mix.default: annotated},
        dynamic_shapes={"x": {0: "n"}, "y": {0: "n"}},
        others=[(torch.randn(7, 3), torch.randn(7, 3))],
    )


def test_python_operators() -> None:
    """Operators on sizes."""
    import operator

    model = Call(lambda x: x.reshape(x.shape[0] * 3))
    table = {operator.mul: lambda a, b: opset18.Mul(a, b)}
    check(
        model,
        (torch.randn(2, 3),),
        dynamic_shapes=(({0: "n"},),),
        others=[(torch.randn(5, 3),)],
        custom_translation_table=table,
    )


def test_wrong_tables() -> None:
    for table in ({torch.ops.aten.relu.default: 3}, {3: plain_mix}, {"relu": plain_mix}):
        with pytest.raises(TypeError):
            pt2onnx.export(Mix(), ARGS, custom_translation_table=table)


def test_errors() -> None:
    def raising(x, y, weight: float = 0.5):
        raise KeyError("what is wrong")

    with pytest.raises(pt2onnx.ConversionError) as caught:
        pt2onnx.export(
            Mix(), ARGS, custom_translation_table={torch.ops.pytests.mix.default: raising}
        )
    assert "what is wrong" in str(caught.value)
    assert "test_translations.py" in str(caught.value)


def test_decorator() -> None:
    @pt2onnx.translation(torch.ops.pytests.mix.default)
    def translated(cx, x, y, weight=0.5):
        assert x.dtype == "float32" and x.shape == (2, 3)
        return cx.add(cx.mul(x, weight), y * (1 - weight))

    program = check(Mix(), ARGS)
    assert set(operators(program)) <= {"Add", "Mul"}
    check(Mix(), ARGS, opset_version=13)


def test_decorator_in_a_table() -> None:
    table = {
        torch.ops.pytests.mix.default: lambda cx, x, y, weight=0.5: cx.add(
            x * weight, y * (1 - weight)
        )
    }
    check(Mix(), ARGS, custom_translation_table=table)


def test_table_before_decorator() -> None:
    pt2onnx.translation("pytests::mix")(lambda cx, x, y, weight=0.5: x)
    check(Mix(), ARGS, custom_translation_table={"pytests::mix": plain_mix})


def test_element_types_as_arguments() -> None:
    """``dtype=`` of an op."""
    seen = []

    @pt2onnx.translation("aten::_to_copy")
    def to_copy(cx, x, dtype=None, **_):
        seen.append(dtype)
        return cx.cast(x, dtype)

    @pt2onnx.translation("aten::to.dtype")
    def to_dtype(cx, x, dtype, *_, **__):
        seen.append(dtype)
        return cx.cast(x, dtype)

    check(Call(lambda x: x.to(torch.float16)), (torch.randn(3),))
    assert seen == ["float16"]


def test_registry() -> None:
    """``compat.OnnxRegistry``."""
    registry = pt2onnx.compat.OnnxRegistry()
    assert registry.is_registered_op("aten", "add", "Tensor")
    assert not registry.is_registered_op("pytests", "mix")
    registry.register_op(plain_mix, "pytests", "mix")
    assert registry.get_op_functions("pytests", "mix") == [plain_mix]
    options = pt2onnx.compat.ExportOptions(onnx_registry=registry, dynamic_shapes=True)
    program = pt2onnx.compat.dynamo_export(Mix(), *ARGS, export_options=options)
    other = torch.randn(6, 3), torch.randn(6, 3)
    same(program(*other), Mix()(*other))
