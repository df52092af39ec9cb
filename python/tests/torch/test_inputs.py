"""Exports of all kinds: modules, functions, programs; arguments of all kinds."""

from __future__ import annotations

import collections
import dataclasses
import functools
import io
import pathlib
import threading
import warnings
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import Call, check, dims, operators, same, since


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, scale: torch.Tensor | None = None) -> torch.Tensor:
        y = self.linear(x).relu()
        return y if scale is None else y * scale


def test_module(tmp_path: pathlib.Path) -> None:
    program = check(Net(), (torch.randn(2, 4),), f=tmp_path / "m.onnx", external_data=False)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    assert pt2onnx.diff(tmp_path / "m.onnx", program) == ""
    assert isinstance(program.exported_program, torch.export.ExportedProgram)


def test_tensor_for_args() -> None:
    model, x = Net().eval(), torch.randn(2, 4)
    same(pt2onnx.export(model, x)(x), model(x))


@since(2, 8)
def test_function() -> None:
    check(Call(lambda x, y: (x + y, x - y)), (torch.randn(2), torch.randn(2)))


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
def test_functions_and_methods(dynamo: bool) -> None:
    """Functions of all kinds are captured as modules are, with their dynamic dimensions and
    weights."""
    net = Net().eval()

    def scaled(x: torch.Tensor, by: int = 2) -> torch.Tensor:
        return x * by + x.shape[0]

    compiled = torch.compile(scaled, backend="eager")
    for function in (
        scaled,
        compiled,
        functools.partial(scaled, by=3),
        lambda x: net(x),
        net.forward,
    ):
        program = pt2onnx.export(
            function,
            (torch.randn(2, 4),),
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
            dynamo=dynamo,
        )
        x = torch.randn(5, 4)
        same(program(x), function(x))
    program = pt2onnx.export(net.forward, (x,))
    assert {weight.name for weight in program.model_proto.graph.initializer} == set(
        net.state_dict()
    )


def test_exported_program() -> None:
    model, x = Net().eval(), torch.randn(2, 4)
    exported = torch.export.export(model, (x,))
    program = pt2onnx.export(exported)
    assert program.exported_program is exported
    same(program(x), model(x))
    same(pt2onnx.export(exported.run_decompositions())(x), model(x))


def test_exported_program_and_names() -> None:
    model, x = Net().eval(), torch.randn(2, 4)
    batch = torch.export.Dim("batch")
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    program = pt2onnx.export(
        exported, input_names=["a"], output_names=["b"], dynamic_shapes=({0: "rows"},)
    )
    assert dims(program) == {"a": ["rows", 4], "b": ["rows", 3]}


def test_the_program_is_left_alone() -> None:
    model, x = Net().eval(), torch.randn(2, 4)
    exported = torch.export.export(model, (x,))
    before = str(exported)
    pt2onnx.export(exported)
    assert str(exported) == before


def test_keywords() -> None:
    model, x, scale = Net(), torch.randn(2, 4), torch.randn(3)
    program = check(model, (x,), {"scale": scale})
    same(program(x, scale=scale), model(x, scale))
    same(program(scale=scale, x=x), model(x, scale))
    check(model, (), {"scale": scale, "x": x})


