"""Calls of all forms: objects among the arguments, other names, numbers, written state."""

from __future__ import annotations

import collections
import dataclasses
import types
import typing
from typing import Any

import numpy as np
import pt2onnx
import pytest
import torch
from helpers import check, dims, same
from torch.export import Dim
from torch.utils import _pytree


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: Any = None


@dataclasses.dataclass
class Plain:
    first: Any


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


class Box:
    def __init__(self, first: torch.Tensor) -> None:
        self.first = first


class Named(typing.NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


torch.export.register_dataclass(Pair, serialized_type_name="test_calls.Pair")
# Without keys.
_pytree.register_pytree_node(Box, lambda box: ([box.first], None), lambda parts, _: Box(*parts))


class First(torch.nn.Module):
    def forward(self, held: Any, y: torch.Tensor) -> torch.Tensor:
        return held.first + y


class Objects(torch.nn.Module):
    """A result that torch.export does not take."""

    def forward(self, held: Any, y: torch.Tensor) -> Any:
        return types.SimpleNamespace(of=Plain(held.first + y), more=[y * 2, 3])


ONE, FIVE = torch.ones(2), torch.full((2,), 5.0)


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("kind", [Pair, Box])
def test_tensors_in_registered_objects_are_inputs(kind: Any, dynamo: bool) -> None:
    """Also in a trace, which is made where torch.export refuses a result."""
    program = pt2onnx.export(First().eval(), (kind(ONE), ONE), dynamo=dynamo)
    same(program(kind(FIVE), FIVE), FIVE * 2)
    program = pt2onnx.export(Objects().eval(), (kind(ONE), ONE), dynamo=dynamo, verify=True)
    assert program.verification is not None and program.verification.ok
    same(program(kind(FIVE), FIVE), [FIVE * 2, FIVE * 2, 3])


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize(
    "argument",
    [
        Plain(ONE),
        types.SimpleNamespace(first=[ONE]),
        collections.UserDict({"first": ONE}),
        Slotted(Plain({"x": ONE})),
        [Plain(ONE)],
        {1: {Plain: Plain(ONE)}},
        frozenset([ONE]),
        np.ones(2),
    ],
    ids=range(8),
)
def test_tensors_in_other_objects_are_refused(argument: Any, dynamo: bool) -> None:
    with pytest.raises(pt2onnx.TorchExportError, match=r"the argument `held.* would be constants"):
        pt2onnx.export(First().eval(), (argument, ONE), dynamo=dynamo)


@pytest.mark.parametrize("dynamo", [True, False])
def test_arguments_in_objects_are_left_alone(dynamo: bool) -> None:
    class Writes(torch.nn.Module):
        def forward(self, pair: Pair, y: torch.Tensor) -> torch.Tensor:
            pair.first.add_(1)
            return y + pair.first

    pair = Pair(torch.zeros(2))
    with pytest.warns(UserWarning, match="writes into the input"):
        pt2onnx.export(Writes().eval(), (pair, ONE), dynamo=dynamo, verify=True)
    assert pair.first.tolist() == [0, 0]


class Items(torch.nn.Module):
    def forward(self, args_0: torch.Tensor, *args: torch.Tensor) -> Any:
        return args_0 * 2, args[0] * 3


class Keyword(torch.nn.Module):
    def forward(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> Any:
        return args[0] * 2, kwargs["args_0"] * 3


class PositionalOnly(torch.nn.Module):
    def forward(self, x: torch.Tensor, /, **kwargs: torch.Tensor) -> Any:
        return x * 2, kwargs["x"] * 3


class Keys(torch.nn.Module):
    """Keys whose paths look the same."""

    def forward(self, x: Any, y: Any) -> Any:
        return y, x["a"]["b"] * 2, x["a.b"] * 3, x["a_b"] * 4, x["x y"] * 5


@pytest.mark.parametrize("dynamo", [True, False])
def test_names_that_look_the_same(dynamo: bool) -> None:
    x, y = torch.ones(2), torch.ones(3)
    others = [((FIVE, torch.zeros(4)), {})]
    program = check(
        Items(),
        (x, y),
        others=others,
        dynamo=dynamo,
        dynamic_shapes={"args_0": {0: "a"}, "args": ({0: "b"},)},
    )
    assert dims(program)["args_0"] == ["a"]
    shapes = {"args_0": {0: "a"}, "args_0_1": {0: "b"}}
    check(Items(), (x, y), others=others, dynamo=dynamo, dynamic_shapes=shapes)
    check(Keyword(), (x,), {"args_0": y}, dynamo=dynamo)
    check(PositionalOnly(), (x,), {"x": y}, dynamo=dynamo)
    keys = {"a": {"b": x}, "a.b": x + 1, "a_b": x + 2, "x y": x + 3}
    program = check(Keys(), (keys, x), dynamo=dynamo)
    assert len(set(program.input_names)) == 5


class Nested(torch.nn.Module):
    def forward(self, x: torch.Tensor, pair: Any, *, y: torch.Tensor) -> Any:
        return x * 2, pair["a"] * 2, pair["b"], y * 3


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
def test_axes_after_nested_arguments(dynamo: bool) -> None:
    def args(n: int, m: int) -> Any:
        return (torch.ones(n, 3), {"a": torch.ones(2, 3), "b": torch.ones(m, 3)}), {
            "y": torch.ones(m, 3)
        }

    program = check(
        Nested(),
        *args(2, 4),
        others=[args(5, 6)],
        dynamic_axes={"x": {0: "n"}, "y": {-2: "m"}, "pair_b": {0: "m"}},
        dynamo=dynamo,
    )
    assert [dims(program)[name][0] for name in ("x", "pair_a", "pair_b", "y")] == ["n", 2, "m", "m"]


@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
def test_axes_of_unknown_inputs() -> None:
    """Axes of some that are known are not taken for those of others."""
    with pytest.raises(RuntimeError, match="dynamic_axes"):
        pt2onnx.export(
            Nested(),
            (ONE, {"a": ONE, "b": ONE}),
            kwargs={"y": ONE},
            dynamic_axes={"x": {0: "n"}, "z": {0: "m"}},
        )


class Two(torch.nn.Module):
    def forward(self, pair: Named, x: torch.Tensor) -> Any:
        return pair.first + pair.second, x * 2


@pytest.mark.parametrize("dynamo", [True, False])
def test_negative_axes_and_named_tuples_of_none(dynamo: bool) -> None:
    x, axes = torch.ones(3, 2), {-2: "n"}
    pair = Named(x, x)
    for shapes in ({"pair": Named(None, None), "x": {-1: Dim("k")}}, (Named({}, {}), {-1: "k"})):
        program = check(
            Two(),
            (pair, x),
            others=[(pair, torch.ones(3, 5))],
            dynamo=dynamo,
            dynamic_shapes=shapes,
        )
        assert dims(program)["x"] == [3, "k"]
    program = check(
        Two(), (pair, torch.ones(3)), dynamo=dynamo, dynamic_shapes=(Named(axes, axes), {-1: "m"})
    )
    assert [dims(program)[name] for name in program.input_names] == [["n", 2], ["n", 2], ["m"]]
    with pytest.raises(ValueError, match="axis 1 twice"):
        pt2onnx.export(Two(), (pair, x), dynamic_shapes=(Named(None, None), {-1: "k", 1: "m"}))


@torch.jit.script
def scripted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, y])


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"z": {0: "n"}}, "the parameters are x, y"),
        ({"x": {2: "n"}}, "axis 2 of x, which has 1 dimensions"),
        (({0: 5}, None), "axis 0 of x is 5, but it is 2"),
        (({0: "n"}, [{0: "n"}]), "nested"),
    ],
    ids=range(4),
)
def test_dynamic_shapes_of_scripts_that_cannot_be(shapes: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        pt2onnx.export(scripted, (ONE, ONE), dynamic_shapes=shapes)


class Three(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 3:
            return x * 2
        return x * 3


def test_a_dim_by_which_the_code_chooses() -> None:
    """As for a name, there is a model in which it is dynamic."""
    program = check(
        Three(), (torch.ones(3, 2),), dynamic_shapes=({0: Dim("b")},), others=[(torch.ones(5, 2),)]
    )
    assert next(iter(dims(program).values())) == ["b", 2]


def test_a_dim_that_weights_fix() -> None:
    with pytest.warns(UserWarning, match="takes only the sizes of the example"):
        program = pt2onnx.export(
            torch.nn.Linear(3, 3).eval(),
            (torch.ones(2, 3),),
            dynamic_shapes=({0: Dim("b"), 1: Dim("c")},),
        )
    assert dims(program)["input"] == ["b", 3]


def test_numbers_have_no_say_in_types_without_a_trace() -> None:
    """The complex input has no trace."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("factor", torch.tensor(2.0))

        def forward(self, k: Any, z: torch.Tensor) -> Any:
            return z, self.factor * k

    args = (-1.25, torch.tensor(1j))
    program = pt2onnx.export(Model().eval(), args, dynamo=False)
    assert [dtype for _, dtype, _ in program._native.outputs()] == ["float32", "float32"]
    torch.testing.assert_close(program(*args)[1], torch.tensor(-2.5))


@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.uint8], ids=str)
@pytest.mark.parametrize("number", [2, 2.5])
def test_numbers_have_no_say_in_types(number: Any, dtype: torch.dtype, shape: Any) -> None:
    """Whether they are arguments or constants of traces."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, k: Any) -> Any:
            chosen = torch.where(x > k, x, k)
            return x * k, k - x, x / k, x // k, k * 2 * x, k / 2 + x, chosen, x <= k, k**2 * x

    class Constant(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            rest = torch.div(x, number, rounding_mode="floor"), torch.multiply(x, number)
            return x // number, x * number, number // (x + 1), *rest

    def exact(program: pt2onnx.ONNXProgram, model: Any, args: Any) -> None:
        for found, expected in zip(program(*args), model(*args), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)

    x = torch.full(shape, 3).to(dtype)
    program = pt2onnx.export(Model().eval(), (x, number), dynamo=False)
    exact(program, Model(), (x, number))
    exact(program, Model(), (x + 2, number * 3))
    traced = torch.jit.trace(Constant(), (x,))
    for model in (traced, Constant().eval()):
        exact(pt2onnx.export(model, (x,), dynamo=False), Constant(), (x,))
    # The trace itself stays as it is.
    assert [one.dtype for one in traced(x)] == [one.dtype for one in Constant()(x)]


class Joined(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y])


@pytest.mark.parametrize("dynamo", [True, False])
def test_names_that_are_those_of_others_by_default(dynamo: bool) -> None:
    def names(**options: Any) -> Any:
        program = check(Joined(), (ONE, FIVE), dynamo=dynamo, **options)
        return program.input_names, program.output_names

    assert names(input_names=["cat"]) == (["cat", "y"], ["cat_1"])
    with pytest.warns(UserWarning, match="The input `y` is called `y_1`"):
        assert names(input_names=["y"]) == (["y", "y_1"], ["cat"])
    with pytest.warns(UserWarning, match="The input `x` is called `x_1`"):
        assert names(output_names=["x"]) == (["x_1", "y"], ["x"])
    with pytest.warns(UserWarning, match="4 input_names, but the model has 2 inputs"):
        assert names(input_names=list("abcd")) == (["a", "b"], ["cat"])


def test_errors_have_the_names_of_parameters() -> None:
    for name, value in (("opset_version", "x"), ("custom_opsets", {"a": "x"})):
        with pytest.raises(ValueError, match=f"`{name}`"):
            pt2onnx.export(Joined(), (ONE, ONE), **{name: value})


class State(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buf", torch.tensor([1.0, 2.0]))
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> Any:
        self.buf.add_(1)
        x.mul_(2)
        return Plain({"y": self.linear(x) * self.buf, "buf": self.buf})


@pytest.mark.parametrize("method", [True, False])
@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"mutations": "pairs"},
        {"mutations": "outputs"},
        {"mutations": "drop"},
        {"export_params": False},
        {"keep_initializers_as_inputs": True},
    ],
    ids=range(5),
)
@pytest.mark.filterwarnings("ignore:the program writes")
def test_verification_of_written_state(options: dict[str, Any], dynamo: bool, method: bool) -> None:
    module = State().eval()
    model = module.forward if method else module
    program = pt2onnx.export(model, (torch.ones(3, 2),), dynamo=dynamo, verify=True, **options)
    assert program.verification is not None and program.verification.ok
    assert len(program.verification.outputs) == (
        4 if "pairs" in options.values() else 4 if "outputs" in options.values() else 2
    )
    assert module.buf.tolist() == [1, 2]
    # A wrong model is found.
    with torch.no_grad():
        module.linear.weight.add_(1)
    if not options.keys() & {"export_params", "keep_initializers_as_inputs"}:
        fresh = State()
        assert not program.verify(fresh.eval(), (torch.ones(3, 2),)).ok


