"""Files of torch.jit.save, converted without PyTorch."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import check, same


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, twice: bool = False) -> torch.Tensor:
        y = self.linear(x).relu()
        if twice:
            y = y * 2
        return y


X = torch.randn(2, 4)


def test_trace(tmp_path: pathlib.Path) -> None:
    """A trace brings the types of its inputs."""
    net = Net().eval()
    torch.jit.trace(net, (X,)).save(str(tmp_path / "net.pt"))
    program = pt2onnx.convert(tmp_path / "net.pt", tmp_path / "net.onnx")
    torch.testing.assert_close(program(X)[0], net(X))
    torch.testing.assert_close(pt2onnx.load(tmp_path / "net.onnx")(X)[0], net(X))


@pytest.mark.parametrize("twice", [False, True])
def test_script(twice: bool) -> None:
    """A script is given the types of its inputs; names are dynamic sizes, numbers and bools are
    fixed."""
    net = Net().eval()
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(net), file)
    program = pt2onnx.convert(
        file.getvalue(), input={"x": "float32[batch,4]", "twice": str(twice).lower()}
    )
    for size in (2, 5):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x)[0], net(x, twice))


def test_script_without_types() -> None:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Net()), file)
    with pytest.raises(ValueError, match="x: Tensor"):
        pt2onnx.convert(file.getvalue())


class Nested(torch.nn.Module):
    """Takes lists and tuples, and a number that says how often."""

    def forward(
        self, x: torch.Tensor, more: list[torch.Tensor], pair: tuple[torch.Tensor, int], k: int = 2
    ) -> tuple[torch.Tensor, int]:
        for _i in range(k):
            x = x + more[0]
        return x * pair[0] + pair[1], x.size(0)


@pytest.mark.parametrize("k", [1, 4])
def test_export_of_a_script(k: int) -> None:
    """Nested arguments have paths, numbers are inputs, ``dynamic_axes`` are by path."""
    scripted = torch.jit.script(Nested())
    y = torch.tensor(2.0)
    program = pt2onnx.export(
        scripted,
        (X, [X], (y, 3)),
        kwargs={"k": 2},
        dynamic_axes={"x": {0: "rows"}, "more.0": {0: "rows"}},
    )
    assert program.input_names == ["x", "more_0", "pair_0", "pair_1", "k"]
    other = torch.randn(5, 4)
    found = program(other, [other], (y, 7), k=k)
    expected = scripted(other, [other], (y, 7), k)
    torch.testing.assert_close(found[0], expected[0])
    assert found[1] == expected[1]


def test_export_of_a_scripted_function() -> None:
    @torch.jit.script
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    program = pt2onnx.export(
        scaled, (X, 0.5), input_names=["x", "by"], dynamic_shapes={"x": {0: "rows"}}, verify=True
    )
    assert program.verification is not None and program.verification.ok
    torch.testing.assert_close(program(torch.ones(3, 4), 2.0)[0], torch.full((3, 4), 2.0))


def test_names_of_sizes_need_not_be_equal() -> None:
    """Two dimensions of one name that have different sizes are two."""
    scripted = torch.jit.script(Net().eval())
    program = pt2onnx.export(
        scripted, (torch.randn(3, 4),), input_names=["in"], dynamic_axes={"in": {0: "batch size"}}
    )
    assert (
        program.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch size"
    )

    @torch.jit.script
    def joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y])

    program = pt2onnx.export(
        joined, (torch.ones(2), torch.ones(3)), dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}
    )
    assert program(torch.ones(4), torch.ones(1))[0].shape == (5,)


class Branches(torch.nn.Module):
    """A module that torch.export refuses and torch.jit.script does not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x - 1


def test_scripts_where_export_fails() -> None:
    program = pt2onnx.export(Branches().eval(), (X,))
    for x in (torch.ones(2, 4), -torch.ones(2, 4)):
        torch.testing.assert_close(program(x)[0], Branches()(x))


class Options(torch.nn.Module):
    def forward(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]:
        large: torch.Tensor | None = None
        positive: torch.Tensor | None = None
        if x.size(0) > 2:
            large = x[1:] * 2
        if bool(x.sum() > 0):
            positive = x + 1
        return large, positive, x.relu()


def test_results_that_may_be_none() -> None:
    """Results that sizes or data may make None are optional."""
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Options()), file)
    program = pt2onnx.convert(file.getvalue(), input={"x": "float32[n,4]"})
    for x in (torch.ones(2, 4), torch.ones(5, 4), -torch.ones(5, 4), -torch.ones(1, 4)):
        for found, expected in zip(program(x), Options()(x), strict=True):
            if expected is None:
                assert found is None
            else:
                torch.testing.assert_close(found, expected)