def test_keywords_in_another_order() -> None:
    """Keywords are by name, not by order."""

    class Two(torch.nn.Module):
        def forward(self, a: torch.Tensor, *, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
            return a + 2 * b + 3 * c

    a, b, c = torch.randn(3, 2)
    program = check(Two(), (a,), {"c": c, "b": b})
    same(program(a, b=b, c=c), a + 2 * b + 3 * c)
    same(program(a, c=c, b=b), a + 2 * b + 3 * c)


def test_keywords_as_last_argument() -> None:
    model, x, scale = Net().eval(), torch.randn(2, 4), torch.randn(3)
    same(pt2onnx.export(model, (x, {"scale": scale}))(x, scale), model(x, scale))


def test_dict_as_last_argument() -> None:
    """An empty dict behind it says that the dict is one of the arguments."""
    model, x = Call(lambda d: d["a"] * 2), torch.randn(2)
    same(pt2onnx.export(model, ({"a": x}, {}))({"a": x}), x * 2)


def test_nested_inputs() -> None:
    def function(a: Any, b: Any) -> Any:
        return a["x"] + b[0] * b[1][0], {"first": a["y"]}

    args = ({"x": torch.randn(2), "y": torch.randn(3)}, [torch.randn(2), (torch.randn(2),)])
    check(Call(function), args)


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor | None = None


def test_namedtuple() -> None:
    check(Call(lambda p: Point(p.x + 1, p.y * 2)), (Point(torch.randn(2), torch.randn(3)),))


def test_dataclass() -> None:
    torch.export.register_dataclass(Pair)
    model = Call(lambda p: Pair(p.first + 1, p.second))
    pair = Pair(torch.randn(2), torch.randn(3))
    program = pt2onnx.export(model, (pair,), output_names="from-tree")
    assert program.output_names == ["first", "second"]
    same(program(pair), [pair.first + 1, pair.second])


def test_dataclass_with_none() -> None:
    pair = Pair(torch.randn(2))
    program = pt2onnx.export(Call(lambda p: p.first + 1), (pair,))
    same(program(pair), [pair.first + 1])


def test_none_and_numbers() -> None:
    def function(
        x: torch.Tensor, none: None, number: int, text: str, y: torch.Tensor
    ) -> torch.Tensor:
        return x * number + y if text == "add" else x

    x, y = torch.randn(2), torch.randn(2)
    program = check(Call(function), (x, None, 3, "add", y))
    assert len(program.input_names) == 2


def test_outputs() -> None:
    """Tensors more than once, inputs, constants, numbers, None."""

    def function(x: torch.Tensor) -> Any:
        y = x + 1
        return y, y, x, torch.ones(2), x.shape[0], None, 3

    x = torch.randn(3, 2)
    program = pt2onnx.export(Call(function), (x,), dynamic_shapes=(({0: torch.export.Dim("n")},),))
    found = program(x)
    same(found[:4], [x + 1, x + 1, x, torch.ones(2)])
    assert int(found[4]) == 3


def test_no_inputs() -> None:
    check(Call(lambda: torch.arange(3)), ())


def test_unused_input() -> None:
    program = check(Call(lambda x, y: x + 1), (torch.randn(2), torch.randn(2)))
    assert len(program.input_names) == 2


def test_scalars_and_empty_tensors() -> None:
    check(
        Call(lambda x, y: (x + 1, y.sum(), torch.cat([y, y]))),
        (torch.tensor(2.0), torch.zeros(0, 3)),
    )


def test_types() -> None:
    for dtype in (torch.float16, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool):
        check(Call(lambda x: (x, x.to(torch.float32) + 1)), (torch.ones(2, 3).to(dtype),))


def test_bfloat16() -> None:
    x = torch.randn(4, 4, dtype=torch.bfloat16)
    check(Call(lambda x: (x, x.reshape(2, 8), x.float() * 2)), (x,))
    check(Call(lambda x: x @ x), (x,), target="ort-cpu")


def test_complex() -> None:
    x = torch.randn(3, dtype=torch.complex64)
    check(Call(lambda x: (x * x, x.abs(), x.real)), (x,))


def test_float8() -> None:
    check(Call(lambda x: x.to(torch.float32) * 2), (torch.randn(4).to(torch.float8_e4m3fn),))


def test_noncontiguous_input() -> None:
    model, x = Net(), torch.randn(4, 2).T
    check(model, (x,))
    check(model, (torch.randn(1, 4).expand(3, 4),))


def test_mutated_input() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    check(Call(function), (torch.randn(3),))


def test_no_grad_and_grad() -> None:
    """Weights that require a gradient, inputs that require one."""
    x = torch.randn(2, 4, requires_grad=True)
    model = Net().eval()
    same(pt2onnx.export(model, (x,))(x), model(x))
    with torch.no_grad():
        same(pt2onnx.export(model, (x,))(x), model(x))


def test_control_flow() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))

    check(Call(function), (torch.ones(3),), others=[(-torch.ones(3),)])


def test_positional_of_1_12() -> None:
    """model, args, f, export_params, verbose, training, input_names, output_names"""
    model, x = Net().eval(), torch.randn(2, 4)
    program = pt2onnx.export(model, (x,), None, True, False, None, ["a"], ["b"], None, 18)
    assert (program.input_names, program.output_names, program.opset_version) == (["a"], ["b"], 18)
    with pytest.raises(TypeError):
        pt2onnx.export(model, (x,), None, *range(20))