class Replaces(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buf", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("last", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> Any:
        old, first, (_, second) = self.buf, self.buf[0], self.buf.split([1, 2])
        self.last = self.buf[2:]
        self.buf = self.buf + x
        return old, first, second.view(2, 1), self.buf, self.buf[0], self.last


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("mutations", ["drop", "outputs"])
@pytest.mark.filterwarnings("ignore:the program writes")
def test_views_of_replaced_buffers(mutations: Any, dynamo: bool) -> None:
    """They keep their values: nothing is written."""
    program = pt2onnx.export(
        Replaces().eval(), (torch.ones(3),), mutations=mutations, verify=True, dynamo=dynamo
    )
    assert program.verification is not None and program.verification.ok
    same(program(torch.ones(3))[:6], Replaces()(torch.ones(3)))


@pytest.mark.filterwarnings("ignore:the program writes")
def test_verification_of_tensors_around_functions() -> None:
    count = torch.zeros(1)

    def counted(x: torch.Tensor) -> torch.Tensor:
        count.add_(1)
        return x * count

    program = pt2onnx.export(counted, (ONE,), mutations="outputs", verify=True)
    assert program.verification is not None and program.verification.ok
    assert len(program.verification.outputs) == 2
    assert count.item() == 0


def test_old_keywords() -> None:
    with pytest.warns(DeprecationWarning, match="'state' is called 'mutations' now"):
        program = pt2onnx.export(State().eval(), (torch.ones(3, 2),), state="outputs")
    assert len(program.output_names) == 4


class Kept(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(4.0), persistent=False)
        self.linear = torch.nn.Linear(4, 4)
        self.plain = torch.full((4,), 3.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.table + self.plain


@pytest.mark.parametrize("dynamo", [True, False])
def test_initialisers_that_are_inputs(dynamo: bool) -> None:
    program = check(Kept(), (torch.ones(2, 4),), keep_initializers_as_inputs=True, dynamo=dynamo)
    graph = program.model_proto.graph
    assert {one.name for one in graph.initializer} == {one.name for one in graph.input} - {"x"}
    assert program.input_names == [one.name for one in graph.input]


class Written(Kept):
    def forward(self, x: torch.Tensor) -> Any:
        """A result that is computed from a weight alone, and one that is a constant."""
        rows = (self.linear.bias * 2).unsqueeze(0)
        return super().forward(x), rows, torch.zeros(20)


@pytest.mark.parametrize("dynamo", [True, False])
def test_initialisers_that_are_not_inputs(dynamo: bool) -> None:
    """Constants that the model computes or returns."""
    program = check(Written(), (torch.ones(2, 4),), keep_initializers_as_inputs=True, dynamo=dynamo)
    weights = {"linear.weight", "linear.bias", "table", "plain"}
    assert set(program.input_names) == {"x"} | weights
    assert len(program.to_bytes()) > 0


def test_models_do_not_depend_on_the_caller() -> None:
    """The stack of a node of a trace ends at the module."""
    model = Joined().eval()
    one = pt2onnx.export(model, (ONE, ONE), dynamo=False)
    other = pt2onnx.export(model, (ONE, ONE), dynamo=False)
    assert one.to_bytes() == other.to_bytes()
    assert "pt2onnx/_" not in str(one.model_proto)