class WrittenInLoop(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows: list[torch.Tensor] = []
        total = torch.zeros(4)
        for i in range(x.size(0)):
            total += x[i]
            rows.append(total)
        return torch.stack(rows)


class WrittenAfter(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows: list[torch.Tensor] = []
        y = x * 1
        for i in range(x.size(0)):
            rows.append(y[i])
        y.add_(1)
        return torch.stack(rows)


class WrittenThrough(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows: list[torch.Tensor] = []
        y = x * 1
        for i in range(x.size(0)):
            rows.append(y[i])
        rows[0].add_(1)
        return y, torch.stack(rows)


@pytest.mark.parametrize("net", [WrittenInLoop(), WrittenAfter(), WrittenThrough()])
def test_lists_have_no_copies_of_what_changes(net: torch.nn.Module) -> None:
    """A list of unknown length holds copies, so that writes into its elements are errors."""
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(net), file)
    with pytest.raises(
        pt2onnx.ConversionError,
        match=r"a tensor that (it adds to a list|it holds|a list of unknown length holds)",
    ):
        pt2onnx.convert(file.getvalue(), input={"x": "float32[n,4]"})


class Chosen(torch.nn.Module):
    """Lists and dicts that data choose, after a change of one of them."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = [x], [x * 2]
        c, d = {"k": x}, {"k": x * 2}
        if bool(x.sum() > 0):
            a[0] = x + 5
            c["k"] = x + 7
            chosen, named = a, c
        else:
            chosen, named = b, d
        return chosen[0], named["k"]


class ChangedAfter(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = [x], [x * 2]
        if bool(x.sum() > 0):  # noqa: SIM108
            chosen = a
        else:
            chosen = b
        a[0] = x - 1
        return chosen[0]


def test_lists_that_data_choose() -> None:
    """They are copies: a change that does not reach them is an error."""
    program = pt2onnx.export(torch.jit.script(Chosen()), (X,))
    for x in (torch.ones_like(X), -torch.ones_like(X)):
        same(program(x), Chosen()(x))
    with pytest.raises(pt2onnx.ConversionError, match="changed by another name"):
        pt2onnx.export(torch.jit.script(ChangedAfter()), (X,))


class Result(dict):  # type: ignore[type-arg]
    """A container that torch.export does not know."""


class Unknown(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, scale: dict[str, torch.Tensor]) -> Result:
        y = self.linear(x)
        return Result(y=y * scale["by"], rows=y.shape[0])


def test_traces_where_export_fails() -> None:
    """The trace has the names of the module's weights and of the arguments, and its sizes are
    dynamic."""
    model = Unknown().eval()
    shapes = {"x": {0: "rows"}, "scale": {"by": None}}
    program = pt2onnx.export(
        model, (X,), kwargs={"scale": {"by": torch.tensor(2.0)}}, dynamic_shapes=shapes
    )
    assert program.input_names == ["x", "scale_by"]
    assert {i.name for i in program.model_proto.graph.initializer} >= {
        "linear.weight",
        "linear.bias",
    }
    x = torch.randn(5, 4)
    found = program(x, {"by": torch.tensor(3.0)})
    torch.testing.assert_close(found[0], model(x, {"by": torch.tensor(3.0)})["y"])
    assert found[1] == 5


def test_traces_of_one_case_are_refused() -> None:
    """A trace that follows the example's values is not a model of the module, unless the exporter
    that traces is asked for."""

    class Chooses(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Result:
            return Result(y=x * 2 if float(x.sum()) > 0 else x)

    with pytest.raises(pt2onnx.TorchExportError) as caught:
        pt2onnx.export(Chooses().eval(), (X,))
    assert "for these arguments only" in str(caught.value)
    assert {"TraceStrategy", "ScriptStrategy"} <= caught.value.failures_by_strategy.keys()
    with pytest.warns(Warning, match="may be wrong for other arguments"):
        pt2onnx.export(Chooses().eval(), (X,), dynamo=False)


class Steps(torch.nn.Module):
    """As many steps as there are rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x[0])
        for row in range(x.shape[0]):
            total = total * 0.5 + x[row]
        return total


class StepsOfSteps(Steps):
    """The same in a container that neither torch.export nor TorchScript knows."""

    def forward(self, x: torch.Tensor) -> Any:
        return Result(y=super().forward(x))


def test_traces_of_one_size_are_refused() -> None:
    """The tracer does not report that it unrolled a loop over a size."""
    program = pt2onnx.export(Steps().eval(), (X,), dynamic_shapes={"x": {0: "n"}})
    x = torch.randn(5, 4)
    torch.testing.assert_close(program(x)[0], Steps()(x))
    with pytest.raises(
        pt2onnx.TorchExportError,
        match=r"something else at other sizes \(.*test_torchscript.py:\d+\)",
    ):
        pt2onnx.export(StepsOfSteps().eval(), (X,), dynamic_shapes={"x": {0: "n"}})
    # All sizes are those of the example.
    program = pt2onnx.export(StepsOfSteps().eval(), (X,))
    torch.testing.assert_close(program(X)[0], Steps()(X))


def test_traces_at_more_sizes() -> None:
    """Expressions of sizes may be computed, and sizes may have to be even."""

    class Halves(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Result:
            halves = x.view(x.shape[0] // 2, 2, 4)[:, : x.shape[1]].sum(1)
            return Result(y=halves * x.shape[0], z=y[: x.shape[0]] + torch.arange(x.shape[0]))

    model, names = Halves().eval(), {"x": {0: "n"}, "y": {0: "n"}}
    program = pt2onnx.export(model, (X, torch.randn(2)), dynamic_shapes=names)
    x, y = torch.randn(6, 4), torch.randn(6)
    for found, expected in zip(program(x, y), model(x, y).values(), strict=False):
        torch.testing.assert_close(found, expected)


def test_dynamic_axes() -> None:
    """Axes of a trace become dynamic, by the names of inputs in the model."""
    net, file = Net().eval(), io.BytesIO()
    torch.jit.save(torch.jit.trace(net, (X,)), file)
    for names in (None, ["image"]):
        axes = {(names or ["x"])[0]: {0: "batch"}}
        program = pt2onnx.convert(file.getvalue(), input_names=names, dynamic_axes=axes)
        for size in (2, 5):
            x = torch.randn(size, 4)
            torch.testing.assert_close(program(x)[0], net(x))


def test_parameters_as_inputs() -> None:
    net, file = Net().eval(), io.BytesIO()
    torch.jit.save(torch.jit.script(net), file)
    program = pt2onnx.convert(
        file.getvalue(),
        input={"x": "float32[n,4]"},
        weights="none",
        keep_initializers_as_inputs=True,
        input_names=["x", "w", "b"],
    )
    assert program.input_names == ["x", "w", "b"]
    torch.testing.assert_close(
        program(X, net.linear.weight.detach(), net.linear.bias.detach())[0], net(X)
    )


def test_the_line_of_an_error() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to_sparse().to_dense() + x

    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Odd()), file)
    with pytest.raises(
        pt2onnx.UnsupportedOperatorError, match=r"test_torchscript.py:[0-9]+: return x.to_sparse"
    ):
        pt2onnx.convert(file.getvalue(), input={"x": "float32[3,3]"})


def test_options_of_torchscript_for_others() -> None:
    file = io.BytesIO()
    torch.export.save(torch.export.export(Net().eval(), (X,)), file)
    for options in ({"input": {"x": "none"}}, {"method": "encode"}):
        with pytest.raises(ValueError, match="for TorchScript archives"):
            pt2onnx.convert(file.getvalue(), **options)


def test_the_callers_of_the_torchscript_exporter(tmp_path: pathlib.Path) -> None:
    net = Net().eval()
    program = pt2onnx.export(
        net,
        (X,),
        tmp_path / "net.onnx",
        input_names=["x", "w", "b"],
        export_params=False,
        dynamo=False,
    )
    assert program.input_names == ["x", "w", "b"]
    saved = pt2onnx.load(tmp_path / "net.onnx")
    torch.testing.assert_close(
        saved(X, net.linear.weight.detach(), net.linear.bias.detach())[0], net(X)
    )
    kind = torch.onnx.OperatorExportTypes.ONNX_ATEN
    nodes = pt2onnx.export(
        net, (X,), dynamo=False, operator_export_type=kind
    ).model_proto.graph.node
    assert {(node.domain, node.op_type) for node in nodes} == {("org.pytorch.aten", "ATen")}


def with_defaults(
    x: torch.Tensor, by: float = 2.0, shift: torch.Tensor | None = None
) -> torch.Tensor:
    return x * by if shift is None else x + shift


def without_defaults(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


@pytest.mark.parametrize("dynamo", [False, True])
def test_defaults_of_functions(dynamo: bool) -> None:
    """Arguments of a function that are not given have their defaults; others are asked for by
    name."""
    x = torch.randn(3, 2)
    program = check(torch.jit.script(with_defaults), (x,), dynamo=dynamo)
    assert program.input_names == ["x"]
    with pytest.raises(
        (TypeError, pt2onnx.OnnxExporterError), match="no argument is given for `by: float`"
    ):
        pt2onnx.export(torch.jit.script(without_defaults), (x,), dynamo=dynamo)


class AnyNumber(torch.nn.Module):
    """Layers on two of any number of inputs: the tracer calls both inputs `input`."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = torch.nn.Linear(3, 4), torch.nn.Linear(5, 4)

    def forward(self, *x: torch.Tensor) -> torch.Tensor:
        return self.one(x[0]) + self.other(x[1]) * x[2]


def test_inputs_of_one_name() -> None:
    args = torch.randn(2, 3), torch.randn(2, 5), torch.randn(2, 1)
    traced = torch.jit.trace(AnyNumber().eval(), args)
    program = pt2onnx.export(traced, args, dynamic_shapes=({0: "n"},) * 3)
    assert program.input_names == ["input", "input0", "argument_3"]
    others = torch.randn(4, 3), torch.randn(4, 5), torch.randn(4, 1)
    same(program(*others), traced(*others))
    with pytest.raises(
        ValueError, match="`dynamic_shapes` has axis 2 of input, which has 2 dimensions"
    ):
        pt2onnx.export(traced, args, dynamic_shapes=(({0: "n"},) * 3,))