def test_bytes_io() -> None:
    model, x = Net().eval(), torch.randn(2, 4)
    out = io.BytesIO()
    with pytest.warns(DeprecationWarning):
        program = pt2onnx.export(model, (x,), out)
    assert pt2onnx.diff(out.getvalue(), program) == ""


def test_opset_and_optimize() -> None:
    model, x = Call(lambda x: (x * 1 + 0).transpose(0, 1).transpose(0, 1) + 2), torch.randn(2, 4)
    for opset in (9, 18, 23):
        assert check(model, (x,), opset_version=opset).opset_version == opset
    assert len(operators(check(model, (x,), optimize=False))) > len(operators(check(model, (x,))))


def test_own_options() -> None:
    model, x = Net().eval(), torch.randn(2, 4)
    assert pt2onnx.export(model, (x,), producer="me").model_proto.producer_name == "me"
    with pytest.raises(TypeError, match="'opsett'"):
        pt2onnx.export(model, (x,), opsett=3)


def test_saved_variants(tmp_path: pathlib.Path) -> None:
    model, x = torch.nn.Linear(64, 64).eval(), torch.randn(1, 64)
    path = tmp_path / "m.onnx"
    pt2onnx.export(model, (x,), path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    same(pt2onnx.load(path)(x), model(x))
    pt2onnx.export(model, (x,), path, external_data=False)
    (tmp_path / "m.onnx.data").unlink()
    same(pt2onnx.load(path)(x), model(x))
    pt2onnx.export(model, (x,), path, export_params=False)
    assert path.stat().st_size < 64 * 64
    pt2onnx.export(model, (x,), path, keep_initializers_as_inputs=True, external_data=False)
    assert len(pt2onnx.load(path).input_names) == 3
    pt2onnx.export(model, (x,), str(path))
    same(pt2onnx.load(path)(x), model(x))


def test_state(tmp_path: pathlib.Path) -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.tensor(0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            return x * self.calls

    x = torch.randn(2)
    with pytest.warns(UserWarning, match="calls"):
        program = pt2onnx.export(Counter(), (x,))
    same(program(x), x * 1)
    program = pt2onnx.export(Counter(), (x,), mutations="pairs")
    assert len(program.input_names) == len(program.output_names) == 2


def test_script_module() -> None:
    """torch.jit.script and trace."""
    x = torch.randn(2, 4)
    model = Net().eval()
    for scripted in (torch.jit.trace(model, (x,)), torch.jit.script(model)):
        same(pt2onnx.export(scripted, (x,), dynamo=False)(x), model(x))


def test_nothing_is_left() -> None:
    """Exports change no settings, and none of the model's attributes."""
    model, x = Net(), torch.randn(2, 4)
    before = {name: id(value) for name, value in model.named_parameters()}
    grad, deterministic = torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()
    isinstance_ = torch.jit.isinstance
    pt2onnx.export(model, (x,), dynamic_shapes={"x": {0: "n"}})
    assert {name: id(value) for name, value in model.named_parameters()} == before
    assert model.training
    assert (torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()) == (
        grad,
        deterministic,
    )
    assert torch.jit.isinstance is isinstance_
    assert not torch.onnx.is_in_onnx_export()
    lstm = torch.nn.LSTM(2, 3)
    assert lstm(torch.randn(4, 1, 2))[0].shape == (4, 1, 3)


def test_programs_in_threads() -> None:
    """Exports of programs in several threads at once."""
    import concurrent.futures

    model, x = Net().eval(), torch.randn(2, 4)
    exported = [torch.export.export(model, (x,)) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for program in pool.map(pt2onnx.export, exported * 3):
            same(program(x), model(x))


def test_as_the_exporter_of_torchscript() -> None:
    """With ``dynamo=False``: evaluation mode, numbers are inputs, inputs that nothing uses are not
    there."""

    class Drops(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, x: torch.Tensor, unused: torch.Tensor, n: int) -> torch.Tensor:
            return self.drop(x) + n

    model = Drops().train()
    x = torch.randn(3)
    program = pt2onnx.export(model, (x, x.clone(), 2), dynamo=False)
    assert model.training and model.drop.training
    assert program.input_names == ["x", "n"]
    torch.testing.assert_close(program(x, x, 5)[0], x + 5)


def test_a_tensor_that_is_given_twice() -> None:
    program = check(Call(lambda x, y: x - 2 * y), (X, X), others=[(X, X + 1)])
    assert len(program.input_names) == 2


X = torch.randn(2, 3)


@since(2, 8)
def test_questions_about_sizes_of_the_example() -> None:
    """Code that asks for a dynamic size of 0 is captured as it runs for the example, and for others
    as well, if that is asked for."""

    @torch.jit.script
    def start(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        if state.size(0) == 0:
            return x * 2
        return x * 4

    model = Call(lambda x, state: start(x, state)).eval()
    shapes = {"args": ({0: "rows"}, {0: "n"})}
    x = torch.randn(5, 3)
    with pytest.warns(Warning, match="larger"):
        program = pt2onnx.export(model, (X, torch.empty(0)), dynamic_shapes=shapes, sizes="warn")
    torch.testing.assert_close(program(x, torch.empty(0))[0], x * 2)
    program = pt2onnx.export(model, (X, torch.empty(0)), dynamic_shapes=shapes)
    torch.testing.assert_close(program(x, torch.empty(0))[0], x * 2)
    torch.testing.assert_close(program(x, torch.empty(3))[0], x * 4)


def test_verify_with_keywords_in_another_order() -> None:
    class Keywords(torch.nn.Module):
        def forward(self, *, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a - b.sum()

    model = Keywords().eval()
    b = torch.randn(4)
    shapes = {"a": {0: "n"}, "b": None}
    program = pt2onnx.export(model, kwargs={"a": X, "b": b}, dynamic_shapes=shapes)
    assert pt2onnx.verify(program, model, kwargs={"b": b, "a": X}).ok


class Repeat(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n + torch.ones(n)[0]


@since(2, 8)
@pytest.mark.parametrize("size", [torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO])
def test_integers_that_are_dynamic(size: Any) -> None:
    program = check(
        Repeat(),
        (torch.randn(3, 2), 5),
        others=[(torch.randn(4, 2), 3)],
        dynamic_shapes=({0: "rows"}, size),
        verify=True,
    )
    assert program.input_names == ["x", "n"] and program.verification.ok


@since(2, 8)
def test_integers_that_are_static() -> None:
    program = check(
        Repeat(),
        (torch.randn(3, 2), 5),
        dynamic_shapes={"x": {0: "rows"}, "n": torch.export.Dim.STATIC},
    )
    assert program.input_names == ["x"]


@since(2, 8)
@pytest.mark.parametrize("size", [torch.export.Dim("n"), {0: "n"}])
def test_integers_that_cannot_be_dynamic(size: Any) -> None:
    """A model in which they are static is not made instead."""
    with pytest.raises(pt2onnx.TorchExportError, match="Dim"):
        pt2onnx.export(
            Repeat().eval(),
            (torch.randn(3, 2), 5),
            dynamic_shapes=({0: "rows"}, size),
            fallback=True,
        )


class Sum(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


@since(2, 8)
@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"c": {0: "n"}}, "must be the arg names"),
        ({"a": {0: "n"}, "b": {0: "n"}, "c": {0: "n"}}, "must be the arg names"),
        (({0: "n"}, {0: "n"}, {0: "n"}), "has 2 elements, but `dynamic_shapes` has 3"),
        (({0: "n"}, {2: "n"}), "axis 2 of b, which has 2 dimensions"),
        (({0: "n"}, {-3: "n"}), "axis -3 of b, which has 2 dimensions"),
        (({0: 3}, {0: 2}), "axis 0 of a is 3, but it is 2"),
    ],
)
def test_dynamic_shapes_that_cannot_be(shapes: Any, text: str, fallback: bool) -> None:
    """Shapes that do not fit the arguments are an error, whichever way the module would be
    captured."""
    args = (torch.randn(2, 3), torch.randn(2, 3))
    with pytest.raises(pt2onnx.TorchExportError, match=text):
        pt2onnx.export(Sum().eval(), args, dynamic_shapes=shapes, fallback=fallback)


@since(2, 8)
@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (Sum(), ({0: "n"}, None)),
        (torch.nn.Bilinear(3, 3, 2), ({1: torch.export.Dim.DYNAMIC}, None)),
    ],
)
def test_dimensions_that_cannot_be_dynamic(model: torch.nn.Module, shapes: Any) -> None:
    """A module that takes no other size is not captured by a trace or script instead, which would
    say that it does."""
    args = (torch.randn(2, 3), torch.randn(2, 3))
    with pytest.raises(
        pt2onnx.TorchExportError, match="The module fails at other sizes of the dynamic dimensions"
    ):
        pt2onnx.export(model.eval(), args, dynamic_shapes=shapes)


def test_axes_that_are_not_there() -> None:
    with pytest.warns(
        UserWarning, match="dynamic_axes has axis 5 of an input that has 2 dimensions"
    ):
        program = pt2onnx.export(
            torch.nn.ReLU(),
            (torch.randn(2, 3),),
            input_names=["x"],
            dynamic_axes={"x": {0: "n", 5: "m"}},
            dynamo=False,
        )
    assert dims(program)["x"] == ["n", 3]


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: Any = None, bias: Any = None) -> torch.Tensor:
        return (x if scale is None else x * scale) if bias is None else x - bias


class KeywordOnly(torch.nn.Module):
    def forward(self, x: torch.Tensor, *, bias: torch.Tensor) -> torch.Tensor:
        return x - bias


class Keywords(torch.nn.Module):
    def forward(self, x: torch.Tensor, **others: torch.Tensor) -> torch.Tensor:
        return x - others["bias"]


class Positions(torch.nn.Module):
    def forward(self, *args: torch.Tensor, bias: Any = None) -> torch.Tensor:
        return args[0] - bias


@pytest.mark.parametrize("kind", [Scaled, KeywordOnly, Keywords, Positions])
@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("names", [None, ["first", "second"]])
@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
def test_dynamic_axes_of_keywords(kind: Any, dynamo: bool, names: Any) -> None:
    """A keyword stays one: no parameter before it is given, and its axes are found by its name."""
    model, x, other = kind().eval(), torch.randn(2, 3), torch.randn(5, 3)
    first, second = names or ("args_0" if kind is Positions else "x", "bias")
    program = pt2onnx.export(
        model,
        (x,),
        kwargs={"bias": x * 2},
        input_names=names,
        dynamic_axes={first: {0: "n"}, second: {0: "n"}},
        dynamo=dynamo,
    )
    same(program(other, bias=other + 1), model(other, bias=other + 1))
    assert [size[0] for size in dims(program).values()] == ["n"] * 3


@pytest.mark.parametrize(
    "shapes", [{"x": {0: "n"}, "bias": {0: "n"}}, {"x": {0: "n"}, "others": {"bias": {0: "n"}}}]
)
def test_dynamic_shapes_of_keywords(shapes: Any) -> None:
    """Items of ``**others`` have dynamic shapes by their own names as well."""
    model, x = Keywords().eval(), torch.randn(2, 3)
    program = check(
        model,
        (x,),
        {"bias": x * 2},
        others=[((torch.randn(5, 3),), {"bias": torch.randn(5, 3)})],
        dynamic_shapes=shapes,
    )
    assert dims(program)["x"] == ["n", 3]


class Both(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return x.sum(1), y.sum(1)


@pytest.mark.parametrize(
    "shapes", [{"y": {0: "n"}, "x": {0: "m"}}, {"x": {0: "m"}, "y": {0: "n"}}, ({0: "m"}, {0: "n"})]
)
def test_order_of_dynamic_shapes(shapes: Any) -> None:
    """Dimensions have their names in whichever order arguments and shapes are."""
    x, y = torch.randn(2, 3), torch.randn(4, 3)
    for args, kwargs in (((x, y), {}), ((), {"y": y, "x": x})):
        found = dims(check(Both(), args, kwargs, dynamic_shapes=shapes))
        assert (found["x"], found["y"]) == (["m", 3], ["n", 3])


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.sum() > 100:
            x = x * 3
        return x * 2 - y


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_program_with_keywords(dynamo: bool) -> None:
    """Keywords of a call are taken by name, whatever the model was made from."""
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    for model in (
        Chosen().eval(),
        torch.jit.script(Chosen()),
        torch.jit.trace(Both(), (x, y)),
        Both(),
    ):
        program = pt2onnx.export(model, (x, y), dynamo=dynamo)
        for args, kwargs in (((), {"x": x, "y": y}), ((), {"y": y, "x": x}), ((x,), {"y": y})):
            same(program(*args, **kwargs), model(x, y))
        same(pt2onnx.export(model, kwargs={"y": y, "x": x}, dynamo=dynamo)(y=y, x=x), model(x, y))


def test_axes_of_a_parameter_with_another_name() -> None:
    """As in torch.onnx, ``dynamic_axes`` do not know a parameter by its own name where it is given
    another."""
    with pytest.warns(UserWarning, match="Provided key input"):
        program = pt2onnx.export(
            torch.nn.ReLU(),
            (torch.randn(2, 3),),
            input_names=["in"],
            dynamic_axes={"input": {0: "n"}},
            dynamo=False,
        )
    assert dims(program)["in"] == [2, 3]


class Queries(torch.nn.Module):
    """Attention to the features of a convolution, whose layout torch asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Conv2d(3, 4, 3)
        self.queries = torch.nn.Parameter(torch.randn(1, 5, 4))
        self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.features(x).flatten(2).transpose(1, 2)
        return self.attention(
            self.queries.expand(x.shape[0], -1, -1), found, found, need_weights=False
        )[0]


@since(2, 8)
@pytest.mark.parametrize("dynamo", [False, True])
def test_example_with_a_batch_of_1(dynamo: bool) -> None:
    """A decision of torch by the size 1 of an example does not become a part of the model."""
    check(
        Queries(),
        (torch.randn(1, 3, 8, 8),),
        others=[(torch.randn(3, 3, 8, 8),)],
        dynamic_shapes=({0: "n"},),
        dynamo=dynamo,
    )


class Cached(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        keys = torch.cat([past, x], 1)
        return self.attention(x, keys, keys, key_padding_mask=mask, need_weights=False)[0]


@since(2, 8)
def test_example_of_size_1_that_cannot_be_larger() -> None:
    """Sizes that follow from others do not grow alone: the model is that of the example, and a
    warning says so."""

    def args(batch: int, length: int, past: int) -> Any:
        return (
            torch.randn(batch, length, 4),
            torch.randn(batch, past, 4),
            torch.zeros(batch, past + length, dtype=torch.bool),
        )

    shapes = ({0: "n", 1: "length"}, {0: "n", 1: "past"}, {0: "n", 1: "total"})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        program = pt2onnx.export(Cached().eval(), args(1, 1, 4), dynamic_shapes=shapes)
    found = program(*args(2, 3, 2))[0]
    assert found.shape == (2, 3, 4) or any(
        "may be wrong where sizes are larger" in str(one.message) for one in seen
    )


class One(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] == 1 else x * 3


@since(2, 8)
def test_code_that_asks_for_1() -> None:
    """A branch that is taken for one size only stays in the model, or makes the dimension
    static."""
    x = torch.randn(1, 3)
    others = [(torch.randn(2, 3),), (torch.randn(5, 3),)]
    program = check(One(), (x,), dynamic_shapes=({0: "n"},), others=others)
    assert dims(program)["x"] == ["n", 3]
    with pytest.warns(UserWarning, match="so they are static"):
        program = check(One(), (x,), dynamic_shapes=({0: "n"},), sizes="warn")
    assert dims(program)["x"] == [1, 3]
    with pytest.warns(UserWarning, match="so they are static"):
        half = Call(lambda x: x * int(round(x.shape[0] / 2.0)))  # noqa: RUF046
        check(half, (x,), dynamic_shapes=(({0: "n"},),), sizes="warn")


class Together(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[: y.shape[0]] if x.shape[0] > y.shape[0] else x + y.sum()


@since(2, 8)
def test_branches_by_sizes_of_one_name(recwarn: pytest.WarningsRecorder) -> None:
    """A condition that holds because two dimensions have one name is not reported."""
    args = (torch.randn(4, 5), torch.randn(4, 2))
    check(Together(), args, dynamic_shapes=({0: "n"}, {0: "n"}))
    check(Together(), args, dynamic_shapes=({0: "n"}, {0: "m"}), sizes="merge")
    assert not [one for one in recwarn if "holds only" in str(one.message)]
    check(Together(), args, dynamic_shapes=({0: "n"}, {0: "m"}), sizes="warn")
    assert [one for one in recwarn if "holds only where n <= m. The code" in str(one.message)]


class UpTo40(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] * x.shape[1] > 40 and x.shape[0] % 2 == 0 else x.clamp(max=0.5)


@since(2, 8)
@pytest.mark.parametrize("way", [0, 1])
def test_branches_by_sizes(way: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch that holds for some sizes is reported, whichever way captures it."""
    from pt2onnx._capture import _torch_export

    monkeypatch.setattr(_torch_export, "STRATEGIES", _torch_export.STRATEGIES[way : way + 1])
    shapes, x = ({0: "rows", 1: "cols"},), torch.randn(4, 5)
    with pytest.warns(
        UserWarning,
        match=r"The model holds only where (rows \* cols|cols \* rows|rows\*cols|cols\*rows) "
        r"<= 40. .* at .*test_inputs.py:\d+: `return x \* 2 if",
    ):
        check(UpTo40(), (x,), dynamic_shapes=shapes, sizes="warn")
    others = [(torch.randn(rows, cols),) for rows, cols in ((4, 10), (6, 7), (5, 9), (41, 1))]
    check(UpTo40(), (x,), dynamic_shapes=shapes, others=others)


@since(2, 8)
def test_sums_of_many_sizes() -> None:
    shapes = (({0: "rows", 1: "cols"},),)
    model = Call(lambda x: x * torch.sym_sum([x.shape[0], x.shape[1], 3, x.shape[0]]))
    check(model, (torch.randn(2, 3),), dynamic_shapes=shapes, others=[(torch.randn(4, 5),)])


def test_modules_in_threads() -> None:
    """Exports at the same time leave torch as it was."""
    from torch.fx.experimental.sym_node import SymNode

    def state() -> Any:
        kernels = [dict(getattr(torch.ops.aten, name).input.py_kernels) for name in ("lstm", "gru")]
        return torch.onnx.is_in_onnx_export(), SymNode.guard_bool, torch.jit.isinstance, kernels

    def export(at: int) -> None:
        pt2onnx.export(
            torch.nn.Sequential(*[torch.nn.Linear(4, 4)] * at).eval(),
            (torch.randn(2, 4),),
            dynamic_shapes=({0: "n"},),
        )

    before = state()
    threads = [threading.Thread(target=export, args=(1 + at * 4,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state() == before


def test_compiled_module() -> None:
    """The result of ``torch.compile`` of a module is exported as the module: parameters and weights
    have their own names."""
    net, x = Net().eval(), torch.randn(2, 4)
    for options in (
        {"dynamic_shapes": ({0: "n"},)},
        {"dynamic_axes": {"x": {0: "n"}}, "dynamo": False},
    ):
        program = pt2onnx.export(torch.compile(net, backend="eager"), (x,), verify=True, **options)
        assert program.input_names == ["x"] and program.verification.ok
        assert {weight.name for weight in program.model_proto.graph.initializer} == set(
            net.state_dict()
        )


class Cropped(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = int(round((x.shape[0] - 4) / 2.0))  # noqa: RUF046
        return x[start : start + 4]


class Even(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] % 2 == 0 else x * 3


class Long(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 4 else x * 3


@since(2, 8)
def test_numbers_and_branches_by_sizes() -> None:
    """Choices of the code by the sizes of the example are reported, unless the program's own ranges
    imply them."""
    for kind, condition in ((Cropped, "`n` is 7 to 9, but .* for 1 or more"), (Even, "n % 2")):
        with pytest.warns(
            UserWarning, match=rf"holds only where .*{condition}.* at .*test_inputs.py"
        ):
            shapes = ({0: "n"},)
            pt2onnx.export(kind(), (torch.randn(8, 3),), dynamic_shapes=shapes, sizes="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pt2onnx.OnnxExporterWarning)
        warnings.simplefilter("error", torch.onnx.errors.OnnxExporterWarning)
        shapes = ({0: torch.export.Dim("n", min=5)},)
        pt2onnx.export(Long(), (torch.randn(8, 3),), dynamic_shapes=shapes, sizes="warn")
        for kind in (Cropped, Even, Long):
            others = [(torch.randn(rows, 3),) for rows in (4, 5, 7, 12)]
            check(kind(), (torch.randn(8, 3),), dynamic_shapes=({0: "n"},), others=others)


class Expanded(torch.nn.Module):
    """Does for one batch size what makes no difference there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(3.0)[None]
        if x.shape[0] != places.shape[0]:
            places = places.expand(x.shape[0], -1)
        return torch.cat([x, places], 1)


@since(2, 8)
def test_branch_for_1_that_makes_no_difference() -> None:
    """If the branch of larger sizes computes the same for the example, it is the one for all
    sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.onnx.errors.OnnxExporterWarning)
        check(
            Expanded(),
            (torch.randn(1, 3),),
            others=[(torch.randn(4, 3),)],
            dynamic_shapes=({0: "n"},),
        )
